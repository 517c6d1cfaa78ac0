;; Accepts at a price that is neither there nor absent.
;; expect: fault protocol
(func (export "act") (param i32 i32) (result i32)
  (call $accept (i32.const 2) (i32.const 5000)))
