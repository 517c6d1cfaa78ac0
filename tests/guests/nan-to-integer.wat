;; Makes an integer of a number that is none.
;; expect: fault trap
(func (export "act") (param i32 i32) (result i32)
  (drop (i32.trunc_f64_s (f64.div (f64.const 0) (f64.const 0))))
  (call $reject))
