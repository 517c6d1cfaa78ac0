;; Burns exactly as much as a turn allows and a little more, to find the edge.
;; expect: fault fuel
(func (export "act") (param i32 i32) (result i32)
  (local $i i32)
  (local.set $i (i32.const 0x7fffffff))
  (loop $again
    (local.set $i (i32.sub (local.get $i) (i32.const 1)))
    (br_if $again (local.get $i)))
  (call $reject))
