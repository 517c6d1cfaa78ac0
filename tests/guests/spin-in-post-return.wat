;; Loops for ever when the host says that it has read the reply.
;; expect: fault fuel
(func (export "cabi_post_act") (param i32) (loop $again (br $again)))
