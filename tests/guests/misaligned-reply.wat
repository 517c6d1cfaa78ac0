;; Returns a misaligned pointer to its reply.
;; expect: fault protocol
(func (export "act") (param i32 i32) (result i32) (drop (call $reject)) (i32.const 1025))
