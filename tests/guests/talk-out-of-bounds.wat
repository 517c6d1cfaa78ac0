;; Points its talk behind its memory.
;; expect: fault protocol
(func (export "act") (param i32 i32) (result i32)
  (drop (call $reject))
  (i32.store (i32.const 1036) (i32.const 0x7ffffff0))
  (i32.store (i32.const 1040) (i32.const 64))
  (i32.const 1024))
