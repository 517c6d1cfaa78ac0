//! What a learner refuses.
//!
//! Not here: what any learner refuses of a sequence (`arena_model::learner`).

use arena_model::executor::ExecutorError;
use arena_model::learner::{Parameter, Sequence, Slopes, check};
use arena_weights::config::ModelConfig;

/// Refuses a batch that does not fit a model of these numbers, of whose vocabulary the first
/// `token_count` can be sampled.
///
/// # Errors
/// Names the sequence.
pub fn batch(
    batch: &[Sequence],
    config: &ModelConfig,
    token_count: usize,
) -> Result<(), ExecutorError> {
    check(batch, config)?;
    for (index, sequence) in batch.iter().enumerate() {
        let refuse = |detail| Err(ExecutorError::Sequence { index, detail });
        let mut tokens = sequence.scored.iter().map(|&place| sequence.tokens[place as usize]);
        if let Some(token) = tokens.find(|&token| token as usize >= token_count) {
            return refuse(format!(
                "token {token} is never sampled: it is none of the {token_count} of the tokenizer"
            ));
        }
        if sequence.experts.is_some() != batch[0].experts.is_some() {
            return refuse("of a batch, all sequences have experts or none".to_string());
        }
    }
    Ok(())
}

/// Refuses values, or gradients, that are not laid out like the parameters.
///
/// # Errors
/// Names the parameter.
pub fn sizes(values: &[Vec<f32>], parameters: &[Parameter]) -> Result<(), ExecutorError> {
    if values.len() != parameters.len() {
        let (found, expected) = (values.len(), parameters.len());
        let detail = format!("{found} tensors are given, {expected} are trained");
        return Err(ExecutorError::Tensor { tensor: "all".to_string(), detail });
    }
    for (values, Parameter { name, shape }) in values.iter().zip(parameters) {
        if values.len() != shape.iter().product::<usize>() {
            let detail = format!("{} values are given, its shape is {shape:?}", values.len());
            return Err(ExecutorError::Tensor { tensor: name.clone(), detail });
        }
    }
    Ok(())
}

/// Refuses slopes that are not one for each score.
///
/// # Errors
/// Says how many there are.
pub fn slopes(slopes: &Slopes, count: usize) -> Result<(), ExecutorError> {
    let (logprobs, entropies) = (slopes.logprobs.len(), slopes.entropies.len());
    if logprobs == count && (entropies == count || entropies == 0) {
        return Ok(());
    }
    let detail = format!("{logprobs} and {entropies} slopes of {count} scores");
    Err(ExecutorError::Device(detail))
}
