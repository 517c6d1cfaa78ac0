;; Calls itself without end.
;; expect: fault trap
(func $down (param i64 i64 i64 i64) (result i64)
  (i64.add (call $down (local.get 0) (local.get 1) (local.get 2) (local.get 3)) (local.get 0)))
(func (export "act") (param i32 i32) (result i32)
  (drop (call $down (i64.const 1) (i64.const 2) (i64.const 3) (i64.const 4)))
  (call $reject))
