//! When trusted witnesses say that they saw a log: the only times that say anything.
//!
//! A head cosigned at a time is not younger than that; what holds a beacon's round is not older
//! than the round. A witness's own clock must run forwards.
//!
//! Not here: whether enough witnesses cosigned the newest head (`arena_log::policy`).

use arena_core::draws::Draws;
use arena_log::checkpoint::Head;
use arena_log::cosignature;
use arena_log::note::{Note, Vkey};
use arena_log::policy::Policy;

use crate::announcement::Announced;
use crate::beacon;
use crate::verdict::{Finding, Findings};

/// One head, seen by one witness.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Sighting {
    pub witness: String,
    pub size: u64,
    /// Seconds since 1970, as the witness says.
    pub time: u64,
}

/// Gathers what the policy's witnesses say of the heads of a log, by witness and size.
pub(crate) fn gather<'a>(
    policy: &Policy,
    log: &Vkey,
    heads: impl Iterator<Item = &'a [u8]>,
) -> Vec<Sighting> {
    let mut sightings = Vec::new();
    for bytes in heads {
        let (Ok(note), Ok(head)) = (Note::parse(bytes), Head::open(bytes, log)) else {
            continue;
        };
        for witness in policy.witnesses() {
            if let Ok(time) = cosignature::verify(&note, witness) {
                let witness = witness.name().to_owned();
                sightings.push(Sighting { witness, size: head.size, time });
            }
        }
    }
    sightings.sort();
    sightings.dedup();
    sightings
}

/// Checks that no witness saw a larger log before it saw a smaller one.
pub(crate) fn check_order(found: &mut Findings, sightings: &[Sighting]) {
    for pair in sightings.windows(2) {
        let [earlier, later] = pair else { continue };
        if earlier.witness == later.witness
            && earlier.size < later.size
            && earlier.time > later.time
        {
            let what = format!("the time at which `{}` saw {} entries", later.witness, later.size);
            let wanted = format!("at least {}, when it saw {}", earlier.time, earlier.size);
            found.add(Finding::new(what, later.time, wanted));
        }
    }
}

/// Holds the sightings against the moment at which the beacon's round came out, and says what
/// they show. Nothing to say is an empty text.
///
/// # Errors
/// A witness saw the round in the log before it came out.
pub(crate) fn about_round(
    announced: &Announced,
    sightings: &[Sighting],
) -> Result<String, Finding> {
    let Draws::Committed(committed) = &announced.announcement.draws else {
        return Ok(String::new());
    };
    let Some(time) = committed.beacon.and_then(|beacon| beacon::round_time(beacon.round)) else {
        return Ok(String::new());
    };
    // Entry 1 is the draw, which holds the round.
    if let Some(early) = sightings.iter().find(|seen| seen.size > 1 && seen.time < time) {
        let what = format!("the time at which `{}` saw the beacon's round", early.witness);
        let wanted = format!("at least {time}, when the round came out");
        return Err(Finding::new(what, early.time, wanted));
    }
    let first = sightings.iter().filter(|seen| seen.size == 1).min_by_key(|seen| seen.time);
    Ok(match first {
        Some(seen) if seen.time < time => format!(
            "`{}` saw the announcement {} seconds before the round came out",
            seen.witness,
            time - seen.time
        ),
        _ => "no trusted witness shows that the announcement is older than the round".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_witness_whose_clock_runs_backwards_is_found() {
        let seen = |witness: &str, size, time| Sighting { witness: witness.to_owned(), size, time };
        let forwards = [seen("one", 1, 5), seen("one", 9, 5), seen("two", 3, 1)];
        let mut found = Findings::default();
        check_order(&mut found, &forwards);
        assert!(found.is_empty(), "{found:?}");
        check_order(&mut found, &[seen("one", 1, 5), seen("one", 9, 4)]);
        assert!(!found.is_empty());
    }
}
