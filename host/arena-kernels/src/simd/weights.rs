//! Weights of a panel, as vectors.
//!
//! Twin: `pack::unpack`, which also says where they lie.
//!
//! Not here: what they are multiplied with (`multiply`).

#![allow(unsafe_op_in_unsafe_fn)]

use crate::format::Format;
use crate::pack::{PANEL_ROWS, block_start, header_bytes, super_start};
use crate::simd::Simd;

/// `V` vectors of lanes, from lane `lane` of the panel at `panel` on, and into the next panels.
#[derive(Clone, Copy)]
pub(crate) struct Lanes<const V: usize> {
    pub panel: *const u8,
    pub panel_bytes: usize,
    pub lane: usize,
}

impl<const V: usize> Lanes<V> {
    /// Returns the panel of vector `v`, and its first lane.
    #[inline(always)]
    fn of<S: Simd>(&self, v: usize) -> (*const u8, usize) {
        let lane = v * S::LANES;
        let panel = self.panel.wrapping_add(lane / PANEL_ROWS * self.panel_bytes);
        (panel, self.lane + lane % PANEL_ROWS)
    }
}

/// A block that is being read: where its quants lie and how they are scaled.
#[derive(Clone, Copy)]
pub(crate) struct Cursor<S: Simd, const V: usize> {
    quants: [*const u8; V],
    scale: [S::Floats; V],
    other: [S::Floats; V],
    mask: S::Integers,
}

/// A format's way to read blocks. Columns are read in steps of four, in order.
pub(crate) trait Weights: Copy {
    /// Whether a weight is a product and a minimum.
    const HAVE_MINIMA: bool = false;
    /// Whether a panel holds what a slab would.
    const ARE_F32: bool = false;

    /// Reads the scales of block `block`.
    ///
    /// # Safety
    /// The panels have such a block, and the machine the instructions.
    unsafe fn open<S: Simd, const V: usize>(lanes: Lanes<V>, block: usize) -> Cursor<S, V>;

    /// Returns the weights of column `column` of step `step`. `LAST` says that this is step 7.
    ///
    /// # Safety
    /// As for [`Weights::open`].
    unsafe fn weights<S: Simd, const V: usize, const LAST: bool>(
        cursor: &Cursor<S, V>,
        step: usize,
        column: usize,
    ) -> [S::Floats; V];

    /// Goes on to the next step.
    ///
    /// # Safety
    /// As for [`Weights::open`].
    #[inline(always)]
    unsafe fn advance<S: Simd, const V: usize>(cursor: &mut Cursor<S, V>, step: usize) {
        let _ = (cursor, step);
    }
}

/// Makes a cursor whose scales are read by `scales` from (panel, block, lane).
#[inline(always)]
unsafe fn cursor<S: Simd, const V: usize>(
    format: Format,
    lanes: Lanes<V>,
    block: usize,
    quant_bits: usize,
    scales: impl Fn(*const u8, *const u8, usize) -> (S::Floats, S::Floats),
) -> Cursor<S, V> {
    let zero = S::splat(0.0);
    let mut cursor = Cursor {
        quants: [lanes.panel; V],
        scale: [zero; V],
        other: [zero; V],
        mask: S::splat_bits(15),
    };
    for v in 0..V {
        let (panel, lane) = lanes.of::<S>(v);
        let header = panel.wrapping_add(block_start(format, block));
        let shared = panel.wrapping_add(super_start(format, block));
        (cursor.scale[v], cursor.other[v]) = scales(shared, header, lane);
        cursor.quants[v] = header.wrapping_add(header_bytes(format) + lane * quant_bits / 8);
    }
    cursor
}

/// The weights of 4-bit formats, which all are `scale * q + other`.
///
/// A mask leaves `q * 16^step` in the words, and the scale is divided by `16^step` instead, both
/// of which are exact. The last step shifts, because there the mask would meet the sign.
#[inline(always)]
unsafe fn nibbles<S: Simd, const V: usize, const LAST: bool>(
    cursor: &Cursor<S, V>,
    column: usize,
) -> [S::Floats; V] {
    let mut weights = cursor.scale;
    for (v, weight) in weights.iter_mut().enumerate() {
        let words = S::load_bits(cursor.quants[v].wrapping_add(4 * column * PANEL_ROWS));
        let q = if LAST { S::shift_right::<28>(words) } else { S::and(words, cursor.mask) };
        *weight = S::fma(S::to_floats(q), *weight, cursor.other[v]);
    }
    weights
}

#[inline(always)]
unsafe fn next_nibbles<S: Simd, const V: usize>(cursor: &mut Cursor<S, V>, step: usize) {
    // The last step shifts its quants, so before it the scale becomes what it was.
    let factor = if step == 6 { 16_777_216.0 } else { 1.0 / 16.0 };
    for scale in &mut cursor.scale {
        *scale = S::mul(*scale, S::splat(factor));
    }
    cursor.mask = S::shift_left::<4>(cursor.mask);
}

macro_rules! four_bits {
    ($name:ident, $format:expr, |$shared:ident, $header:ident, $lane:ident| $scales:expr) => {
        /// See [`Format`].
        #[derive(Clone, Copy)]
        pub(crate) struct $name;

        impl Weights for $name {
            const HAVE_MINIMA: bool = true;

            #[inline(always)]
            unsafe fn open<S: Simd, const V: usize>(lanes: Lanes<V>, block: usize) -> Cursor<S, V> {
                cursor::<S, V>($format, lanes, block, 32, |$shared, $header, $lane| $scales)
            }

            #[inline(always)]
            unsafe fn weights<S: Simd, const V: usize, const LAST: bool>(
                cursor: &Cursor<S, V>,
                _step: usize,
                column: usize,
            ) -> [S::Floats; V] {
                nibbles::<S, V, LAST>(cursor, column)
            }

            #[inline(always)]
            unsafe fn advance<S: Simd, const V: usize>(cursor: &mut Cursor<S, V>, step: usize) {
                next_nibbles(cursor, step);
            }
        }
    };
}

four_bits!(Q4_0, Format::Q4_0, |_shared, header, lane| {
    let scale = S::load_f16(header.wrapping_add(2 * lane));
    (scale, S::mul(scale, S::splat(-8.0)))
});

four_bits!(Q4_1, Format::Q4_1, |_shared, header, lane| {
    let scale = S::load_f16(header.wrapping_add(2 * lane));
    (scale, S::load_f16(header.wrapping_add(2 * (PANEL_ROWS + lane))))
});

four_bits!(Q4K, Format::Q4K, |shared, header, lane| {
    let scale = S::load_f16(shared.wrapping_add(2 * lane));
    let minimum = S::load_f16(shared.wrapping_add(2 * (PANEL_ROWS + lane)));
    let minimum = S::mul(minimum, S::splat(-1.0));
    let s = S::load_u8(header.wrapping_add(lane));
    let m = S::load_u8(header.wrapping_add(PANEL_ROWS + lane));
    (S::mul(scale, s), S::mul(minimum, m))
});

macro_rules! bytes {
    ($name:ident, $format:expr, |$shared:ident, $header:ident, $lane:ident| $scales:expr) => {
        /// See [`Format`].
        #[derive(Clone, Copy)]
        pub(crate) struct $name;

        impl Weights for $name {
            #[inline(always)]
            unsafe fn open<S: Simd, const V: usize>(lanes: Lanes<V>, block: usize) -> Cursor<S, V> {
                cursor::<S, V>($format, lanes, block, 8, |$shared, $header, $lane| $scales)
            }

            #[inline(always)]
            unsafe fn weights<S: Simd, const V: usize, const LAST: bool>(
                cursor: &Cursor<S, V>,
                step: usize,
                column: usize,
            ) -> [S::Floats; V] {
                let mut weights = cursor.scale;
                for (quants, weight) in cursor.quants.iter().zip(&mut weights) {
                    let at = quants.wrapping_add((4 * step + column) * PANEL_ROWS);
                    *weight = S::mul(S::load_i8(at), *weight);
                }
                weights
            }

            #[inline(always)]
            unsafe fn advance<S: Simd, const V: usize>(cursor: &mut Cursor<S, V>, step: usize) {
                // The second half of a block has the other scale.
                if step == 3 {
                    cursor.scale = cursor.other;
                }
            }
        }
    };
}

bytes!(Q8_0, Format::Q8_0, |_shared, header, lane| {
    let scale = S::load_f16(header.wrapping_add(2 * lane));
    (scale, scale)
});

bytes!(Q6K, Format::Q6K, |shared, header, lane| {
    let scale = S::load_f16(shared.wrapping_add(2 * lane));
    let first = S::load_i8(header.wrapping_add(lane));
    let second = S::load_i8(header.wrapping_add(PANEL_ROWS + lane));
    (S::mul(scale, first), S::mul(scale, second))
});

macro_rules! floats {
    ($name:ident, $format:expr, $load:ident, $cast:ty, $are_f32:literal) => {
        /// See [`Format`].
        #[derive(Clone, Copy)]
        pub(crate) struct $name;

        impl Weights for $name {
            const ARE_F32: bool = $are_f32;

            #[inline(always)]
            unsafe fn open<S: Simd, const V: usize>(lanes: Lanes<V>, block: usize) -> Cursor<S, V> {
                let bits = 8 * $format.block_bytes();
                cursor::<S, V>($format, lanes, block, bits, |_, _, _| {
                    (S::splat(0.0), S::splat(0.0))
                })
            }

            #[inline(always)]
            unsafe fn weights<S: Simd, const V: usize, const LAST: bool>(
                cursor: &Cursor<S, V>,
                step: usize,
                column: usize,
            ) -> [S::Floats; V] {
                let mut weights = cursor.scale;
                for (quants, weight) in cursor.quants.iter().zip(&mut weights) {
                    let at = (4 * step + column) * PANEL_ROWS * $format.block_bytes();
                    *weight = S::$load(quants.wrapping_add(at).cast::<$cast>());
                }
                weights
            }
        }
    };
}

floats!(F32, Format::F32, load, f32, true);
floats!(F16, Format::F16, load_f16, u8, false);
floats!(Bf16, Format::Bf16, load_bf16, u8, false);
