//! Where the weights of a panel lie.
//!
//! A panel is 32 rows of a matrix, side by side: what a vector loads are weights of different rows
//! and one column. Columns come in blocks of 32, and quantised weights keep their bits:
//!
//! | format | a panel |
//! |---|---|
//! | F32, F16, BF16 | per column: 32 weights |
//! | Q4_0 | per block: 32 f16 `d`, nibbles |
//! | Q4_1 | per block: 32 f16 `d`, 32 f16 `m`, nibbles |
//! | Q8_0 | per block: 32 f16 `d`; per column 32 bytes |
//! | Q4_K | per 8 blocks: 32 f16 `d`, 32 f16 `dmin`; per block: 32 `s`, 32 `m`, nibbles |
//! | Q6_K | per 8 blocks: 32 f16 `d`; per block: 2 times 32 `s`; per column 32 bytes |
//!
//! Nibbles are four times 32 words of 32 bits; nibble `j` of word `i` of a row is column
//! `4 j + i`, so that a mask takes the weights of a column out of a vector of words. The scales of
//! Q6_K are of the first and of the second half of a block's columns; it keeps a byte a weight, so
//! it has 8.6 bits a weight here, for 6.6 in the file.
//!
//! This module is plain Rust and the reference for the vectors that read the same bytes.
//!
//! Not here: multiplying (`matrix`, `multiply`).

use crate::format::{Format, f16_at, q4_k_group, q6_k_quant};
use half::bf16;

/// Rows of a panel.
pub(crate) const PANEL_ROWS: usize = 32;
/// Columns of a block.
pub(crate) const BLOCK: usize = 32;
/// Bytes of the nibbles of a block.
const NIBBLES: usize = PANEL_ROWS * BLOCK / 2;
/// Blocks that share a header in Q4_K and Q6_K.
pub(crate) const SUPER_BLOCKS: usize = 8;

/// Bytes in front of what a block has for itself, shared by [`SUPER_BLOCKS`] blocks.
pub(crate) const fn super_header_bytes(format: Format) -> usize {
    match format {
        Format::Q4K => 4 * PANEL_ROWS,
        Format::Q6K => 2 * PANEL_ROWS,
        _ => 0,
    }
}

/// Bytes of the scales in front of a block's quants.
pub(crate) const fn header_bytes(format: Format) -> usize {
    match format {
        Format::F32 | Format::F16 | Format::Bf16 => 0,
        Format::Q4_0 | Format::Q8_0 | Format::Q4K | Format::Q6K => 2 * PANEL_ROWS,
        Format::Q4_1 => 4 * PANEL_ROWS,
    }
}

/// Bytes of a block: its scales and its quants.
pub(crate) const fn block_bytes(format: Format) -> usize {
    let quants = match format {
        Format::F32 => 4 * PANEL_ROWS * BLOCK,
        Format::F16 | Format::Bf16 => 2 * PANEL_ROWS * BLOCK,
        Format::Q4_0 | Format::Q4_1 | Format::Q4K => NIBBLES,
        Format::Q8_0 | Format::Q6K => PANEL_ROWS * BLOCK,
    };
    header_bytes(format) + quants
}

/// Where block `block` of a panel begins.
pub(crate) const fn block_start(format: Format, block: usize) -> usize {
    let header = super_header_bytes(format);
    block * block_bytes(format) + (block / SUPER_BLOCKS + 1) * header
}

/// Where the header lies that block `block` shares.
pub(crate) const fn super_start(format: Format, block: usize) -> usize {
    let before = block / SUPER_BLOCKS;
    before * (SUPER_BLOCKS * block_bytes(format) + super_header_bytes(format))
}

/// Bytes of a panel of so many columns, a multiple of 64; `None` if they cannot be addressed.
pub(crate) fn panel_bytes(format: Format, columns: usize) -> Option<usize> {
    let blocks = columns / BLOCK;
    let tail = columns % BLOCK * (block_bytes(format) / BLOCK);
    let supers = blocks.div_ceil(SUPER_BLOCKS).checked_mul(super_header_bytes(format))?;
    blocks.checked_mul(block_bytes(format))?.checked_add(supers)?.checked_add(tail)
}

/// Writes one row, as files hold it, to lane `lane` of a panel that was zeros.
pub(crate) fn pack_row(format: Format, row: &[u8], lane: usize, panel: &mut [u8]) {
    for (index, stored) in row.chunks_exact(format.block_bytes()).enumerate() {
        match format {
            Format::F32 | Format::F16 | Format::Bf16 => {
                let bytes = format.block_bytes();
                panel[(index * PANEL_ROWS + lane) * bytes..][..bytes].copy_from_slice(stored);
            }
            Format::Q4_0 | Format::Q4_1 => {
                let block = &mut panel[block_start(format, index)..];
                for (scale, from) in stored[..format.block_bytes() - 16].chunks(2).enumerate() {
                    put_f16(block, scale, lane, from);
                }
                let quants = &stored[format.block_bytes() - 16..];
                let quant = |k: usize| (quants[k % 16] >> (k / 16 * 4)) & 15;
                put_nibbles(&mut block[header_bytes(format)..], lane, quant);
            }
            Format::Q8_0 => {
                let block = &mut panel[block_start(format, index)..];
                put_f16(block, 0, lane, &stored[..2]);
                put_bytes(&mut block[header_bytes(format)..], lane, |k| stored[2 + k]);
            }
            Format::Q4K => pack_q4_k(stored, index, lane, panel),
            Format::Q6K => pack_q6_k(stored, index, lane, panel),
        }
    }
}

fn pack_q4_k(stored: &[u8], index: usize, lane: usize, panel: &mut [u8]) {
    let shared = &mut panel[super_start(Format::Q4K, index * SUPER_BLOCKS)..];
    put_f16(shared, 0, lane, &stored[..2]);
    put_f16(shared, 1, lane, &stored[2..4]);
    for group in 0..SUPER_BLOCKS {
        let block = &mut panel[block_start(Format::Q4K, index * SUPER_BLOCKS + group)..];
        let (scale, minimum) = q4_k_group(stored, group);
        block[lane] = scale;
        block[PANEL_ROWS + lane] = minimum;
        let quants = &stored[16 + group / 2 * 32..];
        let quant = |k: usize| (quants[k] >> (group % 2 * 4)) & 15;
        put_nibbles(&mut block[header_bytes(Format::Q4K)..], lane, quant);
    }
}

fn pack_q6_k(stored: &[u8], index: usize, lane: usize, panel: &mut [u8]) {
    let shared = &mut panel[super_start(Format::Q6K, index * SUPER_BLOCKS)..];
    put_f16(shared, 0, lane, &stored[208..210]);
    for group in 0..SUPER_BLOCKS {
        let block = &mut panel[block_start(Format::Q6K, index * SUPER_BLOCKS + group)..];
        block[lane] = stored[192 + 2 * group];
        block[PANEL_ROWS + lane] = stored[193 + 2 * group];
        let quant = |k: usize| q6_k_quant(stored, group * BLOCK + k).cast_unsigned();
        put_bytes(&mut block[header_bytes(Format::Q6K)..], lane, quant);
    }
}

/// Writes scale number `scale` of a header of f16.
fn put_f16(header: &mut [u8], scale: usize, lane: usize, from: &[u8]) {
    header[2 * (scale * PANEL_ROWS + lane)..][..2].copy_from_slice(from);
}

fn put_nibbles(quants: &mut [u8], lane: usize, quant: impl Fn(usize) -> u8) {
    for i in 0..4 {
        let word = (0..8).fold(0, |word, j| word | (u32::from(quant(4 * j + i)) << (4 * j)));
        quants[4 * (i * PANEL_ROWS + lane)..][..4].copy_from_slice(&word.to_le_bytes());
    }
}

fn put_bytes(quants: &mut [u8], lane: usize, quant: impl Fn(usize) -> u8) {
    for k in 0..BLOCK {
        quants[k * PANEL_ROWS + lane] = quant(k);
    }
}

/// Writes the weights of lane `lane` in block `block` of a panel to `out`, at most 32.
pub(crate) fn unpack(format: Format, panel: &[u8], block: usize, lane: usize, out: &mut [f32]) {
    let shared = &panel[super_start(format, block)..];
    let header = &panel[block_start(format, block)..];
    let quants = &header[header_bytes(format)..];
    let f16_of = |header: &[u8], scale: usize| f16_at(header, 2 * (scale * PANEL_ROWS + lane));
    let nibble = |k: usize| {
        let at = 4 * (k % 4 * PANEL_ROWS + lane) + k / 8;
        f32::from((quants[at] >> (k / 4 % 2 * 4)) & 15)
    };
    let byte = |k: usize| f32::from(quants[k * PANEL_ROWS + lane].cast_signed());
    let (scale, minimum) = match format {
        Format::Q4_0 => (f16_of(header, 0), -8.0 * f16_of(header, 0)),
        Format::Q4_1 => (f16_of(header, 0), f16_of(header, 1)),
        Format::Q8_0 => (f16_of(header, 0), 0.0),
        Format::Q4K => (
            f16_of(shared, 0) * f32::from(header[lane]),
            -(f16_of(shared, 1) * f32::from(header[PANEL_ROWS + lane])),
        ),
        _ => (0.0, 0.0),
    };
    for (k, out) in out.iter_mut().enumerate() {
        *out = match format {
            Format::F32 => {
                let at = 4 * (k * PANEL_ROWS + lane);
                f32::from_le_bytes([quants[at], quants[at + 1], quants[at + 2], quants[at + 3]])
            }
            Format::F16 => f16_at(quants, 2 * (k * PANEL_ROWS + lane)),
            Format::Bf16 => {
                let at = 2 * (k * PANEL_ROWS + lane);
                bf16::from_le_bytes([quants[at], quants[at + 1]]).to_f32_const()
            }
            Format::Q4_0 | Format::Q4_1 | Format::Q4K => nibble(k) * scale + minimum,
            Format::Q8_0 => scale * byte(k),
            Format::Q6K => {
                let s = header[k / 16 * PANEL_ROWS + lane].cast_signed();
                f16_of(shared, 0) * f32::from(s) * byte(k)
            }
        };
    }
}
