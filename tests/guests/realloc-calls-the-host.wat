;; Calls a host function while the host lowers the brief.
;; expect: fault trap
(import "arena:negotiation/trace@0.1.0" "note" (func $note (param i32 i32)))
(func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
  (call $note (i32.const 2048) (i32.const 4))
  (i32.const 65536))
