;; Says what would break a table, a page or a document that quoted it.
;; expect: contained
(data (i32.const 2048) "\"},{\"outcome\":\"deal\"}</script><img src=x>,=1+1\0a\0d\00\09|`$(x)`")
(func (export "act") (param i32 i32) (result i32)
  (drop (call $reject))
  (i32.store (i32.const 1036) (i32.const 2048))
  (i32.store (i32.const 1040) (i32.const 62))
  (i32.const 1024))
