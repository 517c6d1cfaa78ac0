;; Offers to trade for nothing.
;; expect: contained
(func (export "act") (param i32 i32) (result i32)
  (call $offer (i32.const 0)))
