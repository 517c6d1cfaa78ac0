//! Measures the kernels in the order in which a step of SmolLM2-135M in Q4_1 calls them.
//!
//! `cargo bench -p arena-kernels --bench step` prints tokens a second for decoding with some live
//! dialogues and for a prompt, and which kernels the time went to. Weights and states are made up;
//! shapes, formats and order are the model's. One thread is measured by its own processor time, so
//! that other programs on the machine disturb little, several by the clock. Arguments:
//! `threads=N`, `isa=NAME`, `context=TOKENS`.

#![allow(clippy::print_stdout)]

use std::fs;
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use arena_kernels::activation::{add, swiglu};
use arena_kernels::attention::{AttentionRow, AttentionShape, BLOCK_TOKENS, KvBlocks, attention};
use arena_kernels::context::Context;
use arena_kernels::format::Format;
use arena_kernels::isa::Isa;
use arena_kernels::matrix::Matrix;
use arena_kernels::norm::rms_norm;
use arena_kernels::rope::{RopeTable, rope};

const HIDDEN: usize = 576;
const FFN: usize = 1536;
const LAYERS: usize = 30;
const VOCABULARY: usize = 49_152;
const SHAPE: AttentionShape = AttentionShape { heads: 9, kv_heads: 3, head_dim: 64 };
const KV: usize = 192;
/// Steps of which the best counts.
const STEPS: usize = 7;

struct Layer {
    qkv: Matrix,
    o: Matrix,
    gate_up: Matrix,
    down: Matrix,
    kv: KvBlocks,
}

struct Model {
    layers: Vec<Layer>,
    head: Matrix,
    norm: Vec<f32>,
    table: RopeTable,
}

/// Time by kind of kernel, in the order in which they are printed.
#[derive(Default, Clone, Copy)]
struct Spent([Duration; 6]);

const KINDS: [&str; 6] = ["q|k|v and o", "gate|up", "down", "attention", "the rest", "head"];

fn main() {
    let (mut threads, mut isa, mut tokens) = (2, Isa::best(), 256);
    for argument in std::env::args().skip(1) {
        if let Some(count) = argument.strip_prefix("threads=") {
            threads = count.parse().expect("a number of threads");
        } else if let Some(name) = argument.strip_prefix("isa=") {
            isa = Isa::ALL.into_iter().find(|isa| isa.name() == name).expect("avx512 or so");
        } else if let Some(count) = argument.strip_prefix("context=") {
            tokens = count.parse().expect("a number of tokens");
        }
    }
    let context = Context::new(NonZeroUsize::new(threads).expect("threads"), isa).expect("context");
    println!("SmolLM2-135M in Q4_1, {threads} threads, {}, context {tokens}", isa.name());
    for (name, sequences, rows) in [
        ("1 dialogue", 1, 1),
        ("4 dialogues", 4, 1),
        ("16 dialogues", 16, 1),
        ("64 dialogues", 64, 1),
        ("a prompt of 256", 1, 256),
        ("a prompt of 512", 1, 512),
    ] {
        let tokens = tokens.max(rows);
        let mut model = model(sequences, tokens);
        let (mut best, mut of_best) = (Duration::MAX, Spent::default());
        for _ in 0..STEPS {
            let clock = Clock::start(threads);
            let spent = step(&mut model, &context, sequences, rows, tokens);
            let time = clock.read();
            if time < best {
                (best, of_best) = (time, spent);
            }
        }
        let speed = (sequences * rows) as f64 / best.as_secs_f64();
        print!("{name:>16}: {speed:>7.0} tokens/s, {:>7.2} ms:", best.as_secs_f64() * 1e3);
        for (kind, time) in KINDS.iter().zip(of_best.0) {
            print!("  {kind} {:.2}", time.as_secs_f64() * 1e3);
        }
        println!();
    }
}

/// Time since a start: of this thread, or of the clock on the wall.
struct Clock {
    start: Instant,
    own: Option<Duration>,
}

impl Clock {
    fn start(threads: usize) -> Clock {
        Clock { start: Instant::now(), own: (threads == 1).then(own) }
    }

    fn read(&self) -> Duration {
        self.own.map_or_else(|| self.start.elapsed(), |start| own() - start)
    }
}

/// Processor time of this thread, as Linux counts it.
fn own() -> Duration {
    // The count is brought up to date when the scheduler is entered.
    std::thread::yield_now();
    let line = fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    Duration::from_nanos(line.split(' ').next().and_then(|n| n.parse().ok()).expect("a number"))
}

fn model(sequences: usize, tokens: usize) -> Model {
    let matrix = |format: Format, rows: usize, columns: usize| {
        let bytes = vec![0x11; format.row_bytes(columns).expect("whole blocks") * rows];
        Matrix::new(&[(format, rows, &bytes)], columns).expect("sound")
    };
    let layer = |_| Layer {
        qkv: matrix(Format::Q4_1, HIDDEN + 2 * KV, HIDDEN),
        o: matrix(Format::Q4_1, HIDDEN, HIDDEN),
        gate_up: matrix(Format::Q4_1, 2 * FFN, HIDDEN),
        down: matrix(Format::Q4_1, HIDDEN, FFN),
        kv: KvBlocks::new(sequences * tokens.div_ceil(BLOCK_TOKENS), 3, 64),
    };
    Model {
        layers: (0..LAYERS).map(layer).collect(),
        head: matrix(Format::Q8_0, VOCABULARY, HIDDEN),
        norm: vec![1.0; HIDDEN],
        table: RopeTable::new(64, 100_000.0, tokens),
    }
}

/// Takes queries and keys out of rows of queries, keys and values.
fn split(qkv: &[f32], q: &mut [f32], k: &mut [f32]) {
    for (row, qkv) in qkv.chunks_exact(HIDDEN + 2 * KV).enumerate() {
        q[row * HIDDEN..][..HIDDEN].copy_from_slice(&qkv[..HIDDEN]);
        k[row * KV..][..KV].copy_from_slice(&qkv[HIDDEN..][..KV]);
    }
}

/// Returns the logits of the last row of each sequence: of a prompt, it alone is continued.
fn continued(model: &Model, context: &Context, x: &[f32], rows: usize) -> Vec<f32> {
    let last_rows: Vec<f32> =
        x.chunks_exact(HIDDEN).skip(rows - 1).step_by(rows).flatten().copied().collect();
    let mut logits = vec![0.0; last_rows.len() / HIDDEN * VOCABULARY];
    model.head.multiply(context, &last_rows, &mut logits);
    logits
}

fn step(
    model: &mut Model,
    context: &Context,
    sequences: usize,
    rows: usize,
    tokens: usize,
) -> Spent {
    let m = sequences * rows;
    let mut spent = Spent::default();
    let clock = Clock::start(context.threads().get());
    let mut last = Duration::ZERO;
    let mut lap = |kind: usize| {
        let now = clock.read();
        spent.0[kind] += now - last;
        last = now;
    };
    let count = tokens.div_ceil(BLOCK_TOKENS);
    let blocks: Vec<u32> = (0..(sequences * count) as u32).collect();
    let seen = |row: usize| tokens - rows + row % rows + 1;
    let attended: Vec<AttentionRow> = (0..m)
        .map(|row| AttentionRow {
            blocks: &blocks[row / rows * count..][..count],
            context_tokens: seen(row),
        })
        .collect();
    let positions: Vec<u32> = (0..m).map(|row| seen(row) as u32 - 1).collect();
    let mut x = vec![0.01; m * HIDDEN];
    let mut normed = vec![0.0; m * HIDDEN];
    let mut qkv = vec![0.0; m * (HIDDEN + 2 * KV)];
    let (mut q, mut k) = (vec![0.0; m * HIDDEN], vec![0.0; m * KV]);
    let mut out = vec![0.0; m * HIDDEN];
    let mut gate_up = vec![0.0; m * 2 * FFN];
    let mut gated = vec![0.0; m * FFN];
    for layer in &mut model.layers {
        rms_norm(context, &x, &model.norm, 1e-5, &mut normed);
        lap(4);
        layer.qkv.multiply(context, &normed, &mut qkv);
        lap(0);
        split(&qkv, &mut q, &mut k);
        rope(context, &model.table, &mut q, &positions);
        rope(context, &model.table, &mut k, &positions);
        for (row, qkv) in qkv.chunks_exact(HIDDEN + 2 * KV).enumerate() {
            let position = positions[row] as usize;
            let block = attended[row].blocks[position / BLOCK_TOKENS];
            let key = &k[row * KV..][..KV];
            layer.kv.store(block, position % BLOCK_TOKENS, key, &qkv[HIDDEN + KV..]);
        }
        lap(4);
        attention(context, &SHAPE, &q, &attended, &layer.kv, &mut out);
        lap(3);
        layer.o.multiply(context, &out, &mut normed);
        lap(0);
        add(context, &mut x, &normed);
        rms_norm(context, &x, &model.norm, 1e-5, &mut normed);
        lap(4);
        layer.gate_up.multiply(context, &normed, &mut gate_up);
        lap(1);
        swiglu(context, FFN, &gate_up, &mut gated);
        lap(4);
        layer.down.multiply(context, &gated, &mut out);
        lap(2);
        add(context, &mut x, &out);
        lap(4);
    }
    std::hint::black_box(continued(model, context, &x, rows));
    lap(5);
    spent
}
