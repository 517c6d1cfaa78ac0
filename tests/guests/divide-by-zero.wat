;; Divides by zero.
;; expect: fault trap
(func (export "act") (param i32 i32) (result i32) (i32.div_u (i32.const 1) (i32.const 0)))
