;; Loops for ever when it is briefed.
;; expect: fault fuel
(func (export "begin") (param i32) (loop $again (br $again)))
