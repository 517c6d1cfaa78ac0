//! One file per verb: what it does, in the order in which it does it.

pub mod agent_check;
pub mod agent_list;
pub mod agent_new;
pub mod catalog_import;
pub mod catalog_show;
pub mod one_match;
pub mod tournament_run;
pub mod tournament_show;
