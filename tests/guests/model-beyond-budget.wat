;; Goes on asking a model after its budget is spent.
;; expect: fault model-budget
(import "arena:negotiation/inference@0.1.0" "[static]chat.open"
  (func $open (param i32 i32 i32)))
(import "arena:negotiation/inference@0.1.0" "[method]chat.add"
  (func $add (param i32 i32 i32 i32 i32)))
(import "arena:negotiation/inference@0.1.0" "[method]chat.complete"
  (func $complete (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32)))
(data (i32.const 2048) "echo")
(func (export "act") (param i32 i32) (result i32)
  (call $open (i32.const 2048) (i32.const 4) (i32.const 3072))
  (if (i32.load8_u (i32.const 3072)) (then (unreachable)))
  (call $add (i32.load (i32.const 3076)) (i32.const 1) (i32.const 2048) (i32.const 4)
    (i32.const 3200))
  (loop $again
    (call $complete (i32.load (i32.const 3076)) (i32.const 4) (i32.const 0) (i32.const 0)
      (i32.const 1000) (i32.const 0) (i32.const 0) (i32.const 0)
      (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 3328))
    (br $again))
  (unreachable))
