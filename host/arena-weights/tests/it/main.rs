//! What `arena-weights` makes of model files, real, written by the test, and hostile.

mod smollm2;
mod store;
