;; Two functions call each other through a table without end.
;; expect: fault trap
(type $f (func (param i64) (result i64)))
(table 2 funcref)
(elem (i32.const 0) $ping $pong)
(func $ping (param i64) (result i64)
  (i64.add (call_indirect (type $f) (local.get 0) (i32.const 1)) (i64.const 1)))
(func $pong (param i64) (result i64)
  (i64.add (call_indirect (type $f) (local.get 0) (i32.const 0)) (i64.const 1)))
(func (export "act") (param i32 i32) (result i32)
  (drop (call $ping (i64.const 1)))
  (call $reject))
