//! Rewards and metrics of single matches: against values worked out by hand, and for any record.

mod cases;
mod notation;
mod properties;
