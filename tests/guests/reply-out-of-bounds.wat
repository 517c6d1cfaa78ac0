;; Returns a pointer behind its memory.
;; expect: fault protocol
(func (export "act") (param i32 i32) (result i32) (i32.const 0x7ffffff0))
