//! Values become text or JSON. Nothing is computed here that a reader could take for a
//! result: every number comes from `arena_core`.

pub mod audit;
pub mod catalog;
pub mod entry;
pub mod faults;
pub mod metrics;
pub mod number;
#[cfg(feature = "parquet")]
pub mod parquet;
pub mod record;
pub mod report;
pub mod rows;
pub mod runs;
pub mod table;
pub mod transcript;
