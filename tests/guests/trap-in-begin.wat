;; Traps when it is briefed.
;; expect: fault trap
(func (export "begin") (param i32) (unreachable))
