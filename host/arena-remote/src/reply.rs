//! What a server answers, and what of it is believed.

use arena_core::seat::{SampledToken, Sampling, TOP_TOKENS_MAX, TokenScore};
use arena_llm::model::{Completion, FinishReason, REPLY_BYTES_MAX, ReplyTokens};
use arena_llm::request::Request;
use serde::Deserialize;

/// A chat completion, as OpenAI, vLLM and llama.cpp write it. Unknown fields are left alone.
#[derive(Debug, Deserialize)]
pub(crate) struct Reply {
    choices: Vec<Choice>,
    usage: Usage,
    /// vLLM, with `return_token_ids`.
    prompt_token_ids: Option<Vec<u32>>,
}

#[derive(Debug, Deserialize)]
struct Choice {
    message: ReplyMessage,
    finish_reason: Option<String>,
    logprobs: Option<Logprobs>,
}

#[derive(Debug, Deserialize)]
struct ReplyMessage {
    content: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Usage {
    prompt_tokens: u32,
    completion_tokens: u32,
}

#[derive(Debug, Deserialize)]
struct Logprobs {
    content: Option<Vec<Scored>>,
}

/// A token and its score, with the likeliest ones where it is one of a reply.
#[derive(Debug, Deserialize)]
struct Scored {
    token: String,
    logprob: f64,
    /// llama.cpp.
    id: Option<u32>,
    #[serde(default)]
    top_logprobs: Vec<Scored>,
}

impl Scored {
    fn id(&self) -> Option<u32> {
        // vLLM, with `return_tokens_as_token_ids`.
        self.id.or_else(|| self.token.strip_prefix("token_id:")?.parse().ok())
    }

    fn micro(&self) -> i32 {
        // A conversion from float to integer stops at the bounds, and vLLM's -9999 is in them.
        (self.logprob * 1e6).round() as i32
    }

    fn score(&self) -> Option<TokenScore> {
        Some(TokenScore { id: self.id()?, logprob_micro: self.micro() })
    }
}

impl Reply {
    /// Returns whether a text of the reply, whole as it came, holds another text.
    pub(crate) fn holds(&self, text: &str) -> bool {
        let mut texts = self.choices.iter().filter_map(|choice| choice.message.content.as_deref());
        texts.any(|found| found.contains(text))
    }

    /// Returns the reply as a completion.
    ///
    /// `prompt_ids` are the prompt's tokens, where the server was asked for them elsewhere.
    ///
    /// # Errors
    /// What is wrong with it, for the operator, with values of the server's in it: to be cut and
    /// escaped.
    pub(crate) fn completion(
        self,
        request: &Request,
        context_tokens: u32,
        prompt_ids: Option<Vec<u32>>,
    ) -> Result<Completion, String> {
        let Reply { mut choices, usage, prompt_token_ids } = self;
        let Usage { prompt_tokens: input_tokens, completion_tokens: output_tokens } = usage;
        if input_tokens > context_tokens {
            return Err(format!(
                "counts {input_tokens} tokens of the prompt, the context has {context_tokens}"
            ));
        }
        if choices.len() != 1 {
            return Err(format!("replied with {} choices, was asked for 1", choices.len()));
        }
        let Choice { message, finish_reason, logprobs } = choices.remove(0);
        let text = message.content.ok_or("replied without a text")?;
        let finish_reason = finish_reason.ok_or("replied without an end")?;
        let finish_reason = match finish_reason.as_str() {
            "stop" => FinishReason::Stop,
            "length" => FinishReason::Length,
            other => return Err(format!("ended its reply for `{other}`")),
        };
        if let Some(stop) = request.stop.iter().find(|stop| text.contains(stop.as_str())) {
            return Err(format!("went on after the stop text `{stop}`"));
        }
        let tokens = prompt_token_ids
            .or(prompt_ids)
            .zip(logprobs.and_then(|logprobs| logprobs.content))
            .and_then(|(prompt, scored)| reply_tokens(request, prompt, &scored))
            // A server that keeps the last token to itself does not say the tokens.
            .filter(|tokens| tokens.output.len() == output_tokens as usize)
            .filter(|tokens| tokens.prompt.len() == input_tokens as usize);
        let (text, finish_reason) = cut(text, finish_reason);
        let completion = Completion { text, finish_reason, input_tokens, output_tokens, tokens };
        completion.check(request)?;
        Ok(completion)
    }
}

/// Ends a reply that is longer than records keep.
fn cut(mut text: String, finish_reason: FinishReason) -> (String, FinishReason) {
    if text.len() <= REPLY_BYTES_MAX {
        return (text, finish_reason);
    }
    text.truncate(text.floor_char_boundary(REPLY_BYTES_MAX));
    (text, FinishReason::Length)
}

/// Returns the tokens with their scores, or nothing where an id is missing or the distribution
/// that was sampled from is not known: servers give the model's own.
fn reply_tokens(request: &Request, prompt: Vec<u32>, scored: &[Scored]) -> Option<ReplyTokens> {
    let is_grammar_bound = request.grammar.is_some();
    let Sampling { temperature_milli, top_k, top_p_milli, min_p_milli } = request.sampling;
    let is_whole = (temperature_milli, top_k, top_p_milli, min_p_milli) == (1_000, 0, 1_000, 0);
    let is_greedy = temperature_milli == 0 || top_k == 1;
    if is_grammar_bound || !(is_whole || is_greedy) {
        return None;
    }
    let output = scored.iter().map(|token| {
        let logprob_micro = token.micro();
        Some(SampledToken {
            id: token.id()?,
            logprob_micro,
            // Greedy choice has no alternative.
            sampled_logprob_micro: if is_greedy { 0 } else { logprob_micro },
            top: likeliest(&token.top_logprobs)?,
        })
    });
    Some(ReplyTokens { prompt, output: output.collect::<Option<_>>()? })
}

/// Returns the likeliest tokens in order. vLLM puts the token that was sampled before them, however
/// unlikely it is: one that is less likely than a later one is not of the list.
fn likeliest(top: &[Scored]) -> Option<Vec<TokenScore>> {
    let mut found: Vec<TokenScore> = Vec::new();
    for (rank, scored) in top.iter().enumerate() {
        let later = top[rank + 1..].iter().map(Scored::micro).max();
        let score = scored.score()?;
        let is_new = found.iter().all(|other| other.id != score.id);
        if is_new && later.is_none_or(|later| later <= score.logprob_micro) {
            found.push(score);
        }
    }
    found.truncate(TOP_TOKENS_MAX);
    Some(found)
}

#[cfg(test)]
mod tests {
    use arena_llm::request::{CallKey, ChatRole, Message};
    use serde_json::{Value, json};

    use super::*;

    type Change = fn(&mut Value);
    type Asked = fn(&mut Request);

    fn request() -> Request {
        Request {
            model: "far".to_owned(),
            messages: vec![Message { role: ChatRole::User, text: "hi".to_owned(), tokens: vec![] }],
            max_tokens: 4,
            sampling: Sampling {
                temperature_milli: 0,
                top_k: 0,
                top_p_milli: 1_000,
                min_p_milli: 0,
            },
            stop: vec!["END".to_owned()],
            grammar: None,
            key: CallKey { seat_seed: 1, call_index: 0 },
        }
    }

    fn reply(change: impl FnOnce(&mut Value)) -> Reply {
        let mut value = json!({
            "choices": [{ "message": { "content": "ok" }, "finish_reason": "stop" }],
            "usage": { "prompt_tokens": 3, "completion_tokens": 2 },
        });
        change(&mut value);
        serde_json::from_value(value).expect("a reply")
    }

    fn completed(change: impl FnOnce(&mut Value)) -> Result<Completion, String> {
        reply(change).completion(&request(), 64, None)
    }

    #[test]
    fn a_reply_is_believed_only_as_far_as_it_can_be_true() {
        assert_eq!(completed(|_| ()).map(|completion| completion.text), Ok("ok".to_owned()));
        let cases: [(Change, &str); 9] = [
            (|v| v["choices"] = json!([]), "replied with 0 choices, was asked for 1"),
            (|v| v["choices"][0]["message"]["content"] = json!(null), "replied without a text"),
            (|v| v["choices"][0]["finish_reason"] = json!(null), "replied without an end"),
            (
                |v| v["choices"][0]["finish_reason"] = json!("tool\u{1b}calls"),
                "ended its reply for `tool\u{1b}calls`",
            ),
            (
                |v| v["choices"][0]["message"]["content"] = json!("ok END and more"),
                "went on after the stop text `END`",
            ),
            (
                |v| v["usage"]["prompt_tokens"] = json!(65),
                "counts 65 tokens of the prompt, the context has 64",
            ),
            (|v| v["usage"]["prompt_tokens"] = json!(0), "counts no tokens of the prompt"),
            (
                |v| v["usage"]["completion_tokens"] = json!(5),
                "replied with 5 tokens, was asked for at most 4",
            ),
            (
                |v| v["usage"]["completion_tokens"] = json!(0),
                "replied with 2 bytes and counts no tokens of them",
            ),
        ];
        for (change, expected) in cases {
            assert_eq!(completed(change).expect_err("must be refused"), expected);
        }
    }

    #[test]
    fn a_reply_that_is_longer_than_records_keep_ends_there() {
        let long = "ä".repeat(REPLY_BYTES_MAX);
        let found = completed(|v| v["choices"][0]["message"]["content"] = json!(long));
        let completion = found.expect("cut");
        assert_eq!(completion.text.len(), REPLY_BYTES_MAX);
        assert_eq!(completion.finish_reason, FinishReason::Length);
    }

    /// What vLLM gives with `return_token_ids` and `return_tokens_as_token_ids`.
    fn vllm(value: &mut Value) {
        value["prompt_token_ids"] = json!([7, 8, 9]);
        value["choices"][0]["logprobs"] = json!({ "content": [
            { "token": "token_id:5", "logprob": -0.25, "bytes": null, "top_logprobs": [
                { "token": "token_id:5", "logprob": -0.25, "bytes": null },
                { "token": "token_id:6", "logprob": -1.5, "bytes": null },
            ] },
            { "token": "token_id:2", "logprob": -4.0, "bytes": null, "top_logprobs": [
                { "token": "token_id:2", "logprob": -4.0, "bytes": null },
                { "token": "token_id:1", "logprob": -0.125, "bytes": null },
                { "token": "token_id:3", "logprob": -9999.0, "bytes": null },
            ] },
        ] });
    }

    #[test]
    fn tokens_and_scores_of_vllm_are_kept() {
        let tokens = completed(vllm).expect("a reply").tokens.expect("with tokens");
        let shown = tokens.output.iter().map(|token| {
            let top = token.top.iter().map(|score| (score.id, score.logprob_micro));
            (token.id, token.logprob_micro, top.collect())
        });
        assert_eq!(tokens.prompt, [7, 8, 9]);
        assert_eq!(
            shown.collect::<Vec<(u32, i32, Vec<_>)>>(),
            [
                (5, -250_000, vec![(5, -250_000), (6, -1_500_000)]),
                (2, -4_000_000, vec![(1, -125_000), (3, i32::MIN)]),
            ]
        );
    }

    #[test]
    fn tokens_are_not_said_where_the_sampled_distribution_is_not_known() {
        let cases: [(Asked, Option<i32>); 4] = [
            (|_| (), Some(0)),
            (|r| r.sampling.temperature_milli = 1_000, Some(-250_000)),
            (|r| r.sampling.temperature_milli = 700, None),
            (|r| r.grammar = Some("start: \"a\"".to_owned()), None),
        ];
        for (change, expected) in cases {
            let mut request = request();
            change(&mut request);
            let completion = reply(vllm).completion(&request, 64, None).expect("a reply");
            let first = completion.tokens.map(|tokens| tokens.output[0].sampled_logprob_micro);
            assert_eq!(first, expected);
        }
    }

    #[test]
    fn tokens_that_do_not_match_the_counts_are_not_said() {
        let found = completed(|value| {
            vllm(value);
            value["usage"]["completion_tokens"] = json!(3);
        });
        assert_eq!(found.expect("a reply").tokens, None);
    }

    #[test]
    fn scores_that_cannot_be_are_refused() {
        let found = completed(|value| {
            vllm(value);
            value["choices"][0]["logprobs"]["content"][0]["logprob"] = json!(0.5);
        });
        let error = found.expect_err("a probability above 1");
        assert!(error.contains("of reply token 0"), "{error}");
    }
}
