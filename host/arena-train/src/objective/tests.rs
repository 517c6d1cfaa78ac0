//! The losses by hand, against finite differences, and in micro-batches.
