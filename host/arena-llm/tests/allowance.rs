//! What a seat may spend, with models that count, cannot count, fail and lie.

use std::sync::atomic::{AtomicU32, Ordering};

use arena_core::config::Limits;
use arena_core::seat::{SampledToken, Sampling, TokenScore};
use arena_llm::allowance::{Allowance, Budget, FRAME_TOKENS, Refusal};
use arena_llm::model::{
    Completion, FinishReason, LanguageModel, ModelError, ModelInfo, REPLY_BYTES_MAX, ReplyTokens,
};
use arena_llm::request::{CallKey, ChatRole, Message, Request};

/// Replies what it is told to, and counts how often it was asked.
struct Told {
    counts: Result<Option<u32>, ModelError>,
    replies: Result<Completion, ModelError>,
    context_tokens: u32,
    asked: AtomicU32,
}

impl LanguageModel for Told {
    fn info(&self) -> ModelInfo {
        ModelInfo {
            name: "told".to_owned(),
            context_tokens: self.context_tokens,
            sha256: [0; 32],
            engine: String::new(),
        }
    }

    fn count_prompt(&self, _: &Request) -> Result<Option<u32>, ModelError> {
        self.counts.clone()
    }

    fn complete(&self, _: &Request) -> Result<Completion, ModelError> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.replies.clone()
    }
}

fn told(counts: Result<Option<u32>, ModelError>, replies: Result<Completion, ModelError>) -> Told {
    Told { counts, replies, context_tokens: 1_000, asked: AtomicU32::new(0) }
}

fn completion(input_tokens: u32, output_tokens: u32) -> Completion {
    let finish_reason = FinishReason::Length;
    let text = "well".to_owned();
    Completion { text, finish_reason, input_tokens, output_tokens, tokens: None }
}

/// A model that counts its prompts.
fn counting(input_tokens: u32, output_tokens: u32) -> Told {
    told(Ok(Some(input_tokens)), Ok(completion(input_tokens, output_tokens)))
}

fn request(max_tokens: u32) -> Request {
    Request {
        model: "told".to_owned(),
        messages: vec![Message { role: ChatRole::User, text: "hello".to_owned(), tokens: vec![] }],
        max_tokens,
        sampling: Sampling::GREEDY,
        stop: vec![],
        grammar: None,
        key: CallKey { seat_seed: 0, call_index: 0 },
    }
}

/// A request for 10 tokens, whose prompt takes at most this many.
const BOUND: u32 = 5 + 2 * FRAME_TOKENS;

fn allowance(calls: u32, input_tokens: u32, output_tokens: u32) -> Allowance {
    Allowance::new(&Limits {
        model_calls_max: calls,
        model_input_tokens_max: input_tokens,
        model_output_tokens_max: output_tokens,
        ..Limits::default()
    })
}

#[test]
fn a_reply_is_charged_to_all_three_budgets() {
    let mut allowance = allowance(3, 100, 50);
    let answer = allowance.ask(&counting(30, 10), request(10)).expect("something is left");
    assert_eq!(answer.completion.finish_reason, FinishReason::Length);
    assert_eq!(answer.request, request(10));
    let left = Budget { calls: 2, input_tokens: 70, output_tokens: 40 };
    assert_eq!(allowance.remaining(), left);
}

#[test]
fn max_tokens_is_cut_to_what_is_left_and_the_reply_says_budget() {
    let mut allowance = allowance(3, 100, 4);
    let answer = allowance.ask(&counting(1, 4), request(10)).expect("something is left");
    assert_eq!(answer.request.max_tokens, 4);
    assert_eq!(answer.completion.finish_reason, FinishReason::Budget);
    assert_eq!(allowance.ask(&counting(1, 1), request(1)), Err(Refusal::Exhausted));
}

#[test]
fn a_spent_budget_refuses_before_the_model_is_called() {
    for mut spent in [allowance(0, 9, 9), allowance(9, 0, 9), allowance(9, 9, 0)] {
        let model = counting(1, 1);
        assert_eq!(spent.ask(&model, request(1)), Err(Refusal::Exhausted));
        assert_eq!(model.asked.into_inner(), 0);
    }
}

#[test]
fn a_prompt_beyond_the_budget_is_refused_before_the_model_is_called() {
    let mut allowance = allowance(3, 30, 50);
    let model = counting(31, 1);
    assert_eq!(allowance.ask(&model, request(10)), Err(Refusal::Prompt));
    assert_eq!(model.asked.into_inner(), 0);
    allowance.ask(&counting(30, 1), request(10)).expect("it fits exactly");
    assert_eq!(allowance.remaining().input_tokens, 0);
}

#[test]
fn a_prompt_that_fills_the_context_is_refused_before_the_model_is_called() {
    let mut allowance = allowance(3, 9_000, 50);
    let model = counting(1_000, 1);
    assert_eq!(allowance.ask(&model, request(10)), Err(Refusal::Prompt));
    assert_eq!(model.asked.into_inner(), 0);
    allowance.ask(&counting(999, 1), request(10)).expect("there is room for a token");
}

#[test]
fn a_turn_has_a_budget_of_its_own_which_comes_again() {
    let mut allowance = Allowance::new(&Limits {
        model_calls_max: 3,
        model_calls_turn_max: 2,
        model_output_tokens_max: 30,
        model_output_tokens_turn_max: 12,
        ..Limits::default()
    });
    let model = counting(1, 8);
    allowance.ask(&model, request(8)).expect("something is left");
    assert_eq!(allowance.remaining().calls, 1);
    assert_eq!(allowance.remaining().output_tokens, 4);
    let answer = allowance.ask(&counting(1, 4), request(8)).expect("something is left");
    assert_eq!(answer.completion.finish_reason, FinishReason::Budget);
    assert_eq!(allowance.ask(&model, request(8)), Err(Refusal::Exhausted));
    allowance.begin_turn();
    assert_eq!(allowance.remaining().calls, 1, "the match has one left");
    assert_eq!(allowance.remaining().output_tokens, 12);
    allowance.ask(&model, request(8)).expect("a turn's budget came again");
    allowance.begin_turn();
    assert_eq!(allowance.ask(&model, request(8)), Err(Refusal::Exhausted));
}

#[test]
fn a_model_that_cannot_count_is_held_to_the_bytes_of_the_prompt() {
    let model = told(Ok(None), Ok(completion(3, 1)));
    let mut tight = allowance(3, BOUND - 1, 50);
    assert_eq!(tight.ask(&model, request(10)), Err(Refusal::Prompt));
    let mut enough = allowance(3, BOUND, 50);
    enough.ask(&model, request(10)).expect("it fits");
    assert_eq!(enough.remaining().input_tokens, BOUND - 3, "what it reports is charged");
    assert_eq!(model.asked.into_inner(), 1);
}

#[test]
fn a_count_that_the_prompt_cannot_have_is_the_models_failure_and_not_paid() {
    for found in [BOUND + 1, 999, 1_000] {
        let model = told(Ok(None), Ok(completion(found, 1)));
        let mut allowance = allowance(3, 9_000, 50);
        let before = allowance.remaining();
        let refusal = allowance.ask(&model, request(10)).expect_err("it cannot be true");
        assert!(matches!(refusal, Refusal::Failed(_)), "{found}: {refusal:?}");
        assert_eq!(allowance.remaining(), before);
    }
}

#[test]
fn a_request_out_of_bounds_is_refused_with_its_reason() {
    let mut allowance = allowance(3, 100, 50);
    let reason = "`max-tokens` is 0 tokens, allowed are 1 to 32768".to_owned();
    assert_eq!(allowance.ask(&counting(1, 1), request(0)), Err(Refusal::Invalid(reason)));
}

#[test]
fn a_models_own_refusal_reads_as_any_other_of_the_prompt() {
    let invalid = || ModelError::InvalidInput("words of its own".to_owned());
    let mut allowance = allowance(3, 100, 50);
    let counting = told(Err(invalid()), Ok(completion(1, 1)));
    assert_eq!(allowance.ask(&counting, request(1)), Err(Refusal::Prompt));
    let completing = told(Ok(Some(1)), Err(invalid()));
    assert_eq!(allowance.ask(&completing, request(1)), Err(Refusal::Prompt));
    assert_eq!(allowance.remaining().calls, 3);
}

#[test]
fn a_failing_model_is_not_paid_and_its_failure_is_not_the_seats() {
    let mut allowance = allowance(3, 100, 50);
    let down = ModelError::Unavailable("no answer within `60` seconds".to_owned());
    let slow = "no answer within `60` seconds".to_owned();
    let counting = told(Err(down.clone()), Ok(completion(1, 1)));
    assert_eq!(allowance.ask(&counting, request(1)), Err(Refusal::Failed(slow.clone())));
    let completing = told(Ok(Some(1)), Err(down));
    assert_eq!(allowance.ask(&completing, request(1)), Err(Refusal::Failed(slow)));
    let unknown = told(Ok(Some(1)), Err(ModelError::NotSupported));
    let reason = "model is not supported".to_owned();
    assert_eq!(allowance.ask(&unknown, request(1)), Err(Refusal::Failed(reason)));
    assert_eq!(allowance.remaining().calls, 3);
}

fn token(id: u32, logprob_micro: i32) -> SampledToken {
    let top = vec![TokenScore { id, logprob_micro }];
    SampledToken { id, logprob_micro, sampled_logprob_micro: -1, top }
}

#[test]
fn a_reply_that_cannot_be_one_fails_the_model() {
    type Lie = fn(&mut Completion);
    let lies: [(Lie, &str); 9] = [
        (|c| c.output_tokens = 11, "replied with 11 tokens, was asked for at most 10"),
        (
            |c| c.text = "x".repeat(REPLY_BYTES_MAX + 1),
            "replied with 16385 bytes, at most 16384 are kept",
        ),
        (|c| c.output_tokens = 0, "replied with 4 bytes and counts no tokens of them"),
        (|c| c.input_tokens = 0, "counts no tokens of the prompt"),
        (|c| c.input_tokens = 4, "counts 4 tokens of its prompt and lists 3"),
        (
            |c| c.finish_reason = FinishReason::Budget,
            "gives a budget that it cannot know as the end of its reply",
        ),
        (
            |c| c.tokens.as_mut().expect("tokens").output.truncate(1),
            "counts 2 tokens of its reply and lists 1",
        ),
        (
            |c| c.tokens.as_mut().expect("tokens").output[1] = token(5, 1),
            "of reply token 1, the likeliest one's logarithm in millionths is `1`, at most `0`",
        ),
        (
            |c| {
                c.input_tokens = 2;
                c.tokens.as_mut().expect("tokens").prompt.truncate(2);
            },
            "counted 3 tokens of a prompt and then reported 2 of it",
        ),
    ];
    let tokens =
        ReplyTokens { prompt: vec![1, 2, 3], output: vec![token(4, -7), token(5, -900_000)] };
    let honest = Completion { tokens: Some(tokens), ..completion(3, 2) };
    let mut allowance = allowance(3, 100, 50);
    for (lie, reason) in lies {
        let mut reply = honest.clone();
        lie(&mut reply);
        let failed = Err(Refusal::Failed(reason.to_owned()));
        assert_eq!(allowance.ask(&told(Ok(Some(3)), Ok(reply)), request(10)), failed);
    }
    assert_eq!(allowance.remaining().calls, 3, "nothing was paid");
    let answer = allowance.ask(&told(Ok(Some(3)), Ok(honest.clone())), request(10));
    assert_eq!(answer.map(|answer| answer.completion), Ok(honest));
}

#[test]
fn a_reply_without_text_may_have_no_tokens() {
    let blank = Completion { text: " \n".to_owned(), ..completion(3, 0) };
    let mut allowance = allowance(1, 100, 50);
    assert!(allowance.ask(&told(Ok(Some(3)), Ok(blank)), request(10)).is_ok());
}

#[test]
fn the_budget_of_a_seat_comes_from_the_limits() {
    let budget = Budget { calls: 64, input_tokens: 100_000, output_tokens: 10_000 };
    assert_eq!(Allowance::new(&Limits::default()).remaining(), budget);
}
