;; Offers the bits of 0/0, which must be the same on every host.
;; expect: contained
(func (export "act") (param i32 i32) (result i32)
  (call $offer (i32.and (i32.const 0xffff)
    (i32.shr_u (i32.reinterpret_f32 (f32.div (f32.const 0) (f32.const 0))) (i32.const 16)))))
