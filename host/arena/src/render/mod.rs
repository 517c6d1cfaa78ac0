//! Values become text or JSON. Nothing is computed here that a reader could take for a
//! result: every number comes from `arena_core`.

pub mod catalog;
pub mod faults;
pub mod metrics;
pub mod number;
pub mod record;
pub mod report;
pub mod table;
pub mod transcript;
