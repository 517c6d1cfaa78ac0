;; Makes an offer, then traps rather than see a bad deal through.
;; expect: fault trap
(global $acts (mut i32) (i32.const 0))
(func (export "act") (param i32 i32) (result i32)
  (if (global.get $acts) (then (unreachable)))
  (global.set $acts (i32.const 1))
  (call $offer (i32.const 5000)))
