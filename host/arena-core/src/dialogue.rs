//! The prompts of a seat's model calls, each kept as what it adds to the one before.
//!
//! A dialogue grows at its end, so that a call's prompt begins with the last call's prompt and
//! reply. A record holds how many of those tokens come again, and the rest. There is exactly one
//! way to write a prompt down: the number is as large as it can be.
//!
//! Not here: what tokens mean. Only their model's tokenizer knows that.

use crate::seat::{CallTokens, ModelCall, SampledToken};

/// Writes a prompt and its reply down as the next call of `model` after `calls`.
pub fn shorten(
    calls: &[ModelCall],
    model: &str,
    mut prompt: Vec<u32>,
    output: Vec<SampledToken>,
) -> CallTokens {
    let before = previous(calls, model).and_then(|number| spoken(calls, number));
    let before = before.unwrap_or_default();
    let reused = prompt.iter().zip(&before).take_while(|(token, known)| token == known).count();
    prompt.drain(..reused);
    let reused = u32::try_from(reused).expect("a prompt is far shorter than 2^32 tokens");
    CallTokens { reused, prompt, output }
}

/// Returns the whole prompt of call `number`; `None` where the call holds no tokens or says that it
/// reuses what is not there.
pub fn prompt(calls: &[ModelCall], number: usize) -> Option<Vec<u32>> {
    let tokens = calls.get(number)?.tokens.as_ref()?;
    collect(calls, number, tokens.reused as usize + tokens.prompt.len())
}

/// Returns the number of the last call of `model` that holds tokens.
pub fn previous(calls: &[ModelCall], model: &str) -> Option<usize> {
    calls.iter().rposition(|call| call.model == model && call.tokens.is_some())
}

/// Returns the whole prompt of call `number` and its reply; `None` as [`prompt`].
pub fn spoken(calls: &[ModelCall], number: usize) -> Option<Vec<u32>> {
    let tokens = calls.get(number)?.tokens.as_ref()?;
    let length = tokens.reused as usize + tokens.prompt.len() + tokens.output.len();
    collect(calls, number, length)
}

/// Returns the first `length` tokens of what call `number` read and wrote.
fn collect(calls: &[ModelCall], mut number: usize, length: usize) -> Option<Vec<u32>> {
    // From the last part to the first. A record claims any `reused`, so nothing is allocated
    // before parts that are there add up to the length.
    let mut parts: Vec<(&CallTokens, usize)> = Vec::new();
    let mut needed = length;
    loop {
        let call = calls.get(number)?;
        let tokens = call.tokens.as_ref()?;
        let reused = tokens.reused as usize;
        if needed > reused + tokens.prompt.len() + tokens.output.len() {
            return None;
        }
        parts.push((tokens, needed.saturating_sub(reused)));
        needed = needed.min(reused);
        if needed == 0 {
            break;
        }
        number = previous(&calls[..number], &call.model)?;
    }
    let mut ids = Vec::with_capacity(length);
    for (tokens, count) in parts.into_iter().rev() {
        let output = tokens.output.iter().map(|token| token.id);
        ids.extend(tokens.prompt.iter().copied().chain(output).take(count));
    }
    assert_eq!(ids.len(), length, "the parts of a prompt add up to it");
    Some(ids)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seat::Sampling;

    fn call(model: &str, tokens: Option<CallTokens>) -> ModelCall {
        ModelCall {
            act_index: 0,
            model: model.to_owned(),
            request_sha256: [0; 32],
            sampling: Sampling::GREEDY,
            text: String::new(),
            finish_reason: 0,
            input_tokens: 0,
            output_tokens: 0,
            weight_milli: None,
            tokens,
        }
    }

    fn written(ids: &[u32]) -> Vec<SampledToken> {
        let token =
            |&id| SampledToken { id, logprob_micro: 0, sampled_logprob_micro: 0, top: vec![] };
        ids.iter().map(token).collect()
    }

    fn add(calls: &mut Vec<ModelCall>, model: &str, prompt: &[u32], output: &[u32]) -> u32 {
        let tokens = shorten(calls, model, prompt.to_vec(), written(output));
        let reused = tokens.reused;
        calls.push(call(model, Some(tokens)));
        reused
    }

    #[test]
    fn a_growing_dialogue_is_written_down_once_and_read_back_whole() {
        let mut calls = Vec::new();
        assert_eq!(add(&mut calls, "a", &[1, 2, 3], &[4]), 0);
        assert_eq!(add(&mut calls, "a", &[1, 2, 3, 4, 5], &[6, 7]), 4);
        assert_eq!(add(&mut calls, "a", &[1, 2, 3, 4, 5, 6, 7, 8], &[]), 7);
        assert_eq!(calls[2].tokens.as_ref().map(|tokens| &tokens.prompt), Some(&vec![8]));
        assert_eq!(prompt(&calls, 0), Some(vec![1, 2, 3]));
        assert_eq!(prompt(&calls, 1), Some(vec![1, 2, 3, 4, 5]));
        assert_eq!(prompt(&calls, 2), Some(vec![1, 2, 3, 4, 5, 6, 7, 8]));
        assert_eq!(spoken(&calls, 1), Some(vec![1, 2, 3, 4, 5, 6, 7]));
    }

    #[test]
    fn a_prompt_that_parts_from_the_last_one_shares_what_is_equal() {
        let mut calls = Vec::new();
        add(&mut calls, "a", &[1, 2, 3], &[4, 5]);
        assert_eq!(add(&mut calls, "a", &[1, 2, 9], &[]), 2);
        assert_eq!(add(&mut calls, "a", &[1], &[2]), 1);
        assert_eq!(add(&mut calls, "a", &[7], &[]), 0);
        for (number, ids) in [&[1, 2, 3][..], &[1, 2, 9], &[1], &[7]].into_iter().enumerate() {
            assert_eq!(prompt(&calls, number).as_deref(), Some(ids));
        }
    }

    #[test]
    fn calls_of_other_models_and_calls_without_tokens_are_passed_over() {
        let mut calls = Vec::new();
        add(&mut calls, "a", &[1, 2], &[3]);
        add(&mut calls, "b", &[1, 2, 3], &[]);
        calls.push(call("a", None));
        assert_eq!(add(&mut calls, "a", &[1, 2, 3, 4], &[]), 3);
        assert_eq!(prompt(&calls, 3), Some(vec![1, 2, 3, 4]));
        assert_eq!(prompt(&calls, 2), None, "a call without tokens has no prompt");
    }

    #[test]
    fn reuse_of_what_is_not_there_is_no_prompt_and_allocates_nothing() {
        let claim = |reused| Some(CallTokens { reused, prompt: vec![1], output: vec![] });
        assert_eq!(prompt(&[call("a", claim(1))], 0), None);
        assert_eq!(prompt(&[call("a", claim(u32::MAX))], 0), None);
        let chain = [call("a", claim(u32::MAX)), call("a", claim(u32::MAX))];
        assert_eq!(prompt(&chain, 1), None);
        let short = [call("a", claim(0)), call("a", claim(2))];
        assert_eq!(prompt(&short, 1), None);
    }
}
