//! Vectors of f32, one implementation an instruction set.
//!
//! A kernel is written once, over [`Simd`]; instruction sets differ in the number of lanes and in
//! the intrinsics named here, never in a formula. The functions are `unsafe` because the caller
//! must be compiled for the instructions: [`Simd::call`] is the way in.
//!
//! Not here: formulas (`multiply`, `attend`, `rows`), and the plain twins that they are
//! compared with.

// Intrinsics and pointers of tiles: each is compared bit for bit with a twin in plain Rust.
#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx512;
#[cfg(test)]
pub(crate) mod lanes16;
pub(crate) mod weights;

use crate::attend::PairTile;
use crate::isa::Isa;
use crate::multiply::TileOf;
use crate::simd::weights::Weights;

/// Something to be done with vectors of any width.
pub(crate) trait Kernel {
    /// What it returns.
    type Output;

    /// Does it. To be marked `#[inline(always)]`, so that it is compiled for the instructions.
    ///
    /// # Safety
    /// The machine has the instructions of `S`, and the pointers in `self` are good.
    unsafe fn run<S: Simd>(self) -> Self::Output;
}

/// The operations of an instruction set.
///
/// Every operation on floats is that of IEEE 754, lane by lane, rounding to nearest; `maximum` is
/// `if a > b { a } else { b }`, and `minimum` with `<`.
///
/// # Safety
/// Of all functions: the machine has the instructions; pointers are good for as many elements as
/// there are lanes. They need no alignment.
pub(crate) trait Simd: Copy {
    /// Floats of a vector.
    const LANES: usize;
    /// Most rows of a tile that is two vectors wide: what the registers hold.
    const TILE_ROWS_MAX: usize;
    /// The same where weights are dequantised in registers.
    const FEW_TILE_ROWS_MAX: usize;
    /// Most rows of such a tile that is four vectors wide, unless its weights are of 4 bits: these
    /// need registers for their minima too, so of them it is one row less.
    const WIDE_TILE_ROWS_MAX: usize;
    /// A vector of f32.
    type Floats: Copy;
    /// A vector of i32.
    type Integers: Copy;

    /// Runs a kernel compiled for these instructions.
    unsafe fn call<K: Kernel>(kernel: K) -> K::Output;

    /// Runs a tile of `rows` rows and four vectors: up to [`Simd::WIDE_TILE_ROWS_MAX`] rows.
    unsafe fn wide_tile<W: Weights>(rows: usize, tile: TileOf);
    /// Runs a tile of `rows` rows and two vectors: more rows, up to [`Simd::FEW_TILE_ROWS_MAX`].
    unsafe fn narrow_tile<W: Weights>(rows: usize, tile: TileOf);
    /// Runs a tile of `rows` rows and two vectors of f32: half of [`Simd::TILE_ROWS_MAX`] or more.
    unsafe fn slab_tile(rows: usize, tile: TileOf);

    /// Runs a tile of attention of `pairs` queries and four vectors, where the registers hold it.
    unsafe fn wide_pairs<T: PairTile>(pairs: usize, tile: T);
    /// Runs a tile of `pairs` queries, or rows, and two vectors, up to [`Simd::TILE_ROWS_MAX`].
    unsafe fn narrow_pairs<T: PairTile>(pairs: usize, tile: T);

    unsafe fn splat(x: f32) -> Self::Floats;
    unsafe fn load(from: *const f32) -> Self::Floats;
    unsafe fn store(to: *mut f32, x: Self::Floats);
    /// Loads little-endian binary16.
    unsafe fn load_f16(from: *const u8) -> Self::Floats;
    /// Loads upper halves of binary32.
    unsafe fn load_bf16(from: *const u8) -> Self::Floats;
    /// Loads signed bytes as floats.
    unsafe fn load_i8(from: *const u8) -> Self::Floats;
    /// Loads unsigned bytes as floats.
    unsafe fn load_u8(from: *const u8) -> Self::Floats;

    unsafe fn add(a: Self::Floats, b: Self::Floats) -> Self::Floats;
    unsafe fn sub(a: Self::Floats, b: Self::Floats) -> Self::Floats;
    unsafe fn mul(a: Self::Floats, b: Self::Floats) -> Self::Floats;
    unsafe fn div(a: Self::Floats, b: Self::Floats) -> Self::Floats;
    unsafe fn maximum(a: Self::Floats, b: Self::Floats) -> Self::Floats;
    unsafe fn minimum(a: Self::Floats, b: Self::Floats) -> Self::Floats;
    /// `a * b + c`, rounded once.
    unsafe fn fma(a: Self::Floats, b: Self::Floats, c: Self::Floats) -> Self::Floats;
    /// `value` where `x` is a number, `x` where it is NaN.
    unsafe fn unless_nan(x: Self::Floats, value: Self::Floats) -> Self::Floats;

    unsafe fn splat_bits(x: i32) -> Self::Integers;
    unsafe fn load_bits(from: *const u8) -> Self::Integers;
    unsafe fn bits(x: Self::Floats) -> Self::Integers;
    unsafe fn from_bits(x: Self::Integers) -> Self::Floats;
    unsafe fn and(a: Self::Integers, b: Self::Integers) -> Self::Integers;
    unsafe fn add_bits(a: Self::Integers, b: Self::Integers) -> Self::Integers;
    unsafe fn sub_bits(a: Self::Integers, b: Self::Integers) -> Self::Integers;
    unsafe fn shift_left<const BY: i32>(x: Self::Integers) -> Self::Integers;
    /// Shifts right, zeros in.
    unsafe fn shift_right<const BY: i32>(x: Self::Integers) -> Self::Integers;
    /// Shifts right, signs in.
    unsafe fn halve(x: Self::Integers) -> Self::Integers;
    /// Signed integers as floats, rounding to nearest.
    unsafe fn to_floats(x: Self::Integers) -> Self::Floats;
}

/// Runs a kernel by the instructions of a context, or its plain twin.
pub(crate) fn run<K: Kernel>(isa: Isa, kernel: K, twin: impl FnOnce(K) -> K::Output) -> K::Output {
    match isa {
        // SAFETY: contexts, and `Isa::best`, name instructions that the machine has, and kernels
        // are made with good pointers.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => unsafe { avx2::Avx2::call(kernel) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => unsafe { avx512::Avx512::call(kernel) },
        // SAFETY: there is nothing to have.
        #[cfg(test)]
        Isa::Lanes16 => unsafe { lanes16::Lanes16::call(kernel) },
        _ => twin(kernel),
    }
}

/// Calls the tile of `$vectors` vectors whose number of rows is `$rows`.
macro_rules! tile_of_rows {
    ($simd:ty, $weights:ty, $vectors:literal, $rows:expr, $tile:expr, [$($count:literal)+]) => {
        match $rows {
            $($count => <$simd>::call(
                crate::multiply::Tile::<$weights, $count, $vectors>::new($tile)
            ),)+
            rows => unreachable!("a tile of {rows} rows"),
        }
    };
}
pub(crate) use tile_of_rows;

/// Calls the tile of attention of `$vectors` vectors whose number of queries is `$pairs`.
macro_rules! pairs_tile {
    ($simd:ty, $vectors:literal, $pairs:expr, $tile:expr, [$($count:literal)+]) => {
        match $pairs {
            $($count => <$simd>::call(crate::attend::Pairs::<_, $count, $vectors>($tile)),)+
            pairs => unreachable!("a tile of {pairs} queries"),
        }
    };
}
pub(crate) use pairs_tile;
