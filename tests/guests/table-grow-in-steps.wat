;; Grows its table in affordable steps until that fails, then plays on.
;; expect: contained
(table $t 1 funcref)
(func (export "act") (param i32 i32) (result i32)
  (loop $again
    (br_if $again (i32.ne (table.grow $t (ref.null func) (i32.const 1000)) (i32.const -1))))
  (call $reject))
