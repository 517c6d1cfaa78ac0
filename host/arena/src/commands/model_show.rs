//! `arena model show`: what a model is, and what it takes to run it.

use std::fmt::Write;

use arena_core::config::models::{CONTEXT_TOKENS, WeightsSource};
use arena_core::hexadecimal::hex;
use arena_weights::config::ModelConfig;
use arena_weights::template::ChatMessage;
use arena_weights::weights::Weights;
use serde_json::{Value, json};

use crate::cli::model::ShowArgs;
use crate::error::CliError;
use crate::escape::{escape, excerpt, harmless};
use crate::model_files::{self, FormatShare, Named};
use crate::render::transcript::{count, thousands};
use crate::screen::{self, Paint, Tone};
use crate::store::Store;

/// How much of a model's own name is shown, in characters.
const NAME_CHARS: usize = 80;
/// How much of a rendered template is shown, in characters.
const TEMPLATE_CHARS: usize = 1_500;
/// What the template is shown with.
const SAMPLE: [ChatMessage<'static>; 2] = [
    ChatMessage { role: "system", content: "You sell a lamp." },
    ChatMessage { role: "user", content: "What do you ask for it?" },
];

/// Opens the model and describes it.
///
/// # Errors
/// There is no such model, or it is wrong.
pub fn run(args: &ShowArgs) -> Result<(), CliError> {
    let named = model_files::find(&WeightsSource::parse(&args.model))?;
    let weights = model_files::open(&named.path)?;
    let sha256 = hex(&model_files::manifest(&named.path, &weights)?.sha256());
    let template = render_template(&weights);
    match args.json {
        true => screen::json(&to_json(&named, &weights, &sha256, &template)),
        false => screen::results(&describe(&named, &weights, &sha256, &template)),
    }
}

/// Returns a short conversation as the model's template writes it, or why it does not.
fn render_template(weights: &Weights) -> Result<String, String> {
    let template = weights.chat_template().map_err(|error| error.to_string())?;
    let pieces = template.pieces(&SAMPLE, true).map_err(|error| error.to_string())?;
    Ok(pieces.iter().map(|piece| piece.text.as_str()).collect())
}

/// Returns the tokens of context that a tournament gives the model where it names none.
fn default_context(config: &ModelConfig) -> u64 {
    u64::from(CONTEXT_TOKENS).min(config.context_tokens as u64)
}

fn describe(
    named: &Named,
    weights: &Weights,
    sha256: &str,
    template: &Result<String, String>,
) -> String {
    let config = weights.config();
    let mut text = format!("{}: {}\n", escape(&named.label), model_files::about(weights));
    let mut line = |key: &str, value: String| {
        writeln!(text, "  {key:<8}  {value}").expect("writing to a string cannot fail");
    };
    if let Some(title) = title(weights.name()) {
        line("title", format!("{title} (what the model says of itself)"));
    }
    line("path", named.path.display().to_string());
    line("sha-256", format!("{sha256} (of the manifest)"));
    line("shape", shape(config));
    line("tokens", tokens(config));
    for share in model_files::formats(weights) {
        line("weights", describe_share(&share));
    }
    let (per_token, context) =
        (model_files::cache_bytes_per_token(weights), default_context(config));
    line(
        "cache",
        format!(
            "{} bytes a token, {} MiB for one dialogue of {} tokens",
            thousands(per_token),
            mebibytes(per_token * context),
            thousands(context),
        ),
    );
    let bytes: u64 = model_files::formats(weights).iter().map(|share| share.bytes).sum();
    line("memory", format!("about {} MiB of weights, and the cache", mebibytes(bytes)));
    let paint = Paint::of_stdout();
    match template {
        Ok(rendered) => {
            text.push_str("  template, with a system's and a user's message:\n");
            let shown: String = rendered.chars().take(TEMPLATE_CHARS).collect();
            for line in harmless(&shown).lines() {
                text.push_str(&format!("    {}\n", paint.paint(Tone::Dim, line)));
            }
        }
        Err(why) => text.push_str(&format!("  template: none that can be used: {}\n", escape(why))),
    }
    let next = crate::shell::command_line(["model", "chat", &shortest(named)]);
    text.push_str(&format!("\nnext: {next}\n"));
    text
}

/// Returns the model's name in the store, else its path.
fn shortest(named: &Named) -> String {
    let name = Store::find().ok().and_then(|store| store.name_at(&named.path));
    name.unwrap_or_else(|| named.path.to_string_lossy().into_owned())
}

/// Returns a model's own name as a title: without the folders of whoever trained it, and with
/// single blanks between words; `None` where nothing is left.
fn title(name: &str) -> Option<String> {
    let last = name.trim().trim_end_matches('/').rsplit('/').next()?;
    let words = last.split(|c: char| c.is_whitespace() || c == '_');
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    (!words.is_empty()).then(|| excerpt(&words.join(" "), NAME_CHARS))
}

fn shape(config: &ModelConfig) -> String {
    let mut shape = format!(
        "{}, {} of width {}, {} ({} of keys and values) of {}",
        config.architecture.name(),
        count(config.layers as u64, "layer"),
        thousands(config.hidden as u64),
        count(config.heads as u64, "head"),
        config.kv_heads,
        config.head_dim,
    );
    match config.moe {
        Some(moe) => shape.push_str(&format!(
            ", {} of {} in use, each {} wide",
            moe.experts_per_token,
            count(moe.experts as u64, "expert"),
            thousands(moe.ffn as u64)
        )),
        None => shape.push_str(&format!(", feed-forward {}", thousands(config.ffn as u64))),
    }
    shape
}

fn tokens(config: &ModelConfig) -> String {
    let (vocab, context) = (config.vocab as u64, config.context_tokens as u64);
    format!("{} known, made for contexts of {}", thousands(vocab), thousands(context))
}

fn describe_share(share: &FormatShare) -> String {
    let FormatShare { format, tensor_count, weight_count, bytes } = share;
    format!(
        "{format}: {} in {}, {} MiB",
        thousands(*weight_count),
        count(*tensor_count, "tensor"),
        mebibytes(*bytes)
    )
}

fn mebibytes(bytes: u64) -> String {
    thousands(bytes.div_ceil(1 << 20))
}

fn to_json(
    named: &Named,
    weights: &Weights,
    sha256: &str,
    template: &Result<String, String>,
) -> Value {
    let config = weights.config();
    let formats = model_files::formats(weights);
    json!({
        "name": named.label,
        "path": named.path.display().to_string(),
        "manifest_sha256": sha256,
        "calls_itself": weights.name(),
        "architecture": config.architecture.name(),
        "layers": config.layers,
        "hidden": config.hidden,
        "heads": config.heads,
        "kv_heads": config.kv_heads,
        "head_dim": config.head_dim,
        "ffn": config.ffn,
        "experts": config.moe.map(|moe| moe.experts),
        "experts_per_token": config.moe.map(|moe| moe.experts_per_token),
        "vocab": config.vocab,
        "context_tokens": config.context_tokens,
        "bos": config.bos,
        "eos": config.eos,
        "weights": model_files::weight_count(weights),
        "formats": formats.iter().map(|share| json!({
            "format": share.format,
            "tensors": share.tensor_count,
            "weights": share.weight_count,
            "bytes": share.bytes,
        })).collect::<Vec<_>>(),
        "cache_bytes_per_token": model_files::cache_bytes_per_token(weights),
        "template": template.as_ref().ok(),
        "template_error": template.as_ref().err(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_has_no_folders_and_single_blanks() {
        for (name, wanted) in [
            ("Smollm2 135M 8k", Some("Smollm2 135M 8k")),
            ("HuggingFaceTB/SmolLM2-135M-Instruct/", Some("SmolLM2-135M-Instruct")),
            (" /fsx/someone/tiny__model\t\n v2 ", Some("tiny model v2")),
            ("\u{1b}[2J", Some("\\u{1b}[2J")),
            ("", None),
            (" /_", None),
        ] {
            assert_eq!(title(name).as_deref(), wanted, "{name}");
        }
    }
}
