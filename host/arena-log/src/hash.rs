//! SHA-256 as the tree uses it.
//!
//! A leaf and an inner node never hash alike: each has its prefix byte (RFC 6962 §2.1), so
//! that no entry can pose as an inner node and no inner node as an entry.
//!
//! Not here: the shape of the tree (`tree`) and proofs (`proof`).

use std::fmt;

use sha2::{Digest, Sha256};

use crate::text;

/// Bytes of a hash.
pub const HASH_BYTES: usize = 32;

const LEAF_PREFIX: &[u8] = &[0];
const NODE_PREFIX: &[u8] = &[1];
const HEX_DIGITS: &[u8; 16] = b"0123456789abcdef";

/// A SHA-256 hash. Shown as 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hash(pub [u8; HASH_BYTES]);

impl Hash {
    /// The root of the empty tree: the hash of nothing (RFC 6962 §2.1).
    pub const EMPTY_TREE: Hash = Hash([
        0xe3, 0xb0, 0xc4, 0x42, 0x98, 0xfc, 0x1c, 0x14, 0x9a, 0xfb, 0xf4, 0xc8, 0x99, 0x6f, 0xb9,
        0x24, 0x27, 0xae, 0x41, 0xe4, 0x64, 0x9b, 0x93, 0x4c, 0xa4, 0x95, 0x99, 0x1b, 0x78, 0x52,
        0xb8, 0x55,
    ]);

    /// Returns the hash of a leaf that holds `entry` (RFC 6962 §2.1).
    pub fn leaf(entry: &[u8]) -> Hash {
        Hash::of_parts(&[LEAF_PREFIX, entry])
    }

    /// Returns the hash of the inner node above `left` and `right` (RFC 6962 §2.1).
    pub fn node(left: &Hash, right: &Hash) -> Hash {
        Hash::of_parts(&[NODE_PREFIX, &left.0, &right.0])
    }

    /// Returns the plain SHA-256 of `bytes`, with no prefix: the name of a file.
    pub fn of(bytes: &[u8]) -> Hash {
        Hash::of_parts(&[bytes])
    }

    /// Reads 64 lower-case hexadecimal digits; anything else is `None`.
    pub fn from_hex(hex: &str) -> Option<Hash> {
        let digits = hex.as_bytes();
        if digits.len() != 2 * HASH_BYTES {
            return None;
        }
        let mut bytes = [0; HASH_BYTES];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = digit_value(pair[0])? << 4 | digit_value(pair[1])?;
        }
        Some(Hash(bytes))
    }

    /// Writes the hash as C2SP formats do: 44 characters of base64 (RFC 4648 §4).
    pub fn to_base64(&self) -> String {
        text::base64(&self.0)
    }

    /// Reads what [`Hash::to_base64`] writes; anything else is `None`.
    pub fn from_base64(encoded: &str) -> Option<Hash> {
        let bytes = text::from_base64(encoded)?;
        Some(Hash(bytes.try_into().ok()?))
    }

    fn of_parts(parts: &[&[u8]]) -> Hash {
        let mut digest = Sha256::new();
        for part in parts {
            digest.update(part);
        }
        Hash(digest.finalize().into())
    }
}

fn digit_value(digit: u8) -> Option<u8> {
    let value = HEX_DIGITS.iter().position(|&known| known == digit)?;
    u8::try_from(value).ok()
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
