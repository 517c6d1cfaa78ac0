//! `arena model bench`: how many tokens per second a model reads and writes here.

use arena_core::config::models::WeightsSource;
use arena_llm::model::{LanguageModel, ModelError};
use arena_model::bench::{self, Load, Speed};
use serde_json::json;

use crate::advance::Advance;
use crate::cli::model::BenchArgs;
use crate::error::{CliError, Complaint};
use crate::escape::escape;
use crate::render::table::{Align, Table};
use crate::render::transcript::{count, thousands};
use crate::screen::{self, Paint};
use crate::{engines, model_files};

/// Runs of each load, of which the fastest counts: other work on the machine only slows down.
const RUNS: u32 = 3;

/// Measures and prints.
///
/// # Errors
/// There is no such model, it is wrong, or a load does not fit.
pub fn run(args: &BenchArgs) -> Result<(), CliError> {
    let named = model_files::find(&WeightsSource::parse(&args.model))?;
    let slots = args.batches.iter().copied().max().unwrap_or(1);
    let engine = engines::weights_named(&named, &args.engine, slots, None)?;
    let mut advance = Advance::new("measured", "load", args.batches.len() as u64);
    let mut speeds = Vec::with_capacity(args.batches.len());
    for (done, &batch) in args.batches.iter().enumerate() {
        advance.show(done as u64, args.batches.len() as u64);
        let load = Load {
            sequences: batch as usize,
            prompt_tokens: args.prompt as usize,
            output_tokens: args.reply as usize,
        };
        let mut best = Speed { prefill_tokens_per_second: 0.0, decode_tokens_per_second: 0.0 };
        for run in 0..RUNS {
            // Prompts that were measured before would be cached.
            let salt = u32::try_from(done).unwrap_or(u32::MAX).saturating_mul(RUNS) + run;
            let speed =
                bench::measure(&engine, load, salt).map_err(|error| complain(args, &error))?;
            best.prefill_tokens_per_second =
                best.prefill_tokens_per_second.max(speed.prefill_tokens_per_second);
            best.decode_tokens_per_second =
                best.decode_tokens_per_second.max(speed.decode_tokens_per_second);
        }
        speeds.push((batch, best));
    }
    drop(advance);
    print(args, &named.label, &engine.info().engine, &speeds)
}

fn print(
    args: &BenchArgs,
    label: &str,
    engine: &str,
    speeds: &[(u32, Speed)],
) -> Result<(), CliError> {
    let threads = engines::threads(args.engine.threads).get();
    if args.json {
        let loads = speeds.iter().map(|(batch, speed)| {
            json!({
                "dialogues": batch,
                "prefill_tokens_per_second": speed.prefill_tokens_per_second,
                "decode_tokens_per_second": speed.decode_tokens_per_second,
            })
        });
        return screen::json(&json!({
            "model": label,
            "engine": engine.lines().collect::<Vec<_>>(),
            "threads": threads,
            "prompt_tokens": args.prompt,
            "reply_tokens": args.reply,
            "runs": RUNS,
            "loads": loads.collect::<Vec<_>>(),
        }));
    }
    let mut table = Table::new(&[
        ("dialogues", Align::Right),
        ("prefill tokens/s", Align::Right),
        ("decode tokens/s", Align::Right),
        ("each", Align::Right),
    ]);
    for (batch, speed) in speeds {
        table.row(vec![
            thousands(u64::from(*batch)).into(),
            whole(speed.prefill_tokens_per_second).into(),
            whole(speed.decode_tokens_per_second).into(),
            whole(speed.decode_tokens_per_second / f64::from(*batch)).into(),
        ]);
    }
    screen::results(&format!(
        "{}, {}, prompts of {}, replies of {} tokens, fastest of {RUNS} runs\n{}",
        escape(label),
        count(threads as u64, "thread"),
        thousands(u64::from(args.prompt)),
        thousands(u64::from(args.reply)),
        table.render(Paint::of_stdout()),
    ))
}

fn whole(rate: f64) -> String {
    // Far below 2^53, and never negative.
    thousands(rate.round() as u64)
}

fn complain(args: &BenchArgs, error: &ModelError) -> CliError {
    let complaint = Complaint::new(format!("cannot measure `{}`", args.model), error);
    match error {
        ModelError::InvalidInput(_) => {
            CliError::Config(complaint.hint("shorten `--prompt` or `--reply`, or give `--context`"))
        }
        _ => CliError::Infrastructure(complaint),
    }
}
