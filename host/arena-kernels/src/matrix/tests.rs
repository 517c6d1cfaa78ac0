//! Products are the same bits whatever computes them.

use std::num::NonZeroUsize;

use proptest::prelude::*;

use crate::context::Context;
use crate::error::KernelsError;
use crate::format::{Format, dequantise};
use crate::isa::Isa;
use crate::matrix::{Matrix, Rows, Sums};

/// Numbers that are the same in every run: xorshift64*, Vigna 2016.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Returns numbers between -1 and 1.
    fn floats(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| (self.next() >> 40) as f32 / (1 << 23) as f32 - 1.0).collect()
    }

    /// Returns rows of weights, whose scales are small numbers of either sign.
    fn weights(&mut self, format: Format, rows: usize, columns: usize) -> Vec<u8> {
        let blocks = rows * columns / format.block_len();
        let mut bytes = vec![];
        for _ in 0..blocks {
            let start = bytes.len();
            bytes.extend((0..format.block_bytes()).map(|_| self.next() as u8));
            let block = &mut bytes[start..];
            // Positions of f16 (or the upper byte of a float) that must be finite.
            let tops: &[usize] = match format {
                Format::F32 => &[3],
                Format::F16 | Format::Bf16 | Format::Q4_0 | Format::Q8_0 => &[1],
                Format::Q4_1 | Format::Q4K => &[1, 3],
                Format::Q6K => &[209],
            };
            for &top in tops {
                block[top] = block[top] & 0x80 | if format == Format::F32 { 0x3d } else { 0x2c };
            }
        }
        bytes
    }
}

fn context(threads: usize, isa: Isa) -> Context {
    Context::new(NonZeroUsize::new(threads).expect("not zero"), isa).expect("available")
}

/// The definition: one chain of fused multiply-adds an output.
fn product(weights: &[f32], columns: usize, x: &[f32]) -> Vec<f32> {
    let dot = |x: &[f32], w: &[f32]| x.iter().zip(w).fold(0.0_f32, |s, (x, w)| w.mul_add(*x, s));
    x.chunks(columns).flat_map(|x| weights.chunks(columns).map(move |w| dot(x, w))).collect()
}

fn bits(x: &[f32]) -> Vec<u32> {
    x.iter().map(|x| x.to_bits()).collect()
}

/// Checks all instruction sets and numbers of threads against the definition.
fn check(parts: &[(Format, usize)], columns: usize, ms: impl Iterator<Item = usize>) {
    let mut numbers = Numbers(0x1234_5678_9abc_def1);
    let stored: Vec<(Format, usize, Vec<u8>)> = parts
        .iter()
        .map(|&(format, rows)| (format, rows, numbers.weights(format, rows, columns)))
        .collect();
    let borrowed: Vec<_> = stored.iter().map(|(f, rows, b)| (*f, *rows, b.as_slice())).collect();
    let matrix = Matrix::new(&borrowed, columns).expect("sound");
    let mut weights = vec![];
    for (format, rows, bytes) in &stored {
        let start = weights.len();
        weights.resize(start + rows * columns, 0.0);
        dequantise(*format, bytes, &mut weights[start..]);
    }
    let mut row = vec![0.0; columns];
    for (n, expected) in weights.chunks(columns).enumerate() {
        matrix.row(n, &mut row);
        assert_eq!(bits(&row), bits(expected), "{parts:?}, row {n}");
    }
    let contexts: Vec<Context> = Isa::available()
        .into_iter()
        .flat_map(|isa| [1, 2, 3].map(|threads| context(threads, isa)))
        .collect();
    for m in ms {
        let x = numbers.floats(m * columns);
        let expected = bits(&product(&weights, columns, &x));
        for context in &contexts {
            let mut y = vec![f32::NAN; m * matrix.rows()];
            matrix.multiply(context, &x, &mut y);
            let (isa, threads) = (context.isa().name(), context.threads());
            assert!(bits(&y) == expected, "{parts:?}, {m} rows, {isa}, {threads} threads");
        }
    }
}

#[test]
fn every_format_gives_the_bits_of_the_definition() {
    for format in Format::ALL {
        let columns = if format.block_len() == 1 { 301 } else { 512 };
        check(&[(format, 75)], columns, [1, 2, 3, 4, 5, 6, 7, 13, 25].into_iter());
    }
}

#[test]
fn no_number_of_rows_changes_a_bit() {
    check(&[(Format::Q4_1, 40)], 288, 1..=70);
    check(&[(Format::F32, 33)], 37, 1..=70);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn no_shape_changes_a_bit(
        formats in prop::collection::vec(0..Format::ALL.len(), 1..3),
        rows in 1_usize..90,
        blocks in 1_usize..3,
        m in 1_usize..30,
    ) {
        let parts: Vec<_> = formats.iter().map(|f| (Format::ALL[*f], rows)).collect();
        let block = parts.iter().map(|part| part.0.block_len()).max().expect("parts");
        // Blocks of single weights make rows that are no whole number of 32 columns.
        let columns = if block == 1 { 29 * blocks } else { block * blocks };
        check(&parts, columns, std::iter::once(m));
    }
}

#[test]
fn stacked_parts_keep_their_formats() {
    let parts = [(Format::Q4K, 31), (Format::Q8_0, 1), (Format::F16, 64), (Format::Q6K, 17)];
    check(&parts, 256, [1, 3, 8, 65].into_iter());
}

#[test]
fn shapes_that_are_odd_or_tiny_work() {
    for columns in [1, 2, 31, 32, 33, 257] {
        check(&[(Format::Bf16, 1), (Format::F32, 3)], columns, [1, 4, 9].into_iter());
    }
    check(&[(Format::Q4_0, 1)], 32, [1, 300].into_iter());
}

#[test]
fn no_rows_of_inputs_give_no_outputs() {
    let matrix = Matrix::new(&[(Format::F32, 1, &[0; 8])], 2).expect("sound");
    matrix.multiply(&context(1, Isa::best()), &[], &mut []);
}

#[test]
fn numbers_that_are_not_finite_pass_through() {
    let bytes: Vec<u8> = [1.0_f32; 64].iter().flat_map(|x| x.to_le_bytes()).collect();
    let matrix = Matrix::new(&[(Format::F32, 2, &bytes)], 32).expect("sound");
    for isa in Isa::available() {
        for (input, is_expected) in [
            (f32::NAN, f32::is_nan as fn(f32) -> bool),
            (f32::INFINITY, |y| y == f32::INFINITY),
            (f32::NEG_INFINITY, |y| y == f32::NEG_INFINITY),
        ] {
            let mut y = [0.0; 2];
            matrix.multiply(&context(1, isa), &[input; 32], &mut y);
            assert!(y.iter().all(|&y| is_expected(y)), "{input} gives {y:?}");
        }
    }
}

#[test]
fn parts_that_do_not_fit_are_errors() {
    let check = |format, rows, columns, bytes: usize, expected: &str| {
        let error = Matrix::new(&[(format, rows, &vec![0; bytes])], columns).err();
        assert_eq!(error.map(|error| error.to_string()).as_deref(), Some(expected));
    };
    check(
        Format::Q4_1,
        2,
        48,
        60,
        "a row of `48` weights is no whole number of blocks of Q4_1, which have 32",
    );
    check(Format::F16, 2, 3, 11, "`11` bytes do not make 2 rows of 3 weights in F16");
    check(Format::F32, 0, 3, 0, "a matrix cannot have `0` rows of `3` weights");
    check(Format::F32, 3, 0, 0, "a matrix cannot have `3` rows of `0` weights");
    let huge = usize::MAX / 2 - 1;
    check(
        Format::F32,
        3,
        huge,
        0,
        &format!("a row of `{huge}` weights is no whole number of blocks of F32, which have 1"),
    );
    assert!(matches!(Matrix::new(&[], 3), Err(KernelsError::Size { rows: 0, columns: 3 })));
}

#[test]
#[should_panic(expected = "5 inputs of 2")]
fn inputs_that_are_no_whole_rows_panic() {
    let matrix = Matrix::new(&[(Format::F32, 1, &[0; 8])], 2).expect("sound");
    matrix.multiply(&context(1, Isa::best()), &[0.0; 5], &mut [0.0; 2]);
}

#[test]
#[should_panic(expected = "1 outputs, 2 rows of 1")]
fn outputs_that_do_not_fit_panic() {
    let matrix = Matrix::new(&[(Format::F32, 1, &[0; 8])], 2).expect("sound");
    matrix.multiply(&context(1, Isa::best()), &[0.0; 4], &mut [0.0; 1]);
}

#[test]
fn rows_may_lie_anywhere_and_sums_go_on_or_are_added() {
    let mut numbers = Numbers(7);
    let (rows, columns) = (45, 40);
    let weights = numbers.floats(rows * columns);
    let matrix = Matrix::of_f32(&[&weights[..9 * columns], &weights[9 * columns..]], columns);
    let matrix = matrix.expect("sound");
    let from = Rows { first: 3, stride: columns + 5 };
    let to = Rows { first: 2, stride: rows + 1 };
    for m in [1, 4, 20] {
        let x = numbers.floats(from.first + m * from.stride);
        let before = numbers.floats(to.first + m * to.stride);
        for sums in [Sums::Fresh, Sums::Continued, Sums::Added] {
            let mut expected = before.clone();
            for (row, n) in (0..m).flat_map(|row| (0..rows).map(move |n| (row, n))) {
                let y = &mut expected[to.first + row * to.stride + n];
                let start = if sums == Sums::Continued { *y } else { 0.0 };
                let x = &x[from.first + row * from.stride..][..columns];
                let pairs = x.iter().zip(&weights[n * columns..]);
                let sum = pairs.fold(start, |s, (x, w)| w.mul_add(*x, s));
                *y = if sums == Sums::Added { *y + sum } else { sum };
            }
            for isa in Isa::available() {
                let mut y = before.clone();
                let context = context(2, isa);
                matrix.multiply_rows(&context, m, (&x, from), (&mut y, to), sums);
                assert!(bits(&y) == bits(&expected), "{sums:?}, {m} rows, {}", isa.name());
            }
        }
    }
}

#[test]
fn a_transpose_has_the_same_weights() {
    for (format, columns) in [(Format::Q4_1, 64), (Format::F32, 37), (Format::F16, 5)] {
        let bytes = Numbers(3).weights(format, 70, columns);
        let matrix = Matrix::new(&[(format, 70, &bytes)], columns).expect("sound");
        let across = matrix.transposed().expect("small");
        assert_eq!((across.rows(), across.columns()), (columns, 70));
        let (mut row, mut column) = (vec![0.0; columns], vec![0.0; 70]);
        for c in 0..columns {
            across.row(c, &mut column);
            for (r, weight) in column.iter().enumerate() {
                matrix.row(r, &mut row);
                assert_eq!(row[c].to_bits(), weight.to_bits(), "{format:?} {r} {c}");
            }
        }
    }
}
