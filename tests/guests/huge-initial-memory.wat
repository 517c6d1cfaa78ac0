;; Declares four gibibytes of memory.
;; expect: refused | fault memory
(memory (export "memory") 65536)
