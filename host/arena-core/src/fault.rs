//! Why a seat, a model provider or the host failed: a closed list.
//!
//! A [`Fault`] is the seat's own and costs it the match. A [`VoidReason`] is nobody's: the
//! pair is voided, on the record, and played again.

use std::fmt;

use borsh::{BorshDeserialize, BorshSerialize};
use serde::Serialize;

/// A seat's misbehaviour. Error texts of an engine are not part of it: they differ between
/// machines and would make records differ.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    BorshSerialize,
    BorshDeserialize,
    Serialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// The guest trapped: unreachable code, bad memory access, stack overflow, exit.
    Trap,
    /// The guest used up its fuel, per turn or per match.
    Fuel,
    /// The guest needs more memory or table space than it may have.
    Memory,
    /// The guest broke the component contract: bad pointers, invalid UTF-8, too many host
    /// calls or handles.
    Protocol,
    /// A move that the rules do not allow.
    IllegalMove,
    /// Talk beyond the byte limit.
    TalkTooLong,
    /// The guest went on asking a model after its budget was spent.
    ModelBudget,
}

impl Fault {
    /// Every fault, in the order of tables.
    pub const ALL: [Fault; 7] = [
        Fault::Trap,
        Fault::Fuel,
        Fault::Memory,
        Fault::Protocol,
        Fault::IllegalMove,
        Fault::TalkTooLong,
        Fault::ModelBudget,
    ];

    /// Returns the name used in tables and files.
    pub fn name(self) -> &'static str {
        match self {
            Fault::Trap => "trap",
            Fault::Fuel => "fuel",
            Fault::Memory => "memory",
            Fault::Protocol => "protocol",
            Fault::IllegalMove => "illegal-move",
            Fault::TalkTooLong => "talk-too-long",
            Fault::ModelBudget => "model-budget",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A failure that is no seat's: the pair is voided and played again.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize,
)]
pub enum VoidReason {
    /// A model provider failed or did not answer.
    ModelProvider,
    /// The host failed: out of memory, watchdog, no free slot.
    Host,
}

impl VoidReason {
    /// Returns the name used in tables and files.
    pub fn name(self) -> &'static str {
        match self {
            VoidReason::ModelProvider => "model-provider",
            VoidReason::Host => "host",
        }
    }
}

/// Why a seat gave no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SeatError {
    /// The seat misbehaved.
    Fault(Fault),
    /// Nobody's fault; `detail` is for the diagnostics and enters no record.
    Void {
        /// The class that is recorded.
        reason: VoidReason,
        /// What happened, for the operator.
        detail: String,
    },
}

impl From<Fault> for SeatError {
    fn from(fault: Fault) -> SeatError {
        SeatError::Fault(fault)
    }
}
