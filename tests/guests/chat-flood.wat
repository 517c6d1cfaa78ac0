;; Opens conversations without ever dropping one.
;; expect: fault protocol | fault trap
(import "arena:negotiation/inference@0.1.0" "[static]chat.open"
  (func $open (param i32 i32 i32)))
(data (i32.const 2048) "echo")
(func (export "act") (param i32 i32) (result i32)
  (loop $again
    (call $open (i32.const 2048) (i32.const 4) (i32.const 3072))
    (br_if $again (i32.eqz (i32.load8_u (i32.const 3072)))))
  (unreachable))
