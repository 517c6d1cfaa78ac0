;; Reports values without end.
;; expect: fault protocol | fault fuel
(import "arena:negotiation/training@0.1.0" "metric" (func $metric (param i32 i32 i32)))
(func (export "act") (param i32 i32) (result i32)
  (loop $again
    (call $metric (i32.const 2048) (i32.const 64) (i32.const -1))
    (br $again))
  (unreachable))
