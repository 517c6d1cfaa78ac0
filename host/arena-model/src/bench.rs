//! Measures how many tokens per second an engine reads and writes.
//!
//! Everything is measured through the engine as matches use it: with its queue, its sampling at
//! temperature 1 and its log-probabilities, all sequences at once.
//!
//! Not here: printing (`arena`).

use std::time::{Duration, Instant};

use arena_core::seat::{SampledToken, Sampling};
use arena_llm::model::ModelError;
use arena_llm::request::CallKey;

use crate::engine::{Engine, Parameters};

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Sequences at once.
    pub sequences: usize,
    /// Tokens of each prompt; prompts differ from their first token on.
    pub prompt_tokens: usize,
    /// Tokens of each reply.
    pub output_tokens: usize,
}

/// What was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speed {
    /// Tokens that all sequences together read per second.
    pub prefill_tokens_per_second: f64,
    /// Tokens that all sequences together write per second.
    pub decode_tokens_per_second: f64,
}

/// Measures one load. Prompts are computed first, then read again from the cache for the replies:
/// so the cache should have room for all of them, and prompts some blocks of length.
///
/// # Errors
/// The engine fails, or a sequence does not fit its context.
pub fn measure(engine: &Engine, load: Load, salt: u32) -> Result<Speed, ModelError> {
    let prefill = run(engine, load, salt, 1)?;
    let decode = run(engine, load, salt, load.output_tokens)?;
    let prompt_tokens = (load.sequences * load.prompt_tokens) as f64;
    let output_tokens = (load.sequences * load.output_tokens) as f64;
    Ok(Speed {
        prefill_tokens_per_second: prompt_tokens / prefill.as_secs_f64(),
        decode_tokens_per_second: output_tokens / decode.as_secs_f64(),
    })
}

fn run(engine: &Engine, load: Load, salt: u32, output_max: usize) -> Result<Duration, ModelError> {
    let start = Instant::now();
    let prompt = |sequence| prompt(engine.token_count(), load.prompt_tokens, sequence, salt);
    replies(engine, (0..load.sequences).map(prompt).collect(), output_max, salt)?;
    Ok(start.elapsed())
}

/// Samples a reply of `output_tokens` to each prompt at temperature 1, all at once and whatever
/// ends a turn. `salt` keys the draws.
///
/// # Errors
/// As [`measure`].
pub fn replies(
    engine: &Engine,
    prompts: Vec<Vec<u32>>,
    output_tokens: usize,
    salt: u32,
) -> Result<Vec<Vec<SampledToken>>, ModelError> {
    let ask = |sequence: usize, prompt: Vec<u32>| {
        let call_index = u32::try_from(sequence).unwrap_or(u32::MAX);
        let parameters = Parameters {
            sampling: Sampling { temperature_milli: 1_000, ..Sampling::GREEDY },
            stop: &[],
            grammar: None,
            key: CallKey { seat_seed: u64::from(salt), call_index },
            ignores_end: true,
        };
        engine.generate(prompt, output_tokens, parameters).map(|reply| reply.output)
    };
    std::thread::scope(|scope| {
        let ask = &ask;
        let asking = |(sequence, prompt)| scope.spawn(move || ask(sequence, prompt));
        let threads: Vec<_> = prompts.into_iter().enumerate().map(asking).collect();
        let ended = |thread: std::thread::ScopedJoinHandle<'_, _>| {
            thread.join().expect("asking does not panic")
        };
        threads.into_iter().map(ended).collect()
    })
}

/// Returns tokens from a simple generator (Knuth, MMIX): they need only be different.
fn prompt(token_count: usize, len: usize, sequence: usize, salt: u32) -> Vec<u32> {
    let mut state = (u64::from(salt) << 32 | sequence as u64) + 1;
    let mut next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u32::try_from((state >> 33) % token_count as u64).expect("ids are u32")
    };
    (0..len).map(|_| next()).collect()
}
