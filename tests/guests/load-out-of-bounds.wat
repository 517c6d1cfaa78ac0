;; Loads beyond its memory.
;; expect: fault trap
(func (export "act") (param i32 i32) (result i32) (i32.load (i32.const 0x7ffffff0)))
