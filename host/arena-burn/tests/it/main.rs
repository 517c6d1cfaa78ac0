//! The executor on every device that this program was built for and this machine has.

mod batches;
#[cfg(feature = "autodiff")]
mod gradients;
mod oracle;
mod parity;
mod tiny;
