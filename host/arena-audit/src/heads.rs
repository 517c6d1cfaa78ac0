//! Every head of a log against its entries: the published ones, those that witnesses cosigned,
//! and those that the auditor kept from earlier.
//!
//! A head that the entries do not lead to, signed by the log, proves that history was changed or
//! that the log told two stories. Which sizes are signed follows from the content alone.
//!
//! Not here: the newest head and its quorum (`checkpoint`).

use std::collections::BTreeMap;

use arena_log::checkpoint::Head;
use arena_log::hash::Hash;
use arena_log::note::Vkey;
use arena_log::tile;

use crate::folder::Folder;
use crate::sightings::{self, Sighting};
use crate::verdict::{Finding, Findings, Verdict, count};

/// Most bytes of a head's file.
pub(crate) const HEAD_BYTES_MAX: u64 = arena_log::note::NOTE_BYTES_MAX as u64;

/// What is known of the heads of a log.
#[derive(Debug)]
pub(crate) struct Heads<'a> {
    log: &'a Vkey,
    size: u64,
    /// Published sizes, ascending, and how many are behind.
    published: Vec<u64>,
    passed: usize,
    /// Heads from elsewhere that are still ahead, by size: where they are from, and their root.
    others: BTreeMap<u64, Vec<(String, Hash)>>,
    held_count: usize,
    witness_count: usize,
    found: Findings,
}

impl<'a> Heads<'a> {
    /// Starts before the first entry of a log that has `head`.
    pub fn new(log: &'a Vkey, head: &Head, published: Vec<u64>) -> Heads<'a> {
        Heads {
            log,
            size: head.size,
            published,
            passed: 0,
            others: BTreeMap::new(),
            held_count: 0,
            witness_count: 0,
            found: Findings::default(),
        }
    }

    /// Takes up a head that the auditor kept.
    pub fn hold(&mut self, place: usize, bytes: &[u8]) {
        self.held_count += 1;
        self.other(format!("held head {}", place + 1), bytes);
    }

    /// Takes up a head that lies in the folder of the witnesses.
    pub fn witnessed(&mut self, path: &str, bytes: &[u8]) {
        self.witness_count += 1;
        self.other(format!("`{path}`"), bytes);
    }

    fn other(&mut self, source: String, bytes: &[u8]) {
        match Head::open(bytes, self.log) {
            Err(error) => {
                self.found.add(Finding::new(source, error, "a head that this log signed"));
            }
            Ok(head) if head.size > self.size => {
                let wanted = format!("at least the {} of {source}", head.size);
                self.found.add(Finding::new("the entries of the log", self.size, wanted));
            }
            Ok(head) if head.size == 0 => {}
            Ok(head) => self.others.entry(head.size).or_default().push((source, head.root)),
        }
    }

    /// Takes up what is wrong with the times that witnesses state.
    pub fn check_times(&mut self, sightings: &[Sighting]) {
        sightings::check_order(&mut self.found, sightings);
    }

    /// Returns whether some head is of this size.
    pub fn has(&self, size: u64) -> bool {
        self.published.get(self.passed) == Some(&size) || self.others.contains_key(&size)
    }

    /// Compares all heads of a size with the root of the entries.
    pub fn compare(&mut self, folder: &Folder, size: u64, root: Hash) {
        if self.published.get(self.passed) == Some(&size) {
            self.passed += 1;
            self.found.check(self.published_head(folder, size, root));
        }
        for (source, found) in self.others.remove(&size).unwrap_or_default() {
            if found != root {
                let what = format!("the root of {size} entries by {source}");
                self.found.add(Finding::new(what, found, root));
            }
        }
    }

    fn published_head(&self, folder: &Folder, size: u64, root: Hash) -> Result<(), Finding> {
        let path = tile::checkpoint(size);
        let bytes = folder.read(&path, HEAD_BYTES_MAX)?;
        let bytes =
            bytes.ok_or_else(|| Finding::new("the head", "none", "one").within(path.as_str()))?;
        let head = Head::open(&bytes, self.log).map_err(|error| {
            Finding::new("the head", error, "one that this log signed").within(path.as_str())
        })?;
        if head.size != size {
            return Err(Finding::new("the size", head.size, size).within(path));
        }
        if head.root != root {
            let what = format!("the root of {size} entries");
            return Err(Finding::new(what, head.root, root).within(path));
        }
        Ok(())
    }

    /// Ends the step. `signed` says which sizes a log of this content signs.
    pub fn conclude(mut self, signed: Option<&SignedSizes>) -> Verdict {
        let Some(signed) = signed else {
            return self.found.or_not_checked("which sizes are signed is not known");
        };
        for size in self.published.iter().filter(|size| !signed.has(**size)) {
            let finding = Finding::new("the head", "one", "none of this size");
            self.found.add(finding.within(tile::checkpoint(*size)));
        }
        for size in signed.all(self.size) {
            if self.published.binary_search(&size).is_err() {
                let finding = Finding::new("the head", "none", "one of this size");
                self.found.add(finding.within(tile::checkpoint(size)));
            }
        }
        let (published, held) = (self.published.len() as u64, self.held_count as u64);
        let mut detail = format!(
            "{}, {}",
            count(published, "published head", "published heads"),
            count(held, "held one", "held ones")
        );
        match (held, self.witness_count) {
            (0, 0) => detail.push_str(": nothing shows that others saw the same log"),
            (_, 0) => {}
            (_, witnessed) => detail.push_str(&format!(", {witnessed} from witnesses")),
        }
        self.found.or_verified(detail)
    }
}

/// The sizes at which a log of some content is signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SignedSizes {
    /// Every multiple of this.
    pub every: u64,
    /// After the announcement, and after the draw where there is one.
    pub opening: u64,
    /// After the close, if it is there.
    pub closed: Option<u64>,
    /// After the reveal, if it is there.
    pub revealed: Option<u64>,
}

impl SignedSizes {
    fn has(&self, size: u64) -> bool {
        (size > 0 && self.every > 0 && size.is_multiple_of(self.every))
            || (1..=self.opening).contains(&size)
            || self.closed == Some(size)
            || self.revealed == Some(size)
    }

    /// Lists the sizes up to one. There are few: a head covers at least 256 entries, but for
    /// those at both ends.
    fn all(&self, up_to: u64) -> impl Iterator<Item = u64> {
        let step = usize::try_from(self.every).unwrap_or(usize::MAX).max(1);
        let multiples = (self.every..=up_to).step_by(step);
        let ends = self.closed.into_iter().chain(self.revealed);
        (1..=self.opening).chain(multiples).chain(ends).filter(move |size| *size <= up_to)
    }
}
