;; Runs into unreachable code.
;; expect: fault trap
(func (export "act") (param i32 i32) (result i32) (unreachable))
