;; Offers the highest price that a message can carry.
;; expect: contained
(func (export "act") (param i32 i32) (result i32)
  (call $offer (i32.const -1)))
