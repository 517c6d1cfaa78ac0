//! The executor and the learner, on every device that this program was built for and this machine
//! has.

mod batches;
#[cfg(feature = "autodiff")]
mod gradients;
#[cfg(feature = "autodiff")]
mod learner;
mod oracle;
mod parity;
mod tiny;
