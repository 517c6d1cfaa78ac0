//! `arena match`: plays one negotiation and prints it.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arena_core::catalog::{self, Catalog};
use arena_core::config::models::WeightsSource;
use arena_core::config::{TournamentConfig, is_name};
use arena_core::record::MatchRecord;
use arena_core::referee;
use arena_core::rules::Rules;
use arena_core::scenario::Role;
use arena_core::schedule::{self, PairPlan};
use arena_core::seat::Seat;
use arena_core::seed::Root;
use arena_llm::model::LanguageModel;
use arena_model::event::Listener;
use arena_sandbox::{Grants, GuestSeat, LoadedAgent, Sandbox};
use serde_json::json;

use crate::cli::{MatchArgs, RulesArg};
use crate::engines::{self, Computing};
use crate::error::{CliError, Complaint};
use crate::escape::escape;
use crate::lending::{self, Borrower};
use crate::live::{Live, Speaker};
use crate::render::{record, transcript};
use crate::screen::{self, Paint, Tone};
use crate::{inputs, model_files, sandbox};

/// Items that are generated at least; an item further on generates more.
const ITEMS_MIN: u32 = 100;
/// What the path of a model's script ends in.
const SCRIPT_ENDING: &str = ".toml";
/// How a match lends a model.
const LENDING_ADVICE: &str = "next: the same with --model smollm2";
/// What agents ask a model by whose own name is none.
const UNNAMED: &str = "model";

/// Plays and prints.
///
/// # Errors
/// An agent or catalog is wrong, there is no such item, or the host failed.
pub fn run(args: &MatchArgs) -> Result<(), CliError> {
    let config = config(args)?;
    let catalog = catalog(args, &config)?;
    let root = Root::Seed(args.seed);
    let scenario = catalog::draw_scenario(&config, &catalog, root, args.item, 0);
    let rules = Rules::new(&config.rules, &config.limits);
    let seeds = schedule::seat_seeds(root, 0)[0];
    let sandbox = sandbox::open(&config.limits, NonZeroUsize::MIN)?;
    let agents = [load(&sandbox, &args.buyer)?, load(&sandbox, &args.seller)?];
    remark_lending(args, &agents);
    let live = Arc::new(Live::on_stderr());
    let model = model(args, seeds, &live)?;
    let grants = Grants { models: model.into_iter().collect(), training: None };
    let mut buyer = seat(&sandbox, &args.buyer, &agents[0], &grants, seeds[0])?;
    let mut seller = seat(&sandbox, &args.seller, &agents[1], &grants, seeds[1])?;
    let params = [args.params_a.as_str(), args.params_b.as_str()];
    let seats: [&mut dyn Seat; 2] = [&mut buyer, &mut seller];
    let played = referee::play(&rules, &scenario, params, seeds, seats);
    live.end();
    let played = played.map_err(|voided| {
        let fact = format!("{}: {}", voided.reason.name(), voided.detail);
        let failed = format!("cannot play the {}'s seat", voided.by);
        CliError::Infrastructure(Complaint::new(failed, fact))
    })?;
    let plan = PairPlan { index: 0, agents: [0, 1], item_index: args.item, repetition: 0 };
    let record = played.into_record(&plan, 0, &scenario, seeds);
    print(args, &record, &scenario.item, &rules)
}

fn print(
    args: &MatchArgs,
    record: &MatchRecord,
    item: &arena_core::scenario::Item,
    rules: &Rules,
) -> Result<(), CliError> {
    let shown = [escape(&label(&args.buyer)), escape(&label(&args.seller))];
    let names = [shown[0].as_str(), shown[1].as_str()];
    if args.json {
        let mut value = record::to_json(record, names);
        value["item"] = json!({ "id": item.id, "title": item.title, "category": item.category });
        value["rules"] = json!(rules.set.name());
        return screen::json(&value);
    }
    let paint = Paint::of_stdout();
    let scene = transcript::Scene { names, item: Some(item), rules, trace: args.trace };
    let mut text = transcript::render(record, &scene, paint);
    let noted = record.usage.iter().any(|usage| !usage.trace.is_empty());
    let next = match (args.trace, noted) {
        (false, true) => "the same with --trace, for the agents' private notes".to_owned(),
        _ => format!("the same with --seed {}, for another match", args.seed.wrapping_add(1)),
    };
    text.push_str(&format!("\nnext: {next}\n"));
    screen::results(&text)
}

/// Says who is made to ask a model where none is named.
fn remark_lending(args: &MatchArgs, agents: &[LoadedAgent; 2]) {
    if args.model.is_some() {
        return;
    }
    let names = [label(&args.buyer), label(&args.seller)];
    let borrowers = [0, 1].map(|side| Borrower {
        name: &names[side],
        asks_models: agents[side].asks_models(),
        models: &[],
    });
    if let Some(note) = lending::note_unlent(&borrowers, LENDING_ADVICE) {
        screen::remark(&note);
    }
}

/// Returns a short name for an agent of the command line.
fn label(named: &str) -> String {
    match named.strip_prefix("builtin:") {
        Some(name) => name.to_owned(),
        None => {
            let path = std::path::Path::new(named);
            path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
        }
    }
}

fn load(sandbox: &Sandbox, named: &str) -> Result<LoadedAgent, CliError> {
    let bytes = inputs::component(named).map_err(CliError::Input)?;
    sandbox::load(sandbox, &format!("`{}`", escape(named)), &bytes)
}

fn seat(
    sandbox: &Sandbox,
    named: &str,
    agent: &LoadedAgent,
    grants: &Grants,
    seed: u64,
) -> Result<GuestSeat, CliError> {
    sandbox.seat(agent, grants, seed).map_err(|error| {
        let failed = format!("cannot seat `{}`", escape(named));
        CliError::Infrastructure(Complaint::new(failed, format!("{error:?}")))
    })
}

/// Loads the model that both sides are lent, if one is named. What an engine writes is shown.
fn model(
    args: &MatchArgs,
    seeds: [u64; 2],
    live: &Arc<Live>,
) -> Result<Option<Arc<dyn LanguageModel>>, CliError> {
    let Some(named) = &args.model else {
        return Ok(None);
    };
    if named.ends_with(SCRIPT_ENDING) {
        if args.device.is_some() || args.threads.is_some() {
            let fact = format!("`{named}` is a script, which nothing computes");
            let complaint = Complaint::new("cannot use `--device` and `--threads`", fact);
            return Err(CliError::Config(complaint.hint("drop them")));
        }
        let answering = engines::script(UNNAMED, Path::new(named))?;
        return Ok(Some(answering.model));
    }
    let found = model_files::find(&WeightsSource::parse(named))?;
    let config = engines::weights_at(&found.path);
    let computing = Computing::new(args.device.map(|device| device.0), args.threads);
    let listener = listener(seeds, Arc::clone(live));
    let resolve = |path: &str| PathBuf::from(path);
    let label = if is_name(&found.label) { &found.label } else { UNNAMED };
    let answering = engines::weights(label, &config, &resolve, &computing, Some(listener))?;
    Ok(Some(answering.model))
}

/// Returns what shows whose reply is being written: a call names its seat by the seat's seed.
fn listener(seeds: [u64; 2], live: Arc<Live>) -> Listener {
    let speakers = [(Role::Buyer, Tone::Note), (Role::Seller, Tone::Good)];
    let speakers = speakers.map(|(role, tone)| Speaker { name: role.to_string(), tone });
    Box::new(move |event| {
        if let Some(side) = seeds.iter().position(|seed| *seed == event.key.seat_seed) {
            live.write(&speakers[side], event.key.call_index, event.text);
        }
    })
}

/// Writes the match as a tournament file, so that the same bounds and defaults hold. What the
/// bounds of the flags leave to complain about is a length under rules that fix it.
fn config(args: &MatchArgs) -> Result<TournamentConfig, CliError> {
    let set = match args.rules {
        RulesArg::Standard => "standard",
        RulesArg::AmazonHistoryPrice => "amazon-history-price",
    };
    let horizon = args.turns.map_or(String::new(), |turns| format!("horizon.turns = {turns}\n"));
    let catalog = match &args.catalog {
        Some(_) => "kind = \"amazon-history-price\"\nfolder = \"given\"\n".to_owned(),
        None => {
            let items = args.item.saturating_add(1).max(ITEMS_MIN);
            format!("kind = \"synthetic\"\nitems = {items}\n")
        }
    };
    let text = format!(
        "name = \"match\"\nagents = [\n\
         {{ name = \"buyer\", component = \"builtin:a\" }},\n\
         {{ name = \"seller\", component = \"builtin:b\" }},\n]\n\
         [rules]\nset = \"{set}\"\n{horizon}\n[catalog]\n{catalog}",
    );
    TournamentConfig::parse(&text).map_err(|error| {
        let complaint = Complaint::new("cannot set up the match", error.message);
        CliError::Config(complaint.hint("leave `--turns` out"))
    })
}

fn catalog(args: &MatchArgs, config: &TournamentConfig) -> Result<Catalog, CliError> {
    let catalog = match &args.catalog {
        Some(folder) => inputs::amazon(folder)?,
        None => inputs::generate(&config.catalog.kind, Root::Seed(args.seed)),
    };
    if args.item as usize >= catalog.entries.len() {
        let fact = format!("the catalog has items 0 to {}", catalog.entries.len() - 1);
        let failed = format!("cannot find item {}", args.item);
        return Err(CliError::Config(Complaint::new(failed, fact)));
    }
    Ok(catalog)
}
