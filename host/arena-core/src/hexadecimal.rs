//! Hashes as people and JSON read them.
//!
//! Not here: reading them back; hashes in records are bytes.

/// Returns bytes as lower-case hexadecimal digits, two for each.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
