//! Tests of the audit: an honest log, and what a hostile hand can do to one.

mod honest;
mod one_sided;
mod players;
mod verdicts;
mod forged;
mod tampered;
mod bits;
mod hostile;
mod receipts;
mod rescoring;
mod witnesses;
mod training;
