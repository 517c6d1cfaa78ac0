//! AVX2 with FMA and F16C: 8 lanes.

// Each kernel over these is compared bit for bit with a twin in plain Rust. A function is safe to
// call where its caller is compiled for the instructions, which `Simd::call` takes care of.
#![allow(unsafe_op_in_unsafe_fn)]

use std::arch::x86_64::*;

use crate::attend::PairTile;
use crate::multiply::TileOf;
use crate::simd::weights::{F32, Weights};
use crate::simd::{Kernel, Simd, pairs_tile, tile_of_rows};

#[derive(Clone, Copy)]
pub(crate) struct Avx2;

#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn call<K: Kernel>(kernel: K) -> K::Output {
    kernel.run::<Avx2>()
}

impl Simd for Avx2 {
    const LANES: usize = 8;
    const TILE_ROWS_MAX: usize = 6;
    const FEW_TILE_ROWS_MAX: usize = 5;
    const WIDE_TILE_ROWS_MAX: usize = 2;
    type Floats = __m256;
    type Integers = __m256i;

    #[inline]
    unsafe fn call<K: Kernel>(kernel: K) -> K::Output {
        call(kernel)
    }

    #[inline]
    unsafe fn wide_tile<W: Weights>(rows: usize, tile: TileOf) {
        tile_of_rows!(Self, W, 4, rows, tile, [1 2])
    }

    #[inline]
    unsafe fn narrow_tile<W: Weights>(rows: usize, tile: TileOf) {
        tile_of_rows!(Self, W, 2, rows, tile, [2 3 4 5])
    }

    #[inline]
    unsafe fn slab_tile(rows: usize, tile: TileOf) {
        tile_of_rows!(Self, F32, 2, rows, tile, [3 4 5 6])
    }

    #[inline]
    unsafe fn wide_pairs<T: PairTile>(pairs: usize, tile: T) {
        pairs_tile!(Self, 4, pairs, tile, [1 2 3])
    }

    #[inline]
    unsafe fn narrow_pairs<T: PairTile>(pairs: usize, tile: T) {
        pairs_tile!(Self, 2, pairs, tile, [1 2 3 4 5 6])
    }

    #[inline(always)]
    unsafe fn splat(x: f32) -> Self::Floats {
        _mm256_set1_ps(x)
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self::Floats {
        _mm256_loadu_ps(from)
    }

    #[inline(always)]
    unsafe fn store(to: *mut f32, x: Self::Floats) {
        _mm256_storeu_ps(to, x)
    }

    #[inline(always)]
    unsafe fn load_f16(from: *const u8) -> Self::Floats {
        _mm256_cvtph_ps(_mm_loadu_si128(from.cast()))
    }

    #[inline(always)]
    unsafe fn load_bf16(from: *const u8) -> Self::Floats {
        Self::from_bits(_mm256_slli_epi32::<16>(_mm256_cvtepu16_epi32(_mm_loadu_si128(
            from.cast(),
        ))))
    }

    #[inline(always)]
    unsafe fn load_i8(from: *const u8) -> Self::Floats {
        _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(from.cast())))
    }

    #[inline(always)]
    unsafe fn load_u8(from: *const u8) -> Self::Floats {
        _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64(from.cast())))
    }

    #[inline(always)]
    unsafe fn add(a: Self::Floats, b: Self::Floats) -> Self::Floats {
        _mm256_add_ps(a, b)
    }

    #[inline(always)]
    unsafe fn sub(a: Self::Floats, b: Self::Floats) -> Self::Floats {
        _mm256_sub_ps(a, b)
    }

    #[inline(always)]
    unsafe fn mul(a: Self::Floats, b: Self::Floats) -> Self::Floats {
        _mm256_mul_ps(a, b)
    }

    #[inline(always)]
    unsafe fn div(a: Self::Floats, b: Self::Floats) -> Self::Floats {
        _mm256_div_ps(a, b)
    }

    #[inline(always)]
    unsafe fn maximum(a: Self::Floats, b: Self::Floats) -> Self::Floats {
        _mm256_max_ps(a, b)
    }

    #[inline(always)]
    unsafe fn minimum(a: Self::Floats, b: Self::Floats) -> Self::Floats {
        _mm256_min_ps(a, b)
    }

    #[inline(always)]
    unsafe fn fma(a: Self::Floats, b: Self::Floats, c: Self::Floats) -> Self::Floats {
        _mm256_fmadd_ps(a, b, c)
    }

    #[inline(always)]
    unsafe fn unless_nan(x: Self::Floats, value: Self::Floats) -> Self::Floats {
        _mm256_blendv_ps(value, x, _mm256_cmp_ps::<_CMP_UNORD_Q>(x, x))
    }

    #[inline(always)]
    unsafe fn splat_bits(x: i32) -> Self::Integers {
        _mm256_set1_epi32(x)
    }

    #[inline(always)]
    unsafe fn load_bits(from: *const u8) -> Self::Integers {
        _mm256_loadu_si256(from.cast())
    }

    #[inline(always)]
    unsafe fn bits(x: Self::Floats) -> Self::Integers {
        _mm256_castps_si256(x)
    }

    #[inline(always)]
    unsafe fn from_bits(x: Self::Integers) -> Self::Floats {
        _mm256_castsi256_ps(x)
    }

    #[inline(always)]
    unsafe fn and(a: Self::Integers, b: Self::Integers) -> Self::Integers {
        _mm256_and_si256(a, b)
    }

    #[inline(always)]
    unsafe fn add_bits(a: Self::Integers, b: Self::Integers) -> Self::Integers {
        _mm256_add_epi32(a, b)
    }

    #[inline(always)]
    unsafe fn sub_bits(a: Self::Integers, b: Self::Integers) -> Self::Integers {
        _mm256_sub_epi32(a, b)
    }

    #[inline(always)]
    unsafe fn shift_left<const BY: i32>(x: Self::Integers) -> Self::Integers {
        _mm256_slli_epi32::<BY>(x)
    }

    #[inline(always)]
    unsafe fn shift_right<const BY: i32>(x: Self::Integers) -> Self::Integers {
        _mm256_srli_epi32::<BY>(x)
    }

    #[inline(always)]
    unsafe fn halve(x: Self::Integers) -> Self::Integers {
        _mm256_srai_epi32::<1>(x)
    }

    #[inline(always)]
    unsafe fn to_floats(x: Self::Integers) -> Self::Floats {
        _mm256_cvtepi32_ps(x)
    }
}
