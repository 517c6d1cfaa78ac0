//! Checks the `[[agents]]` tables of a tournament file.

use std::collections::BTreeSet;

use toml::Spanned;

use crate::scenario::Brief;

use super::check::Checked;
use super::error::{Mistake, suggestion};
use super::parse::RawAgent;
use super::values::{check_length, check_name, check_path};
use super::{AGENTS_MAX, AgentConfig, ComponentSource, ModelConfig, ScheduleKind, Training};

pub(super) fn check_agents(
    given: &Spanned<Vec<Spanned<RawAgent>>>,
    schedule: ScheduleKind,
    self_play: bool,
    models: &[ModelConfig],
) -> Checked<Vec<AgentConfig>> {
    let mut agents = Vec::new();
    let mut names = BTreeSet::new();
    for given in given.get_ref() {
        if agents.len() >= AGENTS_MAX {
            return Err(Mistake::at(given.span(), format!("more than `{AGENTS_MAX}` agents")));
        }
        let agent = check_agent(given.get_ref(), schedule, models)?;
        if !names.insert(agent.name.clone()) {
            let message = format!("a second agent named `{}`", agent.name);
            return Err(Mistake::at(given.get_ref().name.span(), message));
        }
        agents.push(agent);
    }
    match check_agent_counts(&agents, schedule, self_play) {
        Ok(()) => Ok(agents),
        Err((message, hint)) => {
            let mistake = Mistake::at(given.span(), message).hint(hint.to_owned());
            Err(Mistake { key: Some("agents"), ..mistake })
        }
    }
}

fn check_agent_counts(
    agents: &[AgentConfig],
    schedule: ScheduleKind,
    self_play: bool,
) -> Result<(), (String, &'static str)> {
    let agent_count = agents.len();
    let candidate_count = agents.iter().filter(|agent| agent.candidate).count();
    match schedule {
        ScheduleKind::RoundRobin if agent_count == 0 => {
            Err(("no agent".to_owned(), "add an `[[agents]]` table"))
        }
        ScheduleKind::RoundRobin if agent_count == 1 && !self_play => {
            Err(("one agent meets nobody".to_owned(), "add a second one, or `self_play = true`"))
        }
        ScheduleKind::Gauntlet if candidate_count == 0 => {
            Err(("a gauntlet without a candidate".to_owned(), "mark one `candidate = true`"))
        }
        ScheduleKind::Gauntlet if candidate_count == agent_count => {
            Err(("a gauntlet without a field".to_owned(), "add agents that are no candidates"))
        }
        _ => Ok(()),
    }
}

fn check_agent(
    raw: &RawAgent,
    schedule: ScheduleKind,
    models: &[ModelConfig],
) -> Checked<AgentConfig> {
    if let Some(candidate) = &raw.candidate
        && schedule == ScheduleKind::RoundRobin
    {
        let message = "`candidate` has no effect on a round robin".to_owned();
        return Err(Mistake::at(candidate.span(), message)
            .hint("leave it out, or set `schedule = \"gauntlet\"`".to_owned()));
    }
    let mut granted: Vec<String> = Vec::new();
    for given in &raw.models {
        let model = given.get_ref();
        let names: Vec<&str> = models.iter().map(|model| model.name.as_str()).collect();
        if !names.contains(&model.as_str()) {
            let hint = match names.is_empty() {
                true => "models are declared in `[[models]]` tables".to_owned(),
                false => suggestion(model, &names),
            };
            return Err(
                Mistake::at(given.span(), format!("no model is named `{model}`")).hint(hint)
            );
        }
        if granted.contains(model) {
            return Err(Mistake::at(given.span(), format!("`{model}` is granted twice")));
        }
        granted.push(model.clone());
    }
    Ok(AgentConfig {
        name: check_name(&raw.name)?,
        component: check_component(&raw.component)?,
        params: match &raw.params {
            None => String::new(),
            Some(params) => {
                check_length(params, 0..=Brief::PARAMS_BYTES_MAX)?;
                params.get_ref().clone()
            }
        },
        candidate: raw.candidate.as_ref().is_some_and(|given| *given.get_ref()),
        models: granted,
        training: raw.training.map_or(Training::None, |given| given.0),
        submission: raw.submission.as_ref().map(check_path).transpose()?,
    })
}

fn check_component(given: &Spanned<String>) -> Checked<ComponentSource> {
    let text = given.get_ref();
    if let Some(name) = text.strip_prefix("builtin:") {
        let named = Spanned::new(given.span(), name.to_owned());
        return Ok(ComponentSource::Builtin(check_name(&named)?));
    }
    let path = check_path(given)?;
    if path.ends_with(".wasm") {
        return Ok(ComponentSource::File(path));
    }
    let message = format!("`{}` is not a component", text);
    let hint = if path.ends_with(".cwasm") {
        "precompiled code is never accepted, give the `.wasm` file"
    } else {
        "give `builtin:NAME` or the path of a `.wasm` file"
    };
    Err(Mistake::at(given.span(), message).hint(hint.to_owned()))
}
