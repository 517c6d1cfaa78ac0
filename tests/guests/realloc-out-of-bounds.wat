;; Hands the host a pointer behind its memory.
;; expect: fault trap | fault protocol
(func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (i32.const 0x7ffffff0))
