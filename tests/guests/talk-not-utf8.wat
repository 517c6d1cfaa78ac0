;; Says bytes that are no UTF-8: a lone surrogate and an overlong form.
;; expect: fault protocol
(data (i32.const 2048) "\ed\a0\80\c0\80")
(func (export "act") (param i32 i32) (result i32)
  (drop (call $reject))
  (i32.store (i32.const 1036) (i32.const 2048))
  (i32.store (i32.const 1040) (i32.const 5))
  (i32.const 1024))
