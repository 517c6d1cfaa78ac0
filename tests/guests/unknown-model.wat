;; Asks for a model that nobody granted: an error value, not a trap.
;; expect: contained
(import "arena:negotiation/inference@0.1.0" "[static]chat.open"
  (func $open (param i32 i32 i32)))
(data (i32.const 2048) "gpt-9")
(func (export "act") (param i32 i32) (result i32)
  (call $open (i32.const 2048) (i32.const 5) (i32.const 3072))
  (if (i32.eqz (i32.load8_u (i32.const 3072))) (then (unreachable)))
  (call $reject))
