//! Gradients of causal attention over whole sequences.
//!
//! Probabilities are computed anew, for some rows at a time, so nothing grows with the square of a
//! context. One thread does one key head of one sequence, so sums over rows and heads have the
//! order of one loop.
//!
//! Not here: attention itself (`attention`).

// Threads write different rows and heads of the same outputs.
#![allow(unsafe_code, unsafe_op_in_unsafe_fn)]

use std::cell::RefCell;
use std::ops::Range;

use crate::attention::AttentionShape;
use crate::context::Context;
use crate::isa::Isa;
use crate::product::{Left, PANEL, Product, pack};
use crate::reduction::{PARTIALS, divide_by, exp_and_sum_by, maximum_by, tree};
use crate::rows::partial_sums;
use crate::shared::SharedMut;
use crate::simd::{self, Kernel, Simd};

/// Rows of one head whose probabilities are there at once.
const BLOCK_ROWS: usize = 48;

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::new(Scratch::default());
}

/// What attention was computed from, and gave. Shapes: `q`, `out` and `dout` are
/// `[rows, heads * head_dim]`, `keys` and `values` `[rows, kv_heads * head_dim]`.
#[derive(Debug, Clone, Copy)]
pub struct Attended<'a> {
    /// Heads.
    pub shape: AttentionShape,
    /// The rows of each sequence, from its first token on.
    pub sequences: &'a [Range<usize>],
    /// Queries.
    pub q: &'a [f32],
    /// Keys.
    pub keys: &'a [f32],
    /// Values.
    pub values: &'a [f32],
    /// Outputs.
    pub out: &'a [f32],
    /// The gradient of the outputs.
    pub dout: &'a [f32],
}

/// Gradients of queries, keys and values, shaped as these.
#[derive(Debug)]
pub struct AttentionGradients<'a> {
    /// Of queries.
    pub q: &'a mut [f32],
    /// Of keys.
    pub keys: &'a mut [f32],
    /// Of values.
    pub values: &'a mut [f32],
}

/// Writes the gradients of `attention::attention`, each row of which sees the rows of its sequence
/// up to its own. With `p` the probabilities, `dp[t] = dout * v[t]` and `D = dout * out`:
/// `ds[t] = p[t] (dp[t] - D) / sqrt(head_dim)`, `dq` is the chain of `ds[t] * k[t]` over ascending
/// `t`; `dk[t]` and `dv[t]` are chains of `ds[t] * q` and `p[t] * dout` over the query heads of
/// their key head, and ascending rows in each. Rows of no sequence are left as they are.
///
/// Source: derived from Vaswani et al. 2017, equation 1; `D` as in Dao et al. 2022, appendix B.2.
///
/// # Panics
/// If a length does not fit, or sequences overlap.
pub fn attention_gradient(context: &Context, of: &Attended, gradients: AttentionGradients<'_>) {
    let AttentionShape { heads, kv_heads, head_dim } = of.shape;
    assert!(head_dim > 0 && kv_heads > 0 && heads.is_multiple_of(kv_heads), "{:?}", of.shape);
    let rows = of.q.len() / (heads * head_dim);
    let widths = [heads * head_dim, kv_heads * head_dim];
    let lens = [of.q.len(), of.out.len(), of.dout.len(), gradients.q.len()];
    assert!(lens.iter().all(|len| *len == rows * widths[0]), "{lens:?} of {rows} rows");
    let lens = [of.keys.len(), of.values.len(), gradients.keys.len(), gradients.values.len()];
    assert!(lens.iter().all(|len| *len == rows * widths[1]), "{lens:?} of {rows} rows");
    let mut last = 0;
    for sequence in of.sequences {
        let sound = last <= sequence.start && sequence.start < sequence.end && sequence.end <= rows;
        assert!(sound, "sequence {sequence:?} of {rows} rows, after {last}");
        last = sequence.end;
    }
    let (dq, dk) = (SharedMut::new(gradients.q), SharedMut::new(gradients.keys));
    let dv = SharedMut::new(gradients.values);
    context.run(of.sequences.len() * kv_heads, &|part| {
        let rows = of.sequences[part / kv_heads].clone();
        let (kv_head, isa) = (part % kv_heads, context.isa());
        SCRATCH.with_borrow_mut(|scratch| {
            // SAFETY: sequences do not overlap, and a part is one key head of one of them.
            unsafe { Part { of, isa, rows, kv_head, dq, dk, dv }.compute(scratch) };
        });
    });
}

/// Buffers of one part, kept from one to the next. Panels are of 32 columns.
#[derive(Default)]
struct Scratch {
    /// Keys, by token and transposed.
    keys: Vec<f32>,
    keys_across: Vec<f32>,
    values_across: Vec<f32>,
    /// Queries and output gradients of one head, by row.
    q: Vec<f32>,
    dout: Vec<f32>,
    /// Probabilities and gradients of scores, of some rows.
    p: Vec<f32>,
    ds: Vec<f32>,
}

/// One key head of one sequence.
struct Part<'a> {
    of: &'a Attended<'a>,
    isa: Isa,
    rows: Range<usize>,
    kv_head: usize,
    dq: SharedMut,
    dk: SharedMut,
    dv: SharedMut,
}

impl Part<'_> {
    unsafe fn compute(&self, scratch: &mut Scratch) {
        let AttentionShape { heads, kv_heads, head_dim } = self.of.shape;
        let (count, width) = (self.rows.len(), kv_heads * head_dim);
        let first = self.rows.start * width + self.kv_head * head_dim;
        pack_all(&self.of.keys[first..], width, count, head_dim, &mut scratch.keys);
        across(&self.of.keys[first..], width, count, head_dim, &mut scratch.keys_across);
        across(&self.of.values[first..], width, count, head_dim, &mut scratch.values_across);
        for row in 0..count {
            self.dk.elements(first + row * width, head_dim).fill(0.0);
            self.dv.elements(first + row * width, head_dim).fill(0.0);
        }
        let padded = count.next_multiple_of(PANEL);
        scratch.p.resize(BLOCK_ROWS * padded, 0.0);
        scratch.ds.resize(BLOCK_ROWS * padded, 0.0);
        let group = heads / kv_heads;
        for head in self.kv_head * group..(self.kv_head + 1) * group {
            let first = (self.rows.start * heads + head) * head_dim;
            let width = heads * head_dim;
            pack_all(&self.of.q[first..], width, count, head_dim, &mut scratch.q);
            pack_all(&self.of.dout[first..], width, count, head_dim, &mut scratch.dout);
            for start in (0..count).step_by(BLOCK_ROWS) {
                let rows = start..(start + BLOCK_ROWS).min(count);
                self.scores(head, rows.clone(), scratch);
                self.soften(head, rows.clone(), scratch);
                self.add(head, rows, scratch);
            }
        }
    }

    /// Returns where a row of a head's queries, or outputs, begins.
    fn at(&self, head: usize, row: usize) -> usize {
        let AttentionShape { heads, head_dim, .. } = self.of.shape;
        ((self.rows.start + row) * heads + head) * head_dim
    }

    /// Computes products of queries and keys, and of output gradients and values.
    unsafe fn scores(&self, head: usize, rows: Range<usize>, scratch: &mut Scratch) {
        let AttentionShape { heads, head_dim, .. } = self.of.shape;
        let padded = self.rows.len().next_multiple_of(PANEL);
        let at = self.at(head, rows.start);
        let sides = [
            (self.of.q, &scratch.keys_across, &mut scratch.p),
            (self.of.dout, &scratch.values_across, &mut scratch.ds),
        ];
        for (left, panels, out) in sides {
            let start = left[at..].as_ptr();
            for panel in 0..rows.end.div_ceil(PANEL) {
                let product = Product {
                    left: Left::Rows { start, stride: heads * head_dim },
                    panel: panels[panel * head_dim * PANEL..].as_ptr(),
                    out: out[panel * PANEL..].as_mut_ptr(),
                    out_stride: padded,
                    rows: rows.len(),
                    depth: head_dim,
                    lanes: PANEL,
                    begins: true,
                };
                product.run_by(self.isa);
            }
        }
    }

    /// Makes probabilities of the one and gradients of scores of the other.
    fn soften(&self, head: usize, rows: Range<usize>, scratch: &mut Scratch) {
        let head_dim = self.of.shape.head_dim;
        let scale = 1.0 / (head_dim as f32).sqrt();
        let padded = self.rows.len().next_multiple_of(PANEL);
        let scores = scratch.p.chunks_exact_mut(padded).zip(scratch.ds.chunks_exact_mut(padded));
        for ((p, ds), row) in scores.zip(rows.clone()) {
            let (p, unseen) = p[..rows.end.next_multiple_of(PANEL)].split_at_mut(row + 1);
            unseen.fill(0.0);
            p.iter_mut().for_each(|p| *p *= scale);
            let max = maximum_by(self.isa, p);
            let sum = exp_and_sum_by(self.isa, p, max);
            divide_by(self.isa, p, sum);
            let at = self.at(head, row);
            let (out, dout) = (&self.of.out[at..][..head_dim], &self.of.dout[at..][..head_dim]);
            let mean = simd::run(self.isa, Dot(out, dout), |d| dot_from([0.0; PARTIALS], d.0, d.1));
            let (ds, unseen) = ds[..rows.end.next_multiple_of(PANEL)].split_at_mut(row + 1);
            unseen.fill(0.0);
            simd::run(self.isa, ScoreGradient { p, ds, mean, scale }, plain_scores);
        }
    }

    /// Writes the gradients of the rows' queries, and adds to those of keys and values.
    unsafe fn add(&self, head: usize, rows: Range<usize>, scratch: &Scratch) {
        let AttentionShape { heads, kv_heads, head_dim } = self.of.shape;
        let count = self.rows.len();
        let padded = count.next_multiple_of(PANEL);
        let width = kv_heads * head_dim;
        let first = self.rows.start * width + self.kv_head * head_dim;
        for panel in 0..head_dim.div_ceil(PANEL) {
            let lane = panel * PANEL;
            let lanes = (head_dim - lane).min(PANEL);
            let queries = Product {
                left: Left::Rows { start: scratch.ds.as_ptr(), stride: padded },
                panel: scratch.keys[panel * count * PANEL..].as_ptr(),
                out: self.dq.at(self.at(head, rows.start) + lane),
                out_stride: heads * head_dim,
                rows: rows.len(),
                depth: rows.end,
                lanes,
                begins: true,
            };
            queries.run_by(self.isa);
            let sides = [(&scratch.ds, &scratch.q, self.dk), (&scratch.p, &scratch.dout, self.dv)];
            for (left, right, out) in sides {
                let product = Product {
                    left: Left::Columns { start: left.as_ptr(), stride: padded },
                    panel: right[(panel * count + rows.start) * PANEL..].as_ptr(),
                    out: out.at(first + lane),
                    out_stride: width,
                    rows: rows.end,
                    depth: rows.len(),
                    lanes,
                    begins: false,
                };
                product.run_by(self.isa);
            }
        }
    }
}

/// Packs rows of `width` elements: `[width / 32, rows, 32]`.
fn pack_all(from: &[f32], stride: usize, rows: usize, width: usize, to: &mut Vec<f32>) {
    to.resize(width.div_ceil(PANEL) * rows * PANEL, 0.0);
    for (panel, to) in to.chunks_exact_mut(rows * PANEL).enumerate() {
        let lanes = (width - panel * PANEL).min(PANEL);
        pack(&from[panel * PANEL..], stride, lanes, to);
    }
}

/// Packs the transpose of rows of `width` elements: `[rows / 32, width, 32]`.
fn across(from: &[f32], stride: usize, rows: usize, width: usize, to: &mut Vec<f32>) {
    to.resize(rows.div_ceil(PANEL) * width * PANEL, 0.0);
    for (panel, to) in to.chunks_exact_mut(width * PANEL).enumerate() {
        for lane in 0..PANEL {
            let row = panel * PANEL + lane;
            if row >= rows {
                to.chunks_exact_mut(PANEL).for_each(|to| to[lane] = 0.0);
                continue;
            }
            let from = &from[row * stride..][..width];
            for (to, from) in to.chunks_exact_mut(PANEL).zip(from) {
                to[lane] = *from;
            }
        }
    }
}

/// The sum of products, with the partial sums of `reduction`.
struct Dot<'a>(&'a [f32], &'a [f32]);

impl Kernel for Dot<'_> {
    type Output = f32;

    #[inline(always)]
    unsafe fn run<S: Simd>(self) -> f32 {
        let (partials, whole) = partial_sums::<S>(self.0.len(), |sum, at| {
            S::fma(S::load(self.0.as_ptr().add(at)), S::load(self.1.as_ptr().add(at)), sum)
        });
        dot_from(partials, &self.0[whole..], &self.1[whole..])
    }
}

#[inline(always)]
fn dot_from(mut partials: [f32; PARTIALS], x: &[f32], y: &[f32]) -> f32 {
    for (at, (x, y)) in x.iter().zip(y).enumerate() {
        let partial = &mut partials[at % PARTIALS];
        *partial = x.mul_add(*y, *partial);
    }
    tree(partials)
}

/// `ds = p * (ds - mean) * scale`.
struct ScoreGradient<'a> {
    p: &'a [f32],
    ds: &'a mut [f32],
    mean: f32,
    scale: f32,
}

impl Kernel for ScoreGradient<'_> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let (mean, scale) = (S::splat(self.mean), S::splat(self.scale));
        let mut at = 0;
        while at + S::LANES <= self.ds.len() {
            let ds = self.ds.as_mut_ptr().add(at);
            let slope = S::mul(S::sub(S::load(ds), mean), scale);
            S::store(ds, S::mul(S::load(self.p.as_ptr().add(at)), slope));
            at += S::LANES;
        }
        plain_scores(ScoreGradient { p: &self.p[at..], ds: &mut self.ds[at..], ..self });
    }
}

#[inline(always)]
fn plain_scores(scores: ScoreGradient<'_>) {
    for (ds, p) in scores.ds.iter_mut().zip(scores.p) {
        *ds = p * ((*ds - scores.mean) * scores.scale);
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use super::*;

    fn numbers(count: usize, salt: usize) -> Vec<f64> {
        (0..count).map(|i| ((i * 7919 + salt * 311) % 2_003) as f64 / 1_000.0 - 1.0).collect()
    }

    fn floats(x: &[f64]) -> Vec<f32> {
        x.iter().map(|x| *x as f32).collect()
    }

    /// Attention by its definition, in f64.
    fn attend(
        shape: AttentionShape,
        sequences: &[Range<usize>],
        q: &[f64],
        k: &[f64],
        v: &[f64],
    ) -> Vec<f64> {
        let AttentionShape { heads, kv_heads, head_dim } = shape;
        let mut out = vec![0.0; q.len()];
        for rows in sequences {
            for row in rows.clone() {
                for head in 0..heads {
                    let kv = head / (heads / kv_heads);
                    let q = &q[(row * heads + head) * head_dim..][..head_dim];
                    let of = |x: &[f64], t: usize, d: usize| x[(t * kv_heads + kv) * head_dim + d];
                    let score = |t: usize| {
                        let dot: f64 = (0..head_dim).map(|d| q[d] * of(k, t, d)).sum();
                        (dot / (head_dim as f64).sqrt()).exp()
                    };
                    let scores: Vec<f64> = (rows.start..=row).map(score).collect();
                    let sum: f64 = scores.iter().sum();
                    for d in 0..head_dim {
                        let weighted = scores.iter().zip(rows.start..);
                        out[(row * heads + head) * head_dim + d] =
                            weighted.map(|(p, t)| p / sum * of(v, t, d)).sum();
                    }
                }
            }
        }
        out
    }

    type Three = (Vec<f32>, Vec<f32>, Vec<f32>);

    fn check(shape: AttentionShape, sequences: &[Range<usize>], step: usize) {
        let rows = sequences.last().expect("some").end;
        let width = shape.heads * shape.head_dim;
        let kv_width = shape.kv_heads * shape.head_dim;
        let (q, dout) = (numbers(rows * width, 1), numbers(rows * width, 2));
        let (k, v) = (numbers(rows * kv_width, 3), numbers(rows * kv_width, 4));
        let out = attend(shape, sequences, &q, &k, &v);
        let compute = |threads, isa| -> Three {
            let threads = NonZeroUsize::new(threads).expect("not zero");
            let context = Context::new(threads, isa).expect("available");
            let (q, keys, values) = (&floats(&q)[..], &floats(&k)[..], &floats(&v)[..]);
            let (out, dout) = (&floats(&out)[..], &floats(&dout)[..]);
            let of = Attended { shape, sequences, q, keys, values, out, dout };
            let mut all = (vec![9.0; q.len()], vec![9.0; keys.len()], vec![9.0; values.len()]);
            let gradients =
                AttentionGradients { q: &mut all.0, keys: &mut all.1, values: &mut all.2 };
            attention_gradient(&context, &of, gradients);
            all
        };
        let found = compute(1, Isa::Portable);
        for isa in Isa::available() {
            assert!(compute(1, isa) == found, "{}", isa.name());
            assert!(compute(3, isa) == found, "{} on 3 threads", isa.name());
        }
        let loss = |q: &[f64], k: &[f64], v: &[f64]| -> f64 {
            attend(shape, sequences, q, k, v).iter().zip(&dout).map(|(o, d)| o * d).sum()
        };
        let moved = |x: &[f64], i: usize, by: f64| {
            let mut x = x.to_vec();
            x[i] += by;
            x
        };
        for i in (0..q.len()).step_by(step) {
            let at = |by| loss(&moved(&q, i, by), &k, &v);
            assert_slope(at(1e-5) - at(-1e-5), found.0[i], i);
        }
        for i in (0..k.len()).step_by(step) {
            let at = |by| loss(&q, &moved(&k, i, by), &v);
            assert_slope(at(1e-5) - at(-1e-5), found.1[i], i);
            let at = |by| loss(&q, &k, &moved(&v, i, by));
            assert_slope(at(1e-5) - at(-1e-5), found.2[i], i);
        }
    }

    fn assert_slope(difference: f64, found: f32, index: usize) {
        let slope = difference / 2e-5;
        assert!((slope - f64::from(found)).abs() < 1e-4, "{index}: {slope}, not {found}");
    }

    #[test]
    fn gradients_are_what_differences_say_with_the_same_bits_everywhere() {
        let shape = |heads, kv_heads, head_dim| AttentionShape { heads, kv_heads, head_dim };
        check(shape(2, 1, 6), &[0..3, 3..10], 1);
        check(shape(4, 2, 16), &[0..1, 1..34], 7);
        check(shape(2, 2, 40), &[0..101, 101..120], 211);
    }
}
