//! One file per verb: what it does, in the order in which it does it.

pub mod agent_check;
pub mod agent_list;
pub mod agent_new;
pub mod audit;
pub mod audit_diff;
pub mod audit_receipt;
pub mod catalog_import;
pub mod catalog_show;
pub mod log_export;
#[cfg(feature = "index")]
pub mod log_index;
pub mod log_keygen;
pub mod log_prove;
pub mod log_show;
pub mod log_witness;
pub mod model_add;
pub mod model_bench;
pub mod model_chat;
pub mod model_list;
pub mod model_pull;
pub mod model_show;
pub mod one_match;
pub mod submit;
pub mod tournament_run;
pub mod tournament_show;
pub mod train;
