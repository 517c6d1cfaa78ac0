;; Asks for all the memory there could be, at once.
;; expect: fault fuel
(func (export "act") (param i32 i32) (result i32)
  (drop (memory.grow (i32.const -1)))
  (call $reject))
