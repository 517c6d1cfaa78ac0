;; Notes one byte until the host has had enough calls.
;; expect: fault protocol | fault fuel
(import "arena:negotiation/trace@0.1.0" "note" (func $note (param i32 i32)))
(func (export "act") (param i32 i32) (result i32)
  (loop $again (call $note (i32.const 2048) (i32.const 1)) (br $again))
  (unreachable))
