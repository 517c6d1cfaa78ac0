//! Gradients are what differences say, with the same bits everywhere.

use std::num::NonZeroUsize;

use super::*;

fn numbers(count: usize, salt: usize) -> Vec<f64> {
    (0..count).map(|i| ((i * 7919 + salt * 311) % 2_003) as f64 / 1_000.0 - 1.0).collect()
}

fn floats(x: &[f64]) -> Vec<f32> {
    x.iter().map(|x| *x as f32).collect()
}

/// Attention by its definition, in f64.
fn attend(shape: AttentionShape, spans: &[Span], q: &[f64], k: &[f64], v: &[f64]) -> Vec<f64> {
    let AttentionShape { heads, kv_heads, head_dim } = shape;
    let mut out = vec![0.0; q.len()];
    for span in spans {
        for row in span.rows.clone() {
            for head in 0..heads {
                let kv = head / (heads / kv_heads);
                let q = &q[(row * heads + head) * head_dim..][..head_dim];
                let of = |x: &[f64], t: usize, d: usize| x[(t * kv_heads + kv) * head_dim + d];
                let score = |t: usize| {
                    let dot: f64 = (0..head_dim).map(|d| q[d] * of(k, t, d)).sum();
                    (dot / (head_dim as f64).sqrt()).exp()
                };
                let seen = || span.shared.clone().chain(span.rows.start..row + 1);
                let scores: Vec<f64> = seen().map(score).collect();
                let sum: f64 = scores.iter().sum();
                for d in 0..head_dim {
                    let weighted = scores.iter().zip(seen());
                    out[(row * heads + head) * head_dim + d] =
                        weighted.map(|(p, t)| p / sum * of(v, t, d)).sum();
                }
            }
        }
    }
    out
}

type Three = (Vec<f32>, Vec<f32>, Vec<f32>);

fn check(shape: AttentionShape, spans: &[Span], step: usize) {
    let rows = spans.last().expect("some").rows.end;
    let width = shape.heads * shape.head_dim;
    let kv_width = shape.kv_heads * shape.head_dim;
    let (q, dout) = (numbers(rows * width, 1), numbers(rows * width, 2));
    let (k, v) = (numbers(rows * kv_width, 3), numbers(rows * kv_width, 4));
    let out = attend(shape, spans, &q, &k, &v);
    let compute = |threads, isa| -> Three {
        let threads = NonZeroUsize::new(threads).expect("not zero");
        let context = Context::new(threads, isa).expect("available");
        let (q, keys, values) = (&floats(&q)[..], &floats(&k)[..], &floats(&v)[..]);
        let (out, dout) = (&floats(&out)[..], &floats(&dout)[..]);
        let of = Attended { shape, spans, q, keys, values, out, dout };
        let mut all = (vec![9.0; q.len()], vec![9.0; keys.len()], vec![9.0; values.len()]);
        let gradients = AttentionGradients { q: &mut all.0, keys: &mut all.1, values: &mut all.2 };
        attention_gradient(&context, &of, gradients);
        all
    };
    let found = compute(1, Isa::Portable);
    for isa in Isa::available() {
        assert!(compute(1, isa) == found, "{}", isa.name());
        assert!(compute(3, isa) == found, "{} on 3 threads", isa.name());
    }
    let loss = |q: &[f64], k: &[f64], v: &[f64]| -> f64 {
        attend(shape, spans, q, k, v).iter().zip(&dout).map(|(o, d)| o * d).sum()
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
    check(shape(2, 1, 6), &alone(&[0..3, 3..10]), 1);
    check(shape(4, 2, 16), &alone(&[0..1, 1..34]), 7);
    check(shape(2, 2, 40), &alone(&[0..101, 101..120]), 211);
}

#[test]
fn rows_that_several_continue_get_the_gradients_of_all() {
    let shape = |heads, kv_heads, head_dim| AttentionShape { heads, kv_heads, head_dim };
    let span = |shared, rows| Span { shared, rows };
    let spans = [span(0..0, 0..5), span(0..5, 5..7), span(0..5, 7..8), span(8..8, 8..11)];
    check(shape(2, 1, 6), &spans, 1);
    let spans = [span(0..0, 0..48), span(0..48, 48..109), span(0..48, 109..120)];
    check(shape(4, 2, 16), &spans, 97);
}

fn alone(sequences: &[Range<usize>]) -> Vec<Span> {
    sequences.iter().map(|rows| Span { shared: 0..0, rows: rows.clone() }).collect()
}
