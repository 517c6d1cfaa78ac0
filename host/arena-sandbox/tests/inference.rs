//! What a guest may ask of models, within its budget; and training.

#![allow(clippy::unwrap_used, reason = "tests")]

mod harness;
mod kit;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::time::Duration;

use arena_core::config::Limits;
use arena_core::dialogue;
use arena_core::fault::{Fault, SeatError, VoidReason};
use arena_core::price::Price;
use arena_core::seat::{SampledToken, Sampling, TokenScore};
use arena_core::turn::Move;
use arena_llm::model::{
    Completion, FinishReason, LanguageModel, ModelError, ModelInfo, REPLY_BYTES_MAX, ReplyTokens,
};
use arena_llm::recorded::Recorded;
use arena_llm::request::{ChatRole, Request};
use arena_sandbox::{Grants, Sandbox, TURNED_AWAY_MAX, TrainingMode};
use harness::{Played, play, sandbox, settings};
use kit::Guest;

fn info() -> ModelInfo {
    ModelInfo {
        name: "tiny".to_owned(),
        context_tokens: 512,
        sha256: [0; 32],
        engine: "device=test".to_owned(),
    }
}

/// Answers with how many messages it was asked, or fails.
struct Counting {
    fails: bool,
}

impl LanguageModel for Counting {
    fn info(&self) -> ModelInfo {
        info()
    }

    fn count_prompt(&self, _: &Request) -> Result<Option<u32>, ModelError> {
        Ok(Some(3))
    }

    fn complete(&self, request: &Request) -> Result<Completion, ModelError> {
        if self.fails {
            return Err(ModelError::Unavailable("the server is down".to_owned()));
        }
        Ok(Completion {
            text: format!("{} messages", request.messages.len()),
            finish_reason: FinishReason::Stop,
            input_tokens: 3,
            output_tokens: 2,
            tokens: None,
        })
    }
}

/// A model whose tokens are bytes, with one mark before and one behind each message. It listens.
#[derive(Default)]
struct Spelling {
    asked: AtomicU32,
    requests: Mutex<Vec<Request>>,
}

const END: u32 = 300;

impl Spelling {
    fn mark(role: ChatRole) -> u32 {
        256 + role as u32
    }

    fn spell(text: &str) -> impl Iterator<Item = u32> {
        text.bytes().map(u32::from).chain([END])
    }

    fn prompt(request: &Request) -> Vec<u32> {
        let mut ids = Vec::new();
        for message in &request.messages {
            ids.push(Spelling::mark(message.role));
            match message.tokens.as_slice() {
                [] => ids.extend(Spelling::spell(&message.text)),
                tokens => ids.extend(tokens),
            }
        }
        ids.push(Spelling::mark(ChatRole::Assistant));
        ids
    }
}

impl LanguageModel for Spelling {
    fn info(&self) -> ModelInfo {
        info()
    }

    fn count_prompt(&self, request: &Request) -> Result<Option<u32>, ModelError> {
        Ok(Some(Spelling::prompt(request).len() as u32))
    }

    fn complete(&self, request: &Request) -> Result<Completion, ModelError> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.requests.lock().unwrap().push(request.clone());
        let prompt = Spelling::prompt(request);
        let text = format!("no {}", request.key.call_index);
        let ids: Vec<u32> = Spelling::spell(&text).take(request.max_tokens as usize).collect();
        let whole = ids.last() == Some(&END);
        let written = ids.iter().filter(|id| **id != END).map(|id| *id as u8).collect();
        let score = |id: u32| {
            let logprob_micro = -(id as i32) * 1_000;
            let top = vec![TokenScore { id, logprob_micro }];
            SampledToken { id, logprob_micro, sampled_logprob_micro: -1, top }
        };
        Ok(Completion {
            text: String::from_utf8(written).unwrap(),
            finish_reason: if whole { FinishReason::Stop } else { FinishReason::Length },
            input_tokens: prompt.len() as u32,
            output_tokens: ids.len() as u32,
            tokens: Some(ReplyTokens { prompt, output: ids.into_iter().map(score).collect() }),
        })
    }
}

fn grants(fails: bool, training: Option<TrainingMode>) -> Grants {
    Grants { models: vec![Arc::new(Counting { fails })], training }
}

fn granted(model: Arc<dyn LanguageModel>) -> Grants {
    Grants { models: vec![model], training: None }
}

fn run(limits: Limits, grants: &Grants, component: &[u8], turns: u32) -> Played {
    let sandbox = sandbox(limits);
    let agent = sandbox.load(component).unwrap();
    let first = play(&sandbox, &agent, grants, turns);
    assert_eq!(play(&sandbox, &agent, grants, turns), first, "two runs are equal");
    first
}

/// The interface, with the texts "tiny" at 3000 and "what?" at 3010.
const INFERENCE: &str = r#"
    (import "arena:negotiation/inference@0.1.0" "[static]chat.open"
      (func $open (param i32 i32 i32)))
    (import "arena:negotiation/inference@0.1.0" "[method]chat.add"
      (func $add (param i32 i32 i32 i32 i32)))
    (import "arena:negotiation/inference@0.1.0" "[method]chat.complete"
      (func $complete
        (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32)))
    (import "arena:negotiation/inference@0.1.0" "[resource-drop]chat" (func $drop (param i32)))
    (import "arena:negotiation/inference@0.1.0" "remaining" (func $remaining (param i32)))
    (import "arena:negotiation/inference@0.1.0" "models" (func $models (param i32)))
    (import "arena:negotiation/training@0.1.0" "get-mode" (func $mode (result i32)))
    (import "arena:negotiation/training@0.1.0" "weigh" (func $weigh (param i32 i32)))
    (import "arena:negotiation/training@0.1.0" "metric" (func $metric (param i32 i32 i32)))"#;

const TEXTS: &str = r#"
    (data (i32.const 3000) "tiny") (data (i32.const 3010) "what?")
    (global $chat (mut i32) (i32.const 0))
    (func $opened (result i32)
      (call $open (i32.const 3000) (i32.const 4) (i32.const 3100))
      (i32.load (i32.const 3104)))
    (func $ask
      (call $add (global.get $chat) (i32.const 1) (i32.const 3010) (i32.const 5) (i32.const 3120))
      (call $complete (global.get $chat) (i32.const 9) (i32.const 0) (i32.const 0)
        (i32.const 1000) (i32.const 0) (i32.const 0) (i32.const 0)
        (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 3140)))
    (func $say (param i32) (result i32)
      (i32.store (i32.const 1028) (local.get 0))
      (i32.const 1024))"#;

const OPEN: &str = "(global.set $chat (call $opened))";

fn asking(act: &str) -> Vec<u8> {
    Guest { imports: INFERENCE, fields: TEXTS, begin: OPEN, act, ..Guest::default() }.component()
}

fn offers(played: &Played) -> Vec<u32> {
    let cents = |action| match action {
        Move::Offer(Price(cents)) => cents,
        other => panic!("{other:?}"),
    };
    played.replies.iter().map(|reply| cents(reply.action)).collect()
}

#[test]
fn a_conversation_grows_by_what_is_added_and_answered() {
    // The offer is the length of the reply's text; the texts are "1 messages", "3 messages".
    let act = "(call $ask) (call $say (i32.load offset=12 (i32.const 3140)))";
    let played = run(Limits::default(), &grants(false, None), &asking(act), 3);
    assert_eq!(offers(&played), [10, 10, 10]);
    let calls = &played.usage.model_calls;
    let texts: Vec<&str> = calls.iter().map(|call| call.text.as_str()).collect();
    assert_eq!(texts, ["1 messages", "3 messages", "5 messages"]);
    let acts: Vec<u32> = calls.iter().map(|call| call.act_index).collect();
    assert_eq!(acts, [0, 1, 2]);
    assert_ne!(calls[0].request_sha256, calls[1].request_sha256);
    assert_eq!((calls[0].input_tokens, calls[0].output_tokens), (3, 2));
}

#[test]
fn an_unknown_model_is_a_value_for_whoever_has_no_grant() {
    // 1 is `err`, 0 the first case: the model is not supported.
    let begin = "(drop (call $opened))";
    let act = "(call $say (i32.add
        (i32.mul (i32.load8_u (i32.const 3100)) (i32.const 100))
        (i32.load8_u (i32.const 3104))))";
    let guest = Guest { imports: INFERENCE, fields: TEXTS, begin, act, ..Guest::default() };
    let played = run(Limits::default(), &Grants::default(), &guest.component(), 1);
    assert_eq!(offers(&played), [100]);
}

#[test]
fn the_budget_shrinks_and_then_turns_away_and_insisting_is_a_fault() {
    let limits = Limits { model_calls_max: 2, ..Limits::default() };
    let act = "(call $ask) (call $remaining (i32.const 3200))
        (call $say (i32.add (i32.mul (i32.load8_u (i32.const 3140)) (i32.const 100))
          (i32.load (i32.const 3200))))";
    let played = run(limits, &grants(false, None), &asking(act), 4);
    // Calls left: 1, 0; then `err` each time.
    assert_eq!(offers(&played), [1, 0, 100, 100]);
    assert_eq!(played.error, None, "being turned away once a turn is no fault");
    let act = "(loop $l (call $ask) (br $l)) (i32.const 1024)";
    let played = run(limits, &grants(false, None), &asking(act), 1);
    assert_eq!(played.error, Some(SeatError::Fault(Fault::ModelBudget)));
    assert_eq!(played.usage.model_calls.len(), 2);
}

#[test]
fn a_provider_that_fails_voids_the_match() {
    let act = "(call $ask) (i32.const 1024)";
    let played = run(Limits::default(), &grants(true, None), &asking(act), 1);
    let detail = "model `tiny`: the server is down".to_owned();
    let error = SeatError::Void { reason: VoidReason::ModelProvider, detail };
    assert_eq!(played.error, Some(error));
}

#[test]
fn a_request_out_of_bounds_is_a_value() {
    // No tokens at all: `err`, the second case.
    let act = "
        (call $complete (global.get $chat) (i32.const 0) (i32.const 0) (i32.const 0)
          (i32.const 1000) (i32.const 0) (i32.const 0) (i32.const 0)
          (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 3140))
        (call $say (i32.add (i32.mul (i32.load8_u (i32.const 3140)) (i32.const 100))
          (i32.load8_u (i32.const 3144))))";
    let played = run(Limits::default(), &grants(false, None), &asking(act), 1);
    assert_eq!(offers(&played), [101]);
    assert!(played.usage.model_calls.is_empty());
}

#[test]
fn open_conversations_are_limited_by_handles_and_dropped_ones_are_not_counted() {
    let limits = Limits { handles_max: 8, ..Limits::default() };
    let keep = "(drop (call $opened)) (i32.const 1024)";
    let played = run(limits, &grants(false, None), &asking(keep), 20);
    // One was opened in `begin`.
    assert_eq!(played.replies.len(), 7);
    assert_eq!(played.error, Some(SeatError::Fault(Fault::Protocol)));
    let give_back = "(call $drop (call $opened)) (i32.const 1024)";
    let played = run(limits, &grants(false, None), &asking(give_back), 20);
    assert_eq!((played.replies.len(), played.error), (20, None));
}

#[test]
fn using_a_conversation_after_dropping_it_is_a_protocol_fault() {
    let act = "(call $drop (global.get $chat)) (call $ask) (i32.const 1024)";
    let played = run(Limits::default(), &grants(false, None), &asking(act), 1);
    assert_eq!(played.error, Some(SeatError::Fault(Fault::Protocol)));
}

#[test]
fn no_model_is_asked_after_the_match() {
    let finish = "(call $ask)";
    let guest =
        Guest { imports: INFERENCE, fields: TEXTS, begin: OPEN, finish, ..Guest::default() };
    let played = run(Limits::default(), &grants(true, None), &guest.component(), 1);
    assert_eq!(played.error, None);
    assert!(played.usage.model_calls.is_empty());
}

#[test]
fn training_has_effect_only_where_it_is_granted() {
    let act = "(call $ask) (call $weigh (i32.const 0) (i32.const 250))
        (call $weigh (i32.const 99) (i32.const 1))
        (call $metric (i32.const 3010) (i32.const 5) (i32.const -7))
        (call $say (call $mode))";
    let component = asking(act);
    let metric = vec![("what?".to_owned(), -7)];
    for (mode, shown, weight, metrics) in [
        (None, 0, None, vec![]),
        (Some(TrainingMode::Evaluate), 0, None, metric.clone()),
        (Some(TrainingMode::Train), 1, Some(250), metric),
    ] {
        let played = run(Limits::default(), &grants(false, mode), &component, 1);
        assert_eq!(offers(&played), [shown], "{mode:?}");
        assert_eq!(played.usage.model_calls[0].weight_milli, weight, "{mode:?}");
        assert_eq!(played.usage.metrics, metrics, "{mode:?}");
    }
}

#[test]
fn a_models_own_words_stay_the_tokens_that_it_sampled() {
    let model = Arc::new(Spelling::default());
    let component = asking("(call $ask) (i32.const 1024)");
    let sandbox = sandbox(Limits::default());
    let agent = sandbox.load(&component).unwrap();
    let played = play(&sandbox, &agent, &granted(model.clone()), 3);
    let calls = &played.usage.model_calls;
    let requests = model.requests.lock().unwrap();
    let own: Vec<&[u32]> = requests[2]
        .messages
        .iter()
        .filter(|message| message.role == ChatRole::Assistant)
        .map(|message| message.tokens.as_slice())
        .collect();
    let spelled = |text| Spelling::spell(text).collect::<Vec<u32>>();
    assert_eq!(own, [spelled("no 0"), spelled("no 1")]);
    let user = requests[2].messages.iter().filter(|message| message.role == ChatRole::User);
    assert!(user.into_iter().all(|message| message.tokens.is_empty()));

    let reused: Vec<u32> = calls.iter().map(|call| call.tokens.as_ref().unwrap().reused).collect();
    // Each prompt begins with all that was read and written before.
    let so_far = |call: usize| calls[call].input_tokens + calls[call].output_tokens;
    assert_eq!(reused, [0, so_far(0), so_far(1)]);
    for (number, request) in requests.iter().enumerate() {
        assert_eq!(dialogue::prompt(calls, number), Some(Spelling::prompt(request)));
    }
}

#[test]
fn every_way_of_sampling_and_a_grammar_reach_the_model_and_the_record() {
    let model = Arc::new(Spelling::default());
    let act = "
        (call $add (global.get $chat) (i32.const 1) (i32.const 3010) (i32.const 5) (i32.const 3120))
        (call $complete (global.get $chat) (i32.const 9) (i32.const 700) (i32.const 40)
          (i32.const 950) (i32.const 50) (i32.const 0) (i32.const 0)
          (i32.const 1) (i32.const 3010) (i32.const 4) (i32.const 3140))
        (i32.const 1024)";
    let sandbox = sandbox(Limits::default());
    let agent = sandbox.load(&asking(act)).unwrap();
    let played = play(&sandbox, &agent, &granted(model.clone()), 1);
    let sampling =
        Sampling { temperature_milli: 700, top_k: 40, top_p_milli: 950, min_p_milli: 50 };
    let requests = model.requests.lock().unwrap();
    assert_eq!(requests[0].sampling, sampling);
    assert_eq!(requests[0].grammar.as_deref(), Some("what"));
    let call = &played.usage.model_calls[0];
    assert_eq!((call.sampling, call.is_grammar_bound), (sampling, true));
    assert_eq!(call.request_sha256, requests[0].sha256());
}

/// Plays with a model, then again from the record alone, and compares. Returns the match, and how
/// often the model was asked.
fn play_twice(limits: Limits, component: &[u8], turns: u32) -> (Played, u32) {
    let sandbox = sandbox(limits);
    let agent = sandbox.load(component).unwrap();
    let model = Arc::new(Spelling::default());
    let played = play(&sandbox, &agent, &granted(model.clone()), turns);
    let calls = played.usage.model_calls.clone();
    let recorded = Arc::new(Recorded::new(info(), calls.into()));
    assert_eq!(play(&sandbox, &agent, &granted(recorded), turns), played);
    (played, model.asked.load(Ordering::Relaxed))
}

#[test]
fn a_match_comes_out_the_same_from_its_record_with_no_model_and_no_tokenizer() {
    let act = "(call $ask) (call $say (i32.load offset=12 (i32.const 3140)))";
    let (played, asked) = play_twice(Limits::default(), &asking(act), 9);
    assert_eq!(played.usage.model_calls.len(), 9);
    assert_eq!(asked, 9);
}

/// Asks once each turn; the offer is whether it was refused, times 100, and as what.
const SAY_REFUSAL: &str = "(call $ask)
    (call $say (i32.add (i32.mul (i32.load8_u (i32.const 3140)) (i32.const 100))
      (i32.mul (i32.load8_u (i32.const 3140)) (i32.load8_u (i32.const 3144)))))";

#[test]
fn a_prompt_beyond_the_budget_is_refused_unasked_and_again_from_the_record() {
    // Prompts of 8, 21, 34 tokens: a mark, five bytes and an end each, and what was replied.
    let limits = Limits { model_input_tokens_max: 40, ..Limits::default() };
    let (played, asked) = play_twice(limits, &asking(SAY_REFUSAL), 4);
    // Refused as input that is invalid: a shorter conversation would still be answered.
    assert_eq!(offers(&played), [0, 0, 101, 101]);
    assert_eq!(asked, 2, "the model was asked beyond the budget");
}

#[test]
fn a_prompt_beyond_the_context_is_refused_unasked_and_again_from_the_record() {
    let (played, asked) = play_twice(Limits::default(), &asking(SAY_REFUSAL), 45);
    let answered = played.usage.model_calls.len();
    assert!(offers(&played)[answered..].iter().all(|offer| *offer == 101));
    assert!((30..45).contains(&answered), "{answered} calls");
    assert_eq!(asked as usize, answered);
}

#[test]
fn who_insists_on_a_prompt_that_is_too_long_is_at_fault_and_again_from_the_record() {
    let limits = Limits { model_input_tokens_max: 10, ..Limits::default() };
    let act = "(loop $l (call $ask) (br $l)) (i32.const 1024)";
    let (played, asked) = play_twice(limits, &asking(act), 1);
    assert_eq!(played.error, Some(SeatError::Fault(Fault::ModelBudget)));
    assert_eq!(asked, 1);
}

#[test]
fn a_turns_budget_comes_again_in_the_next_turn() {
    let limits =
        Limits { model_calls_turn_max: 2, model_output_tokens_turn_max: 8, ..Limits::default() };
    // Two calls a turn: the first writes 5 tokens, which leaves 3 to the second.
    let act = "(call $ask) (call $ask) (call $ask) (call $say (i32.load8_u (i32.const 3144)))";
    let (played, asked) = play_twice(limits, &asking(act), 3);
    // The third is refused for a spent budget, case 2.
    assert_eq!(offers(&played), [2, 2, 2]);
    assert_eq!(asked, 6);
    let calls = &played.usage.model_calls;
    let found: Vec<(u32, u32, u8)> =
        calls.iter().map(|call| (call.act_index, call.output_tokens, call.finish_reason)).collect();
    assert_eq!(found, [(0, 5, 0), (0, 3, 2), (1, 5, 0), (1, 3, 2), (2, 5, 0), (2, 3, 2)]);
}

#[test]
fn what_is_used_before_the_first_turn_is_of_the_first_turn() {
    let limits = Limits { model_calls_turn_max: 2, ..Limits::default() };
    let begin = "(global.set $chat (call $opened)) (call $ask)";
    let act = "(call $ask) (call $ask) (call $say (i32.load8_u (i32.const 3140)))";
    let guest = Guest { imports: INFERENCE, fields: TEXTS, begin, act, ..Guest::default() };
    let (played, _) = play_twice(limits, &guest.component(), 2);
    let acts: Vec<u32> = played.usage.model_calls.iter().map(|call| call.act_index).collect();
    assert_eq!((offers(&played), acts), (vec![1, 0], vec![0, 0, 1, 1]));
}

#[test]
fn being_turned_away_once_in_each_turn_is_no_fault() {
    let limits = Limits { model_calls_turn_max: 1, ..Limits::default() };
    let act = "(call $ask) (call $ask) (call $say (i32.load8_u (i32.const 3140)))";
    let (played, _) = play_twice(limits, &asking(act), TURNED_AWAY_MAX + 4);
    assert_eq!(played.error, None);
    assert!(offers(&played).iter().all(|offer| *offer == 1));
}

#[test]
fn a_guest_that_cannot_pay_for_a_reply_is_at_fault_and_again_from_the_record() {
    let component = asking("(call $ask) (i32.const 1024)");
    let enough = play_twice(Limits::default(), &component, 1).0.usage.fuel_per_act[0];
    let faults = |fuel: u64| {
        let limits = Limits { fuel_turn_max: fuel, ..Limits::default() };
        let (played, _) = play_twice(limits, &component, 1);
        (played.error, played.usage.model_calls.len())
    };
    assert_eq!(faults(enough), (None, 1));
    // The least fuel with which the model is asked at all.
    let (mut too_little, mut least) = (1, enough);
    while least - too_little > 1 {
        let middle = too_little + (least - too_little) / 2;
        match faults(middle).1 {
            0 => too_little = middle,
            _ => least = middle,
        }
    }
    assert_eq!(faults(least), (Some(SeatError::Fault(Fault::Fuel)), 1));
}

/// Replies what it is told to, after a while.
struct Told {
    reply: Completion,
    after: Duration,
}

impl LanguageModel for Told {
    fn info(&self) -> ModelInfo {
        info()
    }

    fn count_prompt(&self, _: &Request) -> Result<Option<u32>, ModelError> {
        Ok(None)
    }

    fn complete(&self, _: &Request) -> Result<Completion, ModelError> {
        std::thread::sleep(self.after);
        Ok(self.reply.clone())
    }
}

fn plain() -> Completion {
    Completion {
        text: "well".to_owned(),
        finish_reason: FinishReason::Stop,
        input_tokens: 9,
        output_tokens: 1,
        tokens: None,
    }
}

#[test]
fn a_reply_that_cannot_be_one_voids_the_match_and_never_reaches_the_record() {
    let lies = [
        Completion { output_tokens: 10, ..plain() },
        Completion { text: "x".repeat(REPLY_BYTES_MAX + 1), ..plain() },
        Completion { output_tokens: 0, ..plain() },
        Completion { tokens: Some(ReplyTokens { prompt: vec![1], output: vec![] }), ..plain() },
    ];
    for reply in lies {
        let model = Arc::new(Told { reply, after: Duration::ZERO });
        let played =
            run(Limits::default(), &granted(model), &asking("(call $ask) (i32.const 1024)"), 1);
        let Some(SeatError::Void { reason: VoidReason::ModelProvider, .. }) = played.error else {
            panic!("{:?}", played.error);
        };
        assert_eq!(played.usage.model_calls, []);
    }
}

#[test]
fn waiting_for_a_model_is_not_the_guests_time() {
    // The model takes several times as long as a guest may.
    let model = Arc::new(Told { reply: plain(), after: Duration::from_millis(600) });
    let settings = arena_sandbox::SandboxSettings {
        watchdog: Duration::from_millis(100),
        ..settings(Limits::default())
    };
    let sandbox = Sandbox::new(&settings).unwrap();
    let agent = sandbox.load(&asking("(call $ask) (call $ask) (i32.const 1024)")).unwrap();
    let played = play(&sandbox, &agent, &granted(model), 1);
    assert_eq!((played.error, played.usage.model_calls.len()), (None, 2));
}

/// Answers nobody until 64 wait.
struct Batch(Barrier);

impl LanguageModel for Batch {
    fn info(&self) -> ModelInfo {
        info()
    }

    fn count_prompt(&self, _: &Request) -> Result<Option<u32>, ModelError> {
        Ok(None)
    }

    fn complete(&self, _: &Request) -> Result<Completion, ModelError> {
        self.0.wait();
        Ok(plain())
    }
}

#[test]
fn a_sandbox_has_room_for_sixty_four_matches_that_wait_for_one_model_together() {
    const MATCHES: usize = 64;
    let settings = arena_sandbox::SandboxSettings::new(
        Limits::default(),
        2 * MATCHES as u32,
        harness::worker(),
    );
    let sandbox = Sandbox::new(&settings).unwrap();
    let agent = sandbox.load(&asking("(call $ask) (i32.const 1024)")).unwrap();
    let asking = granted(Arc::new(Batch(Barrier::new(MATCHES))));
    let silent = Grants::default();
    std::thread::scope(|scope| {
        let play_one = || {
            // The opponent's seat is there while the other one waits.
            let opponent = sandbox.seat(&agent, &silent, 8).unwrap();
            let played = play(&sandbox, &agent, &asking, 2);
            drop(opponent);
            played
        };
        let matches: Vec<_> = (0..MATCHES).map(|_| scope.spawn(play_one)).collect();
        for played in matches {
            let played = played.join().unwrap();
            assert_eq!((played.error, played.usage.model_calls.len()), (None, 2));
        }
    });
}
