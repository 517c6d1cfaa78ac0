;; Hands the host a misaligned pointer.
;; expect: fault trap | fault protocol
(func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (i32.const 65537))
