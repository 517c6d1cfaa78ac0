//! Entries of the log and what they bind: one encoding for each value, and no bytes that are read
//! as another's.

mod golden;
mod properties;
mod view;
