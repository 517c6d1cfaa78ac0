//! Which tournament a job is, and what its draws come from.
//!
//! What was opened of the draws is compared with what was announced before anything is
//! played, so that no log ever holds draws that its announcement does not allow.
//!
//! Not here: the signature of a beacon's round (`arena-audit`).

use arena_core::announcement::Announcement;
use arena_core::draws::{self, CommittedDraws, Draws};
use arena_core::entry::{AnnouncementEntry, DrawEntry, Entry, TournamentId};
use arena_core::hexadecimal::hex;
use arena_core::seed::Root;

use crate::Job;
use crate::error::RunError;

/// What follows from a job and goes into all that is written.
pub struct Identity {
    /// The tournament.
    pub tournament: TournamentId,
    /// What every draw comes from.
    pub root: Root,
    /// The first entry.
    pub opening: Vec<u8>,
    /// The second entry, where the draws need one.
    pub draw: Option<Vec<u8>>,
}

/// Returns the id of the tournament whose log opens with this entry.
pub fn tournament_id(opening: &AnnouncementEntry) -> TournamentId {
    TournamentId::of_first_entry(&Entry::Announcement(opening.clone()).encode())
}

impl Identity {
    /// Returns the identity of a job whose draws are all open.
    ///
    /// # Errors
    /// Something is missing of the draws, or is not what was announced.
    pub fn of(job: &Job<'_, '_>) -> Result<Identity, RunError> {
        let opening = Entry::Announcement(job.opening.clone()).encode();
        let tournament = TournamentId::of_first_entry(&opening);
        check_draw(&job.announcement.draws, tournament, job.draw)?;
        let root = match &job.announcement.draws {
            Draws::PublicSeed(seed) => Root::Seed(*seed),
            Draws::Committed(_) => {
                let secret = job.secret.ok_or(RunError::SecretNeeded)?;
                draws::master(&secret, tournament, job.draw)
            }
        };
        let draw = job.draw.map(|draw| Entry::Draw(draw.clone()).encode());
        Ok(Identity { tournament, root, opening, draw })
    }
}

/// Checks that the secret, if it is given, is the one that was announced.
pub fn check_secret(
    announcement: &Announcement,
    secret: Option<&[u8; 32]>,
) -> Result<(), RunError> {
    match (&announcement.draws, secret) {
        (_, None) => Ok(()),
        (Draws::PublicSeed(_), Some(_)) => compare("secret", "given", "none: the seed is public"),
        (Draws::Committed(committed), Some(secret)) => compare(
            "secret_commitment",
            &hex(&draws::commit_secret(secret)),
            &hex(&committed.secret_commitment),
        ),
    }
}

fn check_draw(
    draws: &Draws,
    tournament: TournamentId,
    draw: Option<&DrawEntry>,
) -> Result<(), RunError> {
    match (draws, draw) {
        (draws, None) if draws.need_draw_entry() => Err(RunError::DrawNeeded),
        (_, None) => Ok(()),
        (Draws::Committed(committed), Some(draw)) if draws.need_draw_entry() => {
            let id = tournament.to_string();
            compare("draw.tournament", &draw.tournament.to_string(), &id)?;
            check_contributions(committed, draw)?;
            check_beacon(committed, draw)
        }
        (_, Some(_)) => compare("draw", "given", "none: nothing is added to the draws"),
    }
}

fn check_contributions(committed: &CommittedDraws, draw: &DrawEntry) -> Result<(), RunError> {
    let (found, wanted) = (&draw.contributions, &committed.contributions);
    compare("draw.contributions", &found.len().to_string(), &wanted.len().to_string())?;
    for (place, (found, wanted)) in found.iter().zip(wanted).enumerate() {
        if let Some(opened) = found {
            let found = hex(&draws::commit_contribution(opened));
            compare(&format!("draw.contributions[{place}]"), &found, &hex(wanted))?;
        }
    }
    Ok(())
}

fn check_beacon(committed: &CommittedDraws, draw: &DrawEntry) -> Result<(), RunError> {
    let round = |round: Option<u64>| round.map_or("none".to_owned(), |round| round.to_string());
    let found = round(draw.beacon.as_ref().map(|value| value.round));
    compare("draw.beacon", &found, &round(committed.beacon.map(|beacon| beacon.round)))
}

fn compare(field: &str, found: &str, wanted: &str) -> Result<(), RunError> {
    if found == wanted {
        return Ok(());
    }
    let (field, found, wanted) = (field.to_owned(), found.to_owned(), wanted.to_owned());
    Err(RunError::NotAnnounced { field, found, wanted })
}
