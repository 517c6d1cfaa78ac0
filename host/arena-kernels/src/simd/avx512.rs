//! AVX-512 F, BW, DQ and VL: 16 lanes.

// Each kernel over these is compared bit for bit with a twin in plain Rust. A function is safe to
// call where its caller is compiled for the instructions, which `Simd::call` takes care of.
#![allow(unsafe_op_in_unsafe_fn)]

use std::arch::x86_64::*;

use crate::attend::PairTile;
use crate::multiply::TileOf;
use crate::simd::weights::{F32, Weights};
use crate::simd::{Kernel, Simd, pairs_tile, tile_of_rows};

#[derive(Clone, Copy)]
pub(crate) struct Avx512;

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")]
unsafe fn call<K: Kernel>(kernel: K) -> K::Output {
    kernel.run::<Avx512>()
}

impl Simd for Avx512 {
    const LANES: usize = 16;
    const TILE_ROWS_MAX: usize = 12;
    const FEW_TILE_ROWS_MAX: usize = 6;
    const WIDE_TILE_ROWS_MAX: usize = 7;
    type Floats = __m512;
    type Integers = __m512i;

    #[inline]
    unsafe fn call<K: Kernel>(kernel: K) -> K::Output {
        call(kernel)
    }

    #[inline]
    unsafe fn wide_tile<W: Weights>(rows: usize, tile: TileOf) {
        tile_of_rows!(Self, W, 4, rows, tile, [1 2 3 4 5 6])
    }

    #[inline]
    unsafe fn narrow_tile<W: Weights>(rows: usize, _tile: TileOf) {
        unreachable!("{rows} rows are few enough for a wide tile")
    }

    #[inline]
    unsafe fn slab_tile(rows: usize, tile: TileOf) {
        tile_of_rows!(Self, F32, 2, rows, tile, [6 7 8 9 10 11 12])
    }

    #[inline]
    unsafe fn wide_pairs<T: PairTile>(pairs: usize, tile: T) {
        pairs_tile!(Self, 4, pairs, tile, [1 2 3 4 5 6])
    }

    #[inline]
    unsafe fn narrow_pairs<T: PairTile>(pairs: usize, tile: T) {
        pairs_tile!(Self, 2, pairs, tile, [1 2 3 4 5 6 7 8 9 10 11 12])
    }

    #[inline(always)]
    unsafe fn splat(x: f32) -> Self::Floats {
        _mm512_set1_ps(x)
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self::Floats {
        _mm512_loadu_ps(from)
    }

    #[inline(always)]
    unsafe fn store(to: *mut f32, x: Self::Floats) {
        _mm512_storeu_ps(to, x)
    }

    #[inline(always)]
    unsafe fn load_f16(from: *const u8) -> Self::Floats {
        _mm512_cvtph_ps(_mm256_loadu_si256(from.cast()))
    }

    #[inline(always)]
    unsafe fn load_bf16(from: *const u8) -> Self::Floats {
        Self::from_bits(_mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(_mm256_loadu_si256(
            from.cast(),
        ))))
    }

    #[inline(always)]
    unsafe fn load_i8(from: *const u8) -> Self::Floats {
        _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(from.cast())))
    }

    #[inline(always)]
    unsafe fn load_u8(from: *const u8) -> Self::Floats {
        _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128(from.cast())))
    }

    #[inline(always)]
    unsafe fn add(a: Self::Floats, b: Self::Floats) -> Self::Floats {
        _mm512_add_ps(a, b)
    }

    #[inline(always)]
    unsafe fn sub(a: Self::Floats, b: Self::Floats) -> Self::Floats {
        _mm512_sub_ps(a, b)
    }

    #[inline(always)]
    unsafe fn mul(a: Self::Floats, b: Self::Floats) -> Self::Floats {
        _mm512_mul_ps(a, b)
    }

    #[inline(always)]
    unsafe fn div(a: Self::Floats, b: Self::Floats) -> Self::Floats {
        _mm512_div_ps(a, b)
    }

    #[inline(always)]
    unsafe fn maximum(a: Self::Floats, b: Self::Floats) -> Self::Floats {
        _mm512_max_ps(a, b)
    }

    #[inline(always)]
    unsafe fn minimum(a: Self::Floats, b: Self::Floats) -> Self::Floats {
        _mm512_min_ps(a, b)
    }

    #[inline(always)]
    unsafe fn fma(a: Self::Floats, b: Self::Floats, c: Self::Floats) -> Self::Floats {
        _mm512_fmadd_ps(a, b, c)
    }

    #[inline(always)]
    unsafe fn unless_nan(x: Self::Floats, value: Self::Floats) -> Self::Floats {
        _mm512_mask_blend_ps(_mm512_cmp_ps_mask::<_CMP_UNORD_Q>(x, x), value, x)
    }

    #[inline(always)]
    unsafe fn splat_bits(x: i32) -> Self::Integers {
        _mm512_set1_epi32(x)
    }

    #[inline(always)]
    unsafe fn load_bits(from: *const u8) -> Self::Integers {
        _mm512_loadu_si512(from.cast())
    }

    #[inline(always)]
    unsafe fn bits(x: Self::Floats) -> Self::Integers {
        _mm512_castps_si512(x)
    }

    #[inline(always)]
    unsafe fn from_bits(x: Self::Integers) -> Self::Floats {
        _mm512_castsi512_ps(x)
    }

    #[inline(always)]
    unsafe fn and(a: Self::Integers, b: Self::Integers) -> Self::Integers {
        _mm512_and_si512(a, b)
    }

    #[inline(always)]
    unsafe fn add_bits(a: Self::Integers, b: Self::Integers) -> Self::Integers {
        _mm512_add_epi32(a, b)
    }

    #[inline(always)]
    unsafe fn sub_bits(a: Self::Integers, b: Self::Integers) -> Self::Integers {
        _mm512_sub_epi32(a, b)
    }

    #[inline(always)]
    unsafe fn shift_left<const BY: i32>(x: Self::Integers) -> Self::Integers {
        _mm512_sllv_epi32(x, _mm512_set1_epi32(BY))
    }

    #[inline(always)]
    unsafe fn shift_right<const BY: i32>(x: Self::Integers) -> Self::Integers {
        _mm512_srlv_epi32(x, _mm512_set1_epi32(BY))
    }

    #[inline(always)]
    unsafe fn halve(x: Self::Integers) -> Self::Integers {
        _mm512_srai_epi32::<1>(x)
    }

    #[inline(always)]
    unsafe fn to_floats(x: Self::Integers) -> Self::Floats {
        _mm512_cvtepi32_ps(x)
    }
}
