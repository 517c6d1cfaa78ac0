//! Opens what is added to the draws after the announcement: contributions of entrants, and a
//! round of a random beacon.
//!
//! Nothing that is opened here can have been known when the organiser's secret was chosen: it is
//! taken only once there is a signed announcement that commits to it, and only if it is what was
//! announced. What the log already holds is not drawn again.
//!
//! Not here: what is drawn from it (`arena_core::draws`), and the beacon's signature
//! (`arena_audit::beacon`).

use std::path::Path;

use arena_audit::beacon;
use arena_core::announcement::Announcement;
use arena_core::draws::{BeaconRound, BeaconValue, CommittedDraws, Draws, commit_contribution};
use arena_core::entry::{DrawEntry, TournamentId};
use arena_core::hexadecimal::hex;
use arena_core::submission::Submission;
use arena_log::note::Note;

use crate::cli::RunArgs;
use crate::error::{CliError, Complaint};
use crate::preparation::Prepared;
use crate::{clock, files, reading, screen, secrets};

/// Longest file of a beacon's round in bytes.
const BEACON_BYTES_MAX: u64 = 4_096;

/// Where rounds of drand's chains are published.
const DRAND_API: &str = "https://api.drand.sh";

/// What is known of the draws.
#[derive(Debug)]
pub enum Drawing {
    /// They are open; the log's second entry, if it has one.
    Open(Option<DrawEntry>),
    /// The announcement is to be signed first, or something is still to come: each with how to
    /// give it.
    Awaited(Vec<String>),
}

/// Opens the draws with what the log holds, or else with what the command line gives.
///
/// # Errors
/// Something is given that is not what was announced, comes too early, or has no effect.
pub fn open(prepared: &Prepared, args: &RunArgs) -> Result<Drawing, CliError> {
    let announcement = &prepared.announcement;
    let committed = match &announcement.draws {
        Draws::Committed(committed) if announcement.draws.need_draw_entry() => committed,
        _ => {
            refuse(args, "nothing was announced that adds to the draws")?;
            if args.past_round {
                return Err(useless_past_round("no round of the beacon is announced"));
            }
            return Ok(Drawing::Open(None));
        }
    };
    let awaited = || Drawing::Awaited(await_all(announcement, committed));
    if !secrets::has_head(&prepared.out_dir) {
        // Whoever knows them before the secret is bound can choose a secret that suits.
        refuse(args, "it must not be known before the announcement is signed")?;
        check_round(committed, args.past_round)?;
        return Ok(awaited());
    }
    let tournament = arena_runner::tournament_id(&prepared.opening);
    let recorded = reading::recorded_draw(&prepared.out_dir)?;
    let given = Given::read(committed, args)?;
    match recorded {
        // Another tournament's log, as the runner will say.
        Some(recorded) if recorded.tournament != tournament => Ok(awaited()),
        Some(recorded) => {
            given.agree(&recorded)?;
            Ok(Drawing::Open(Some(recorded)))
        }
        None => Ok(given.draw(announcement, committed, tournament, args.skip_unopened)),
    }
}

/// Complains about the first flag that would have no effect or is too early.
fn refuse(args: &RunArgs, fact: &str) -> Result<(), CliError> {
    let flags = [
        (args.beacon.is_some(), "--beacon"),
        (!args.contributions.is_empty(), "--contribution"),
        (args.skip_unopened, "--skip-unopened"),
    ];
    match flags.into_iter().find(|(given, _)| *given) {
        None => Ok(()),
        Some((_, flag)) => {
            let complaint = Complaint::new(format!("cannot use `{flag}`"), fact);
            Err(CliError::Config(complaint.hint(format!("run this without `{flag}` first"))))
        }
    }
}

/// What the command line opens.
struct Given {
    contributions: Vec<Option<[u8; 32]>>,
    beacon: Option<BeaconValue>,
}

impl Given {
    fn read(committed: &CommittedDraws, args: &RunArgs) -> Result<Given, CliError> {
        let mut contributions = vec![None; committed.contributions.len()];
        for path in &args.contributions {
            let value = secrets::read_value(path).map_err(CliError::Input)?;
            let commitment = commit_contribution(&value);
            let mut announced = committed.contributions.iter();
            let Some(place) = announced.position(|announced| *announced == commitment) else {
                let failed = format!("cannot use the contribution `{}`", path.display());
                let fact = format!("no submission commits to it, as `{}`", hex(&commitment));
                return Err(CliError::Input(Complaint::new(failed, fact)));
            };
            contributions[place] = Some(value);
        }
        let beacon = match (&args.beacon, committed.beacon) {
            (Some(path), Some(announced)) => Some(read_beacon(path, announced)?),
            (Some(_), None) => {
                let fact = "the tournament file names no `beacon_round`";
                return Err(CliError::Config(Complaint::new("cannot use `--beacon`", fact)));
            }
            (None, _) => None,
        };
        Ok(Given { contributions, beacon })
    }

    /// Makes the entry, or says what is still to come.
    fn draw(
        self,
        announcement: &Announcement,
        committed: &CommittedDraws,
        tournament: TournamentId,
        skip_unopened: bool,
    ) -> Drawing {
        let mut awaited = Vec::new();
        if let (Some(announced), None) = (committed.beacon, self.beacon) {
            awaited.push(await_beacon(announced));
        }
        if !skip_unopened {
            let unopened = committed.contributions.iter().zip(&self.contributions);
            let unopened = unopened.filter(|(_, opened)| opened.is_none());
            awaited.extend(unopened.map(|(commitment, _)| await_one(announcement, commitment)));
        }
        if !awaited.is_empty() {
            return Drawing::Awaited(awaited);
        }
        let Given { contributions, beacon } = self;
        Drawing::Open(Some(DrawEntry { tournament, contributions, beacon }))
    }

    /// Holds what is given to the entry that the log already has.
    fn agree(&self, recorded: &DrawEntry) -> Result<(), CliError> {
        let beacons = self.beacon.is_none() || self.beacon == recorded.beacon;
        let mut pairs = self.contributions.iter().zip(&recorded.contributions);
        if beacons && pairs.all(|(given, recorded)| given.is_none() || given == recorded) {
            return Ok(());
        }
        let fact = "the log's draws were made with other values, or without one that is given";
        let hint = "leave `--beacon` and `--contribution` out: the log has what is drawn from";
        Err(CliError::Input(Complaint::new("cannot draw again", fact).hint(hint)))
    }
}

/// What drand's HTTP API answers. Further fields are of no use here.
#[derive(serde::Deserialize)]
struct BeaconFile {
    round: u64,
    signature: String,
}

fn read_beacon(path: &Path, announced: BeaconRound) -> Result<BeaconValue, CliError> {
    let fails = |fact: String| {
        let failed = format!("cannot use the beacon's round in `{}`", path.display());
        CliError::Input(Complaint::new(failed, fact))
    };
    let text = files::read_text(path, BEACON_BYTES_MAX).map_err(CliError::Input)?;
    let file: BeaconFile = serde_json::from_str(&text)
        .map_err(|error| fails(format!("not what drand gives: {error}")))?;
    if file.round != announced.round {
        return Err(fails(format!(
            "it is round `{}`, announced is `{}`",
            file.round, announced.round
        )));
    }
    let signature = signature(&file.signature)
        .ok_or_else(|| fails("its signature is not 96 lower-case hexadecimal digits".to_owned()))?;
    let value = BeaconValue { round: file.round, signature };
    beacon::check(&announced, &value).map_err(|finding| fails(finding.to_string()))?;
    Ok(value)
}

fn signature(digits: &str) -> Option<[u8; 48]> {
    let is_hex = |digit: u8| matches!(digit, b'0'..=b'9' | b'a'..=b'f');
    if digits.len() != 96 || !digits.bytes().all(is_hex) {
        return None;
    }
    let mut bytes = [0; 48];
    for (place, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&digits[place * 2..place * 2 + 2], 16).ok()?;
    }
    Some(bytes)
}

fn await_all(announcement: &Announcement, committed: &CommittedDraws) -> Vec<String> {
    let beacon = committed.beacon.map(await_beacon);
    let contributions = committed.contributions.iter();
    let contributions = contributions.map(|commitment| await_one(announcement, commitment));
    beacon.into_iter().chain(contributions).collect()
}

fn await_beacon(announced: BeaconRound) -> String {
    let BeaconRound { chain, round } = announced;
    format!("--beacon FILE: round {round}, from {DRAND_API}/{}/public/{round}", hex(&chain))
}

/// Refuses a round that is out before the announcement is signed, unless it is asked for: nobody
/// can tell then whether the secret was chosen with it.
fn check_round(committed: &CommittedDraws, is_past_asked: bool) -> Result<(), CliError> {
    let Some(announced) = committed.beacon else {
        return match is_past_asked {
            true => Err(useless_past_round("no round of the beacon is announced")),
            false => Ok(()),
        };
    };
    let now = clock::now()?;
    let is_out = beacon::round_time(announced.round).is_some_and(|time| time <= now);
    let fact = format!(
        "round {} of the beacon is out already, so it proves nothing about the secret",
        announced.round
    );
    match (is_out, is_past_asked) {
        (true, true) => screen::remark(&format!("warning: {fact}")),
        (true, false) => {
            let hint = "set `beacon_round` to one that is still to come; to repeat an old \
                        tournament or to try things out, `--past-round`";
            let complaint = Complaint::new("cannot announce the draws", fact);
            return Err(CliError::Config(complaint.hint(hint)));
        }
        (false, true) => return Err(useless_past_round("the announced round is still to come")),
        (false, false) => {}
    }
    Ok(())
}

fn useless_past_round(fact: &str) -> CliError {
    let complaint = Complaint::new("cannot use `--past-round`", fact);
    CliError::Config(complaint.hint("drop `--past-round`"))
}

/// Names the agent whose author committed to a contribution.
fn await_one(announcement: &Announcement, commitment: &[u8; 32]) -> String {
    let by = announcement.agents.iter().find(|agent| {
        let note = agent.submission.as_deref().unwrap_or_default();
        let note = Note::parse(note.as_bytes()).ok();
        let statement = note.and_then(|note| Submission::parse(note.text()).ok());
        statement.and_then(|statement| statement.contribution).as_ref() == Some(commitment)
    });
    let name = by.map_or("-", |agent| agent.name.as_str());
    format!("--contribution FILE: of the author of `{name}`, for {}", hex(commitment))
}
