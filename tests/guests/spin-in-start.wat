;; Loops for ever in the core start function, before the first call.
;; expect: fault fuel
(func $spin (loop $again (br $again)))
(start $spin)
