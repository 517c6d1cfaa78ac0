;; Stays under the limit of a turn every time, and passes the limit of the match.
;; expect: fault fuel
(func (export "act") (param i32 i32) (result i32)
  (local $i i32)
  (local.set $i (i32.const 100000))
  (loop $again
    (local.set $i (i32.sub (local.get $i) (i32.const 1)))
    (br_if $again (local.get $i)))
  (call $reject))
