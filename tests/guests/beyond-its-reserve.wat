;; Offers a price beyond its reserve as a buyer and as a seller by turns, to learn from the
;; refusals. They say nothing, and the turn passes.
;; expect: contained
(global $acts (mut i32) (i32.const 0))
(func (export "act") (param i32 i32) (result i32)
  (global.set $acts (i32.xor (global.get $acts) (i32.const 1)))
  (call $offer (select (i32.const 0xffffffff) (i32.const 0) (global.get $acts))))
