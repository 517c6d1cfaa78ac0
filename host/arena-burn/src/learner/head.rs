//! From rows that left the last layer to scores, and from slopes back to gradients of the rows.
//!
//! The head is the dearest single product, and its results are the largest tensors: only scored
//! rows go through it, in chunks, and no chunk outlives its turn. So the way back computes a
//! chunk's logits again.
//!
//! Not here: the layers (`learner`).

use arena_model::executor::ExecutorError;
use arena_model::learner::{Scores, Slopes};
use burn::tensor::{Device, Int, Tensor, TensorData, activation};

use crate::learner::rows::Scored;
use crate::learner::tape::{Leaf, read};
use crate::transformer::Transformer;

/// How rows go through the head.
#[derive(Clone, Copy, Debug)]
pub struct HeadShape {
    /// At most so many at once.
    pub rows_max: usize,
    /// So many first ones of the vocabulary can be sampled.
    pub token_count: usize,
}

/// Scores rows, `[scored, hidden]`.
///
/// # Errors
/// The device failed.
pub fn score(
    model: &Transformer,
    rows: &Tensor<2>,
    scored: &Scored,
    shape: HeadShape,
) -> Result<Scores, ExecutorError> {
    let device = rows.device();
    let mut scores = Scores::default();
    for chunk in scored.chunks(shape.rows_max) {
        let logits = model.logits(rows.clone().narrow(0, chunk.start, chunk.len()));
        let tokens = scored.tokens_of(chunk.clone(), &device);
        let temperatures = scored.temperatures_of(chunk, &device);
        let likelihoods = likelihoods(logits, temperatures, shape.token_count);
        scores.logprobs.extend(read(logprobs(likelihoods.clone(), tokens))?);
        scores.entropies.extend(read(entropies(likelihoods))?);
    }
    Ok(scores)
}

/// What goes back through the head.
pub struct Return<'a> {
    /// With `leaves` on a tape.
    pub model: &'a Transformer,
    /// What is trained of it.
    pub leaves: &'a [Leaf],
    /// What was scored, `[scored, hidden]`.
    pub rows: &'a Tensor<2>,
    /// Likewise.
    pub scored: &'a Scored,
    /// How the loss changes with each score.
    pub slopes: &'a Slopes,
}

/// Returns how a loss changes with each row, `[scored, hidden]`, and adds its gradients of the
/// leaves.
///
/// # Errors
/// The device failed.
pub fn backward(
    of: &Return<'_>,
    shape: HeadShape,
    gradients: &mut [Vec<f32>],
) -> Result<Tensor<2>, ExecutorError> {
    let Return { model, leaves, scored, slopes, .. } = *of;
    let device = of.rows.device();
    let mut of_rows = Vec::new();
    for chunk in scored.chunks(shape.rows_max) {
        let rows = of.rows.clone().narrow(0, chunk.start, chunk.len()).autodiff().require_grad();
        let tokens = scored.tokens_of(chunk.clone(), &device);
        let temperatures = scored.temperatures_of(chunk.clone(), &device);
        let logits = model.logits(rows.clone());
        let likelihoods = likelihoods(logits, temperatures, shape.token_count);
        let mut loss = weighted(
            logprobs(likelihoods.clone(), tokens),
            &slopes.logprobs[chunk.clone()],
            &device,
        );
        if !slopes.entropies.is_empty() {
            loss = loss + weighted(entropies(likelihoods), &slopes.entropies[chunk], &device);
        }
        let mut found = loss.backward();
        of_rows.push(rows.grad_remove(&mut found).expect("every score depends on its row"));
        for leaf in leaves {
            leaf.add(&mut found, gradients)?;
        }
    }
    Ok(Tensor::cat(of_rows, 0))
}

/// Returns `log softmax(logits / temperature)` over what can be sampled, `[rows, vocab]` to
/// `[rows, token_count]`.
fn likelihoods(logits: Tensor<2>, temperatures: Tensor<2>, token_count: usize) -> Tensor<2> {
    activation::log_softmax(logits.narrow(1, 0, token_count) / temperatures, 1)
}

/// Returns those of the tokens, `[rows, token_count]` and `[rows, 1]` to `[rows]`.
fn logprobs(likelihoods: Tensor<2>, tokens: Tensor<2, Int>) -> Tensor<1> {
    likelihoods.gather(1, tokens).squeeze_dim(1)
}

/// Returns `-sum(p log p)`, `[rows, token_count]` to `[rows]`.
fn entropies(likelihoods: Tensor<2>) -> Tensor<1> {
    -(likelihoods.clone().exp() * likelihoods).sum_dim(1).squeeze_dim(1)
}

/// Returns `sum(slope * score)`.
fn weighted(scores: Tensor<1>, slopes: &[f32], device: &Device) -> Tensor<1> {
    let data = TensorData::new(slopes.to_vec(), [slopes.len()]);
    (scores * Tensor::from_data(data, device)).sum()
}

#[cfg(test)]
mod tests {
    use arena_weights::config::{Architecture, ModelConfig};

    use super::*;
    use crate::device::BurnDevice;
    use crate::loading;

    /// Numbers between -1 and 1, without pattern.
    fn numbers(count: usize) -> Vec<f32> {
        (0..count).map(|at| ((at * at * 37 + at * 11) % 201) as f32 / 100.0 - 1.0).collect()
    }

    fn ends(device: &Device) -> Transformer {
        let config = ModelConfig {
            architecture: Architecture::Llama,
            hidden: 6,
            layers: 0,
            heads: 1,
            kv_heads: 1,
            head_dim: 6,
            ffn: 6,
            vocab: 13,
            context_tokens: 8,
            rope_theta: 10_000.0,
            rms_eps: 1.0e-5,
            tied_embeddings: true,
            moe: None,
            bos: None,
            eos: Vec::new(),
        };
        loading::build(&config, device, &|_, shape| Ok(numbers(shape.iter().product()).into()))
            .expect("every tensor is there")
    }

    #[test]
    fn rows_in_chunks_get_what_they_get_together() {
        let device = BurnDevice::Flex.open().expect("it is there");
        let model = ends(&device);
        let rows = Tensor::from_data(TensorData::new(numbers(7 * 6), [7, 6]), &device);
        let scored = Scored {
            rows: (0..7).collect(),
            tokens: vec![3, 1, 12, 0, 3, 7, 5],
            temperatures: vec![1.0, 0.5, 1.0, 2.0, 1.0, 1.0, 0.7],
        };
        let slopes = Slopes { logprobs: numbers(7), entropies: numbers(8)[1..].to_vec() };
        let computed = |rows_max: usize| {
            let shape = HeadShape { rows_max, token_count: 13 };
            let scores = score(&model, &rows, &scored, shape).expect("the device works");
            let of = Return {
                model: &model,
                leaves: &[],
                rows: &rows,
                scored: &scored,
                slopes: &slopes,
            };
            let slope = backward(&of, shape, &mut []).expect("the device works");
            [scores.logprobs, scores.entropies, read(slope).expect("the device works")]
        };
        let (together, chunked) = (computed(7), computed(3));
        for (together, chunked) in together.iter().zip(&chunked) {
            assert_eq!(together.len(), chunked.len());
            for (a, b) in together.iter().zip(chunked) {
                assert!((a - b).abs() < 1.0e-5, "{together:?}, {chunked:?}");
            }
        }
        assert!(together[2].iter().any(|slope| slope.abs() > 0.1), "{together:?}");
    }
}
