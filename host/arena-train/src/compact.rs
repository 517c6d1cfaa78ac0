//! The compact negotiator: a model of the Llama architecture for the language of
//! `guest-sdk/src/compact.rs`, written as an ordinary model folder.
//!
//! The same shape and seed give the same bytes on every machine. Every word is exactly one token,
//! and the chat template only ever adds at the end.
//!
//! Not here: running it (`arena-model`), teaching it (`teacher`).

mod initial;
pub mod vocabulary;

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use arena_weights::error::WeightsError;
use arena_weights::write;
use serde_json::{Value, json};

use crate::experiment::Shape;

/// Base of the position angles; the usual one.
const ROPE_THETA: f64 = 10_000.0;
/// Keeps norms from dividing by nothing; Llama's.
const RMS_EPS: f64 = 1e-5;

/// Returns how many weights a model of a shape has.
pub fn weight_count(shape: &Shape) -> u64 {
    let slots = initial::slots(shape).into_iter();
    slots.map(|slot| slot.shape.iter().map(|&size| size as u64).product::<u64>()).sum()
}

/// A model folder that cannot be written.
#[derive(Debug)]
pub enum CompactError {
    /// The operating system refused.
    Io {
        /// What was tried, such as `create`.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The weights cannot be written.
    Weights(WeightsError),
}

impl fmt::Display for CompactError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CompactError::Io { doing, path, source } => {
                write!(f, "cannot {doing} `{}`: {source}", path.display())
            }
            CompactError::Weights(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for CompactError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            CompactError::Io { source, .. } => Some(source),
            CompactError::Weights(error) => Some(error),
        }
    }
}

/// Writes a new model with random weights to a folder that does not exist yet.
///
/// Weights are normal with a standard deviation of 0.02, those that write to the residual stream
/// of 0.02/sqrt(2 layers), and norms are 1 (GPT-2, section 2.3).
///
/// # Errors
/// The folder exists, or cannot be written.
pub fn initialise(folder: &Path, shape: &Shape, seed: u64) -> Result<(), CompactError> {
    let io = |doing, path: PathBuf| move |source| CompactError::Io { doing, path, source };
    fs::create_dir(folder).map_err(io("create", folder.into()))?;
    let files = [
        ("config.json", text(config(shape))),
        ("tokenizer.json", text(vocabulary::tokenizer())),
        ("chat_template.jinja", vocabulary::CHAT_TEMPLATE.to_owned()),
    ];
    for (name, text) in files {
        let path = folder.join(name);
        fs::write(&path, text).map_err(io("write", path.clone()))?;
    }
    let tensors = initial::draw(shape, seed);
    write::safetensors(&tensors, &folder.join("model.safetensors")).map_err(CompactError::Weights)
}

/// Writes JSON the same way whether objects keep the order of their keys or not, which other
/// crates of a build decide.
fn text(mut value: Value) -> String {
    value.sort_all_objects();
    value.to_string()
}

fn config(shape: &Shape) -> Value {
    json!({
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": shape.width,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "head_dim": shape.width / shape.heads,
        "intermediate_size": shape.feed_forward,
        "vocab_size": vocabulary::TOKEN_COUNT,
        "max_position_embeddings": shape.context_tokens,
        "rope_theta": ROPE_THETA,
        "rms_norm_eps": RMS_EPS,
        "hidden_act": "silu",
        "attention_bias": false,
        "mlp_bias": false,
        "tie_word_embeddings": false,
        "eos_token_id": vocabulary::END,
        "torch_dtype": "float32",
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZeroUsize;
    use std::sync::Arc;

    use arena_core::seat::Sampling;
    use arena_llm::model::LanguageModel;
    use arena_llm::request::{CallKey, ChatRole, Message, Request};
    use arena_model::cpu::CpuExecutor;
    use arena_model::engine::{Engine, EngineOptions, ModelParts};
    use arena_weights::weights::Weights;

    use crate::experiment::Experiment;

    const TINY: Shape =
        Shape { layers: 2, width: 32, heads: 2, kv_heads: 1, feed_forward: 48, context_tokens: 64 };

    /// The manifest's hash for the tiny shape and the seed 1.
    const PINNED: &str = "2fb3e161b4fcedec14fc8a2805805b320dcc2f9d8a138c2b08231930a3f28930";

    fn message(role: ChatRole, text: &str, tokens: &[u32]) -> Message {
        Message { role, text: text.to_owned(), tokens: tokens.to_vec() }
    }

    fn request(messages: Vec<Message>, seat_seed: u64) -> Request {
        Request {
            model: "policy".to_owned(),
            messages,
            max_tokens: 4,
            sampling: Sampling { temperature_milli: 1_000, ..Sampling::GREEDY },
            stop: vec![],
            grammar: None,
            key: CallKey { seat_seed, call_index: 0 },
        }
    }

    fn engine(folder: &Path) -> Arc<Engine> {
        let weights = Weights::open(folder).expect("a model");
        let parts = ModelParts::read(&weights, [7; 32]).expect("its parts");
        let executor =
            CpuExecutor::load(&weights, NonZeroUsize::MIN, 1 << 22).expect("its weights");
        let executor = Box::new(executor);
        Engine::start(executor, parts, EngineOptions::new("policy")).expect("an engine")
    }

    #[test]
    fn every_word_of_a_message_is_exactly_one_token() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("policy");
        initialise(&path, &TINY, 1).expect("a new model");
        let tokenizer = Weights::open(&path).expect("a model").tokenizer().expect("a tokenizer");
        let levels = (0..=vocabulary::LEVEL_MAX).map(|level| level.to_string());
        let words = vocabulary::WORDS.iter().map(|word| (*word).to_owned()).chain(levels);
        let mut ids = std::collections::BTreeSet::new();
        for word in words {
            let spaced = format!(" {word}");
            let tokens = tokenizer.encode_text(&spaced).expect("a short text");
            let &[id] = tokens.as_slice() else { panic!("`{word}` is {tokens:?}") };
            assert_eq!(tokenizer.bytes(id), spaced.as_bytes());
            ids.insert(id);
        }
        assert_eq!(ids.len() as u32 + 4, vocabulary::TOKEN_COUNT);
        assert_eq!(tokenizer.vocab() as u32, vocabulary::TOKEN_COUNT);
        let foreign = tokenizer.encode_text("Hello, world 99").expect("a short text");
        assert!(foreign.is_empty(), "{foreign:?}");
    }

    #[test]
    fn the_engine_samples_and_a_dialogue_only_grows_at_its_end() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("policy");
        initialise(&path, &TINY, 1).expect("a new model");
        let engine = engine(&path);
        let mut messages = vec![
            message(ChatRole::System, "budget 40", &[]),
            message(ChatRole::User, "begin left 6", &[]),
        ];
        let first = engine.encode(&request(messages.clone(), 5)).expect("a prompt");
        // A mark, the words and the end of each message, and the mark of the reply.
        assert_eq!(first.len(), (1 + 2 + 1) + (1 + 3 + 1) + 1);
        let reply = engine.complete(&request(messages.clone(), 5)).expect("a reply");
        let written = reply.tokens.expect("tokens").output;
        let written: Vec<u32> = written.iter().map(|token| token.id).collect();
        messages.push(message(ChatRole::Assistant, &reply.text, &written));
        messages.push(message(ChatRole::User, "asks 50 first left 5", &[]));
        let second = engine.encode(&request(messages, 5)).expect("a prompt");
        assert!(second.starts_with(&[first, written].concat()));
    }

    #[test]
    fn a_new_model_is_about_equally_likely_to_say_anything() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("policy");
        initialise(&path, &TINY, 3).expect("a new model");
        let engine = engine(&path);
        let even = -(f64::from(vocabulary::TOKEN_COUNT)).ln();
        let messages = vec![message(ChatRole::User, "begin left 6", &[])];
        for seat_seed in 0..8 {
            let reply = engine.complete(&request(messages.clone(), seat_seed)).expect("a reply");
            let tokens = reply.tokens.expect("tokens").output;
            let off = |micro: i32| (f64::from(micro) / 1e6 - even).abs();
            assert!(tokens.iter().all(|token| off(token.logprob_micro) < 1.0), "{tokens:?}");
        }
    }

    #[test]
    fn a_shape_and_a_seed_give_the_same_bytes_and_another_seed_others() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let write = |name: &str, seed| {
            let path = folder.path().join(name);
            initialise(&path, &TINY, seed).expect("a new model");
            let manifest = Weights::open(&path).expect("a model").manifest(&mut |_, _| {});
            manifest.expect("readable files").sha256()
        };
        let hex =
            |hash: [u8; 32]| hash.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let first = write("a", 1);
        assert_eq!(first, write("b", 1));
        assert_ne!(first, write("c", 2));
        assert_eq!(hex(first), PINNED, "the bytes are pinned: experiments name a seed");
        let again = initialise(&folder.path().join("a"), &TINY, 1).expect_err("it is there");
        assert!(again.to_string().starts_with("cannot create `"), "{again}");
    }

    /// Reads an experiment that is shipped, without the lines that say what it is for.
    fn shipped(name: &str) -> String {
        let experiments =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tournaments/experiments");
        let text = fs::read_to_string(experiments.join(name)).expect("it is shipped");
        Experiment::parse(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        text[text.find("\nname = ").expect("it has a name")..].to_owned()
    }

    #[test]
    fn every_control_of_the_shipped_experiment_adds_one_line() {
        let compact = shipped("compact.toml");
        let lines: Vec<&str> = compact.lines().collect();
        for control in ["deaf", "shuffled", "stays", "unpunished"] {
            let text = shipped(&format!("compact-{control}.toml"));
            let own: Vec<&str> = text.lines().filter(|line| !lines.contains(line)).collect();
            let kept = |line: &&str| text.lines().any(|known| known == *line);
            let changed: Vec<&str> = lines.iter().copied().filter(|line| !kept(line)).collect();
            assert_eq!(own, [format!("name = \"compact-{control}\""), own[1].to_owned()]);
            assert_eq!(changed, ["name = \"compact\""], "{control}");
        }
    }

    #[test]
    fn four_layers_of_128_are_some_eight_hundred_thousand_weights() {
        let small = Shape {
            layers: 4,
            width: 128,
            heads: 4,
            kv_heads: 2,
            feed_forward: 384,
            context_tokens: 256,
        };
        assert_eq!(weight_count(&small), 809_344);
    }
}
