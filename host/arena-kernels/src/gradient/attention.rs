//! Gradients of causal attention over whole sequences.
//!
//! Probabilities are computed anew, for some rows at a time, so nothing grows with the square of a
//! context. One thread does one key head of one span, so sums over rows and heads have the order of
//! one loop; what several spans make of rows that they share is added up afterwards, span by span.
//!
//! Not here: attention itself (`attention`).

// Threads write different rows and heads of the same outputs.
#![allow(unsafe_code, unsafe_op_in_unsafe_fn)]

use std::cell::RefCell;
use std::ops::Range;

use crate::activation::add;
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

/// Gradients of keys and of values of shared rows, span by span.
type SharedGradients = (Vec<f32>, Vec<f32>);

thread_local! {
    static SHARED: RefCell<SharedGradients> = const { RefCell::new((vec![], vec![])) };
    static SCRATCH: RefCell<Scratch> = RefCell::new(Scratch::default());
}

/// Rows that follow each other in a sequence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// The rows before them, of which others may be the continuation, too; often none.
    pub shared: Range<usize>,
    /// The rows, each of which sees those that are shared, and those of the span up to itself.
    pub rows: Range<usize>,
}

/// What attention was computed from, and gave. Shapes: `q`, `out` and `dout` are
/// `[rows, heads * head_dim]`, `keys` and `values` `[rows, kv_heads * head_dim]`.
#[derive(Debug, Clone, Copy)]
pub struct Attended<'a> {
    /// Heads.
    pub shape: AttentionShape,
    /// The rows of each sequence, or of a part of it.
    pub spans: &'a [Span],
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
/// their key head, and ascending rows in each. What later spans make of shared rows is added to
/// what these make of themselves, by ascending span. Rows of no span are left as they are.
///
/// Source: derived from Vaswani et al. 2017, equation 1; `D` as in Dao et al. 2022, appendix B.2.
///
/// # Panics
/// If a length does not fit, spans overlap, or share rows that are not before them.
pub fn attention_gradient(context: &Context, of: &Attended, gradients: AttentionGradients<'_>) {
    of.check(&gradients);
    let AttentionShape { kv_heads, head_dim, .. } = of.shape;
    let width = kv_heads * head_dim;
    let firsts: Vec<usize> = of
        .spans
        .iter()
        .scan(0, |next, span| Some(std::mem::replace(next, *next + span.shared.len())))
        .collect();
    let count: usize = of.spans.iter().map(|span| span.shared.len()).sum();
    let AttentionGradients { q, keys, values } = gradients;
    SHARED.with_borrow_mut(|(shared_keys, shared_values)| {
        shared_keys.resize(count * width, 0.0);
        shared_values.resize(count * width, 0.0);
        let dq = SharedMut::new(q);
        let (dk, dv) = (SharedMut::new(keys), SharedMut::new(values));
        let (shared_dk, shared_dv) = (SharedMut::new(shared_keys), SharedMut::new(shared_values));
        context.run(of.spans.len() * kv_heads, &|part| {
            let (span, kv_head) = (&of.spans[part / kv_heads], part % kv_heads);
            let first_shared = firsts[part / kv_heads];
            let isa = context.isa();
            let part =
                Part { of, isa, span, kv_head, first_shared, dq, dk, dv, shared_dk, shared_dv };
            // SAFETY: spans do not overlap, and a part is one key head of one of them.
            SCRATCH.with_borrow_mut(|scratch| unsafe { part.compute(scratch) });
        });
        for (span, first) in of.spans.iter().zip(firsts) {
            let to = span.shared.start * width..span.shared.end * width;
            let from = first * width..(first + span.shared.len()) * width;
            add(context, &mut keys[to.clone()], &shared_keys[from.clone()]);
            add(context, &mut values[to], &shared_values[from]);
        }
    });
}

impl Attended<'_> {
    fn check(&self, gradients: &AttentionGradients<'_>) {
        let AttentionShape { heads, kv_heads, head_dim } = self.shape;
        assert!(head_dim > 0 && kv_heads > 0 && heads.is_multiple_of(kv_heads), "{:?}", self.shape);
        let rows = self.q.len() / (heads * head_dim);
        let widths = [heads * head_dim, kv_heads * head_dim];
        let lens = [self.q.len(), self.out.len(), self.dout.len(), gradients.q.len()];
        assert!(lens.iter().all(|len| *len == rows * widths[0]), "{lens:?} of {rows} rows");
        let lens =
            [self.keys.len(), self.values.len(), gradients.keys.len(), gradients.values.len()];
        assert!(lens.iter().all(|len| *len == rows * widths[1]), "{lens:?} of {rows} rows");
        let mut last = 0;
        for Span { shared, rows: own } in self.spans {
            let sound = last <= own.start && own.start < own.end && own.end <= rows;
            assert!(sound, "span {own:?} of {rows} rows, after {last}");
            let sound = shared.start <= shared.end && shared.end <= own.start;
            assert!(sound, "span {own:?} shares {shared:?}");
            last = own.end;
        }
    }
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

/// One key head of one span. Tokens are those of the span's sequence: shared ones, then its own.
struct Part<'a> {
    of: &'a Attended<'a>,
    isa: Isa,
    span: &'a Span,
    kv_head: usize,
    /// Where its gradients of shared rows begin among those of all.
    first_shared: usize,
    dq: SharedMut,
    dk: SharedMut,
    dv: SharedMut,
    shared_dk: SharedMut,
    shared_dv: SharedMut,
}

impl Part<'_> {
    unsafe fn compute(&self, scratch: &mut Scratch) {
        let AttentionShape { heads, kv_heads, head_dim } = self.of.shape;
        let (width, tokens) = (kv_heads * head_dim, self.tokens());
        let keys = |token| &self.of.keys[self.row_of(token) * width + self.kv_head * head_dim..];
        let values =
            |token| &self.of.values[self.row_of(token) * width + self.kv_head * head_dim..];
        pack_all(tokens, head_dim, keys, &mut scratch.keys);
        across(tokens, head_dim, keys, &mut scratch.keys_across);
        across(tokens, head_dim, values, &mut scratch.values_across);
        for out in [self.dk, self.dv] {
            self.clear(out, self.span.rows.clone());
        }
        for out in [self.shared_dk, self.shared_dv] {
            self.clear(out, self.first_shared..self.first_shared + self.span.shared.len());
        }
        let padded = tokens.next_multiple_of(PANEL);
        scratch.p.resize(BLOCK_ROWS * padded, 0.0);
        scratch.ds.resize(BLOCK_ROWS * padded, 0.0);
        let (group, count) = (heads / kv_heads, self.span.rows.len());
        for head in self.kv_head * group..(self.kv_head + 1) * group {
            let q = |row| &self.of.q[self.at(head, row)..];
            let dout = |row| &self.of.dout[self.at(head, row)..];
            pack_all(count, head_dim, q, &mut scratch.q);
            pack_all(count, head_dim, dout, &mut scratch.dout);
            for start in (0..count).step_by(BLOCK_ROWS) {
                let rows = start..(start + BLOCK_ROWS).min(count);
                self.scores(head, rows.clone(), scratch);
                self.soften(head, rows.clone(), scratch);
                self.add(head, rows, scratch);
            }
        }
    }

    /// Returns how many tokens there are.
    fn tokens(&self) -> usize {
        self.span.shared.len() + self.span.rows.len()
    }

    /// Returns how many tokens a row sees: `row` counts from the span's first.
    fn seen(&self, row: usize) -> usize {
        self.span.shared.len() + row + 1
    }

    /// Returns the row of a token.
    fn row_of(&self, token: usize) -> usize {
        match token.checked_sub(self.span.shared.len()) {
            Some(own) => self.span.rows.start + own,
            None => self.span.shared.start + token,
        }
    }

    /// Makes this head's gradients of some rows zero.
    unsafe fn clear(&self, out: SharedMut, rows: Range<usize>) {
        let AttentionShape { kv_heads, head_dim, .. } = self.of.shape;
        for row in rows {
            out.elements((row * kv_heads + self.kv_head) * head_dim, head_dim).fill(0.0);
        }
    }

    /// Returns where a row of a head's queries, or outputs, begins.
    fn at(&self, head: usize, row: usize) -> usize {
        let AttentionShape { heads, head_dim, .. } = self.of.shape;
        ((self.span.rows.start + row) * heads + head) * head_dim
    }

    /// Computes products of queries and keys, and of output gradients and values.
    unsafe fn scores(&self, head: usize, rows: Range<usize>, scratch: &mut Scratch) {
        let AttentionShape { heads, head_dim, .. } = self.of.shape;
        let padded = self.tokens().next_multiple_of(PANEL);
        let at = self.at(head, rows.start);
        let sides = [
            (self.of.q, &scratch.keys_across, &mut scratch.p),
            (self.of.dout, &scratch.values_across, &mut scratch.ds),
        ];
        for (left, panels, out) in sides {
            let start = left[at..].as_ptr();
            let product = Product {
                left: Left::Rows { start, stride: heads * head_dim },
                panels: panels.as_ptr(),
                panel_stride: head_dim * PANEL,
                out: out.as_mut_ptr(),
                out_stride: padded,
                rows: rows.len(),
                depth: head_dim,
                lanes: self.seen(rows.end - 1).next_multiple_of(PANEL),
                begins: true,
            };
            product.run_by(self.isa);
        }
    }

    /// Makes probabilities of the one and gradients of scores of the other.
    fn soften(&self, head: usize, rows: Range<usize>, scratch: &mut Scratch) {
        let head_dim = self.of.shape.head_dim;
        let scale = 1.0 / (head_dim as f32).sqrt();
        let padded = self.tokens().next_multiple_of(PANEL);
        let scores = scratch.p.chunks_exact_mut(padded).zip(scratch.ds.chunks_exact_mut(padded));
        let lanes = self.seen(rows.end - 1).next_multiple_of(PANEL);
        for ((p, ds), row) in scores.zip(rows) {
            let (p, unseen) = p[..lanes].split_at_mut(self.seen(row));
            unseen.fill(0.0);
            p.iter_mut().for_each(|p| *p *= scale);
            let max = maximum_by(self.isa, p);
            let sum = exp_and_sum_by(self.isa, p, max);
            divide_by(self.isa, p, sum);
            let at = self.at(head, row);
            let (out, dout) = (&self.of.out[at..][..head_dim], &self.of.dout[at..][..head_dim]);
            let mean = simd::run(self.isa, Dot(out, dout), |d| dot_from([0.0; PARTIALS], d.0, d.1));
            let (ds, unseen) = ds[..lanes].split_at_mut(self.seen(row));
            unseen.fill(0.0);
            simd::run(self.isa, ScoreGradient { p, ds, mean, scale }, plain_scores);
        }
    }

    /// Writes the gradients of the rows' queries, and adds to those of keys and values.
    unsafe fn add(&self, head: usize, rows: Range<usize>, scratch: &Scratch) {
        let AttentionShape { heads, kv_heads, head_dim } = self.of.shape;
        let padded = self.tokens().next_multiple_of(PANEL);
        let queries = Product {
            left: Left::Rows { start: scratch.ds.as_ptr(), stride: padded },
            panels: scratch.keys.as_ptr(),
            panel_stride: self.tokens() * PANEL,
            out: self.dq.at(self.at(head, rows.start)),
            out_stride: heads * head_dim,
            rows: rows.len(),
            depth: self.seen(rows.end - 1),
            lanes: head_dim,
            begins: true,
        };
        queries.run_by(self.isa);
        let shared = self.span.shared.len();
        let place = |row: usize| (row * kv_heads + self.kv_head) * head_dim;
        let sides = [
            (&scratch.ds, &scratch.q, self.dk, self.shared_dk),
            (&scratch.p, &scratch.dout, self.dv, self.shared_dv),
        ];
        for (left, right, own_out, shared_out) in sides {
            let own = Product {
                left: Left::Columns { start: left[shared..].as_ptr(), stride: padded },
                panels: right[rows.start * PANEL..].as_ptr(),
                panel_stride: self.span.rows.len() * PANEL,
                out: own_out.at(place(self.span.rows.start)),
                out_stride: kv_heads * head_dim,
                rows: rows.end,
                depth: rows.len(),
                lanes: head_dim,
                begins: false,
            };
            own.run_by(self.isa);
            if shared > 0 {
                let left = Left::Columns { start: left.as_ptr(), stride: padded };
                let out = shared_out.at(place(self.first_shared));
                Product { left, out, rows: shared, ..own }.run_by(self.isa);
            }
        }
    }
}

/// Packs rows of `width` elements into panels.
fn pack_all<'a>(rows: usize, width: usize, row: impl Fn(usize) -> &'a [f32], to: &mut Vec<f32>) {
    to.resize(width.div_ceil(PANEL) * rows * PANEL, 0.0);
    pack(rows, width, row, to);
}

/// Packs the transpose of rows of `width` elements: `[rows / 32, width, 32]`.
fn across<'a>(rows: usize, width: usize, row: impl Fn(usize) -> &'a [f32], to: &mut Vec<f32>) {
    to.resize(rows.div_ceil(PANEL) * width * PANEL, 0.0);
    for (panel, to) in to.chunks_exact_mut(width * PANEL).enumerate() {
        for lane in 0..PANEL {
            let index = panel * PANEL + lane;
            if index >= rows {
                to.chunks_exact_mut(PANEL).for_each(|to| to[lane] = 0.0);
                continue;
            }
            for (to, from) in to.chunks_exact_mut(PANEL).zip(row(index)) {
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
mod tests;
