//! Times one GRPO step on a model with a LoRA adapter: rollouts by the engine, then the update.
//!
//! `grpo_step MODEL [--groups N] [--group N] [--prompt N] [--reply N] [--micro-batch N] [--rank N]
//! [--threads N] [--steps N] [--recompute]`
//!
//! A group shares its prompt, replies are as long as asked for, and rewards are drawn, which costs
//! as much as any. Prints one JSON document; the best of several steps counts.

#![allow(clippy::print_stdout)]

use std::error::Error;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;
use std::{env, fs};

use arena_core::seat::SampledToken;
use arena_core::seed::{Root, Stream};
use arena_model::bench;
use arena_model::cpu::CpuExecutor;
use arena_model::cpu::learner::{CpuLearner, LearnerOptions, Start};
use arena_model::engine::{Engine, EngineOptions, ModelParts};
use arena_model::learner::Sequence;
use arena_train::example::Example;
use arena_train::objective::{Clip, Loss, Objective};
use arena_train::optimiser::AdamW;
use arena_train::trainer::{Course, Lesson, Routing, Trainer};
use arena_weights::adapter::Adapter;
use arena_weights::tensor::Tensor;
use arena_weights::weights::Weights;
use arena_weights::write::{self, AdapterSettings};

/// What is measured.
struct Load {
    model: String,
    groups: usize,
    group: usize,
    prompt: usize,
    reply: usize,
    micro_batch: usize,
    rank: usize,
    threads: NonZeroUsize,
    steps: u32,
    recompute: bool,
}

fn arguments() -> Result<Load, Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let model = arguments.next().ok_or("a model's file is needed")?;
    let threads = NonZeroUsize::new(2).expect("two is not zero");
    let (groups, group, prompt, reply, micro_batch) = (4, 8, 192, 64, 8);
    let (rank, steps, recompute) = (16, 2, false);
    let mut load =
        Load { model, groups, group, prompt, reply, micro_batch, rank, threads, steps, recompute };
    while let Some(name) = arguments.next() {
        if name == "--recompute" {
            load.recompute = true;
            continue;
        }
        let value = arguments.next().ok_or("every other option has a value")?;
        match &*name {
            "--groups" => load.groups = value.parse()?,
            "--group" => load.group = value.parse()?,
            "--prompt" => load.prompt = value.parse()?,
            "--reply" => load.reply = value.parse()?,
            "--micro-batch" => load.micro_batch = value.parse()?,
            "--rank" => load.rank = value.parse()?,
            "--threads" => load.threads = value.parse()?,
            "--steps" => load.steps = value.parse()?,
            _ => return Err(format!("there is no option `{name}`").into()),
        }
    }
    Ok(load)
}

fn main() -> Result<(), Box<dyn Error>> {
    let load = arguments()?;
    let weights = Weights::open(Path::new(&load.model))?;
    let engine = start_engine(&load, &weights)?;
    let mut options = LearnerOptions::new(load.threads);
    options.recompute = load.recompute;
    let stream = Stream::derive(Root::Seed(1), "adapter", &[]);
    let start = Start::Drawn { rank: load.rank, alpha: 2.0 * load.rank as f32, stream };
    let token_count = weights.tokenizer()?.vocab() as u64;
    let mut trainer = Trainer::new(Box::new(CpuLearner::load(&weights, start, options)?))?;
    let mut best = [0.0, 0.0, f64::INFINITY];
    for step in 0..load.steps {
        let started = Instant::now();
        let (prompts, replies) = roll_out(&load, &engine, token_count, step)?;
        let sampled = Instant::now();
        learn(&load, &mut trainer, &prompts, &replies, step)?;
        engine.swap_adapter(Some(adapter(&load, &trainer, &weights)?))?;
        let ended = Instant::now();
        let total = (ended - started).as_secs_f64();
        if total < best[2] {
            best = [(sampled - started).as_secs_f64(), (ended - sampled).as_secs_f64(), total];
        }
    }
    let tokens = load.groups * load.group * (load.prompt + load.reply);
    let trained: usize = trainer.state().values.iter().map(Vec::len).sum();
    let document = serde_json::json!({
        "rollout_seconds": best[0],
        "update_seconds": best[1],
        "tokens_per_second": tokens as f64 / best[2],
        "trained_parameters": trained,
        "peak_mib": peak_mib(),
    });
    println!("{document}");
    Ok(())
}

fn start_engine(load: &Load, weights: &Weights) -> Result<Arc<Engine>, Box<dyn Error>> {
    let slots = load.groups * load.group;
    let context = load.prompt + load.reply + 1;
    let config = weights.config();
    let token_bytes = config.layers * config.kv_heads * config.head_dim * 2 * size_of::<f32>();
    // A block more for each sequence, which may end in the middle of one.
    let cache_bytes = (slots * (context + 32) * token_bytes) as u64;
    let executor = CpuExecutor::load(weights, load.threads, cache_bytes)?;
    let parts = ModelParts::read(weights, [0; 32])?;
    let options = EngineOptions {
        context_tokens: Some(u32::try_from(context)?),
        slots,
        threads: load.threads,
        ..EngineOptions::new("policy")
    };
    Ok(Engine::start(Box::new(executor), parts, options)?)
}

type Prompts = Vec<Vec<u32>>;
type Replies = Vec<Vec<SampledToken>>;

fn roll_out(
    load: &Load,
    engine: &Engine,
    token_count: u64,
    step: u32,
) -> Result<(Prompts, Replies), Box<dyn Error>> {
    let mut draws = Stream::derive(Root::Seed(2), "prompts", &[u64::from(step)]);
    let prompts: Prompts = (0..load.groups)
        .flat_map(|_| {
            let prompt: Vec<u32> =
                (0..load.prompt).map(|_| draws.below(token_count) as u32).collect();
            vec![prompt; load.group]
        })
        .collect();
    let replies = bench::replies(engine, prompts.clone(), load.reply, step)?;
    Ok((prompts, replies))
}

fn learn(
    load: &Load,
    trainer: &mut Trainer,
    prompts: &Prompts,
    replies: &Replies,
    step: u32,
) -> Result<(), Box<dyn Error>> {
    let mut stream = Stream::derive(Root::Seed(3), "rewards", &[u64::from(step)]);
    let rewards: Vec<f64> = replies.iter().map(|_| stream.below(1_000) as f64 / 1e3).collect();
    let lesson = |index: usize| {
        let of_group = &rewards[index / load.group * load.group..][..load.group];
        let mean = of_group.iter().sum::<f64>() / load.group as f64;
        let written = replies[index].iter();
        let mut tokens = prompts[index].clone();
        let scored = (tokens.len() as u32..).take(written.len()).collect();
        tokens.extend(written.clone().map(|token| token.id));
        let sequence = Sequence { tokens, scored, temperature: 1.0, experts: None };
        let sampled_logprobs =
            written.map(|token| f64::from(token.sampled_logprob_micro) / 1e6).collect();
        let weights_milli = vec![1_000; replies[index].len()];
        let example = Example { sequence, sampled_logprobs, weights_milli, is_cut: false };
        Lesson { examples: vec![example], advantage: rewards[index] - mean }
    };
    let lessons: Vec<Lesson> = (0..replies.len()).map(lesson).collect();
    let objective = Objective::Dapo { clip: Clip::DAPO };
    let course = Course {
        loss: Loss { objective, kl: 0.0, entropy: 0.0, importance_cap: None },
        adam: AdamW::default(),
        micro_batch_tokens: load.micro_batch * (load.prompt + load.reply),
        epochs: 1,
        minibatches: 1,
        routing: Routing::Anew,
    };
    let report = trainer.learn(&lessons, &course, 1e-4, &mut stream)?;
    assert_eq!(report.update_count, 1, "a step is one update");
    Ok(())
}

/// Returns the adapter as it is now, through its files, as a run hands it over.
fn adapter(load: &Load, trainer: &Trainer, weights: &Weights) -> Result<Adapter, Box<dyn Error>> {
    let folder = env::temp_dir().join(format!("grpo-step-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let parameters = trainer.learner().parameters().iter().zip(&trainer.state().values);
    let tensors: Vec<Tensor> = parameters
        .map(|(parameter, values)| Tensor::of_f32(&parameter.name, &parameter.shape, values))
        .collect();
    let alpha = 2.0 * load.rank as f32;
    let settings = AdapterSettings { rank: load.rank, alpha, base_model: "measured" };
    let written = write::adapter(settings, &tensors, weights.config(), &folder);
    let read = written.and_then(|()| Adapter::open(&folder, weights.config()));
    fs::remove_dir_all(&folder)?;
    Ok(read?)
}

/// Returns the most memory that the process had, where the system says so.
fn peak_mib() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? / 1_024)
}
