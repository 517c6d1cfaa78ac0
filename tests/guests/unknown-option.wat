;; Returns a belief that is neither there nor absent.
;; expect: fault protocol
(func (export "act") (param i32 i32) (result i32)
  (drop (call $reject))
  (i32.store8 (i32.const 1044) (i32.const 2))
  (i32.const 1024))
