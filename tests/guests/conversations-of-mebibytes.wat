;; Fills every conversation that it may open, until the host says no.
;; expect: contained | fault fuel | fault protocol
(import "arena:negotiation/inference@0.1.0" "[static]chat.open"
  (func $open (param i32 i32 i32)))
(import "arena:negotiation/inference@0.1.0" "[method]chat.add"
  (func $add (param i32 i32 i32 i32 i32)))
(data (i32.const 2048) "echo")
(func (export "act") (param i32 i32) (result i32)
  (call $open (i32.const 2048) (i32.const 4) (i32.const 3072))
  (loop $again
    (call $add (i32.load (i32.const 3076)) (i32.const 1) (i32.const 65536) (i32.const 65000)
      (i32.const 3200))
    (br_if $again (i32.eqz (i32.load8_u (i32.const 3200)))))
  (call $reject))
