;; Returns a move that does not exist.
;; expect: fault protocol
(func (export "act") (param i32 i32) (result i32)
  (drop (call $reject))
  (i32.store8 (i32.const 1024) (i32.const 9))
  (i32.const 1024))
