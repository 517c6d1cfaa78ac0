;; Says as much as is allowed, every turn.
;; expect: contained
(func (export "act") (param i32 i32) (result i32)
  (memory.fill (i32.const 8192) (i32.const 65) (i32.const 1024))
  (drop (call $reject))
  (i32.store (i32.const 1036) (i32.const 8192))
  (i32.store (i32.const 1040) (i32.const 1024))
  (i32.const 1024))
