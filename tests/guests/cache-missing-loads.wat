;; Follows links that no cache foresees: the slowest that fuel can be made to last.
;; expect: fault fuel
(func (export "act") (param i32 i32) (result i32)
  (local $at i32)
  (drop (memory.grow (i32.const 252)))
  (local.set $at (i32.const 64))
  (loop $link
    (i32.store (i32.shl (local.get $at) (i32.const 12))
      (i32.shl (i32.or (i32.const 64) (i32.and (i32.const 2047)
        (i32.add (i32.mul (local.get $at) (i32.const 1229)) (i32.const 511)))) (i32.const 12)))
    (local.set $at (i32.add (local.get $at) (i32.const 1)))
    (br_if $link (i32.lt_u (local.get $at) (i32.const 2112))))
  (local.set $at (i32.const 262144))
  (loop $follow
    (local.set $at (i32.load (i32.load (i32.load (i32.load (local.get $at))))))
    (br $follow))
  (unreachable))
