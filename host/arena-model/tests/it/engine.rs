//! A reply depends on the request and the model alone.

use std::sync::{Arc, Mutex};

use arena_core::seat::{SampledToken, Sampling};
use arena_kernels::isa::Isa;
use arena_llm::model::{Completion, FinishReason, LanguageModel, ModelError};
use arena_llm::request::{ChatRole, Message, Request};
use arena_model::engine::{EngineOptions, ScoreRequest};
use arena_weights::adapter::Adapter;
use arena_weights::weights::Weights;

use crate::fixture::{
    PLAIN, Setup, TINY, at_once, engine, executor, message, options, path, request, start, weights,
};

/// Requests of several lengths, some with a common beginning, with every kind of sampling.
fn requests(count: u32) -> Vec<Request> {
    let text = "I offer $12.50 for the hose. It is used, and the list price is $20.";
    let samplings = [
        PLAIN,
        Sampling::GREEDY,
        Sampling { temperature_milli: 800, top_k: 20, ..PLAIN },
        Sampling { temperature_milli: 1_300, top_p_milli: 900, ..PLAIN },
        Sampling { min_p_milli: 100, ..PLAIN },
    ];
    let of = |index: u32| {
        let cut = text.floor_char_boundary((index as usize * 13) % text.len());
        Request {
            sampling: samplings[index as usize % samplings.len()],
            ..request(&text[..cut], 4 + index % 24, index)
        }
    };
    (0..count).map(of).collect()
}

fn completed(replies: Vec<Result<Completion, ModelError>>) -> Vec<Completion> {
    replies.into_iter().map(|reply| reply.expect("the request is sound")).collect()
}

fn one_by_one(name: &str, setup: Setup, requests: &[Request]) -> Vec<Completion> {
    let engine = engine(name, setup);
    completed(requests.iter().map(|request| engine.complete(request)).collect())
}

#[test]
fn a_reply_is_the_same_alone_in_any_batch_on_any_threads_and_in_any_chunks() {
    for name in TINY {
        let requests = requests(12);
        let expected = one_by_one(name, Setup::default(), &requests);
        let base = Setup::default();
        let setups = [
            Setup { threads: 2, ..base },
            Setup { threads: 3, step_tokens: 80, ..base },
            Setup { slots: 3, step_tokens: 19, ..base },
            Setup { isa: Isa::Portable, slots: 1, step_tokens: 17, ..base },
            // One context and one block: nearly every step preempts or evicts.
            Setup { blocks: 17, slots: 12, step_tokens: 64, threads: 2, ..base },
        ];
        for setup in setups {
            let engine = engine(name, setup);
            // The second time, prompts are in the cache.
            for turn in 0..2 {
                let replies = completed(at_once(&engine, &requests));
                assert_eq!(replies, expected, "{name} {setup:?} turn {turn}");
            }
        }
    }
}

#[test]
fn sixty_four_requests_end_in_a_cache_of_hardly_more_than_one_context() {
    let setup = Setup { blocks: 17, threads: 2, ..Setup::default() };
    let requests = requests(64);
    let engine = engine("tiny-llama", setup);
    let replies = completed(at_once(&engine, &requests));
    let statistics = engine.statistics();
    assert_eq!(statistics.blocks, 17);
    let roomy = Setup { blocks: 4_096, ..Setup::default() };
    assert_eq!(replies, one_by_one("tiny-llama", roomy, &requests));
}

#[test]
fn long_replies_that_outgrow_the_cache_are_preempted_and_stay_the_same() {
    let setup = Setup { blocks: 17, threads: 2, slots: 8, ..Setup::default() };
    let requests: Vec<Request> = (0..8).map(|index| request("Go on.", 120, index)).collect();
    let engine = engine("tiny-qwen3", setup);
    let replies = completed(at_once(&engine, &requests));
    assert!(engine.statistics().preemptions > 0, "{:?}", engine.statistics());
    assert_eq!(replies, one_by_one("tiny-qwen3", Setup::default(), &requests));
}

/// A dialogue in which each side's words follow the other's.
fn dialogue(engine: &dyn LanguageModel, with_tokens: bool) -> Vec<Completion> {
    let mut asked = request("I offer $12.", 20, 0);
    let mut replies = Vec::new();
    for turn in 1..4 {
        let reply = engine.complete(&asked).expect("the request is sound");
        let ids = reply.tokens.as_ref().map(|tokens| &tokens.output[..]).unwrap_or_default();
        let tokens = ids.iter().filter(|_| with_tokens).map(|token| token.id).collect();
        let text = reply.text.clone();
        asked.messages.push(Message { role: ChatRole::Assistant, text, tokens });
        asked.messages.push(message(ChatRole::User, "Then $13."));
        asked.key.call_index = turn;
        replies.push(reply);
    }
    replies
}

#[test]
fn a_growing_dialogue_is_a_true_prefix_and_is_not_computed_again() {
    let engine = engine("tiny-llama", Setup::default());
    let replies = dialogue(&*engine, true);
    for pair in replies.windows(2) {
        let [before, after] = pair else { unreachable!("windows of two") };
        let tokens = |reply: &Completion| reply.tokens.clone().expect("the engine says them");
        let (before, after) = (tokens(before), tokens(after));
        let output = before.output.iter().map(|token| token.id);
        let whole: Vec<u32> = before.prompt.iter().copied().chain(output).collect();
        let shared = whole.iter().zip(&after.prompt).take_while(|(a, b)| a == b).count();
        assert_eq!(shared, whole.len(), "a reply's tokens are not made anew");
    }
    let statistics = engine.statistics();
    let last = replies.last().expect("there were replies");
    // All but the last prompt's new message was found, up to the last token of each reply.
    let reused_least = u64::from(last.input_tokens) - 40;
    assert!(statistics.reused_tokens >= reused_least, "{statistics:?}");
}

#[test]
fn a_prompt_is_counted_as_it_is_read() {
    let engine = engine("tiny-qwen3", Setup::default());
    let request = request("What do you pay?", 1, 0);
    let counted = engine.count_prompt(&request).expect("the request is sound");
    let reply = engine.complete(&request).expect("the request is sound");
    assert_eq!(counted, Some(reply.input_tokens));
    assert_eq!(reply.output_tokens, 1);
    assert_eq!(reply.finish_reason, FinishReason::Length);
}

#[test]
fn scoring_says_what_sampling_said() {
    let grammar = r#"start: /[a-z ]{3,12}/ "." "#;
    for name in TINY {
        let engine = engine(name, Setup { step_tokens: 82, ..Setup::default() });
        let mut all = requests(10);
        all[1].grammar = Some(grammar.to_owned());
        all[5].grammar = Some(grammar.to_owned());
        for request in all {
            let reply = engine.complete(&request).expect("the request is sound");
            let tokens = reply.tokens.expect("the engine says them");
            let asked = ScoreRequest {
                prompt: tokens.prompt,
                output: tokens.output.iter().map(|token| token.id).collect(),
                sampling: request.sampling,
                grammar: request.grammar,
            };
            assert_eq!(engine.score(&asked), Ok(tokens.output), "{name}");
        }
    }
}

#[test]
fn scoring_a_token_that_cannot_be_sampled_says_so() {
    let engine = engine("tiny-llama", Setup::default());
    let sampling = Sampling { top_k: 1, ..PLAIN };
    let asked = ScoreRequest { prompt: vec![5], output: vec![5, 6, 7], sampling, grammar: None };
    let scores = engine.score(&asked).expect("the request is sound");
    let impossible = |token: &SampledToken| token.sampled_logprob_micro == i32::MIN;
    assert!(scores.iter().any(impossible), "{scores:?}");
    assert!(scores.iter().all(|token| token.logprob_micro > i32::MIN && token.top.len() == 5));
}

#[test]
fn a_grammar_holds_the_reply_and_ends_it() {
    let engine = engine("tiny-llama", Setup::default());
    let offer = |call_index: u32| Request {
        grammar: Some(r#"start: "OFFER $" /[1-9][0-9]{0,2}/"#.to_owned()),
        ..request("Name a price.", 64, call_index)
    };
    let requests: Vec<Request> = (0..12).map(offer).collect();
    for reply in completed(at_once(&engine, &requests)) {
        let price = reply.text.strip_prefix("OFFER $").expect("the grammar wants it");
        let price: u32 = price.parse().expect("a number");
        assert!((1..=999).contains(&price), "{price}");
        assert_eq!(reply.finish_reason, FinishReason::Stop);
        let last = reply.tokens.expect("the engine says them").output.pop().expect("an end");
        assert_eq!(last.id, 299, "the end of the turn is a token of the reply");
    }
    let wrong = Request { grammar: Some("start: /(/".to_owned()), ..offer(0) };
    let refused = engine.complete(&wrong);
    assert!(matches!(refused, Err(ModelError::InvalidInput(_))), "{refused:?}");
    // Whatever was refused, the engine goes on.
    assert!(engine.complete(&offer(1)).is_ok());
}

#[test]
fn a_stop_text_ends_the_reply_and_is_left_out_of_it() {
    let engine = engine("tiny-llama", Setup::default());
    let free = engine.complete(&request("Go on.", 60, 3)).expect("the request is sound");
    let letters: Vec<char> = free.text.chars().collect();
    let stop: String = letters[letters.len() / 2..].iter().take(2).collect();
    let stopped = Request { stop: vec![stop.clone()], ..request("Go on.", 60, 3) };
    let reply = engine.complete(&stopped).expect("the request is sound");
    assert_eq!(reply.finish_reason, FinishReason::Stop);
    assert_eq!(reply.text, free.text[..free.text.find(&stop).expect("it is there")]);
    let (free, reply) = (free.tokens.expect("said"), reply.tokens.expect("said"));
    assert_eq!(reply.output, free.output[..reply.output.len()]);
}

#[test]
fn limits_are_told_apart() {
    let engine = engine("tiny-llama", Setup::default());
    let invalid = |request: &Request| match engine.complete(request) {
        Err(ModelError::InvalidInput(detail)) => detail,
        other => panic!("not refused: {other:?}"),
    };
    let other = Request { model: "large".to_owned(), ..request("x", 1, 0) };
    assert_eq!(engine.complete(&other), Err(ModelError::NotSupported));
    let long = request(&"word ".repeat(400), 8, 0);
    assert!(invalid(&long).ends_with("the context has 256"), "{}", invalid(&long));
    let mut forged = request("x", 1, 0);
    forged.messages[0].tokens = vec![303];
    assert_eq!(invalid(&forged), "token `303` is not one of the model's 300");
    // A reply takes what is left of the context.
    let most = engine.complete(&request("Go on.", 32_768, 4)).expect("the request is sound");
    assert!(most.input_tokens + most.output_tokens <= 256);
}

#[test]
fn a_listener_hears_the_replies_as_they_grow() {
    let heard: Arc<Mutex<std::collections::BTreeMap<u32, String>>> = Arc::default();
    let ear = Arc::clone(&heard);
    let setup = Setup::default();
    let listener: arena_model::event::Listener = Box::new(move |event| {
        let mut heard = ear.lock().expect("no listener panics");
        heard.entry(event.key.call_index).or_default().push_str(event.text);
    });
    let options = EngineOptions { listener: Some(listener), ..options(setup) };
    let engine = start("tiny-llama", setup, options);
    let mut requests = requests(8);
    requests[2].stop = vec!["e".to_owned()];
    let replies = completed(at_once(&engine, &requests));
    let heard = heard.lock().expect("no listener panics");
    for (index, reply) in (0..).zip(&replies) {
        assert_eq!(heard.get(&index).map_or("", String::as_str), reply.text);
    }
}

fn adapter(weights: &Weights) -> Adapter {
    Adapter::open(&path("tiny-llama-adapter"), weights.config()).expect("the fixture is sound")
}

#[test]
fn an_adapter_counts_for_requests_that_are_sent_after_it() {
    let weights = weights("tiny-llama");
    let setup = Setup::default();
    let requests = requests(6);
    let plain = one_by_one("tiny-llama", setup, &requests);
    let started = EngineOptions { adapter: Some(adapter(&weights)), ..options(setup) };
    let adapted_engine = start("tiny-llama", setup, started);
    let adapted = completed(at_once(&adapted_engine, &requests));
    assert_ne!(plain, adapted);
    let engine = engine("tiny-llama", setup);
    assert_ne!(engine.info().sha256, adapted_engine.info().sha256);
    // More changes than there are slots, while other requests run.
    std::thread::scope(|scope| {
        let busy = scope.spawn(|| at_once(&engine, &requests));
        for _ in 0..6 {
            engine.swap_adapter(Some(adapter(&weights))).expect("it fits");
            assert_eq!(completed(at_once(&engine, &requests)), adapted);
            engine.swap_adapter(None).expect("none always fits");
            assert_eq!(completed(at_once(&engine, &requests)), plain);
        }
        // These began with one or the other, and kept to it.
        for (index, reply) in completed(busy.join().expect("no panic")).iter().enumerate() {
            assert!(*reply == plain[index] || *reply == adapted[index]);
        }
    });
}

#[test]
fn an_adapter_does_what_merged_weights_do() {
    let weights = weights("tiny-llama");
    let adapter = adapter(&weights);
    let merged = &mut |name: &str| {
        let mut tensor = weights.tensor(name)?;
        if let Some(layer) = adapter.layers.get(name) {
            let mut values = tensor.to_f32();
            for (row, values) in values.chunks_mut(layer.columns).enumerate() {
                for (column, value) in values.iter_mut().enumerate() {
                    let product = |r: usize| {
                        layer.b[row * adapter.rank + r] * layer.a[r * layer.columns + column]
                    };
                    *value += adapter.scale * (0..adapter.rank).map(product).sum::<f32>();
                }
            }
            tensor.format = arena_kernels::format::Format::F32;
            tensor.bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        }
        Ok(tensor)
    };
    let context = arena_kernels::context::Context::new(std::num::NonZeroUsize::MIN, Isa::best());
    let context = Arc::new(context.expect("one thread can be had"));
    let merged =
        arena_model::cpu::CpuExecutor::from_tensors(weights.config(), merged, context, 1 << 20);
    let parts = |weights: &Weights| {
        arena_model::engine::ModelParts::read(weights, [0; 32]).expect("the fixture is sound")
    };
    let setup = Setup::default();
    let merged = arena_model::engine::Engine::start(
        Box::new(merged.expect("the shapes are as before")),
        parts(&weights),
        options(setup),
    );
    let merged = merged.expect("the engine starts");
    let started = EngineOptions { adapter: Some(adapter.clone()), ..options(setup) };
    let adapted = arena_model::engine::Engine::start(
        Box::new(executor(&weights, setup)),
        parts(&weights),
        started,
    );
    let adapted = adapted.expect("the engine starts");
    let asked = ScoreRequest {
        prompt: (20..60).collect(),
        output: (100..140).collect(),
        sampling: PLAIN,
        grammar: None,
    };
    let scores = |engine: &arena_model::engine::Engine| engine.score(&asked).expect("it is sound");
    for (merged, adapted) in scores(&merged).iter().zip(scores(&adapted)) {
        let difference = merged.logprob_micro.abs_diff(adapted.logprob_micro);
        assert!(difference < 100, "{merged:?} {adapted:?}");
    }
}

#[test]
fn the_engine_says_what_computes_and_nothing_about_the_machine() {
    let base = Setup::default();
    let said = engine("tiny-qwen3-moe", base).info().engine;
    let other = Setup { threads: 3, isa: Isa::Portable, blocks: 20, ..base };
    assert_eq!(engine("tiny-qwen3-moe", other).info().engine, said);
    assert_eq!(
        said.lines().collect::<Vec<_>>(),
        [
            "engine=arena-model 0.1.0",
            "sampling=mask,temperature,top-k,top-p,min-p",
            "device=cpu",
            "arithmetic=f32-chains-1",
            "architecture=qwen3moe",
            "weights=BF16:26",
            "cache=f32",
            "block-tokens=16",
        ]
    );
}
