;; Weighs a completion and reports metrics though nobody grants it training: no effect.
;; expect: contained
(import "arena:negotiation/training@0.1.0" "weigh" (func $weigh (param i32 i32)))
(import "arena:negotiation/training@0.1.0" "metric" (func $metric (param i32 i32 i32)))
(func (export "act") (param i32 i32) (result i32)
  (call $weigh (i32.const 0xffffffff) (i32.const 0xffffffff))
  (call $metric (i32.const 2048) (i32.const 0) (i32.const -1))
  (call $reject))
