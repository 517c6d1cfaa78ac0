;; Weighs a reply that no model gave.
;; expect: contained
(import "arena:negotiation/training@0.1.0" "weigh" (func $weigh (param i32 i32)))
(func (export "act") (param i32 i32) (result i32)
  (call $weigh (i32.const -1) (i32.const -1))
  (call $reject))
