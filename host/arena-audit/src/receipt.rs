//! One entry shown to be in a log, without the log.
//!
//! A receipt holds the proof and the signed head. The entry comes beside it, or in the receipt's
//! extra data: nobody vouches for those, but the proof is about exactly these bytes.
//!
//! Not here: whether the rest of the log is in order (`crate::audit`).

use arena_core::entry::{Entry, MatchEntry};
use arena_core::transcript::Transcript;
use arena_log::hash::Hash;
use arena_log::policy::{Opened, Policy};
use arena_log::receipt::Receipt;

use crate::matches;
use crate::verdict::Finding;

/// What a receipt shows.
#[derive(Clone, Debug)]
pub struct Shown {
    /// The head that the entry is under, and who signed it.
    pub opened: Opened,
    /// The entry's place in the log, from 0.
    pub index: u64,
    /// The entry.
    pub entry: Entry,
}

/// Checks that `entry`, or else the entry in the receipt's extra data, is in a log that `policy`
/// believes.
///
/// # Errors
/// What does not hold.
pub fn receipt(bytes: &[u8], entry: Option<&[u8]>, policy: &Policy) -> Result<Shown, Finding> {
    let receipt =
        Receipt::parse(bytes).map_err(|error| Finding::new("the receipt", error, "a receipt"))?;
    let Some(entry) = entry.or(receipt.extra.as_deref()) else {
        return Err(Finding::new("the entry", "none", "one beside the receipt or in it"));
    };
    let opened = receipt
        .verify(Hash::leaf(entry), policy)
        .map_err(|error| Finding::new("the receipt", error, "a proof under a trusted head"))?;
    let index = receipt.index;
    let entry = Entry::decode(entry)
        .map_err(|error| Finding::new("the entry", error, "one in canonical form").at(index))?;
    Ok(Shown { opened, index, entry })
}

/// Reads the transcript that a match's entry binds.
///
/// # Errors
/// It is another one, does not decode, or says something else than the entry.
pub fn transcript(entry: &MatchEntry, bytes: &[u8]) -> Result<Transcript, Finding> {
    matches::transcript(entry, bytes)
}
