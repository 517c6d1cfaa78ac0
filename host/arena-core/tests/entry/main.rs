//! Entries of the log: one encoding for each value, and no bytes that are read as another's.

mod golden;
mod properties;
