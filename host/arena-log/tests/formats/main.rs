//! The formats: what is read and written, what is refused, and whether others agree.

mod sample;
mod trees;
mod proofs;
mod notes;
mod keys;
mod checkpoints;
mod policies;
mod receipts;
mod published;
