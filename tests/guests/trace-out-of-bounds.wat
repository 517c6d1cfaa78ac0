;; Notes from behind its memory.
;; expect: fault protocol | fault trap
(import "arena:negotiation/trace@0.1.0" "note" (func $note (param i32 i32)))
(func (export "act") (param i32 i32) (result i32)
  (call $note (i32.const 0x7ffffff0) (i32.const 64))
  (call $reject))
