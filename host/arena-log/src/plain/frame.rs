//! The bytes of the file: a header, then one frame for each entry.
//!
//! A frame's checksum covers where it lies, so neither stale blocks nor bytes that an entry
//! carries can pose as a frame.
//!
//! Not here: files.

use super::ENTRY_BYTES_MAX;
use super::error::Damage;

/// First bytes of every log.
const MAGIC: [u8; 8] = *b"ARENALOG";

/// The layout of header and frames.
pub const VERSION: u32 = 1;

/// Bytes of the header: magic, version (u32, big-endian), CRC-32C of both (u32, big-endian).
pub const HEADER_BYTES: usize = 16;

/// Bytes of a frame before its entry: length and CRC-32C (both u32, big-endian).
pub const PREFIX_BYTES: usize = 8;

/// Checksum work that the search for a later frame may do, in bytes. Beyond it the search
/// gives up and calls the bytes damaged, which is the careful answer.
const SEARCH_BYTES_MAX: u64 = 1 << 30;

/// Returns the header of a log.
pub fn header() -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..12].copy_from_slice(&VERSION.to_be_bytes());
    let crc = crc32c::crc32c(&bytes[..12]);
    bytes[12..].copy_from_slice(&crc.to_be_bytes());
    bytes
}

/// What the first bytes of a file say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Header {
    /// A log that this program reads.
    Good,
    /// A crash while the log was created: nothing else is in the file.
    Torn,
    /// A log in another layout.
    Version(u32),
    /// Not a log, or a damaged header.
    Foreign,
}

/// Reads the header from a file's first bytes, at most [`HEADER_BYTES`] and one more.
pub fn read_header(bytes: &[u8]) -> Header {
    let good = header();
    if bytes.starts_with(&good) {
        return Header::Good;
    }
    let agreeing = bytes.iter().zip(&good).take_while(|(found, wanted)| found == wanted).count();
    let zeros_follow = bytes[agreeing..].iter().all(|byte| *byte == 0);
    if bytes.len() <= HEADER_BYTES && zeros_follow {
        return Header::Torn;
    }
    let whole = bytes.get(..HEADER_BYTES).filter(|bytes| {
        bytes.starts_with(&MAGIC) && crc32c::crc32c(&bytes[..12]) == number(&bytes[12..])
    });
    whole.map_or(Header::Foreign, |bytes| Header::Version(number(&bytes[8..12])))
}

/// Appends the frame of `entry`, which will start at `offset` of the file.
pub fn push(frames: &mut Vec<u8>, offset: u64, entry: &[u8]) {
    let length = u32::try_from(entry.len()).expect("entries are bounded far below 4 GiB");
    frames.extend_from_slice(&length.to_be_bytes());
    frames.extend_from_slice(&checksum(offset, length, entry).to_be_bytes());
    frames.extend_from_slice(entry);
}

/// A frame's first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    length: u32,
    crc: u32,
}

impl Prefix {
    /// Reads the prefix of a frame.
    ///
    /// # Errors
    /// The entry is said to be larger than any.
    pub fn read(bytes: [u8; PREFIX_BYTES]) -> Result<Prefix, Damage> {
        let prefix = Prefix { length: number(&bytes[..4]), crc: number(&bytes[4..]) };
        if prefix.entry_bytes() > ENTRY_BYTES_MAX {
            return Err(Damage::Length { found: prefix.length });
        }
        Ok(prefix)
    }

    /// How many bytes the entry has.
    pub fn entry_bytes(self) -> usize {
        self.length as usize
    }

    /// Compares an entry that was read with what was written at `offset`.
    ///
    /// # Errors
    /// The checksums differ.
    pub fn check(self, offset: u64, entry: &[u8]) -> Result<(), Damage> {
        let computed = checksum(offset, self.length, entry);
        if computed != self.crc {
            return Err(Damage::Checksum { stored: self.crc, computed });
        }
        Ok(())
    }
}

/// Returns whether a whole frame starts anywhere after the first byte of `tail`, which lies
/// at `offset` of the file. That tells damage from a torn end.
pub fn holds_later_frame(tail: &[u8], offset: u64) -> bool {
    let mut work = 0;
    for start in 1..tail.len().saturating_sub(PREFIX_BYTES - 1) {
        let (prefix, rest) = tail[start..].split_at(PREFIX_BYTES);
        let prefix = prefix.try_into().expect("split at the length of a prefix");
        let Ok(prefix) = Prefix::read(prefix) else {
            continue;
        };
        let Some(entry) = rest.get(..prefix.entry_bytes()) else {
            continue;
        };
        work += entry.len() as u64;
        if work > SEARCH_BYTES_MAX || prefix.check(offset + start as u64, entry).is_ok() {
            return true;
        }
    }
    false
}

fn checksum(offset: u64, length: u32, entry: &[u8]) -> u32 {
    let mut place = [0; 12];
    place[..8].copy_from_slice(&offset.to_be_bytes());
    place[8..].copy_from_slice(&length.to_be_bytes());
    crc32c::crc32c_append(crc32c::crc32c(&place), entry)
}

fn number(bytes: &[u8]) -> u32 {
    u32::from_be_bytes(bytes.try_into().expect("a number has four bytes"))
}
