;; Grows to the cap and writes to every page.
;; expect: contained
(func (export "act") (param i32 i32) (result i32)
  (local $at i32)
  (loop $again (br_if $again (i32.ne (memory.grow (i32.const 1)) (i32.const -1))))
  (local.set $at (i32.const 65536))
  (loop $touch
    (i32.store8 (local.get $at) (i32.const 1))
    (local.set $at (i32.add (local.get $at) (i32.const 65536)))
    (br_if $touch (i32.lt_u (local.get $at) (i32.mul (memory.size) (i32.const 65536)))))
  (call $reject))
