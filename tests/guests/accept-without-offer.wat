;; Accepts before anything was offered, to the buyer's role, and ever after.
;; expect: fault illegal-move
(func (export "act") (param i32 i32) (result i32)
  (call $accept (i32.const 0) (i32.const 0)))
