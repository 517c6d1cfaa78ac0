//! Hashes as people and JSON read and write them.

/// Returns bytes as lower-case hexadecimal digits, two for each.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Reads 32 bytes from exactly 64 lower-case hexadecimal digits; `None` for anything else.
pub fn unhex(text: &str) -> Option<[u8; 32]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let digits: &[u8; 64] = text.as_bytes().try_into().ok()?;
    let mut bytes = [0; 32];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_read_back_and_nothing_else_is() {
        let bytes: [u8; 32] = std::array::from_fn(|place| (place as u8).wrapping_mul(9));
        let digits = hex(&bytes);
        assert_eq!(unhex(&digits), Some(bytes));
        for wrong in [&digits.to_uppercase(), &digits[1..], &format!("{digits}0"), "", " "] {
            assert_eq!(unhex(wrong), None, "{wrong}");
        }
    }
}
