;; Adds to a conversation in a role that does not exist.
;; expect: fault protocol | fault trap
(import "arena:negotiation/inference@0.1.0" "[static]chat.open"
  (func $open (param i32 i32 i32)))
(import "arena:negotiation/inference@0.1.0" "[method]chat.add"
  (func $add (param i32 i32 i32 i32 i32)))
(data (i32.const 2048) "echo")
(func (export "act") (param i32 i32) (result i32)
  (call $open (i32.const 2048) (i32.const 4) (i32.const 3072))
  (call $add (i32.load (i32.const 3076)) (i32.const 7) (i32.const 2048) (i32.const 4)
    (i32.const 3200))
  (call $reject))
