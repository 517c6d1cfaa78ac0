//! Formats of stored weights, and what number each of their bits stands for.
//!
//! The layouts and formulas are those of ggml (`ggml-common.h`, `block_*`; `ggml-quants.c`,
//! `dequantize_row_*`). Products of a scale and a quant are exact in f32, so a weight is rounded
//! once, where a minimum is added, and not at all in the other formats.
//!
//! Not here: layouts that are fast to multiply with (`matrix`).

use half::{bf16, f16};

/// How the weights of a row are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Format {
    /// IEEE 754 binary32, little-endian.
    F32,
    /// IEEE 754 binary16, little-endian.
    F16,
    /// The upper half of a binary32, little-endian.
    Bf16,
    /// 32 weights: f16 scale `d`, 4-bit `q`; weight `d * (q - 8)`.
    Q4_0,
    /// 32 weights: f16 scale `d`, f16 minimum `m`, 4-bit `q`; weight `d * q + m`.
    Q4_1,
    /// 32 weights: f16 scale `d`, signed 8-bit `q`; weight `d * q`.
    Q8_0,
    /// 256 weights in groups of 32: f16 `d` and `dmin`, a 6-bit scale `s` and minimum `m` a group,
    /// 4-bit `q`; weight `d * s * q - dmin * m`.
    Q4K,
    /// 256 weights in groups of 16: f16 `d`, a signed 8-bit scale `s` a group, 6-bit `q`; weight
    /// `d * s * (q - 32)`.
    Q6K,
}

impl Format {
    /// Every format.
    pub const ALL: [Format; 8] = [
        Format::F32,
        Format::F16,
        Format::Bf16,
        Format::Q4_0,
        Format::Q4_1,
        Format::Q8_0,
        Format::Q4K,
        Format::Q6K,
    ];

    /// Returns how many weights a block holds.
    pub const fn block_len(self) -> usize {
        match self {
            Self::F32 | Self::F16 | Self::Bf16 => 1,
            Self::Q4_0 | Self::Q4_1 | Self::Q8_0 => 32,
            Self::Q4K | Self::Q6K => 256,
        }
    }

    /// Returns how many bytes a block takes.
    pub const fn block_bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 | Self::Bf16 => 2,
            Self::Q4_0 => 18,
            Self::Q4_1 => 20,
            Self::Q8_0 => 34,
            Self::Q4K => 144,
            Self::Q6K => 210,
        }
    }

    /// Returns how many bytes a row of so many columns takes, or `None` where that is no whole
    /// number of blocks or more than can be addressed.
    pub const fn row_bytes(self, columns: usize) -> Option<usize> {
        if !columns.is_multiple_of(self.block_len()) {
            return None;
        }
        (columns / self.block_len()).checked_mul(self.block_bytes())
    }

    /// Returns its name as GGUF tools write it: `F32`, `Q4_K`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::F32 => "F32",
            Self::F16 => "F16",
            Self::Bf16 => "BF16",
            Self::Q4_0 => "Q4_0",
            Self::Q4_1 => "Q4_1",
            Self::Q8_0 => "Q8_0",
            Self::Q4K => "Q4_K",
            Self::Q6K => "Q6_K",
        }
    }
}

/// Writes the weights that `bytes` stand for to `out`.
///
/// # Panics
/// If `bytes` are not exactly `out.len()` weights in whole blocks.
pub fn dequantise(format: Format, bytes: &[u8], out: &mut [f32]) {
    let expected = format.row_bytes(out.len());
    assert!(
        expected == Some(bytes.len()),
        "{} bytes do not make {} weights in {}",
        bytes.len(),
        out.len(),
        format.name()
    );
    let blocks = bytes.chunks_exact(format.block_bytes());
    for (block, out) in blocks.zip(out.chunks_exact_mut(format.block_len())) {
        match format {
            Format::F32 => out[0] = f32::from_le_bytes([block[0], block[1], block[2], block[3]]),
            Format::F16 => out[0] = f16_at(block, 0),
            Format::Bf16 => out[0] = bf16::from_le_bytes([block[0], block[1]]).to_f32_const(),
            Format::Q4_0 => {
                let scale = f16_at(block, 0);
                dequantise_nibbles(&block[2..], scale, -8.0 * scale, out);
            }
            Format::Q4_1 => {
                dequantise_nibbles(&block[4..], f16_at(block, 0), f16_at(block, 2), out);
            }
            Format::Q8_0 => {
                let scale = f16_at(block, 0);
                for (out, &byte) in out.iter_mut().zip(&block[2..]) {
                    *out = scale * f32::from(byte.cast_signed());
                }
            }
            Format::Q4K => dequantise_q4_k(block, out),
            Format::Q6K => dequantise_q6_k(block, out),
        }
    }
}

/// Reads the f16 at a byte of a block.
pub(crate) fn f16_at(block: &[u8], at: usize) -> f32 {
    f16::from_le_bytes([block[at], block[at + 1]]).to_f32_const()
}

/// Sixteen bytes are 32 weights: the low nibbles first, then the high ones.
fn dequantise_nibbles(quants: &[u8], scale: f32, minimum: f32, out: &mut [f32]) {
    let (low, high) = out.split_at_mut(16);
    for ((low, high), &byte) in low.iter_mut().zip(high).zip(quants) {
        *low = f32::from(byte & 15) * scale + minimum;
        *high = f32::from(byte >> 4) * scale + minimum;
    }
}

/// Returns scale and minimum of group `group` in 0..8, 6 bits each.
///
/// Source: ggml-quants.c, `get_scale_min_k4`.
pub(crate) fn q4_k_group(block: &[u8], group: usize) -> (u8, u8) {
    let packed = &block[4..16];
    if group < 4 {
        (packed[group] & 63, packed[group + 4] & 63)
    } else {
        let scale = (packed[group + 4] & 15) | ((packed[group - 4] >> 6) << 4);
        let minimum = (packed[group + 4] >> 4) | ((packed[group] >> 6) << 4);
        (scale, minimum)
    }
}

fn dequantise_q4_k(block: &[u8], out: &mut [f32]) {
    let (scale, minimum) = (f16_at(block, 0), f16_at(block, 2));
    let pairs = block[16..].chunks_exact(32).zip(out.chunks_exact_mut(64));
    for (pair, (quants, out)) in pairs.enumerate() {
        for (half, out) in out.chunks_exact_mut(32).enumerate() {
            let (s, m) = q4_k_group(block, 2 * pair + half);
            let (scale, minimum) = (scale * f32::from(s), minimum * f32::from(m));
            for (out, &byte) in out.iter_mut().zip(quants) {
                *out = f32::from((byte >> (4 * half)) & 15) * scale - minimum;
            }
        }
    }
}

/// Returns the quant at `index` in 0..256 of a Q6_K block, less its offset: -32..=31.
pub(crate) fn q6_k_quant(block: &[u8], index: usize) -> i8 {
    let (half, quarter, l) = (index / 128, index % 128 / 32, index % 32);
    let low = block[64 * half + 32 * (quarter % 2) + l] >> (4 * (quarter / 2));
    let high = block[128 + 32 * half + l] >> (2 * quarter);
    ((low & 15) | ((high & 3) << 4)).cast_signed() - 32
}

fn dequantise_q6_k(block: &[u8], out: &mut [f32]) {
    let scale = f16_at(block, 208);
    for (group, out) in out.chunks_exact_mut(16).enumerate() {
        let scale = scale * f32::from(block[192 + group].cast_signed());
        for (l, out) in out.iter_mut().enumerate() {
            *out = scale * f32::from(q6_k_quant(block, 16 * group + l));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// f16 1.0, 0.5 and -2.0, little-endian.
    const ONE: [u8; 2] = [0, 0x3c];
    const HALF: [u8; 2] = [0, 0x38];
    const MINUS_TWO: [u8; 2] = [0, 0xc0];

    fn check(format: Format, bytes: &[u8], expected: impl Fn(usize) -> f32) {
        let mut out = vec![f32::NAN; bytes.len() / format.block_bytes() * format.block_len()];
        dequantise(format, bytes, &mut out);
        for (index, weight) in out.iter().enumerate() {
            assert_eq!(*weight, expected(index), "{} {index}", format.name());
        }
    }

    #[test]
    fn floats_are_themselves() {
        check(Format::F32, &1.25_f32.to_le_bytes(), |_| 1.25);
        check(Format::F16, &MINUS_TWO, |_| -2.0);
        check(Format::Bf16, &[0xc0, 0xbf], |_| -1.5);
    }

    #[test]
    fn nibbles_are_the_low_ones_first() {
        let quants: Vec<u8> = (0..16).map(|i| i | (15 - i) << 4).collect();
        let q = |i: usize| if i < 16 { i as f32 } else { (31 - i) as f32 };
        check(Format::Q4_0, &[&HALF[..], &quants].concat(), |i| 0.5 * (q(i) - 8.0));
        check(Format::Q4_1, &[&HALF[..], &MINUS_TWO, &quants].concat(), |i| 0.5 * q(i) - 2.0);
    }

    #[test]
    fn bytes_are_signed() {
        let quants: Vec<u8> = (0..32).map(|i| i * 8).collect();
        let q = |i: usize| f32::from((i as u8 * 8).cast_signed());
        check(Format::Q8_0, &[&HALF[..], &quants].concat(), |i| 0.5 * q(i));
    }

    #[test]
    fn q4_k_has_six_bits_of_scale_and_minimum_a_group() {
        // Scales 1, 2, …, 8 times 4 and minima 8, 7, …, 1 times 7, packed as ggml packs them.
        let (scale, minimum) = (|g: usize| 4 * (g as u8 + 1), |g: usize| 7 * (8 - g as u8));
        let mut packed = [0; 12];
        for g in 0..4 {
            packed[g] = scale(g) | (scale(g + 4) >> 4) << 6;
            packed[g + 4] = minimum(g) | (minimum(g + 4) >> 4) << 6;
            packed[g + 8] = (scale(g + 4) & 15) | (minimum(g + 4) & 15) << 4;
        }
        let quants: Vec<u8> = (0..128_u8).map(|i| i.wrapping_mul(37)).collect();
        let bytes = [&HALF[..], &ONE, &packed, &quants].concat();
        check(Format::Q4K, &bytes, |i| {
            let (g, byte) = (i / 32, quants[i / 64 * 32 + i % 32]);
            let q = if g % 2 == 0 { byte & 15 } else { byte >> 4 };
            0.5 * f32::from(scale(g)) * f32::from(q) - f32::from(minimum(g))
        });
    }

    #[test]
    fn q6_k_has_two_bits_of_a_weight_elsewhere() {
        let quant = |i: usize| (i * 29 % 64) as u8;
        let mut bytes = vec![0; 210];
        for i in 0..256 {
            // ggml-quants.c, `quantize_row_q6_K_ref`.
            let (half, quarter, l) = (i / 128, i % 128 / 32, i % 32);
            let low = 64 * half + 32 * (quarter % 2) + l;
            bytes[low] |= (quant(i) & 15) << (4 * (quarter / 2));
            bytes[128 + 32 * half + l] |= (quant(i) >> 4) << (2 * quarter);
        }
        for group in 0..16_u8 {
            bytes[192 + usize::from(group)] = group.wrapping_sub(8);
        }
        bytes[208..].copy_from_slice(&HALF);
        check(Format::Q6K, &bytes, |i| {
            let scale = (i / 16) as f32 - 8.0;
            0.5 * scale * (f32::from(quant(i)) - 32.0)
        });
    }

    #[test]
    fn rows_are_whole_blocks() {
        assert_eq!(Format::Q4_1.row_bytes(576), Some(360));
        assert_eq!(Format::Q4K.row_bytes(576), None);
        assert_eq!(Format::Bf16.row_bytes(3), Some(6));
        assert_eq!(Format::F32.row_bytes(usize::MAX / 2), None);
    }

    #[test]
    #[should_panic(expected = "19 bytes do not make 32 weights in Q4_1")]
    fn bytes_that_do_not_fit_panic() {
        dequantise(Format::Q4_1, &[0; 19], &mut [0.0; 32]);
    }
}
