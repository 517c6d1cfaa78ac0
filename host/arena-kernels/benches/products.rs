//! Measures products against the machine's ceilings and against the `gemm` crate.
//!
//! `cargo bench -p arena-kernels` prints, for the shapes of SmolLM2-135M: G/s, billions of
//! floating-point operations a second (two a product) and of bytes of packed weights. A thread's
//! own processor time is measured, so that other programs on the machine disturb little; the runs
//! on several threads are measured by the clock. The best of several runs counts.
//!
//! Arguments pick formats by name (`Q4_1`), `shape=NAME`, `rows=N,M`, `threads=N`, `isa=NAME`;
//! with `hot`, weights stay in the cache where they fit.

#![allow(clippy::print_stdout)]
// The peer's function takes pointers.
#![allow(unsafe_code)]

use std::fs;
use std::hint::black_box;
use std::num::NonZeroUsize;
use std::time::Instant;

use arena_kernels::context::Context;
use arena_kernels::format::Format;
use arena_kernels::isa::Isa;
use arena_kernels::matrix::Matrix;

/// Outputs and inputs of the stacked projections of a layer, and of the output head.
const SHAPES: [(&str, usize, usize); 5] = [
    ("q|k|v", 960, 576),
    ("o", 576, 576),
    ("gate|up", 3072, 576),
    ("down", 576, 1536),
    ("head", 49152, 576),
];
const ROWS_OF_INPUTS: [usize; 8] = [1, 2, 4, 8, 16, 32, 64, 512];
/// Runs of which the best counts.
const RUNS: usize = 5;
/// Floating-point operations of a run, at least.
const RUN_OPERATIONS: f64 = 4e8;

fn main() {
    let mut formats = vec![];
    let mut ms = ROWS_OF_INPUTS.to_vec();
    let mut is_hot = false;
    let mut shapes = SHAPES.to_vec();
    let mut threads = 1;
    let mut isa = Isa::best();
    for argument in std::env::args().skip(1) {
        if let Some(count) = argument.strip_prefix("threads=") {
            threads = count.parse().expect("a number of threads");
        } else if let Some(name) = argument.strip_prefix("isa=") {
            isa = Isa::ALL.into_iter().find(|isa| isa.name() == name).expect("avx512 or so");
        } else if let Some(list) = argument.strip_prefix("rows=") {
            ms = list.split(',').map(|m| m.parse().expect("numbers of rows")).collect();
        } else if let Some(name) = argument.strip_prefix("shape=") {
            shapes.retain(|shape| shape.0 == name);
        } else if argument == "hot" {
            is_hot = true;
        } else if let Some(format) = Format::ALL.iter().find(|f| f.name() == argument) {
            formats.push(*format);
        }
    }
    if formats.is_empty() {
        formats = Format::ALL.to_vec();
    }
    let context = Context::new(NonZeroUsize::new(threads).expect("threads"), isa).expect("context");
    println!("{} thread(s), {}", threads, isa.name());
    println!("fused multiply-adds in registers, one thread: {:.1} Gflop/s", peak(isa));
    println!("reading memory, one thread: {:.1} GB/s", bandwidth());
    for (name, rows, columns) in shapes {
        println!("\n{name}: {rows} x {columns}          Gflop/s (GB/s of packed weights) for rows");
        print!("{:>8}", "");
        for &m in &ms {
            print!("{m:>15}");
        }
        println!();
        for format in &formats {
            print!("{:>8}", format.name());
            for &m in &ms {
                let (flops, bytes) = product(&context, *format, (rows, columns, m), is_hot);
                print!("{:>15}", format!("{flops:.1} ({bytes:.1})"));
            }
            println!();
        }
        print!("{:>8}", "gemm");
        for &m in &ms {
            print!("{:>15}", format!("{:.1}", peer(rows, columns, m, threads)));
        }
        println!();
    }
}

/// Seconds that `work` takes, the best of [`RUNS`]: of this thread alone, or by the clock.
fn seconds(threads: usize, times: usize, mut work: impl FnMut(usize)) -> f64 {
    let now = |start: Instant| if threads == 1 { own() } else { start.elapsed().as_secs_f64() };
    let mut best = f64::INFINITY;
    for _ in 0..RUNS {
        let start = Instant::now();
        let from = now(start);
        (0..times).for_each(&mut work);
        best = best.min(now(start) - from);
    }
    best / times as f64
}

/// Processor time of this thread, in seconds, as Linux counts it.
fn own() -> f64 {
    // The count is brought up to date when the scheduler is entered.
    std::thread::yield_now();
    let line = fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    let nanoseconds: u64 = line.split(' ').next().and_then(|n| n.parse().ok()).expect("a number");
    nanoseconds as f64 / 1e9
}

/// Multiply-adds in registers that do not wait for each other.
macro_rules! registers {
    (
        $name:ident,
        $features:literal,
        $vector:ty,
        $set:ident,
        $fma:ident,
        $store:ident,
        $n:literal
    ) => {
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = $features)]
        fn $name(times: usize) -> [f32; 16] {
            let factor = $set(black_box(0.5));
            let mut sums: [$vector; $n] = [$set(1.0); $n];
            for _ in 0..times {
                for sum in &mut sums {
                    *sum = $fma(factor, *sum, factor);
                }
            }
            let mut lanes = [0.0; 16];
            for sum in sums {
                // SAFETY: no vector has more lanes.
                unsafe { $store(lanes.as_mut_ptr(), black_box(sum)) };
            }
            lanes
        }
    };
}

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;
registers!(
    registers_avx2,
    "avx2,fma",
    __m256,
    _mm256_set1_ps,
    _mm256_fmadd_ps,
    _mm256_storeu_ps,
    12
);
registers!(
    registers_avx512,
    "avx512f",
    __m512,
    _mm512_set1_ps,
    _mm512_fmadd_ps,
    _mm512_storeu_ps,
    24
);

/// Operations a second of multiply-adds that wait for no memory, in billions; none where it is not
/// known how.
fn peak(isa: Isa) -> f64 {
    let times = 4_000_000;
    let operations = |lanes: usize, registers: usize| 2.0 * (lanes * registers * times) as f64;
    match isa {
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => {
            // SAFETY: a context was made for these instructions.
            let seconds = seconds(1, 1, |_| {
                black_box(unsafe { registers_avx2(times) });
            });
            operations(8, 12) / seconds / 1e9
        }
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => {
            // SAFETY: as above.
            let seconds = seconds(1, 1, |_| {
                black_box(unsafe { registers_avx512(times) });
            });
            operations(16, 24) / seconds / 1e9
        }
        _ => f64::NAN,
    }
}

/// Bytes a second that one thread reads from memory, in billions.
fn bandwidth() -> f64 {
    let words = vec![1_u64; 32 << 20];
    let seconds = seconds(1, 1, |_| {
        let mut sums = [0_u64; 16];
        for words in words.chunks_exact(16) {
            for (sum, word) in sums.iter_mut().zip(words) {
                *sum = sum.wrapping_add(*word);
            }
        }
        black_box(sums);
    });
    8.0 * words.len() as f64 / seconds / 1e9
}

fn product(
    context: &Context,
    format: Format,
    (rows, columns, m): (usize, usize, usize),
    is_hot: bool,
) -> (f64, f64) {
    let bytes = vec![0x11; format.row_bytes(columns).unwrap_or(0) * rows];
    if bytes.is_empty() {
        return (f64::NAN, f64::NAN);
    }
    let operations = 2.0 * (rows * columns * m) as f64;
    let times = (RUN_OPERATIONS / operations).ceil() as usize;
    // As many matrices as it takes to be read from memory, as the layers of a model are.
    let matrix = || Matrix::new(&[(format, rows, &bytes)], columns).expect("sound");
    let first = matrix();
    let memory = if is_hot { 1 } else { 100_000_000 };
    let copies = (memory / first.byte_count()).clamp(1, times.min(60));
    let matrices: Vec<Matrix> = (0..copies).map(|_| matrix()).collect();
    let (x, mut y) = (vec![0.5; columns * m], vec![0.0; rows * m]);
    let seconds = seconds(context.threads().get(), times, |time| {
        matrices[time % copies].multiply(context, black_box(&x), &mut y);
    });
    (operations / seconds / 1e9, first.byte_count() as f64 / seconds / 1e9)
}

/// The same by the `gemm` crate, in f32.
fn peer(rows: usize, columns: usize, m: usize, threads: usize) -> f64 {
    let (x, mut y) = (vec![0.5_f32; columns * m], vec![0.0_f32; rows * m]);
    let weights = vec![0.5_f32; rows * columns];
    let operations = 2.0 * (rows * columns * m) as f64;
    let times = (RUN_OPERATIONS / operations).ceil() as usize;
    let (rows, columns) = (rows.cast_signed(), columns.cast_signed());
    let seconds = seconds(1, times, |_| {
        // SAFETY: the slices have the shapes that are named.
        unsafe {
            gemm::gemm(
                m,
                rows.cast_unsigned(),
                columns.cast_unsigned(),
                y.as_mut_ptr(),
                1,
                rows,
                false,
                x.as_ptr(),
                1,
                columns,
                weights.as_ptr(),
                1,
                rows,
                0.0_f32,
                1.0_f32,
                false,
                false,
                false,
                gemm::Parallelism::None,
            );
        }
        black_box(&y);
    });
    operations / seconds / 1e9 * threads as f64
}
