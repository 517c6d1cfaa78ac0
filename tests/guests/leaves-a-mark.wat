;; Keeps a mark in a global and in fresh memory, and traps when it finds one at the start of a
;; match: nothing may survive from another seat or match.
;; expect: contained
(global $mark (mut i32) (i32.const 0))
(func (export "begin") (param i32)
  (local $at i32)
  (if (global.get $mark) (then (unreachable)))
  (global.set $mark (i32.const 1))
  (drop (memory.grow (i32.const 8)))
  (local.set $at (i32.const 0x80000))
  (loop $look
    (if (i64.ne (i64.load (local.get $at)) (i64.const 0)) (then (unreachable)))
    (i64.store (local.get $at) (i64.const 0x5ec2e7))
    (local.set $at (i32.add (local.get $at) (i32.const 8)))
    (br_if $look (i32.lt_u (local.get $at) (i32.const 0xc0000)))))
