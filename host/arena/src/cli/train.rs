//! `arena train`: the flags of everything around training.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Commands about training.
#[derive(Debug, Subcommand)]
pub enum TrainCommand {
    /// Train the policy of an experiment file, or go on training it
    #[command(after_help = RUN_HELP)]
    Run(TrainRunArgs),
    /// Make the warm start of an experiment alone: learn from a teacher's demonstrations
    #[command(after_help = SFT_HELP)]
    Sft(TrainBeginArgs),
    /// Evaluate the newest policy of a run
    #[command(after_help = EVALUATE_HELP)]
    Evaluate(TrainEvaluateArgs),
    /// Draw the curves of one or several runs on a page
    #[command(after_help = PLOT_HELP)]
    Plot(TrainPlotArgs),
    /// Print what one or several runs came to
    #[command(after_help = SHOW_HELP)]
    Show(TrainShowArgs),
}

const RUN_HELP: &str = "\
Each step plays a tournament with the policy, learns from its matches and writes into a signed
ledger what it learned from; `arena audit RUN` computes every reward again. On the device cpu the
same experiment gives the same policies, to the bit, on every machine.

Interrupted by Ctrl-C or killed, the same command goes on, and nothing comes out differently.
The keys of experiment files are described in host/arena-train/EXPERIMENTS.md.

Examples:
  arena train run tournaments/experiments/compact.toml --out runs/compact-1
  arena train run tournaments/experiments/compact.toml --out runs/compact-2 --seed 2 --steps 50";

const SFT_HELP: &str = "\
`arena train run` in the same folder goes on from there.

Examples:
  arena train sft tournaments/experiments/compact.toml --out runs/compact-1";

const EVALUATE_HELP: &str = "\
What is there already is not played again.

Examples:
  arena train evaluate runs/compact-1 --json";

const PLOT_HELP: &str = "\
The page is one HTML file that needs nothing else. Every run's folder holds the same numbers as
lines of JSON, steps.jsonl and evaluations.jsonl, and as event files for TensorBoard.

Examples:
  arena train plot runs/compact-1 --out compact.html
  arena train plot runs/compact-* --out seeds.html";

const SHOW_HELP: &str = "\
The numbers are those of the runs' own files; `arena audit RUN` says whether they hold. Controls and
seeds are shown side by side, and runs that go on as they are.

Examples:
  arena train show runs/compact-1
  arena train show runs/compact-* --json
  arena train show runs/compact-* --csv > curves.csv";

/// `arena train show`
#[derive(Debug, Args)]
pub struct TrainShowArgs {
    /// Folders of runs
    #[arg(required = true, value_name = "RUN")]
    pub runs: Vec<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Print the curves instead: one line for each step of each run
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,
}

/// `arena train plot`
#[derive(Debug, Args)]
pub struct TrainPlotArgs {
    /// Folders of runs
    #[arg(required = true, value_name = "RUN")]
    pub runs: Vec<PathBuf>,
    /// The page
    #[arg(long, value_name = "FILE", default_value = "plot.html")]
    pub out: PathBuf,
}

/// `arena train run`
#[derive(Debug, Args)]
pub struct TrainRunArgs {
    /// What is trained, and where.
    #[command(flatten)]
    pub begin: TrainBeginArgs,
    /// Print the newest evaluation as JSON
    #[arg(long)]
    pub json: bool,
}

/// `arena train sft`
#[derive(Debug, Args)]
pub struct TrainBeginArgs {
    /// The experiment file (TOML)
    pub experiment: PathBuf,
    /// Folder of the run; what it holds is continued
    #[arg(long, value_name = "RUN")]
    pub out: PathBuf,
    /// Seed of every draw, in place of the file's
    #[arg(long, value_name = "S")]
    pub seed: Option<u64>,
    /// Number of steps, in place of the file's
    #[arg(long, value_name = "N")]
    pub steps: Option<u32>,
    /// Matches played at the same time [default: enough to fill the models' slots]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub workers: Option<u16>,
    /// Threads that compute models [default: one per processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// Folder of an imported catalog, in place of the file's
    #[arg(long, value_name = "DIR")]
    pub catalog: Option<PathBuf>,
}

/// `arena train evaluate`
#[derive(Debug, Args)]
pub struct TrainEvaluateArgs {
    /// Folder of the run
    pub run: PathBuf,
    /// Matches played at the same time [default: enough to fill the models' slots]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub workers: Option<u16>,
    /// Threads that compute models [default: one per processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// Folder of an imported catalog, in place of the experiment's
    #[arg(long, value_name = "DIR")]
    pub catalog: Option<PathBuf>,
    /// Print the newest evaluation as JSON
    #[arg(long)]
    pub json: bool,
}
