//! SmolLM2-135M, if `arena model pull smollm2` brought it to this machine.
//!
//! `SLOW_TESTS=1` asks for all prompts instead of a few.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use arena_core::seat::Sampling;
use arena_core::seed::{Root, Stream};
use arena_llm::model::{LanguageModel, ReplyTokens};
use arena_llm::request::{ChatRole, Message, Request};
use arena_model::cpu::CpuExecutor;
use arena_model::cpu::learner::{CpuLearner, LearnerOptions, Start};
use arena_model::engine::{Engine, EngineOptions, ModelParts, ScoreRequest};
use arena_model::learner::{Learner, Sequence};
use arena_weights::adapter::Adapter;
use arena_weights::tensor::Tensor;
use arena_weights::weights::Weights;
use arena_weights::write::{self, AdapterSettings};

use crate::fixture::{PLAIN, at_once, path, request, skipped};

/// Prompts that take seconds.
const SHORT: [&str; 4] = ["chat-question", "chat-forged-marks", "chat-empty", "chat-emoji"];
/// Tokens of each that are compared where not all are.
const SHORT_TOKENS: usize = 8;
/// How far the likeliest logits may be from those of another order of additions.
const TOLERANCE: f32 = 0.01;

/// `tests/parity/fixtures/smollm2.json`.
#[derive(serde::Deserialize)]
struct Fixture {
    cases: Vec<Case>,
}

#[derive(serde::Deserialize)]
struct Case {
    name: String,
    #[serde(default)]
    messages: Vec<(String, String)>,
    #[serde(default)]
    text: String,
    ids: Vec<u32>,
    output: Vec<u32>,
    first_top: Vec<(u32, f32)>,
    near_ties: Vec<usize>,
}

fn is_slow() -> bool {
    std::env::var_os("SLOW_TESTS").is_some_and(|value| value == "1")
}

/// Returns the cases of these names, or all.
fn cases(short: &[&str]) -> Vec<Case> {
    let text = std::fs::read_to_string(path("smollm2.json")).expect("the fixture is there");
    let fixture: Fixture = serde_json::from_str(&text).expect("the fixture is sound");
    let is_wanted = |case: &Case| is_slow() || short.contains(&&*case.name);
    fixture.cases.into_iter().filter(is_wanted).collect()
}

/// Returns the engine, which all tests share: weights take memory and a second to read.
fn engine() -> Option<Arc<Engine>> {
    static ENGINE: OnceLock<Option<Arc<Engine>>> = OnceLock::new();
    ENGINE.get_or_init(start).clone()
}

/// Returns the packaged model, or says that it is not here.
fn file() -> Option<PathBuf> {
    let folder = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let store = folder("ARENA_MODELS").map(PathBuf::from).or_else(|| {
        let data = folder("XDG_DATA_HOME").map(PathBuf::from);
        let data = data.or_else(|| Some(PathBuf::from(folder("HOME")?).join(".local/share")));
        Some(data?.join("arena/models"))
    });
    let file = store.map(|store| store.join("smollm2/model.gguf")).filter(|file| file.exists());
    if file.is_none() {
        skipped("SmolLM2 is not here: `arena model pull smollm2`");
    }
    file
}

fn start() -> Option<Arc<Engine>> {
    let file = file()?;
    let weights = Weights::open(&file).expect("the packaged model is sound");
    let threads = NonZeroUsize::new(2).expect("two is not zero");
    let executor = CpuExecutor::load(&weights, threads, 512 << 20).expect("the model is sound");
    let parts = ModelParts::read(&weights, [0; 32]).expect("the model is sound");
    let options = EngineOptions { context_tokens: Some(2_048), ..EngineOptions::new("tiny") };
    Some(Engine::start(Box::new(executor), parts, options).expect("the engine starts"))
}

fn role(name: &str) -> ChatRole {
    match name {
        "system" => ChatRole::System,
        "user" => ChatRole::User,
        "assistant" => ChatRole::Assistant,
        other => panic!("no role is called `{other}`"),
    }
}

/// Asks for what follows a case's messages.
fn asked(case: &Case) -> Request {
    let messages = case.messages.iter().map(|(name, text)| Message {
        role: role(name),
        text: text.clone(),
        tokens: Vec::new(),
    });
    let count = if is_slow() { case.output.len() } else { SHORT_TOKENS.min(case.output.len()) };
    Request {
        messages: messages.collect(),
        sampling: Sampling::GREEDY,
        ..request("", count as u32, 0)
    }
}

#[test]
fn smollm2_reads_and_writes_what_it_does_with_transformers() {
    let Some(engine) = engine() else { return };
    let cases = cases(&SHORT);
    let chats: Vec<&Case> = cases.iter().filter(|case| case.text.is_empty()).collect();
    let requests: Vec<Request> = chats.iter().map(|case| asked(case)).collect();
    for (case, reply) in chats.iter().zip(at_once(&engine, &requests)) {
        let reply = reply.expect("the request is sound");
        let tokens = reply.tokens.expect("the engine says them");
        assert_eq!(tokens.prompt, case.ids, "{}", case.name);
        let count = tokens.output.len().min(case.near_ties.first().copied().unwrap_or(usize::MAX));
        let ids: Vec<u32> = tokens.output[..count].iter().map(|token| token.id).collect();
        assert_eq!(ids, case.output[..count], "{}", case.name);
        // Log-probabilities differ as logits do.
        let Some(first) = tokens.output.first() else { continue };
        for (score, logits) in first.top.windows(2).zip(case.first_top.windows(2)) {
            let found = (score[1].logprob_micro - score[0].logprob_micro) as f32 / 1e6;
            let expected = logits[1].1 - logits[0].1;
            assert!((found - expected).abs() < TOLERANCE, "{}: {found} {expected}", case.name);
        }
    }
}

#[test]
fn smollm2_finds_likeliest_what_it_does_with_transformers_after_plain_text_too() {
    let Some(engine) = engine() else { return };
    for case in cases(&["text-one-letter", "text-json"]) {
        let asked = ScoreRequest {
            prompt: case.ids,
            output: case.output,
            sampling: Sampling::GREEDY,
            grammar: None,
        };
        let scores = engine.score(&asked).expect("the request is sound");
        for (place, score) in scores.iter().enumerate() {
            let is_likeliest = score.top[0].id == score.id;
            assert!(is_likeliest || case.near_ties.contains(&place), "{} {place}", case.name);
        }
    }
}

#[test]
fn smollm2_writes_the_same_alone_and_in_a_batch() {
    let Some(engine) = engine() else { return };
    let requests: Vec<Request> = (0..6)
        .map(|index| Request {
            sampling: Sampling { top_p_milli: 900, ..PLAIN },
            ..request(&"I offer $12.50. ".repeat(index as usize), 6, index)
        })
        .collect();
    let together = at_once(&engine, &requests);
    for (request, together) in requests.iter().zip(together) {
        assert_eq!(engine.complete(request), together);
    }
}

#[test]
fn smollm2_is_held_to_a_grammar() {
    let Some(engine) = engine() else { return };
    let grammar = r#"start: "[BUY] $" /[1-9][0-9]{0,2}\.[0-9]{2}/"#;
    let request = Request {
        grammar: Some(grammar.to_owned()),
        ..request("What do you offer for the hose? Its list price is $20.", 24, 5)
    };
    let reply = engine.complete(&request).expect("the request is sound");
    let price = reply.text.strip_prefix("[BUY] $").and_then(|price| price.parse::<f64>().ok());
    assert!(price.is_some(), "{}", reply.text);
}

#[test]
fn smollm2_with_an_adapter_is_trained_on_the_probabilities_that_it_sampled_with() {
    if !is_slow() {
        skipped("SmolLM2 trained: its transposes take half a gibibyte; set SLOW_TESTS=1");
        return;
    }
    let Some(file) = file() else { return };
    let weights = Weights::open(&file).expect("the packaged model is sound");
    let stream = |name: &str| Stream::derive(Root::Seed(3), name, &[]);
    let start = Start::Drawn { rank: 8, alpha: 16.0, stream: stream("adapter") };
    let threads = NonZeroUsize::new(2).expect("two is not zero");
    let mut learner =
        CpuLearner::load(&weights, start, LearnerOptions::new(threads)).expect("it is sound");
    let mut values = learner.values().expect("the CPU works");
    let mut draws = stream("stirred");
    for value in values.iter_mut().flatten() {
        *value += (draws.below(2_001) as f32 - 1_000.0) / 2e5;
    }
    learner.set_values(&values).expect("they fit");
    let folder = std::env::temp_dir().join(format!("arena-adapter-{}", std::process::id()));
    std::fs::create_dir(&folder).expect("there is room");
    let tensors = learner.parameters().iter().zip(&values);
    let tensors: Vec<Tensor> =
        tensors.map(|(of, values)| Tensor::of_f32(&of.name, &of.shape, values)).collect();
    let settings = AdapterSettings { rank: 8, alpha: 16.0, base_model: "smollm2" };
    write::adapter(settings, &tensors, weights.config(), &folder).expect("it is written");
    let adapter = Adapter::open(&folder, weights.config()).expect("it is sound");
    std::fs::remove_dir_all(&folder).expect("it was made above");
    let engine = self::start().expect("the model is here");
    engine.swap_adapter(Some(adapter)).expect("it fits");
    let requests: Vec<Request> =
        (0..3).map(|index| request("What do you pay for the hose?", 24, index)).collect();
    let replies = at_once(&engine, &requests).into_iter().map(|reply| reply.expect("sound"));
    let replies: Vec<_> = replies.map(|reply| reply.tokens.expect("they are said")).collect();
    let sequence = |reply: &ReplyTokens| {
        let output: Vec<u32> = reply.output.iter().map(|token| token.id).collect();
        let start = reply.prompt.len() as u32;
        Sequence {
            scored: (start..start + output.len() as u32).collect(),
            tokens: [&reply.prompt[..], &output].concat(),
            temperature: 1.0,
            experts: None,
        }
    };
    let batch: Vec<Sequence> = replies.iter().map(sequence).collect();
    let scores = learner.score(&batch).expect("the batch is sound");
    let sampled = replies.iter().flat_map(|reply| &reply.output);
    for (score, token) in scores.logprobs.iter().zip(sampled) {
        // An f32 holds millionths up to 8 only.
        let difference = (f64::from(*score) * 1e6) as i32 - token.sampled_logprob_micro;
        assert!(difference.abs() <= 1, "{score}, not {}", token.sampled_logprob_micro);
    }
}
