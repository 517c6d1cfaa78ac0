;; Loops for ever while the host lowers the brief.
;; expect: fault fuel
(func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (loop $again (br $again)) (unreachable))
