;; Loops for ever when told how the match ended: too late to change anything.
;; expect: contained
(func (export "finish") (param i32 i32 i32) (loop $again (br $again)))
