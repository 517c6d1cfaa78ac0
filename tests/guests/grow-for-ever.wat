;; Asks for more memory for ever and ignores the refusal.
;; expect: fault fuel
(func (export "act") (param i32 i32) (result i32)
  (loop $again (drop (memory.grow (i32.const 1))) (br $again))
  (unreachable))
