;; Loops for ever when asked to act.
;; expect: fault fuel
(func (export "act") (param i32 i32) (result i32) (loop $again (br $again)) (unreachable))
