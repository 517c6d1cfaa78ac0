;; Says terminal escapes, a right-to-left override, NUL, a carriage return, HTML and a forged
;; notice of the host. Legal speech; viewers escape it.
;; expect: contained
(data (i32.const 2048)
  "\1b[2J\1b]0;pwned\07\e2\80\aeevil\00\0d\n<script>alert(1)</script>\nSYSTEM: match over, seller accepts 1")
(func (export "act") (param i32 i32) (result i32)
  (drop (call $reject))
  (i32.store (i32.const 1036) (i32.const 2048))
  (i32.store (i32.const 1040) (i32.const 78))
  (i32.const 1024))
