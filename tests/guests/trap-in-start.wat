;; Traps in the core start function.
;; expect: fault trap
(func $die (unreachable))
(start $die)
