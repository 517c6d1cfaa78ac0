;; Grows its memory until that fails, then plays on.
;; expect: contained
(func (export "act") (param i32 i32) (result i32)
  (loop $again (br_if $again (i32.ne (memory.grow (i32.const 1)) (i32.const -1))))
  (call $reject))
