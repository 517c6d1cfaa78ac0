//! Prints how many tokens per second a model reads and writes, by the number of sequences.
//!
//! `throughput MODEL [--threads N] [--prompt N] [--decode N] [--sequences N,N,..]`

#![allow(clippy::print_stdout)]

use std::error::Error;
use std::num::NonZeroUsize;
use std::path::Path;

use arena_model::bench::{Load, measure};
use arena_model::cpu::CpuExecutor;
use arena_model::engine::{Engine, EngineOptions, ModelParts};
use arena_weights::weights::Weights;

/// Bytes of the cache, and slots of the engine.
const CACHE_BYTES: u64 = 4 << 30;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let model = arguments.next().ok_or("the path of a model is needed")?;
    let (mut threads, mut prompt_tokens, mut output_tokens) = (2, 256, 64);
    let mut sequences = vec![1, 16, 64];
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or("every option has a value")?;
        match &*name {
            "--threads" => threads = value.parse()?,
            "--prompt" => prompt_tokens = value.parse()?,
            "--decode" => output_tokens = value.parse()?,
            "--sequences" => {
                sequences = value.split(',').map(str::parse).collect::<Result<Vec<usize>, _>>()?;
            }
            _ => return Err(format!("there is no option `{name}`").into()),
        }
    }
    let weights = Weights::open(Path::new(&model))?;
    let threads = NonZeroUsize::new(threads).ok_or("at least one thread is needed")?;
    let executor = CpuExecutor::load(&weights, threads, CACHE_BYTES)?;
    let parts = ModelParts::read(&weights, weights.manifest(&mut |_, _| ())?.sha256())?;
    let engine = Engine::start(Box::new(executor), parts, EngineOptions::new("measured"))?;
    println!("sequences  prefill tok/s  decode tok/s");
    for (salt, &sequences) in (1..).zip(&sequences) {
        let speed = measure(&engine, Load { sequences, prompt_tokens, output_tokens }, salt)?;
        println!(
            "{sequences:>9}  {:>13.1}  {:>12.1}",
            speed.prefill_tokens_per_second, speed.decode_tokens_per_second
        );
    }
    Ok(())
}
