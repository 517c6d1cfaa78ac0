//! The command line: every command, flag and example that `--help` shows.
//!
//! Not here: what the commands do (`commands`).

pub mod audit;
pub mod log;
pub mod model;
pub mod train;

use std::ops::RangeInclusive;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::cli::audit::AuditArgs;
use crate::cli::log::{LogCommand, SUBMIT_HELP, SubmitArgs};
use crate::cli::model::{DeviceArg, ModelCommand};
use crate::cli::train::TrainCommand;

/// What every help page ends with.
const EXIT_CODES: &str = "\
Exit codes:
  0    done, nothing wrong
  1    done, with findings (a failed check)
  2    the command line or a tournament file is wrong
  3    a catalog, a component, a model or a log is wrong
  4    the machine failed (disk, network, child process, too many voided matches)
  130  interrupted; the same command goes on";

/// Tournaments of price negotiation between sandboxed agents.
#[derive(Debug, Parser)]
#[command(name = "arena", version, after_help = EXIT_CODES, disable_help_subcommand = true)]
#[command(propagate_version = true, max_term_width = 100)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Play a tournament, or show one again
    #[command(subcommand)]
    Tournament(TournamentCommand),
    /// Play one negotiation and print it
    Match(MatchArgs),
    /// Write, check and list agents
    #[command(subcommand)]
    Agent(AgentCommand),
    /// Fetch, list, describe, try and measure language models
    #[command(subcommand)]
    Model(ModelCommand),
    /// Train agents' language models by what they win
    #[command(subcommand)]
    Train(TrainCommand),
    /// Look at catalogs of items
    #[command(subcommand)]
    Catalog(CatalogCommand),
    /// Check a published tournament, offline and without trusting its organiser
    Audit(AuditArgs),
    /// Make keys, show, prove, cosign and export signed logs
    #[command(subcommand)]
    Log(LogCommand),
    /// Sign a statement about an agent, to enter it into a tournament
    #[command(after_help = SUBMIT_HELP)]
    Submit(SubmitArgs),
    /// Compile a component from stdin to stdout, in the child process that may be killed
    #[command(hide = true)]
    CompileWorker,
}

/// Commands about tournaments.
#[derive(Debug, Subcommand)]
pub enum TournamentCommand {
    /// Play a tournament file and print its tables
    #[command(after_help = RUN_HELP)]
    Run(RunArgs),
    /// Print the tables again, from the log alone
    #[command(after_help = SHOW_HELP)]
    Show(ShowArgs),
}

const RUN_HELP: &str = "\
Interrupted by Ctrl-C or killed, the same command goes on where the log ends. The log is
byte-identical however often that happens and however many workers play.

With a seed, anyone can repeat the draws, and anyone can predict them. Without one they come
from a secret that the log commits to first and shows last; contributions of entrants and a
round of a random beacon, both announced first and added by a later run, keep the organiser
from choosing it.

With language models, enough matches are played at once to fill their slots, so that their calls
are computed together. What a model answers, and with it the log, does not depend on that. Of the
devices, cpu computes by arithmetic that is the same on every machine, flex by burn, and wgpu and
cuda on a graphics processor, in builds with that feature.

A key or secret that no file gives is made and kept in DIR/private, which is not for others
while the tournament runs. The password of an encrypted key goes into ARENA_KEY_PASSWORD.

Examples:
  arena tournament run tournaments/smoke.toml
  arena tournament run tournaments/amazon.toml --workers 8 --seed 7 --out results/amazon-7
  arena tournament run open.toml --key organiser.pem --beacon round.json --contribution ann.hex

Exit codes:
  0    played and printed
  2    the command line or the tournament file is wrong; nothing was written
  3    the catalog, a component, a model or the existing log is wrong; nothing was written
  4    the machine failed (disk, child process, too many voided matches)
  130  interrupted; the same command goes on";

const SHOW_HELP: &str = "\
Examples:
  arena tournament show arena-out/smoke-1
  arena tournament show arena-out/smoke-1 --pair 17
  arena tournament show arena-out/smoke-1 --json";

/// `arena tournament run`
#[derive(Debug, Args)]
pub struct RunArgs {
    /// The tournament file (TOML)
    pub file: PathBuf,
    /// Folder for the log; what it holds is continued [default: arena-out/NAME-SEED, or
    /// arena-out/NAME without a seed]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Matches played at the same time [default: one per processor, and with language models
    /// enough to fill their slots]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub workers: Option<u16>,
    /// What computes models with weights, in place of the file's
    #[arg(long, value_enum, value_name = "DEVICE")]
    pub device: Option<DeviceArg>,
    /// Threads that compute models [default: one per processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// Public seed of every draw, in place of the file's or of a secret
    #[arg(long, value_name = "S")]
    pub seed: Option<u64>,
    /// Sign the log with this key (PEM) [default: DIR/private/key.pem]
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,
    /// Draw from this secret, 64 hexadecimal digits [default: DIR/private/secret]
    #[arg(long, value_name = "FILE")]
    pub secret: Option<PathBuf>,
    /// The announced round of the random beacon, as drand's HTTP API gives it (JSON)
    #[arg(long, value_name = "FILE")]
    pub beacon: Option<PathBuf>,
    /// Announce a round of the beacon that is out already, which binds nothing: to repeat an old
    /// tournament or to try things out
    #[arg(long)]
    pub past_round: bool,
    /// An entrant's contribution to the draws, 64 hexadecimal digits; may be given often
    #[arg(long = "contribution", value_name = "FILE")]
    pub contributions: Vec<PathBuf>,
    /// Draw without the contributions that no file opens; the log shows which
    #[arg(long)]
    pub skip_unopened: bool,
    /// AmazonHistoryPrice folder, in place of the file's
    #[arg(long, value_name = "DIR")]
    pub catalog: Option<PathBuf>,
    /// Also print the second table: every other metric
    #[arg(long)]
    pub full: bool,
    /// Print one JSON document, which leaves nothing out, instead of tables
    #[arg(long)]
    pub json: bool,
}

/// `arena tournament show`
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// The folder of the log
    pub log: PathBuf,
    /// Print both matches of this pair, turn by turn, instead of the tables
    #[arg(long, value_name = "N")]
    pub pair: Option<u64>,
    /// With --pair: also print the agents' private notes
    #[arg(long, requires = "pair")]
    pub trace: bool,
    /// Also print the second table: every other metric
    #[arg(long, conflicts_with = "pair")]
    pub full: bool,
    /// Print one JSON document, which leaves nothing out, instead of tables
    #[arg(long)]
    pub json: bool,
}

const MATCH_HELP: &str = "\
Agents are built-in ones (see `arena agent list`), with or without `builtin:` before the name, or
the path of a component. The first buys, the second sells.

With --model, both are lent a language model, and what it writes is shown on standard error while
it does. The transcript goes to standard output in the end.

Examples:
  arena match boulware conceder
  arena match llm-buyer llm-seller --model smollm2
  arena match my-agent.wasm regulated-seller --turns 12 --seed 3 --trace
  arena match linear linear --catalog ../shared/data/AmazonHistoryPrice --item 57";

/// `arena match`
#[derive(Debug, Args)]
#[command(after_help = MATCH_HELP)]
pub struct MatchArgs {
    /// The buyer
    #[arg(value_name = "BUYER")]
    pub buyer: String,
    /// The seller
    #[arg(value_name = "SELLER")]
    pub seller: String,
    /// Also print the agents' private notes
    #[arg(long)]
    pub trace: bool,
    /// Root seed of every draw
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
    /// Which item of the catalog, from 0
    #[arg(long, value_name = "N", default_value_t = 0,
          value_parser = clap::value_parser!(u32).range(0..100_000))]
    pub item: u32,
    /// Turns of both sides together
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub turns: Option<u32>,
    /// The rules of play
    #[arg(long, value_enum, default_value_t = RulesArg::Standard)]
    pub rules: RulesArg,
    /// Take the item from this AmazonHistoryPrice folder instead of a synthetic one
    #[arg(long, value_name = "DIR")]
    pub catalog: Option<PathBuf>,
    /// Parameters for the buyer, as a tournament file would give them
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub params_a: String,
    /// Parameters for the seller
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub params_b: String,
    /// Lend both a language model: a name of `arena model list`, a path, or a script (`.toml`)
    #[arg(long, value_name = "NAME|PATH")]
    pub model: Option<String>,
    /// What computes the model [default: cpu]
    #[arg(long, value_enum, value_name = "DEVICE", requires = "model")]
    pub device: Option<DeviceArg>,
    /// Threads that compute the model [default: one per processor]
    #[arg(long, value_name = "N", requires = "model",
          value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// Print one JSON document, which leaves nothing out, instead of the transcript
    #[arg(long)]
    pub json: bool,
}

/// A rule set on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RulesArg {
    /// Alternating turns; accepting takes the standing offer
    Standard,
    /// The protocol of arXiv 2604.09855
    AmazonHistoryPrice,
}

/// Commands about agents.
#[derive(Debug, Subcommand)]
pub enum AgentCommand {
    /// Write a crate with a small agent that builds as it is
    #[command(after_help = "Example:\n  arena agent new haggler && cd haggler && \
                            cargo build --release")]
    New(NewArgs),
    /// Examine a component as a tournament would, and harder
    #[command(after_help = CHECK_HELP)]
    Check(CheckArgs),
    /// List the built-in agents
    #[command(after_help = "Example:\n  arena agent list --json")]
    List(ListArgs),
}

const CHECK_HELP: &str = "\
Example:
  arena agent check target/wasm32-wasip2/release/haggler.wasm

Exit codes:
  0  the agent may play
  1  the agent was refused or misbehaved; the reasons are printed
  3  the file cannot be read";

/// `arena agent new`
#[derive(Debug, Args)]
pub struct NewArgs {
    /// Name of the crate and of its folder, which must not exist
    pub name: String,
}

/// `arena agent check`
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// The component, or the name of a built-in agent
    #[arg(value_name = "FILE.wasm")]
    pub agent: String,
    /// Parameters for the agent, as a tournament file would give them
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub params: String,
    /// Root seed of every draw
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
    /// Print one JSON document instead of the list
    #[arg(long)]
    pub json: bool,
}

/// `arena agent list`
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Print one JSON document instead of the table
    #[arg(long)]
    pub json: bool,
}

/// Commands about catalogs.
#[derive(Debug, Subcommand)]
pub enum CatalogCommand {
    /// Validate an AmazonHistoryPrice folder and count what it holds
    #[command(after_help = "Example:\n  arena catalog import \
                            ../shared/data/AmazonHistoryPrice --factor 0.8")]
    Import(ImportArgs),
    /// Show the items of a catalog
    #[command(after_help = "Examples:\n  arena catalog show synthetic --items 1000 --seed 1\n  \
                            arena catalog show ../shared/data/AmazonHistoryPrice --limit 20")]
    Show(CatalogShowArgs),
}

/// `arena catalog import`
#[derive(Debug, Args)]
pub struct ImportArgs {
    /// The folder with one JSON file per category
    pub dir: PathBuf,
    /// Budget as a share of the shown price, at most three decimals
    #[arg(long, value_name = "F", default_value = "0.8", value_parser = parse_factor)]
    pub factor: Thousandths,
    /// Print one JSON document instead of the summary
    #[arg(long)]
    pub json: bool,
}

/// `arena catalog show`
#[derive(Debug, Args)]
pub struct CatalogShowArgs {
    /// `synthetic`, `uniform`, or an AmazonHistoryPrice folder
    #[arg(value_name = "KIND|DIR")]
    pub catalog: String,
    /// Generate this many items (`synthetic` and `uniform` only)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub items: Option<u32>,
    /// Share of items without a possible deal, in thousandths (`synthetic` only)
    #[arg(long, value_name = "MILLI", value_parser = clap::value_parser!(u32).range(0..=1000))]
    pub infeasible_milli: Option<u32>,
    /// Root seed of the generator (`synthetic` and `uniform` only)
    #[arg(long, value_name = "S")]
    pub seed: Option<u64>,
    /// Budget as a share of the shown price (folders only)
    #[arg(long, value_name = "F", value_parser = parse_factor)]
    pub factor: Option<Thousandths>,
    /// How many items to print; the summary covers all of them, and so does --json
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub limit: usize,
    /// Print one JSON document instead of the table
    #[arg(long)]
    pub json: bool,
}

fn parse_factor(text: &str) -> Result<Thousandths, String> {
    thousandths(text, 1..=2_000)
}

/// A number of the command line, in thousandths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thousandths {
    /// Thousandths.
    pub milli: u32,
}

/// Reads a number such as `0.8` without passing through a float.
pub fn thousandths(text: &str, range: RangeInclusive<u32>) -> Result<Thousandths, String> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let readable = whole.len() == 1 && fraction.len() <= 3;
    if !readable || !digits(whole) || !digits(fraction) {
        return Err("needs a number such as `0.8`, at most three decimals".to_owned());
    }
    let milli: u32 = format!("{whole}{fraction:0<3}").parse().map_err(|_| "not a number")?;
    if !range.contains(&milli) {
        let [low, high] = [range.start(), range.end()].map(|milli| f64::from(*milli) / 1_000.0);
        return Err(format!("must lie between {low} and {high}"));
    }
    Ok(Thousandths { milli })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }

    #[test]
    fn factors_are_read_to_the_thousandth() {
        for (text, milli) in [("0.8", 800), ("1", 1_000), ("0.001", 1), ("2.000", 2_000)] {
            assert_eq!(parse_factor(text), Ok(Thousandths { milli }), "{text}");
        }
        for text in ["", ".8", "0", "0.0001", "2.001", "-1", "1e0", "0.8.0", "100"] {
            assert!(parse_factor(text).is_err(), "{text}");
        }
    }
}
