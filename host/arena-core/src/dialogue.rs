//! The prompts of a seat's model calls, each kept as what it adds to the one before.
//!
//! A dialogue grows at its end, so that a call's prompt begins with the last call's prompt and
//! reply. A record holds how many of those tokens come again, and the rest. There is exactly one
//! way to write a prompt down: the number is as large as it can be.
//!
//! Also what holds of the scores of any reply, whatever the model.
//!
//! Not here: what tokens mean. Only their model's tokenizer knows that.

use std::fmt;

use crate::seat::{CallTokens, ModelCall, SampledToken, TOP_TOKENS_MAX};

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

/// What cannot be right about a reply's tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenFault {
    /// The token's place in the reply, from 0.
    pub place: usize,
    /// What of it, for example `the logarithm of its probability`.
    pub what: &'static str,
    /// What it is.
    pub found: i64,
    /// The most that it may be.
    pub most: i64,
}

impl fmt::Display for TokenFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TokenFault { place, what, found, most } = self;
        write!(f, "of reply token {place}, {what} is `{found}`, at most `{most}`")
    }
}

/// Checks what holds of the scores of any reply: no probability is above 1, the likeliest tokens
/// are in order and distinct, and none that was sampled is likelier.
///
/// # Errors
/// The first value that cannot be.
pub fn check_scores(output: &[SampledToken]) -> Result<(), TokenFault> {
    for (place, token) in output.iter().enumerate() {
        let at_most = |what, found: i64, most: i64| match found <= most {
            true => Ok(()),
            false => Err(TokenFault { place, what, found, most }),
        };
        let logprob = "the logarithm of its probability in millionths";
        let likeliest = token.top.first().map_or(0, |score| score.logprob_micro.into());
        at_most("the number of likeliest tokens", token.top.len() as i64, TOP_TOKENS_MAX as i64)?;
        at_most("the likeliest one's logarithm in millionths", likeliest, 0)?;
        at_most(logprob, token.logprob_micro.into(), likeliest)?;
        let sampled = "the logarithm of the probability that it was sampled with in millionths";
        at_most(sampled, token.sampled_logprob_micro.into(), 0)?;
        for (rank, score) in token.top.iter().enumerate() {
            let next = token.top.get(rank + 1);
            let next_micro = next.map_or(i64::from(i32::MIN), |next| next.logprob_micro.into());
            at_most("the next likeliest one's", next_micro, score.logprob_micro.into())?;
            let again = token.top[..rank].iter().filter(|other| other.id == score.id).count();
            at_most("the repetitions of a likeliest token", again as i64, 0)?;
            if score.id == token.id {
                at_most(logprob, token.logprob_micro.into(), score.logprob_micro.into())?;
                at_most(
                    "its score as one of the likeliest",
                    score.logprob_micro.into(),
                    token.logprob_micro.into(),
                )?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seat::{Sampling, TokenScore};

    fn call(model: &str, tokens: Option<CallTokens>) -> ModelCall {
        ModelCall {
            act_index: 0,
            model: model.to_owned(),
            request_sha256: [0; 32],
            sampling: Sampling::GREEDY,
            is_grammar_bound: false,
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

    #[test]
    fn scores_that_no_distribution_has_are_found() {
        let score = |id, logprob_micro| TokenScore { id, logprob_micro };
        let honest = SampledToken {
            id: 7,
            logprob_micro: -900,
            sampled_logprob_micro: -100,
            top: vec![score(3, -500), score(7, -900), score(1, -900)],
        };
        assert_eq!(check_scores(&[honest.clone(), written(&[1])[0].clone()]), Ok(()));
        type Lie = (fn(&mut SampledToken), &'static str);
        let lies: [Lie; 8] = [
            (|t| t.top = vec![t.top[0]; 6], "the number of likeliest tokens is `6`, at most `5`"),
            (|t| t.top[0].logprob_micro = 1, "the likeliest one's logarithm"),
            (|t| t.logprob_micro = -400, "in millionths is `-400`, at most `-500`"),
            (|t| t.top.swap(0, 1), "in millionths is `-900`"),
            (|t| t.top[2].logprob_micro = -899, "the next likeliest one's is `-899`"),
            (|t| t.top[2].id = 3, "the repetitions of a likeliest token is `1`, at most `0`"),
            (|t| t.logprob_micro = -901, "its score as one of the likeliest is `-900`"),
            (|t| t.sampled_logprob_micro = 1, "that it was sampled with in millionths is `1`"),
        ];
        for (lie, says) in lies {
            let mut token = honest.clone();
            lie(&mut token);
            let found = check_scores(&[honest.clone(), token]).map_err(|fault| fault.to_string());
            let error = found.expect_err(says);
            assert!(error.starts_with("of reply token 1, "), "{error}");
            assert!(error.contains(says) || says == "in millionths is `-900`", "{error}: {says}");
        }
    }
}
