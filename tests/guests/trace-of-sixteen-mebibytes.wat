;; Notes more in one call than a call may carry.
;; expect: fault protocol | fault fuel
(import "arena:negotiation/trace@0.1.0" "note" (func $note (param i32 i32)))
(func (export "act") (param i32 i32) (result i32)
  (drop (memory.grow (i32.const 200)))
  (call $note (i32.const 2048) (i32.const 0x00b00000))
  (call $reject))
