//! The weights that a compact model begins with.
//!
//! Not here: what each tensor does (`arena-model`).

use arena_core::seed::{Root, Stream};
use arena_weights::tensor::Tensor;

use super::vocabulary;
use crate::experiment::Shape;

/// Standard deviation of weights (GPT-2, section 2.3).
const DEVIATION: f64 = 0.02;

/// What a tensor begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    Normal,
    /// Adds to the residual stream, which every layer does twice.
    Residual,
    One,
}

/// A tensor that is to be drawn.
pub(super) struct Slot {
    pub name: String,
    /// Outermost first.
    pub shape: Vec<usize>,
    start: Start,
}

/// Returns every tensor of a model in a fixed order, under Hugging Face's names.
pub(super) fn slots(shape: &Shape) -> Vec<Slot> {
    let size = |number: u32| number as usize;
    let (width, ffn) = (size(shape.width), size(shape.feed_forward));
    let kv = size(shape.width / shape.heads * shape.kv_heads);
    let vocab = size(vocabulary::TOKEN_COUNT);
    let slot = |name: &str, shape: &[usize], start| Slot {
        name: format!("{name}.weight"),
        shape: shape.to_vec(),
        start,
    };
    let mut slots = vec![
        slot("model.embed_tokens", &[vocab, width], Start::Normal),
        slot("model.norm", &[width], Start::One),
        slot("lm_head", &[vocab, width], Start::Normal),
    ];
    for layer in 0..shape.layers {
        let parts = [
            ("input_layernorm", vec![width], Start::One),
            ("self_attn.q_proj", vec![width, width], Start::Normal),
            ("self_attn.k_proj", vec![kv, width], Start::Normal),
            ("self_attn.v_proj", vec![kv, width], Start::Normal),
            ("self_attn.o_proj", vec![width, width], Start::Residual),
            ("post_attention_layernorm", vec![width], Start::One),
            ("mlp.gate_proj", vec![ffn, width], Start::Normal),
            ("mlp.up_proj", vec![ffn, width], Start::Normal),
            ("mlp.down_proj", vec![width, ffn], Start::Residual),
        ];
        let name = |part| format!("model.layers.{layer}.{part}");
        slots.extend(parts.map(|(part, shape, start)| slot(&name(part), &shape, start)));
    }
    slots
}

/// Draws every tensor, each from a stream of its own; returns them by name.
pub(super) fn draw(shape: &Shape, seed: u64) -> Vec<Tensor> {
    let residual = DEVIATION / f64::from(2 * shape.layers).sqrt();
    let slots = slots(shape).into_iter().enumerate();
    let draw_one = |(number, slot): (usize, Slot)| {
        let mut stream = Stream::derive(Root::Seed(seed), "initial-weights", &[number as u64]);
        let count: usize = slot.shape.iter().product();
        let mut weight = || match slot.start {
            Start::One => 1.0,
            Start::Normal => (DEVIATION * normal(&mut stream)) as f32,
            Start::Residual => (residual * normal(&mut stream)) as f32,
        };
        let weights: Vec<f32> = (0..count).map(|_| weight()).collect();
        Tensor::of_f32(&slot.name, &slot.shape, &weights)
    };
    let mut drawn: Vec<Tensor> = slots.map(draw_one).collect();
    // The order in the file, which must not depend on how JSON objects are kept.
    drawn.sort_by(|left, right| left.name.cmp(&right.name));
    drawn
}

/// Draws from the normal distribution with mean 0 and deviation 1 (Box, Muller 1958; the second
/// of the two values is not used).
fn normal(stream: &mut Stream) -> f64 {
    let radius = (-2.0 * libm::log(1.0 - unit(stream))).sqrt();
    radius * libm::cos(std::f64::consts::TAU * unit(stream))
}

/// Draws from 0..1, in steps of 2^-53.
fn unit(stream: &mut Stream) -> f64 {
    (stream.bits() >> 11) as f64 / (1_u64 << 53) as f64
}
