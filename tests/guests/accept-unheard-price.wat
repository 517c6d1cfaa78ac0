;; Accepts a price that nobody offered.
;; expect: fault illegal-move
(func (export "act") (param i32 i32) (result i32)
  (call $accept (i32.const 1) (i32.const 1)))
