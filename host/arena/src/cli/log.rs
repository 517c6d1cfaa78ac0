//! `arena log` and `arena submit`: the flags of everything around a signed log.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand};

/// Commands about signed logs.
#[derive(Debug, Subcommand)]
pub enum LogCommand {
    /// Make a signing key, for a log, an author or a witness
    #[command(after_help = KEYGEN_HELP)]
    Keygen(KeygenArgs),
    /// Print the head of a log, or its entries
    #[command(after_help = SHOW_HELP)]
    Show(LogShowArgs),
    /// Write a receipt: that one entry is in the log, for whoever does not have the log
    #[command(after_help = PROVE_HELP)]
    Prove(ProveArgs),
    /// Cosign the head of a log that continues the last head cosigned
    #[command(after_help = WITNESS_HELP)]
    Witness(WitnessArgs),
    /// Write one row per match, and one per turn, for other programs to analyse
    #[command(after_help = EXPORT_HELP)]
    Export(ExportArgs),
    /// Write an SQLite file of the log's matches and turns, to be queried
    #[cfg(feature = "index")]
    #[command(after_help = INDEX_HELP)]
    Index(IndexArgs),
}

const KEYGEN_HELP: &str = "\
The key file is PKCS#8 PEM, readable by its owner alone; nothing is overwritten. What others
need to check signatures, the verifier key, goes to standard output. Commands that read a key
take the password of an encrypted one from ARENA_KEY_PASSWORD.

Examples:
  arena log keygen --out log.pem --name arena.example/2027-spring > log.vkey
  arena log keygen --out author.pem --name haggler-team
  arena log keygen --out log.pem --name arena.example/2027-spring --password-file password.txt";

/// `arena log keygen`
#[derive(Debug, Args)]
pub struct KeygenArgs {
    /// The file of the key, which must not exist
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// Name of the key: for a log its origin, such as `arena.example/2027-spring`
    #[arg(long, value_name = "ORIGIN")]
    pub name: Option<String>,
    /// Print the verifier key of a witness, in place of that of a log or author
    #[arg(long, requires = "name")]
    pub witness: bool,
    /// Encrypt the key with the first line of this file
    #[arg(long, value_name = "FILE")]
    pub password_file: Option<PathBuf>,
}

const SHOW_HELP: &str = "\
Nothing is verified: `arena audit` does that.

Examples:
  arena log show arena-out/smoke-1
  arena log show arena-out/smoke-1 --entry 0 --json
  arena log show arena-out/smoke-1 --head";

/// `arena log show`
#[derive(Debug, Args)]
pub struct LogShowArgs {
    /// The folder of the log
    pub log: PathBuf,
    /// Print this entry, counted from 0, with what it binds
    #[arg(long, value_name = "N", conflicts_with = "head")]
    pub entry: Option<u64>,
    /// Print the signed head alone, as it is
    #[arg(long)]
    pub head: bool,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

const PROVE_HELP: &str = "\
Writes PREFIX.tlog-proof (a C2SP tlog-proof), PREFIX.entry and, once transcripts are
published, PREFIX.transcript. With --pair, the leg's number is appended to PREFIX unless one
is chosen with --leg.

Examples:
  arena log prove arena-out/smoke-1 --pair 17 --out pair-17
  arena log prove arena-out/smoke-1 --entry 0 --out announcement";

/// `arena log prove`
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("what").required(true).args(["entry", "pair"])))]
pub struct ProveArgs {
    /// The folder of the log
    pub log: PathBuf,
    /// The entry, counted from 0
    #[arg(long, value_name = "N")]
    pub entry: Option<u64>,
    /// The matches of this pair, counted from 0
    #[arg(long, value_name = "P")]
    pub pair: Option<u64>,
    /// Only this leg of the pair
    #[arg(long, value_name = "L", requires = "pair", conflicts_with = "entry",
          value_parser = clap::value_parser!(u8).range(0..=1))]
    pub leg: Option<u8>,
    /// Beginning of the names of the files that are written
    #[arg(long, value_name = "PREFIX")]
    pub out: PathBuf,
}

const WITNESS_HELP: &str = "\
A witness remembers the last head that it cosigned, in the state file, and refuses every head
that does not continue it. Whoever sees enough cosignatures on a head knows that nobody was
shown another log. A head file needs the log's folder beside it only to show growth.

The cosigned head goes to LOG/witness/NAME, or to standard output where only a head is given.
The password of an encrypted key goes into ARENA_KEY_PASSWORD.

Examples:
  arena log witness smoke-1 --log-key smoke.vkey --key w1.pem --name w1.example --state w1.state

Exit codes:
  0  cosigned
  2  the command line or the log's verifier key is wrong
  3  the head is not the log's or does not continue the last one, or a file cannot be read
  4  the machine failed";

/// `arena log witness`
#[derive(Debug, Args)]
pub struct WitnessArgs {
    /// The folder of the log, or a file with its signed head
    pub log: PathBuf,
    /// The log's verifier key, or a file that holds it
    #[arg(long, value_name = "VKEY|FILE")]
    pub log_key: String,
    /// The witness's key file
    #[arg(long, value_name = "FILE")]
    pub key: PathBuf,
    /// The witness's name
    #[arg(long)]
    pub name: String,
    /// Remembers the last head cosigned; begun if it does not exist
    #[arg(long, value_name = "FILE")]
    pub state: PathBuf,
}

const EXPORT_HELP: &str = "\
Rows of matches and of turns have the columns that host/arena/COLUMNS.md describes.
Private values are there only once they are published. Nothing is verified: audit first.

Examples:
  arena log export arena-out/smoke-1 --jsonl > matches.jsonl
  arena log export arena-out/smoke-1 --csv --turns --out turns.csv";

/// `arena log export`
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("format").required(true).args(["jsonl", "csv", "parquet"])))]
pub struct ExportArgs {
    /// The folder of the log
    pub log: PathBuf,
    /// JSON, one object per line
    #[arg(long)]
    pub jsonl: bool,
    /// Comma-separated values (RFC 4180), with a line of names
    #[arg(long)]
    pub csv: bool,
    /// Apache Parquet, in builds with the feature `parquet`; needs --out
    #[arg(long, requires = "out")]
    pub parquet: bool,
    /// One row per match, which is the default
    #[arg(long, conflicts_with = "turns")]
    pub matches: bool,
    /// One row per turn
    #[arg(long)]
    pub turns: bool,
    /// The file, which is replaced [default: standard output]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

#[cfg(feature = "index")]
const INDEX_HELP: &str = "\
The file can be deleted and made again at any time. Nothing that judges reads it.

Example:
  arena log index arena-out/smoke-1 --out smoke.sqlite";

/// `arena log index`
#[cfg(feature = "index")]
#[derive(Debug, Args)]
pub struct IndexArgs {
    /// The folder of the log
    pub log: PathBuf,
    /// The SQLite file, which is replaced
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
}

/// What ends the help of `arena submit`.
pub const SUBMIT_HELP: &str = "\
The statement says which component plays under which name, in which roles. Send it to the
organiser with the component; it enters the announcement, so that nobody can swap the agent.

With --contribute, a random value that only you know becomes part of the draws. Keep its file
until the organiser asks for it, which is after the announcement is signed: while it is
secret, nobody can choose draws that suit them.

The password of an encrypted key goes into ARENA_KEY_PASSWORD.

Examples:
  arena log keygen --out author.pem --name haggler-team
  arena submit haggler.wasm --tournament spring --key author.pem --author haggler-team
  arena submit haggler.wasm --tournament spring --key author.pem --params low=30% --contribute";

/// `arena submit`
#[derive(Debug, Args)]
pub struct SubmitArgs {
    /// The component
    #[arg(value_name = "FILE.wasm")]
    pub component: String,
    /// The author's key file
    #[arg(long, value_name = "FILE")]
    pub key: PathBuf,
    /// The tournament that the agent enters: the `name` of its file
    #[arg(long, value_name = "NAME")]
    pub tournament: String,
    /// The parameters that the agent is given, as the tournament file will give them
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub params: String,
    /// Name of the author's key [default: the agent's name]
    #[arg(long)]
    pub author: Option<String>,
    /// The agent's name in the tournament [default: the file's name]
    #[arg(long, value_name = "AGENT")]
    pub name: Option<String>,
    /// The roles that it may play
    #[arg(long, value_name = "ROLES", default_value = "buyer,seller", value_parser = parse_roles)]
    pub roles: Roles,
    /// Also make a secret contribution to the draws, and commit to it
    #[arg(long)]
    pub contribute: bool,
    /// The statement, which must not exist [default: AGENT.submission]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// Roles on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Roles {
    /// Buyer, seller.
    pub granted: [bool; 2],
}

fn parse_roles(text: &str) -> Result<Roles, String> {
    let granted = match text {
        "buyer,seller" | "seller,buyer" => [true, true],
        "buyer" => [true, false],
        "seller" => [false, true],
        _ => return Err("needs `buyer`, `seller` or `buyer,seller`".to_owned()),
    };
    Ok(Roles { granted })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_are_read_in_either_order() {
        assert_eq!(parse_roles("seller,buyer"), parse_roles("buyer,seller"));
        assert_eq!(parse_roles("seller"), Ok(Roles { granted: [false, true] }));
        for text in ["", "buyer,", "buyer,buyer", "Buyer"] {
            assert!(parse_roles(text).is_err(), "{text}");
        }
    }
}
