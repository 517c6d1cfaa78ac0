//! Sixteen lanes in plain Rust, for tests.
//!
//! Kernels over vectors of sixteen lanes are compiled for machines with AVX-512. This runs them
//! elsewhere: all that it leaves untested are the intrinsics.

#![allow(unsafe_op_in_unsafe_fn)]

use half::{bf16, f16};

use crate::attend::PairTile;
use crate::multiply::TileOf;
use crate::simd::weights::{F32, Weights};
use crate::simd::{Kernel, Simd, pairs_tile, tile_of_rows};

#[derive(Clone, Copy)]
pub(crate) struct Lanes16;

type Floats = [f32; 16];
type Integers = [i32; 16];

/// Reads sixteen of something.
///
/// # Safety
/// As many are there.
#[inline(always)]
unsafe fn read<T: Copy>(from: *const T) -> [T; 16] {
    std::array::from_fn(|i| from.add(i).read_unaligned())
}

#[inline(always)]
fn both(a: Floats, b: Floats, f: impl Fn(f32, f32) -> f32) -> Floats {
    std::array::from_fn(|i| f(a[i], b[i]))
}

#[inline(always)]
fn both_bits(a: Integers, b: Integers, f: impl Fn(i32, i32) -> i32) -> Integers {
    std::array::from_fn(|i| f(a[i], b[i]))
}

/// Compiles the kernel for a fused multiply-add, which is a hundred times slower without.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn call_fused<K: Kernel>(kernel: K) -> K::Output {
    kernel.run::<Lanes16>()
}

impl Simd for Lanes16 {
    const LANES: usize = 16;
    const TILE_ROWS_MAX: usize = 12;
    const FEW_TILE_ROWS_MAX: usize = 6;
    const WIDE_TILE_ROWS_MAX: usize = 7;
    type Floats = Floats;
    type Integers = Integers;

    unsafe fn call<K: Kernel>(kernel: K) -> K::Output {
        #[cfg(target_arch = "x86_64")]
        if crate::isa::Isa::Avx2.is_available() {
            return call_fused(kernel);
        }
        kernel.run::<Self>()
    }
    unsafe fn wide_tile<W: Weights>(rows: usize, tile: TileOf) {
        tile_of_rows!(Self, W, 4, rows, tile, [1 2 3 4 5 6])
    }
    unsafe fn narrow_tile<W: Weights>(rows: usize, _tile: TileOf) {
        unreachable!("{rows} rows are few enough for a wide tile")
    }
    unsafe fn slab_tile(rows: usize, tile: TileOf) {
        tile_of_rows!(Self, F32, 2, rows, tile, [6 7 8 9 10 11 12])
    }
    unsafe fn wide_pairs<T: PairTile>(pairs: usize, tile: T) {
        pairs_tile!(Self, 4, pairs, tile, [1 2 3 4 5 6])
    }
    unsafe fn narrow_pairs<T: PairTile>(pairs: usize, tile: T) {
        pairs_tile!(Self, 2, pairs, tile, [1 2 3 4 5 6 7 8 9 10 11 12])
    }
    #[inline(always)]
    unsafe fn splat(x: f32) -> Floats {
        [x; 16]
    }
    #[inline(always)]
    unsafe fn load(from: *const f32) -> Floats {
        read(from)
    }
    #[inline(always)]
    unsafe fn store(to: *mut f32, x: Floats) {
        to.cast::<Floats>().write_unaligned(x);
    }
    #[inline(always)]
    unsafe fn load_f16(from: *const u8) -> Floats {
        read(from.cast::<u16>()).map(|bits| f16::from_bits(bits).to_f32_const())
    }
    #[inline(always)]
    unsafe fn load_bf16(from: *const u8) -> Floats {
        read(from.cast::<u16>()).map(|bits| bf16::from_bits(bits).to_f32_const())
    }
    #[inline(always)]
    unsafe fn load_i8(from: *const u8) -> Floats {
        read(from.cast::<i8>()).map(f32::from)
    }
    #[inline(always)]
    unsafe fn load_u8(from: *const u8) -> Floats {
        read(from).map(f32::from)
    }
    #[inline(always)]
    unsafe fn add(a: Floats, b: Floats) -> Floats {
        both(a, b, |a, b| a + b)
    }
    #[inline(always)]
    unsafe fn sub(a: Floats, b: Floats) -> Floats {
        both(a, b, |a, b| a - b)
    }
    #[inline(always)]
    unsafe fn mul(a: Floats, b: Floats) -> Floats {
        both(a, b, |a, b| a * b)
    }
    #[inline(always)]
    unsafe fn div(a: Floats, b: Floats) -> Floats {
        both(a, b, |a, b| a / b)
    }
    #[inline(always)]
    unsafe fn maximum(a: Floats, b: Floats) -> Floats {
        both(a, b, |a, b| if a > b { a } else { b })
    }
    #[inline(always)]
    unsafe fn minimum(a: Floats, b: Floats) -> Floats {
        both(a, b, |a, b| if a < b { a } else { b })
    }
    #[inline(always)]
    unsafe fn fma(a: Floats, b: Floats, c: Floats) -> Floats {
        std::array::from_fn(|i| a[i].mul_add(b[i], c[i]))
    }
    #[inline(always)]
    unsafe fn unless_nan(x: Floats, value: Floats) -> Floats {
        both(x, value, |x, value| if x.is_nan() { x } else { value })
    }
    #[inline(always)]
    unsafe fn splat_bits(x: i32) -> Integers {
        [x; 16]
    }
    #[inline(always)]
    unsafe fn load_bits(from: *const u8) -> Integers {
        read(from.cast())
    }
    #[inline(always)]
    unsafe fn bits(x: Floats) -> Integers {
        x.map(|x| x.to_bits().cast_signed())
    }
    #[inline(always)]
    unsafe fn from_bits(x: Integers) -> Floats {
        x.map(|x| f32::from_bits(x.cast_unsigned()))
    }
    #[inline(always)]
    unsafe fn and(a: Integers, b: Integers) -> Integers {
        both_bits(a, b, |a, b| a & b)
    }
    #[inline(always)]
    unsafe fn add_bits(a: Integers, b: Integers) -> Integers {
        both_bits(a, b, i32::wrapping_add)
    }
    #[inline(always)]
    unsafe fn sub_bits(a: Integers, b: Integers) -> Integers {
        both_bits(a, b, i32::wrapping_sub)
    }
    #[inline(always)]
    unsafe fn shift_left<const BY: i32>(x: Integers) -> Integers {
        x.map(|x| x << BY)
    }
    #[inline(always)]
    unsafe fn shift_right<const BY: i32>(x: Integers) -> Integers {
        x.map(|x| (x.cast_unsigned() >> BY).cast_signed())
    }
    #[inline(always)]
    unsafe fn halve(x: Integers) -> Integers {
        x.map(|x| x >> 1)
    }
    #[inline(always)]
    unsafe fn to_floats(x: Integers) -> Floats {
        x.map(|x| x as f32)
    }
}
