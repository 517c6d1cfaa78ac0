//! An append-only, signed log of opaque entries, laid out as files that anyone can check.
//!
//! Whatever reads back is what was appended, in order, and no two heads of one size are ever
//! signed. `FORMAT.md` describes every file and every byte.
//!
//! Not here: what an entry means, and whether a signer is to be trusted.

pub mod hash;
pub mod tree;
pub mod proof;
pub mod note;
pub mod key;
pub mod checkpoint;
pub mod cosignature;
pub mod policy;
pub mod policy_text;
pub mod receipt;
mod text;

pub mod plain;
