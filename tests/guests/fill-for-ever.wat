;; Fills its memory again and again.
;; expect: fault fuel
(func (export "act") (param i32 i32) (result i32)
  (loop $again (memory.fill (i32.const 0) (i32.const 0) (i32.const 65536)) (br $again))
  (unreachable))
