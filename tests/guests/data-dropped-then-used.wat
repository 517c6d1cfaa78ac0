;; Drops a data segment and then copies from it.
;; expect: fault trap
(data $kept "abc")
(func (export "act") (param i32 i32) (result i32)
  (data.drop $kept)
  (memory.init $kept (i32.const 2048) (i32.const 0) (i32.const 3))
  (call $reject))
