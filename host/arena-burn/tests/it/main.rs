//! The executor on every device that this program was built for and this machine has.

mod batches;
mod parity;
mod tiny;
