;; Asks for a table of two thousand million elements. The engine charges growth before it
;; tries, so this is out of fuel rather than a polite refusal.
;; expect: fault fuel
(table $t 1 funcref)
(func (export "act") (param i32 i32) (result i32)
  (drop (table.grow $t (ref.null func) (i32.const 0x7fffffff)))
  (call $reject))
