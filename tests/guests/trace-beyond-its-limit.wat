;; Notes more than is kept. The rest is dropped and the record says so.
;; expect: contained
(import "arena:negotiation/trace@0.1.0" "note" (func $note (param i32 i32)))
(func (export "act") (param i32 i32) (result i32)
  (memory.fill (i32.const 8192) (i32.const 66) (i32.const 20000))
  (call $note (i32.const 8192) (i32.const 20000))
  (call $reject))
