;; Opens and drops conversations until the host has had enough calls.
;; expect: fault protocol | fault fuel
(import "arena:negotiation/inference@0.1.0" "[static]chat.open"
  (func $open (param i32 i32 i32)))
(import "arena:negotiation/inference@0.1.0" "[resource-drop]chat"
  (func $drop_chat (param i32)))
(data (i32.const 2048) "echo")
(func (export "act") (param i32 i32) (result i32)
  (loop $again
    (call $open (i32.const 2048) (i32.const 4) (i32.const 3072))
    (call $drop_chat (i32.load (i32.const 3076)))
    (br $again))
  (unreachable))
