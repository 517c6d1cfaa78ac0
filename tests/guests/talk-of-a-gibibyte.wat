;; Claims to say a gibibyte.
;; expect: fault protocol
(func (export "act") (param i32 i32) (result i32)
  (drop (call $reject))
  (i32.store (i32.const 1036) (i32.const 2048))
  (i32.store (i32.const 1040) (i32.const 0x40000000))
  (i32.const 1024))
