;; Uses a handle that the host never gave.
;; expect: fault protocol | fault trap
(import "arena:negotiation/inference@0.1.0" "[method]chat.add"
  (func $add (param i32 i32 i32 i32 i32)))
(func (export "act") (param i32 i32) (result i32)
  (call $add (i32.const 77) (i32.const 1) (i32.const 2048) (i32.const 4) (i32.const 3200))
  (call $reject))
