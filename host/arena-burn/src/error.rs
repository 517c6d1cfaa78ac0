//! Why a model cannot be computed with burn.

use std::fmt;

use arena_model::executor::ExecutorError;
use arena_weights::adapter::RANK_MAX;

use crate::device::BurnDevice;

/// A model that cannot be computed on a device, with the facts that a person needs.
#[derive(Debug)]
pub enum BurnError {
    /// This program was built without the device.
    NotCompiled {
        /// The device; its feature has the same name.
        device: BurnDevice,
    },
    /// The device is not on this machine.
    NoAdapter {
        /// The device.
        device: BurnDevice,
        /// What its driver says.
        reason: String,
    },
    /// There is no such adapter to be trained.
    Adapter {
        /// Width of the bottleneck.
        rank: usize,
        /// The numerator of the scale.
        alpha: f32,
    },
    /// All of a model is to be trained that is not kept in `f32`.
    Narrow {
        /// What it is kept in.
        formats: String,
    },
    /// The model cannot be brought onto the device.
    Executor(ExecutorError),
}

impl fmt::Display for BurnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BurnError::NotCompiled { device } => {
                write!(f, "device `{device}` is not compiled in: it takes the feature `{device}`")
            }
            BurnError::NoAdapter { device, reason } => {
                write!(f, "no device `{device}` on this machine: {reason}")
            }
            BurnError::Adapter { rank, alpha } => write!(
                f,
                "no adapter of rank `{rank}` and alpha `{alpha}`: ranks are 1 to {RANK_MAX}, and \
                 alphas are finite"
            ),
            BurnError::Narrow { formats } => {
                write!(f, "weights in `{formats}` can only be trained with an adapter, not in full")
            }
            BurnError::Executor(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for BurnError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            BurnError::Executor(error) => error.source(),
            BurnError::NotCompiled { .. }
            | BurnError::NoAdapter { .. }
            | BurnError::Adapter { .. }
            | BurnError::Narrow { .. } => None,
        }
    }
}

impl From<ExecutorError> for BurnError {
    fn from(error: ExecutorError) -> BurnError {
        BurnError::Executor(error)
    }
}
