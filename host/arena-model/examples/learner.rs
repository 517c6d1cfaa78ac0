//! Prints how fast a model is trained, and how much memory that takes.
//!
//! `learner MODEL [--threads N] [--sequences N] [--tokens N] [--scored N] [--group N] [--rank N]
//! [--recompute] [--runs N]`
//!
//! Of each sequence the last `--scored` tokens are scored; the rest are the same in each group of
//! `--group` sequences, as in samples of one prompt.
//!
//! `MODEL` is a file or a folder, of which an adapter is trained, or `compact`: a random model of
//! four layers of 128 with 512 tokens, of which everything is. The best of several runs counts.

#![allow(clippy::print_stdout)]

use std::error::Error;
use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Instant;

use arena_core::seed::{Root, Stream};
use arena_model::cpu::learner::{CpuLearner, LearnerOptions, Start};
use arena_model::learner::{Learner, Scores, Sequence, Slopes};
use arena_weights::tensor::Tensor;
use arena_weights::weights::Weights;
use arena_weights::write;

struct Load {
    model: String,
    threads: NonZeroUsize,
    sequences: usize,
    tokens: u32,
    scored: u32,
    group: usize,
    rank: usize,
    recompute: bool,
    runs: usize,
}

fn arguments() -> Result<Load, Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let model = arguments.next().ok_or("a model is needed, or `compact`")?;
    let is_compact = model == "compact";
    let mut load = Load {
        threads: NonZeroUsize::new(2).expect("two is not zero"),
        sequences: if is_compact { 64 } else { 8 },
        tokens: if is_compact { 128 } else { 256 },
        scored: 64,
        group: 1,
        rank: 16,
        recompute: false,
        runs: 3,
        model,
    };
    while let Some(name) = arguments.next() {
        if name == "--recompute" {
            load.recompute = true;
            continue;
        }
        let value = arguments.next().ok_or("every other option has a value")?;
        match &*name {
            "--threads" => load.threads = value.parse()?,
            "--sequences" => load.sequences = value.parse()?,
            "--tokens" => load.tokens = value.parse()?,
            "--scored" => load.scored = value.parse()?,
            "--group" => load.group = value.parse()?,
            "--rank" => load.rank = value.parse()?,
            "--runs" => load.runs = value.parse()?,
            _ => return Err(format!("there is no option `{name}`").into()),
        }
    }
    Ok(load)
}

fn main() -> Result<(), Box<dyn Error>> {
    let load = arguments()?;
    let options = LearnerOptions { recompute: load.recompute, ..LearnerOptions::new(load.threads) };
    let folder = std::env::temp_dir().join(format!("compact-{}", std::process::id()));
    let is_compact = load.model == "compact";
    let (weights, start) = if is_compact {
        (compact(&folder)?, Start::Full)
    } else {
        let stream = Stream::derive(Root::Seed(1), "adapter", &[]);
        let start = Start::Drawn { rank: load.rank, alpha: 2.0 * load.rank as f32, stream };
        (Weights::open(Path::new(&load.model))?, start)
    };
    let token_count = weights.tokenizer()?.vocab() as u64;
    let mut learner = CpuLearner::load(&weights, start, options)?;
    if is_compact {
        fs::remove_dir_all(&folder)?;
    }
    let mut draws = Stream::derive(Root::Seed(2), "tokens", &[]);
    let mut drawn =
        |count: u32| -> Vec<u32> { (0..count).map(|_| draws.below(token_count) as u32).collect() };
    let mut batch = Vec::new();
    while batch.len() < load.sequences {
        let prompt = drawn(load.tokens - load.scored);
        for _ in 0..load.group.min(load.sequences - batch.len()) {
            let tokens = [prompt.clone(), drawn(load.scored)].concat();
            let scored = (load.tokens - load.scored..load.tokens).collect();
            batch.push(Sequence { tokens, scored, temperature: 1.0, experts: None });
        }
    }
    measure(&load, &mut learner, &batch)?;
    Ok(())
}

/// Prints the best times of scoring, of going forward and back, and of taking other values.
fn measure(
    load: &Load,
    learner: &mut CpuLearner,
    batch: &[Sequence],
) -> Result<(), Box<dyn Error>> {
    let mut gradients: Vec<Vec<f32>> =
        learner.values()?.iter().map(|values| vec![0.0; values.len()]).collect();
    let mut slopes = |scores: &Scores| Slopes {
        logprobs: vec![-1e-3; scores.logprobs.len()],
        entropies: vec![1e-5; scores.entropies.len()],
    };
    let mut best = [f64::INFINITY; 3];
    for _ in 0..load.runs {
        let started = Instant::now();
        learner.score(batch)?;
        let scored = Instant::now();
        learner.accumulate(batch, &mut slopes, &mut gradients)?;
        let accumulated = Instant::now();
        let mut values = learner.values()?;
        for (value, gradient) in values.iter_mut().flatten().zip(gradients.iter().flatten()) {
            *value -= 1e-3 * gradient;
        }
        learner.set_values(&values)?;
        let updated = Instant::now();
        let times = [scored - started, accumulated - scored, updated - accumulated];
        for (best, time) in best.iter_mut().zip(times) {
            *best = best.min(time.as_secs_f64());
        }
    }
    let tokens = load.sequences as f64 * f64::from(load.tokens);
    println!("forward          {:>8.1} ms {:>9.0} tok/s", 1e3 * best[0], tokens / best[0]);
    println!("forward and back {:>8.1} ms {:>9.0} tok/s", 1e3 * best[1], tokens / best[1]);
    println!("update           {:>8.1} ms", 1e3 * best[2]);
    println!("peak memory      {:>8} MiB", peak_mib().unwrap_or(0));
    Ok(())
}

/// Returns the most memory that the process had, where the system says so.
fn peak_mib() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? / 1_024)
}

/// Makes a random model, with the tokenizer of the tests' models.
fn compact(folder: &Path) -> Result<Weights, Box<dyn Error>> {
    let tiny = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/parity/fixtures/tiny-llama");
    fs::create_dir_all(folder)?;
    fs::copy(tiny.join("tokenizer.json"), folder.join("tokenizer.json"))?;
    let config = serde_json::json!({
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu",
        "hidden_size": 128, "intermediate_size": 384, "num_hidden_layers": 4,
        "num_attention_heads": 4, "num_key_value_heads": 4, "head_dim": 32, "vocab_size": 512,
        "max_position_embeddings": 1024, "rms_norm_eps": 1e-6, "tie_word_embeddings": true,
        "rope_theta": 10000.0, "bos_token_id": null, "eos_token_id": 299,
    });
    fs::write(folder.join("config.json"), config.to_string())?;
    let mut draws = Stream::derive(Root::Seed(3), "weights", &[]);
    let mut tensor = |name: &str, shape: &[usize]| {
        let value = |_| (draws.below(2_001) as f32 - 1_000.0) / 1_000.0 * 0.15;
        let count = shape.iter().product();
        let values: Vec<f32> = match shape {
            [_] => vec![1.0; count],
            _ => (0..count).map(value).collect(),
        };
        Tensor::of_f32(name, shape, &values)
    };
    let mut tensors =
        vec![tensor("model.embed_tokens.weight", &[512, 128]), tensor("model.norm.weight", &[128])];
    for layer in 0..4 {
        for (part, shape) in [
            ("input_layernorm", &[128][..]),
            ("post_attention_layernorm", &[128]),
            ("self_attn.q_proj", &[128, 128]),
            ("self_attn.k_proj", &[128, 128]),
            ("self_attn.v_proj", &[128, 128]),
            ("self_attn.o_proj", &[128, 128]),
            ("mlp.gate_proj", &[384, 128]),
            ("mlp.up_proj", &[384, 128]),
            ("mlp.down_proj", &[128, 384]),
        ] {
            tensors.push(tensor(&format!("model.layers.{layer}.{part}.weight"), shape));
        }
    }
    write::safetensors(&tensors, &folder.join("model.safetensors"))?;
    Ok(Weights::open(folder)?)
}
