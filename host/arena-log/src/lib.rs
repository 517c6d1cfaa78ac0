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
pub mod error;
mod error_text;
pub mod tile;
pub mod storage;
pub mod disk;
pub mod bundle;
mod journal;
mod edge;
pub mod records;
pub mod check;
mod heads;
pub mod blobs;
mod seal;
pub mod writer;
pub mod recovery;
pub mod reader;
mod text;
