;; Starts with a little more memory than a seat may have.
;; expect: refused | fault memory
(memory (export "memory") 300)
