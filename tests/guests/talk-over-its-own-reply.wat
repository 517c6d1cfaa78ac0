;; Says the very bytes that describe the reply.
;; expect: contained
(func (export "act") (param i32 i32) (result i32)
  (drop (call $reject))
  (i32.store (i32.const 1036) (i32.const 1024))
  (i32.store (i32.const 1040) (i32.const 32))
  (i32.const 1024))
