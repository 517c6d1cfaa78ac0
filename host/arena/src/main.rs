//! The command line of arena: the only crate that prints.
//!
//! Results go to standard output, everything else to standard error. Exit codes say what kind
//! of trouble there was.
//!
//! Not here: any rule, score or statistic (`arena_core`).

mod advance;
mod cli;
mod clock;
mod commands;
mod drawing;
mod engines;
mod error;
mod escape;
mod examination;
mod files;
mod inputs;
mod interrupt;
mod lending;
mod live;
mod matches;
mod model_files;
mod opponents;
mod outputs;
mod packages;
mod playing;
mod preparation;
mod progress;
mod reading;
mod reexecution;
mod render;
mod replays;
mod rescoring;
mod results;
mod sandbox;
mod screen;
mod secrets;
mod shell;
mod store;
mod submissions;
mod training;
mod trust;

use std::process::ExitCode;

use clap::Parser;

use crate::cli::log::LogCommand;
use crate::cli::model::ModelCommand;
use crate::cli::train::TrainCommand;
use crate::cli::{AgentCommand, CatalogCommand, Cli, Command, TournamentCommand};
use crate::commands::train::Extent;
use crate::error::{CliError, EXIT_OK};

fn main() -> ExitCode {
    let command = Cli::parse().command;
    // The child that compiles strangers' code does nothing else.
    if matches!(command, Command::CompileWorker) {
        return arena_sandbox::worker::serve();
    }
    let code = match dispatch(&command) {
        Ok(code) => code,
        Err(error) => {
            if let Some(complaint) = error.complaint() {
                screen::complain(complaint);
            }
            error.exit_code()
        }
    };
    ExitCode::from(code)
}

/// Runs the command and returns its exit code.
fn dispatch(command: &Command) -> Result<u8, CliError> {
    match command {
        Command::Tournament(TournamentCommand::Run(args)) => commands::tournament_run::run(args),
        Command::Tournament(TournamentCommand::Show(args)) => {
            done(commands::tournament_show::run(args))
        }
        Command::Match(args) => done(commands::one_match::run(args)),
        Command::Agent(AgentCommand::New(args)) => done(commands::agent_new::run(args)),
        Command::Agent(AgentCommand::Check(args)) => commands::agent_check::run(args),
        Command::Agent(AgentCommand::List(args)) => done(commands::agent_list::run(args)),
        Command::Catalog(CatalogCommand::Import(args)) => done(commands::catalog_import::run(args)),
        Command::Catalog(CatalogCommand::Show(args)) => done(commands::catalog_show::run(args)),
        Command::Model(command) => done(model(command)),
        Command::Train(command) => train(command),
        Command::Audit(args) => commands::audit::run(args),
        Command::Log(command) => done(log(command)),
        Command::Submit(args) => done(commands::submit::run(args)),
        Command::CompileWorker => unreachable!("the worker is served before any command"),
    }
}

fn log(command: &LogCommand) -> Result<(), CliError> {
    match command {
        LogCommand::Keygen(args) => commands::log_keygen::run(args),
        LogCommand::Show(args) => commands::log_show::run(args),
        LogCommand::Prove(args) => commands::log_prove::run(args),
        LogCommand::Witness(args) => commands::log_witness::run(args),
        LogCommand::Export(args) => commands::log_export::run(args),
        #[cfg(feature = "index")]
        LogCommand::Index(args) => commands::log_index::run(args),
    }
}

fn model(command: &ModelCommand) -> Result<(), CliError> {
    match command {
        ModelCommand::Pull(args) => commands::model_pull::run(args),
        ModelCommand::Add(args) => commands::model_add::run(args),
        ModelCommand::List(args) => commands::model_list::run(args),
        ModelCommand::Show(args) => commands::model_show::run(args),
        ModelCommand::Chat(args) => commands::model_chat::run(args),
        ModelCommand::Bench(args) => commands::model_bench::run(args),
    }
}

fn train(command: &TrainCommand) -> Result<u8, CliError> {
    match command {
        TrainCommand::Run(args) => {
            commands::train::run(&args.begin, Extent::Whole { json: args.json })
        }
        TrainCommand::Sft(args) => commands::train::run(args, Extent::WarmStart),
        TrainCommand::Evaluate(args) => commands::train::evaluate(args),
        TrainCommand::Plot(args) => done(commands::train_plot::run(args)),
        TrainCommand::Show(args) => done(commands::train_show::run(args)),
    }
}

fn done(result: Result<(), CliError>) -> Result<u8, CliError> {
    result.map(|()| EXIT_OK)
}
