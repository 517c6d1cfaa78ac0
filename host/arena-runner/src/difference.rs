//! How another tournament differs from this job: the first field, and what either says.
//!
//! Not here: what was opened of the draws (`identity`).

use arena_core::announcement::Announcement;
use arena_core::draws::{BeaconRound, Draws};
use arena_core::entry::{AnnouncementEntry, DrawEntry};
use arena_core::hexadecimal::hex;

use crate::error::RunError;

/// One field: its name, what the log says, and what this run would say.
type Difference = (String, String, String);

/// Says how a log's first entry, of other bytes than this job's, differs from it. `announced`
/// is what the log's entry binds, where it was found.
pub fn of_openings(
    found: &AnnouncementEntry,
    announced: Option<&Announcement>,
    wanted: &AnnouncementEntry,
    announcement: &Announcement,
) -> RunError {
    let between = announced.and_then(|announced| of_announcements(announced, announcement));
    let (field, found, wanted) = between
        .or_else(|| first(opening_fields(found), opening_fields(wanted)))
        .expect("entries of different bytes differ in a field");
    RunError::AnnouncementDiffers { field, found, wanted }
}

/// Says how a log's draw differs from this job's, if it does.
pub fn of_draws(found: &DrawEntry, wanted: &DrawEntry) -> Option<RunError> {
    let (field, found, wanted) = first(draw_fields(found), draw_fields(wanted))?;
    Some(RunError::AnnouncementDiffers { field, found, wanted })
}

fn of_announcements(found: &Announcement, wanted: &Announcement) -> Option<Difference> {
    let texts = [
        ("engine", &found.engine, &wanted.engine),
        ("config_toml", &found.config_toml, &wanted.config_toml),
    ];
    let lines = || texts.iter().find_map(|(field, found, wanted)| line(field, found, wanted));
    first(fields(found), fields(wanted)).or_else(lines)
}

fn first(found: Vec<(String, String)>, wanted: Vec<(String, String)>) -> Option<Difference> {
    let differs = found.into_iter().zip(wanted).find(|(found, wanted)| found != wanted);
    differs.map(|((field, found), (_, wanted))| (field, found, wanted))
}

/// Lists the fields of a first entry. What it binds comes last: its hash says the least.
fn opening_fields(opening: &AnnouncementEntry) -> Vec<(String, String)> {
    let AnnouncementEntry { origin, log_key, announcement_sha256 } = opening;
    vec![
        ("origin".to_owned(), origin.clone()),
        ("log_key".to_owned(), hex(log_key)),
        ("announcement_sha256".to_owned(), hex(announcement_sha256)),
    ]
}

/// Lists an announcement's fields by name, but for its texts. The length of a list comes
/// before its members, so that lists agree in their names until the first difference.
fn fields(announcement: &Announcement) -> Vec<(String, String)> {
    let Announcement { name, draws, models, agents, catalog_sha256, .. } = announcement;
    let mut fields = vec![("name".to_owned(), name.clone())];
    fields.extend(fields_of_draws(draws));
    fields.push(("item_count".to_owned(), announcement.item_count.to_string()));
    fields.push(("catalog_sha256".to_owned(), hex(catalog_sha256)));
    fields.push(("models".to_owned(), models.len().to_string()));
    for (place, model) in models.iter().enumerate() {
        fields.push((format!("models[{place}].name"), model.name.clone()));
        let context = model.context_tokens.to_string();
        fields.push((format!("models[{place}].context_tokens"), context));
        fields.push((format!("models[{place}].sha256"), hex(&model.sha256)));
    }
    fields.push(("agents".to_owned(), agents.len().to_string()));
    for (place, agent) in agents.iter().enumerate() {
        fields.push((format!("agents[{place}].name"), agent.name.clone()));
        let hash = hex(&agent.component_sha256);
        fields.push((format!("agents[{place}].component_sha256"), hash));
        fields.push((format!("agents[{place}].params"), agent.params.clone()));
        let submission = agent.submission.clone().unwrap_or_else(none);
        fields.push((format!("agents[{place}].submission"), submission));
    }
    fields.push(("pair_count".to_owned(), announcement.pair_count.to_string()));
    fields.push(("checkpoint_every".to_owned(), announcement.checkpoint_every.to_string()));
    fields
}

fn fields_of_draws(draws: &Draws) -> Vec<(String, String)> {
    let committed = match draws {
        Draws::PublicSeed(seed) => {
            let kind = ("draws".to_owned(), "a public seed".to_owned());
            return vec![kind, ("seed".to_owned(), seed.to_string())];
        }
        Draws::Committed(committed) => committed,
    };
    let beacon = committed
        .beacon
        .map(|BeaconRound { chain, round }| format!("round {round} of the chain {}", hex(&chain)));
    let mut fields = vec![
        ("draws".to_owned(), "committed".to_owned()),
        ("secret_commitment".to_owned(), hex(&committed.secret_commitment)),
        ("beacon".to_owned(), beacon.unwrap_or_else(none)),
        ("contributions".to_owned(), committed.contributions.len().to_string()),
    ];
    for (place, contribution) in committed.contributions.iter().enumerate() {
        fields.push((format!("contributions[{place}]"), hex(contribution)));
    }
    fields
}

fn draw_fields(draw: &DrawEntry) -> Vec<(String, String)> {
    let DrawEntry { tournament, contributions, beacon } = draw;
    let mut fields = vec![
        ("draw.tournament".to_owned(), tournament.to_string()),
        ("draw.contributions".to_owned(), contributions.len().to_string()),
    ];
    for (place, opened) in contributions.iter().enumerate() {
        let opened = opened.map_or_else(none, |opened| hex(&opened));
        fields.push((format!("draw.contributions[{place}]"), opened));
    }
    let round = beacon.map_or_else(none, |beacon| beacon.round.to_string());
    fields.push(("draw.beacon".to_owned(), round));
    let signature = beacon.map_or_else(none, |beacon| hex(&beacon.signature));
    fields.push(("draw.beacon.signature".to_owned(), signature));
    fields
}

fn none() -> String {
    "none".to_owned()
}

/// Returns the first line in which two texts differ: its name, and what either says.
fn line(field: &str, found: &str, wanted: &str) -> Option<(String, String, String)> {
    if found == wanted {
        return None;
    }
    let (mut found, mut wanted) = (found.split('\n'), wanted.split('\n'));
    let mut line_number = 0;
    // Texts that differ do so in a line, at the latest in the one that only the longer has.
    loop {
        line_number += 1;
        let lines = (found.next(), wanted.next());
        if lines.0 != lines.1 {
            let text = |line: Option<&str>| line.unwrap_or("(no such line)").to_owned();
            let name = format!("{field} line {line_number}");
            return Some((name, text(lines.0), text(lines.1)));
        }
    }
}
