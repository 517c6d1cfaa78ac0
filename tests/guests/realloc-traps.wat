;; Traps while the host lowers the brief.
;; expect: fault trap
(func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (unreachable))
