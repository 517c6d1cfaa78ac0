//! `arena audit`: the flags of everything that checks a log without its maker.

use std::path::PathBuf;

use clap::{Args, Subcommand};

const AUDIT_HELP: &str = "\
The key must come from elsewhere than the log: a key that lies in the folder shows only that
the folder agrees with itself. To check just that, name it: --key LOG/log.vkey

Every step is verified, FAILED or not checked; nothing is passed over in silence.

Of a training run, the log of every step is audited, and every reward and advantage is computed
again; --retrain repeats the updates too, which on the device cpu gives the same bits anywhere.

Examples:
  arena audit arena-out/smoke-1 --key smoke.vkey
  arena audit arena-out/smoke-1 --key smoke.vkey --reexecute
  arena audit arena-out/smoke-1 --policy policy.txt --held checkpoint.monday --reexecute 4603
  arena audit arena-out/llm-smoke-1 --key smoke.vkey --rescore --rescore-sample 20
  arena audit runs/compact-1 --key compact.vkey --retrain
  arena audit diff arena-out/smoke-1 mirror/smoke-1 --key smoke.vkey
  arena audit receipt match-17.tlog-proof --key smoke.vkey

Exit codes:
  0  everything that was asked for is verified
  1  something failed, or was not checked although it was asked for
  2  the command line, a key or a policy is wrong
  3  the folder cannot be read at all
  4  the machine failed";

/// `arena audit`
#[derive(Debug, Args)]
#[command(after_help = AUDIT_HELP, args_conflicts_with_subcommands = true)]
#[command(subcommand_negates_reqs = true)]
pub struct AuditArgs {
    /// One of the smaller checks, in place of the whole audit.
    #[command(subcommand)]
    pub command: Option<AuditCommand>,
    /// The folder of the log, or of a training run
    #[arg(required = true)]
    pub log: Option<PathBuf>,
    /// Whom to believe.
    #[command(flatten)]
    pub trust: TrustArgs,
    /// A signed head that you kept from earlier, which the log must continue; may be repeated
    #[arg(long, value_name = "HEADFILE")]
    pub held: Vec<PathBuf>,
    /// The verifier key of an agent's author, which its submission must be signed with; may be
    /// repeated
    #[arg(long, value_name = "AGENT=VKEY|FILE", value_parser = parse_author)]
    pub author: Vec<Author>,
    /// AmazonHistoryPrice folder, to compare the log's catalog with
    #[arg(long, value_name = "DIR")]
    pub catalog: Option<PathBuf>,
    /// Run agents again: in all matches, in N drawn at random, or in those of the leaders (top)
    #[arg(long, value_name = "all|N|top", num_args = 0..=1, default_missing_value = "all",
          value_parser = parse_choice)]
    pub reexecute: Option<Choice>,
    /// Matches run again at the same time [default: one per processor]
    #[arg(long, value_name = "N", requires = "reexecute",
          value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub workers: Option<u16>,
    /// Ask language models again how likely their recorded replies are. They are found in the store
    /// by name, and must have the announced hash
    #[arg(long)]
    pub rescore: bool,
    /// Where a model is that the tournament calls NAME; may be repeated
    #[arg(long, value_name = "NAME=PATH", requires = "rescore", value_parser = parse_model)]
    pub model: Vec<ModelPlace>,
    /// Score only the calls of so many matches, drawn at random [default: of all]
    #[arg(long, value_name = "N", requires = "rescore",
          value_parser = clap::value_parser!(u32).range(1..))]
    pub rescore_sample: Option<u32>,
    /// Repeat every update of a training run, and compare the policies that come of them
    #[arg(long)]
    pub retrain: bool,
    /// Print one JSON document, which leaves nothing out, instead of the list of steps
    #[arg(long)]
    pub json: bool,
}

/// The smaller checks.
#[derive(Debug, Subcommand)]
pub enum AuditCommand {
    /// Compare two views of one log: does one continue the other?
    #[command(after_help = DIFF_HELP)]
    Diff(DiffArgs),
    /// Check that one match is in a log, without the log
    #[command(after_help = RECEIPT_HELP)]
    Receipt(ReceiptArgs),
}

const DIFF_HELP: &str = "\
Two signed heads of one log that cannot both be true prove that its maker showed different
things to different people. Both are printed in full, so that anyone can check them.

Examples:
  arena audit diff arena-out/smoke-1 mirror/smoke-1 --key smoke.vkey
  arena audit diff checkpoint.monday arena-out/smoke-1 --key smoke.vkey

Exit codes:
  0  one continues the other
  1  they contradict each other, or it was not possible to say
  2  the command line, a key or a policy is wrong
  3  a folder or file cannot be read";

/// `arena audit diff`
#[derive(Debug, Args)]
pub struct DiffArgs {
    /// The folder of a log, or a file with a signed head
    pub a: PathBuf,
    /// Another one
    pub b: PathBuf,
    /// Whom to believe.
    #[command(flatten)]
    pub trust: TrustArgs,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

const RECEIPT_HELP: &str = "\
`arena log prove` makes receipts. Beside NAME.tlog-proof it writes NAME.entry, which is what
the receipt shows to be in the log, and NAME.transcript, once transcripts are published; both
are looked for there. With --announcement the transcript is also judged by the rules.

Examples:
  arena audit receipt match-17.tlog-proof --key smoke.vkey
  arena audit receipt match-17.tlog-proof --key smoke.vkey --entry - < match-17.entry

Exit codes:
  0  the entry is in the log, and all that was given agrees with it
  1  it is not, or something does not agree
  2  the command line, a key or a policy is wrong
  3  a file cannot be read";

/// `arena audit receipt`
#[derive(Debug, Args)]
pub struct ReceiptArgs {
    /// The receipt
    #[arg(value_name = "FILE.tlog-proof")]
    pub file: PathBuf,
    /// Whom to believe.
    #[command(flatten)]
    pub trust: TrustArgs,
    /// The bytes of the entry, `-` for standard input [default: NAME.entry]
    #[arg(long, value_name = "FILE")]
    pub entry: Option<PathBuf>,
    /// The bytes of the transcript [default: NAME.transcript, if it is there]
    #[arg(long, value_name = "FILE")]
    pub transcript: Option<PathBuf>,
    /// The announcement, a blob of the log: the match is judged by its rules
    #[arg(long, value_name = "FILE")]
    pub announcement: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// Whom to believe.
#[derive(Debug, Args)]
pub struct TrustArgs {
    /// The log's verifier key, or a file that holds it
    #[arg(long, value_name = "VKEY|FILE", conflicts_with = "policy")]
    pub key: Option<String>,
    /// A policy file: which log, which witnesses, and how many of them
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
}

/// Whose signature an agent's submission must have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Author {
    /// The agent's name.
    pub agent: String,
    /// The verifier key, or a file that holds it.
    pub key: String,
}

fn parse_author(text: &str) -> Result<Author, String> {
    match text.split_once('=') {
        Some((agent, key)) if !agent.is_empty() && !key.is_empty() => {
            Ok(Author { agent: agent.to_owned(), key: key.to_owned() })
        }
        _ => Err("needs `AGENT=VKEY` or `AGENT=FILE`".to_owned()),
    }
}

/// Where a language model is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelPlace {
    /// What the tournament calls it.
    pub name: String,
    /// A name of the store, or a path.
    pub place: String,
}

fn parse_model(text: &str) -> Result<ModelPlace, String> {
    match text.split_once('=') {
        Some((name, place)) if !name.is_empty() && !place.is_empty() => {
            Ok(ModelPlace { name: name.to_owned(), place: place.to_owned() })
        }
        _ => Err("needs `NAME=PATH`".to_owned()),
    }
}

/// Which matches are run again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// All of them.
    All,
    /// So many, drawn at random.
    Count(u64),
    /// All of those who lead.
    Top,
}

fn parse_choice(text: &str) -> Result<Choice, String> {
    match text {
        "all" => Ok(Choice::All),
        "top" => Ok(Choice::Top),
        number => match number.parse() {
            Ok(0) | Err(_) => Err("needs `all`, `top` or a number of matches".to_owned()),
            Ok(count) => Ok(Choice::Count(count)),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_run_again_is_all_a_number_or_the_top() {
        assert_eq!(parse_choice("all"), Ok(Choice::All));
        assert_eq!(parse_choice("top"), Ok(Choice::Top));
        assert_eq!(parse_choice("4603"), Ok(Choice::Count(4_603)));
        for text in ["", "0", "-1", "some", "1.5", "99999999999999999999"] {
            assert!(parse_choice(text).is_err(), "{text}");
        }
    }
}
