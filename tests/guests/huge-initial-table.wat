;; Declares a table of ten million elements.
;; expect: refused | fault memory
(table 10000000 funcref)
