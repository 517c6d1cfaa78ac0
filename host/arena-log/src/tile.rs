//! Where the files of a log lie (C2SP tlog-tiles, and what arena adds beside it).
//!
//! Every path is computed from numbers and hashes; none is ever read from a file. All paths
//! are relative to the log's folder and have `/` between their parts.
//!
//! Not here: what is in the files (`bundle`, `journal`, `checkpoint`).

use crate::hash::Hash;

/// How many hashes a full tile holds, and how many entries a full bundle.
pub const WIDTH: u64 = 256;
/// Levels of tiles that a tree of 2^64 − 1 leaves can have.
pub const TILE_LEVELS_MAX: u8 = 8;

/// The newest signed head.
pub const CHECKPOINT: &str = "checkpoint";
/// Every signed head, by size.
pub const CHECKPOINTS: &str = "checkpoints";
/// The log's key, for convenience.
pub const VKEY: &str = "log.vkey";
/// Hash tiles and entry bundles.
pub const TILE: &str = "tile";
/// Entry bundles.
pub const ENTRIES: &str = "tile/entries";
/// Attachment bundles, once they are published.
pub const ATTACHMENT: &str = "attachment";
/// Files named by their hash.
pub const BLOB: &str = "blob";
/// Heads with the cosignatures of witnesses, which they add beside the log.
pub const WITNESS: &str = "witness";
/// Most cosigned heads that are looked at: there may be 64 signatures on one.
pub const WITNESS_NAMES_MAX: usize = 256;
/// What is withheld.
pub const PRIVATE: &str = "private";
/// Held by the one process that writes.
pub const LOCK: &str = "private/lock";
/// Entries beyond the last signed head.
pub const JOURNAL: &str = "private/journal";
/// The last head that was signed.
pub const LAST_SIGNED: &str = "private/last-signed";
/// A file that is not yet in its place.
pub const TEMPORARY: &str = "private/temporary";
/// Attachment bundles before they are published.
pub const PRIVATE_ATTACHMENT: &str = "private/attachment";
/// Blobs before they are published.
pub const PRIVATE_BLOB: &str = "private/blob";

/// Returns whether a file in the folder of the witnesses is on its way to its place. No reader
/// looks at it: a witness that was killed while it wrote may have left half of a head.
pub fn is_under_way(name: &str) -> bool {
    name.starts_with('.')
}

/// What a tile or bundle holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Hashes of one level, counted in steps of eight levels of the tree.
    Hashes(u8),
    /// Entries.
    Entries,
    /// Attachments, with the numbering of the entries.
    Attachments,
}

/// A tile or bundle, by what its path says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tile {
    /// What it holds.
    pub kind: Kind,
    /// Its number on its level, counted from 0.
    pub number: u64,
    /// How many hashes or entries it holds: 1 to 256.
    pub width: u64,
}

impl Tile {
    /// Returns its path. Attachments have the path that they have once they are published.
    ///
    /// # Panics
    /// The width is not one that a tile can have.
    pub fn path(self) -> String {
        match self.kind {
            Kind::Hashes(level) => numbered(&format!("{TILE}/{level}"), self.number, self.width),
            Kind::Entries => numbered(ENTRIES, self.number, self.width),
            Kind::Attachments => numbered(ATTACHMENT, self.number, self.width),
        }
    }

    /// Reads what [`Tile::path`] writes; anything else is `None`.
    pub fn parse(path: &str) -> Option<Tile> {
        let rest = path.strip_prefix(TILE).and_then(|rest| rest.strip_prefix('/'));
        let (kind, rest) = match rest {
            Some(rest) => {
                let (level, rest) = rest.split_once('/')?;
                let kind = match level.parse() {
                    Ok(level) if level < TILE_LEVELS_MAX => Kind::Hashes(level),
                    _ if level == "entries" => Kind::Entries,
                    _ => return None,
                };
                (kind, rest)
            }
            None => (Kind::Attachments, path.strip_prefix(ATTACHMENT)?.strip_prefix('/')?),
        };
        let (groups, width) = match rest.split_once(".p/") {
            Some((groups, width)) => (groups, width.parse().ok()?),
            None => (rest, WIDTH),
        };
        let mut number: u64 = 0;
        for group in groups.split('/') {
            let digits: u64 = group.strip_prefix('x').unwrap_or(group).parse().ok()?;
            number = number.checked_mul(1000)?.checked_add(digits)?;
        }
        let tile = Tile { kind, number, width };
        // Other spellings of the same numbers are not the path of anything.
        ((1..=WIDTH).contains(&width) && tile.path() == path).then_some(tile)
    }

    /// Returns how many hashes or entries of its kind lie before its end.
    pub fn end(self) -> u64 {
        self.number.saturating_mul(WIDTH).saturating_add(self.width)
    }
}

/// Returns how many hashes the tiles of `level` hold in a tree of `size` leaves.
pub fn hash_count(level: u8, size: u64) -> u64 {
    size.checked_shr(8 * u32::from(level)).unwrap_or(0)
}

/// Returns how many entries bundle `number` holds in a log of `size` entries.
///
/// # Panics
/// The bundle lies beyond the log.
pub fn width_at(number: u64, size: u64) -> u64 {
    let before = number * WIDTH;
    assert!(before < size, "a bundle within the log holds something");
    (size - before).min(WIDTH)
}

/// Returns the path of a hash tile; `level` counts in steps of eight levels of the tree.
pub fn hash_tile(level: u8, number: u64, width: u64) -> String {
    Tile { kind: Kind::Hashes(level), number, width }.path()
}

/// Returns the path of an entry bundle.
pub fn entry_bundle(number: u64, width: u64) -> String {
    Tile { kind: Kind::Entries, number, width }.path()
}

/// Returns the path of a published attachment bundle.
pub fn attachment_bundle(number: u64, width: u64) -> String {
    Tile { kind: Kind::Attachments, number, width }.path()
}

/// Returns the path of the head of a size.
pub fn checkpoint(size: u64) -> String {
    format!("{CHECKPOINTS}/{size}")
}

/// Returns the path of a published blob.
pub fn blob(hash: &Hash) -> String {
    blob_in(BLOB, hash)
}

pub(crate) fn blob_in(folder: &str, hash: &Hash) -> String {
    let hash = hash.to_string();
    format!("{folder}/{}/{hash}", &hash[..2])
}

/// Appends a tile's number in groups of three digits, all but the last marked with an `x`.
pub(crate) fn numbered(folder: &str, number: u64, width: u64) -> String {
    assert!((1..=WIDTH).contains(&width), "a tile holds 1 to 256");
    let mut groups = format!("{:03}", number % 1000);
    let mut rest = number / 1000;
    while rest > 0 {
        groups = format!("x{:03}/{groups}", rest % 1000);
        rest /= 1000;
    }
    if width == WIDTH {
        format!("{folder}/{groups}")
    } else {
        format!("{folder}/{groups}.p/{width}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_those_of_the_specification() {
        assert_eq!(hash_tile(0, 1_234_067, 256), "tile/0/x001/x234/067");
        assert_eq!(hash_tile(3, 7, 5), "tile/3/007.p/5");
        assert_eq!(entry_bundle(0, 1), "tile/entries/000.p/1");
        assert_eq!(entry_bundle(1_000, 256), "tile/entries/x001/000");
        assert_eq!(attachment_bundle(999, 255), "attachment/999.p/255");
        let hash = Hash::EMPTY_TREE;
        assert_eq!(blob(&hash), format!("blob/e3/{hash}"));
    }

    #[test]
    fn every_path_parses_back_and_no_other_spelling_does() {
        for kind in [Kind::Hashes(0), Kind::Hashes(7), Kind::Entries, Kind::Attachments] {
            for number in [0, 1, 999, 1_000, 1_234_067, u64::MAX] {
                for width in [1, 9, 10, 255, 256] {
                    let tile = Tile { kind, number, width };
                    assert_eq!(Tile::parse(&tile.path()), Some(tile));
                }
            }
        }
        for path in [
            "tile/0/0",
            "tile/0/0000",
            "tile/0/x000/001",
            "tile/0/001/002",
            "tile/0/000.p/0",
            "tile/0/000.p/256",
            "tile/0/000.p/01",
            "tile/0/000.p/+1",
            "tile/0/+00",
            "tile/8/000",
            "tile/00/000",
            "tile/data/000",
            "tile/000",
            "tile//000",
            "tile/0/x99999999999999999999/000",
            "attachment/000.p",
            "attachment/",
            "attachments/000",
            "attachment/000/",
            "",
        ] {
            assert_eq!(Tile::parse(path), None, "{path}");
        }
    }
}
