//! The order of a log's entries, and that every scheduled match has exactly one record.
//!
//! After the announcement and, where the draws need one, the draw entry, each pair has its voids
//! and then its matches, two or one; the close and the reveal end the log. A record in another
//! place is a finding, and the next one is expected after it, so that one gap is one finding.
//!
//! Not here: what was played (`matches`).

use arena_core::announcement::AgentEntry;
use arena_core::entry::{Close, Entry, MatchEntry, TournamentId, VoidEntry};
use arena_core::schedule::Schedule;

use crate::AgentVoids;
use crate::announcement::Announced;
use crate::verdict::{Finding, Findings, Verdict, count};

/// How often one pair may be voided in a row before a run stops. A resumed run may try as often
/// again, so this bounds nothing that is checked; it is what a reader may expect.
const VOIDS_EXPECTED_MAX: u64 = 3;

/// What is counted of the entries.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counted {
    pub match_count: u64,
    pub void_count: u64,
    /// Pairs in which each agent sits that were begun, and how many of them were voided at
    /// least once.
    pub pairs: Vec<u64>,
    pub voided: Vec<u64>,
    /// The most voids of one pair.
    pub voids_of_a_pair_max: u32,
    /// The close, and where it is.
    pub close: Option<(u64, Close)>,
    pub revealed: bool,
}

impl Counted {
    /// Returns what was counted of each agent.
    pub fn voids(&self, announced: &Announced) -> Vec<AgentVoids> {
        let counts = self.pairs.iter().zip(&self.voided);
        let agents = announced.announcement.agents.iter().zip(counts);
        let of = |(agent, (pairs, voided)): (&AgentEntry, (&u64, &u64))| AgentVoids {
            agent: agent.name.clone(),
            pair_count: *pairs,
            voided_count: *voided,
        };
        agents.map(of).collect()
    }
}

/// Follows the entries of a log.
#[derive(Debug)]
pub(crate) struct Order {
    id: TournamentId,
    needs_draw: bool,
    place: Place,
    /// The pair and leg that come next.
    pair_index: u64,
    leg: u8,
    voids: u32,
    pub counted: Counted,
    pub entries: Findings,
    pub schedule: Findings,
    pub counts: Findings,
}

/// Which entries may come next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Announcement,
    Draw,
    Matches,
    Reveal,
    End,
}

impl Order {
    /// Starts before the first entry. Without an announcement nothing is known of the schedule,
    /// and whether a draw entry is due follows from the second entry.
    pub fn new(id: TournamentId, announced: Option<&Announced>) -> Order {
        let agents = announced.map_or(0, |announced| announced.announcement.agents.len());
        Order {
            id,
            needs_draw: announced
                .is_some_and(|announced| announced.announcement.draws.need_draw_entry()),
            place: Place::Announcement,
            pair_index: 0,
            leg: 0,
            voids: 0,
            counted: Counted {
                pairs: vec![0; agents],
                voided: vec![0; agents],
                ..Counted::default()
            },
            entries: Findings::default(),
            schedule: Findings::default(),
            counts: Findings::default(),
        }
    }

    /// Takes the next entry. Returns whether it stands where such an entry may stand.
    pub fn accept(&mut self, index: u64, entry: &Entry, announced: Option<&Announced>) -> bool {
        if let Some(of) = entry.tournament().filter(|of| *of != self.id) {
            self.entries.add(Finding::new("the tournament", of, self.id).at(index));
            return false;
        }
        let (place, next) = (self.place, self.next_place(entry, announced));
        let Some(next) = next else {
            let finding = Finding::new("the entry", kind(entry), expected(place));
            self.entries.add(finding.at(index));
            return false;
        };
        self.place = next;
        match entry {
            Entry::Match(entry) => self.take_match(index, entry, announced),
            Entry::Void(entry) => self.take_void(index, entry, announced),
            Entry::Close(close) => self.take_close(index, close, announced),
            Entry::Reveal(_) => self.counted.revealed = true,
            Entry::Announcement(_) | Entry::Draw(_) => {}
        }
        true
    }

    fn next_place(&self, entry: &Entry, announced: Option<&Announced>) -> Option<Place> {
        let draw_is_due = self.needs_draw || announced.is_none();
        match (self.place, entry) {
            (Place::Announcement, Entry::Announcement(_)) if draw_is_due => Some(Place::Draw),
            (Place::Announcement, Entry::Announcement(_)) => Some(Place::Matches),
            (Place::Draw, Entry::Draw(_)) => Some(Place::Matches),
            (Place::Draw, Entry::Match(_) | Entry::Void(_)) if announced.is_none() => {
                Some(Place::Matches)
            }
            (Place::Matches, Entry::Match(_) | Entry::Void(_)) => Some(Place::Matches),
            (Place::Matches, Entry::Close(_)) => Some(Place::Reveal),
            (Place::Reveal, Entry::Reveal(_)) => Some(Place::End),
            _ => None,
        }
    }

    fn take_match(&mut self, index: u64, entry: &MatchEntry, announced: Option<&Announced>) {
        self.counted.match_count += 1;
        let Some(announced) = announced else { return };
        let (found, wanted) = ((entry.pair_index, entry.leg), (self.pair_index, self.leg));
        let leg_count = announced.schedule.leg_count();
        if entry.pair_index >= announced.schedule.pair_count() || entry.leg >= leg_count {
            let is_over = wanted.0 >= announced.schedule.pair_count();
            let wanted = if is_over { "the close".to_owned() } else { leg_name(wanted) };
            self.schedule.add(Finding::new("the match", leg_name(found), wanted).at(index));
            return;
        }
        if found != wanted {
            let is_over = wanted.0 >= announced.schedule.pair_count();
            let wanted = if is_over { "the close".to_owned() } else { leg_name(wanted) };
            self.schedule.add(Finding::new("the match", leg_name(found), wanted).at(index));
        }
        self.schedule.check(seated(&announced.schedule, entry).map_err(|found| found.at(index)));
        // A pair that was voided before was counted then.
        if entry.leg == 0 && (self.voids == 0 || entry.pair_index != self.pair_index) {
            for agent in different(announced.schedule.pair(entry.pair_index).agents) {
                add(&mut self.counted.pairs, agent);
            }
        }
        (self.pair_index, self.leg) = match entry.leg + 1 {
            next if next < leg_count => (entry.pair_index, next),
            _ => (entry.pair_index + 1, 0),
        };
        self.voids = 0;
    }

    fn take_void(&mut self, index: u64, entry: &VoidEntry, announced: Option<&Announced>) {
        self.counted.void_count += 1;
        let Some(announced) = announced else { return };
        let void = entry.void;
        let found = (void.pair_index, void.attempt);
        let wanted = (self.pair_index, self.voids);
        let is_there = void.pair_index < announced.schedule.pair_count();
        if found != wanted || self.leg != 0 || !is_there {
            let is = format!("void {} of pair {}", void.attempt, void.pair_index);
            let should = match (self.leg, wanted.0 < announced.schedule.pair_count()) {
                (0, true) => format!("void {} of pair {}, or its first match", wanted.1, wanted.0),
                (0, false) => "the close".to_owned(),
                _ => leg_name((self.pair_index, self.leg)),
            };
            self.schedule.add(Finding::new("the void", is, should).at(index));
            return;
        }
        if self.voids == 0 {
            for agent in different(announced.schedule.pair(void.pair_index).agents) {
                add(&mut self.counted.pairs, agent);
                add(&mut self.counted.voided, agent);
            }
        }
        self.voids = self.voids.saturating_add(1);
        let most = &mut self.counted.voids_of_a_pair_max;
        *most = (*most).max(self.voids);
    }

    fn take_close(&mut self, index: u64, close: &Close, announced: Option<&Announced>) {
        self.counted.close = Some((index, *close));
        let Some(announced) = announced else { return };
        if (self.pair_index, self.leg) != (announced.schedule.pair_count(), 0) {
            let wanted = leg_name((self.pair_index, self.leg));
            self.schedule.add(Finding::new("the entry", "the close", wanted).at(index));
        }
        let Counted { match_count, void_count, .. } = self.counted;
        let counted = [
            ("matches in the close", close.match_count, match_count),
            ("voided pairs in the close", close.void_count, void_count),
            ("matches in the schedule", match_count, announced.schedule.match_count()),
        ];
        for (what, is, should) in counted {
            if is != should {
                self.counts.add(Finding::new(what, is, should).at(index));
            }
        }
    }

    /// Says in words how far the log goes that is not at its end.
    fn so_far(&self, announced: &Announced) -> String {
        let (is, of) = (self.counted.match_count, announced.schedule.match_count());
        format!("the log is not closed: {is} of {of} matches are there, each in its place")
    }

    /// Returns the verdict on the schedule.
    pub fn schedule_verdict(&mut self, announced: &Announced) -> Verdict {
        let found = std::mem::take(&mut self.schedule);
        if self.counted.close.is_none() {
            return found.or_not_checked(self.so_far(announced));
        }
        let matches = announced.schedule.match_count();
        found.or_verified(format!("each of {matches} matches, once"))
    }

    /// Returns the verdict on the counts. `claims_its_end` is what is there that only a finished
    /// log has.
    pub fn counts_verdict(
        &mut self,
        announced: &Announced,
        claims_its_end: Option<&str>,
    ) -> Verdict {
        let mut found = std::mem::take(&mut self.counts);
        let missing = match (&self.counted.close, self.counted.revealed) {
            (None, _) => Some("close"),
            (Some(_), false) => Some("reveal"),
            (Some(_), true) => None,
        };
        match (missing, claims_its_end) {
            (None, _) => found.or_verified(self.detail(announced)),
            (Some(entry), Some(claim)) => {
                let is = format!("none, though the folder has {claim}");
                found.add(Finding::new(format!("the {entry}"), is, "one"));
                found.or_verified("")
            }
            (Some("close"), None) => found.or_not_checked(self.so_far(announced)),
            (Some(_), None) => found.or_not_checked(
                "the log is closed, but nothing was revealed: its tail is cut off, or the \
                 organiser has not revealed yet",
            ),
        }
    }

    fn detail(&self, announced: &Announced) -> String {
        let Counted { match_count, void_count, .. } = self.counted;
        let mut detail = format!(
            "{}, {}",
            count(match_count, "match", "matches"),
            count(void_count, "void", "voids")
        );
        let voids = self.counted.voids(announced);
        let rate = |of: &AgentVoids| of.rate().unwrap_or_default();
        let worst = voids.iter().max_by(|a, b| rate(a).total_cmp(&rate(b)));
        if let Some(worst) = worst.filter(|worst| worst.voided_count > 0) {
            let most = u64::from(self.counted.voids_of_a_pair_max);
            detail.push_str(&format!(
                "; the highest rate is that of `{}`, voided in {} of {} ({:.1} %); no pair \
                 was voided more than {}",
                worst.agent,
                worst.voided_count,
                count(worst.pair_count, "pair", "pairs"),
                100.0 * rate(worst),
                count(most, "time", "times"),
            ));
            if most > VOIDS_EXPECTED_MAX {
                detail.push_str(", which a run does not do without being started again");
            }
        }
        detail
    }
}

/// Checks who sits where, over what.
fn seated(schedule: &Schedule, entry: &MatchEntry) -> Result<(), Finding> {
    let plan = schedule.pair(entry.pair_index);
    let what = |field: &str| format!("{field} of {}", leg_name((entry.pair_index, entry.leg)));
    let [buyer, seller] = plan.seats(entry.leg);
    if entry.agents != [buyer, seller] {
        let found = format!("{} buys from {}", entry.agents[0], entry.agents[1]);
        let wanted = format!("{buyer} buys from {seller}");
        return Err(Finding::new(what("the agents"), found, wanted));
    }
    if entry.item_index != plan.item_index {
        return Err(Finding::new(what("the item"), entry.item_index, plan.item_index));
    }
    if entry.repetition != plan.repetition {
        return Err(Finding::new(what("the repetition"), entry.repetition, plan.repetition));
    }
    Ok(())
}

fn different(agents: [u16; 2]) -> impl Iterator<Item = u16> {
    let second = Some(agents[1]).filter(|second| *second != agents[0]);
    [agents[0]].into_iter().chain(second)
}

fn add(counts: &mut [u64], agent: u16) {
    if let Some(count) = counts.get_mut(usize::from(agent)) {
        *count += 1;
    }
}

fn leg_name((pair_index, leg): (u64, u8)) -> String {
    format!("leg {leg} of pair {pair_index}")
}

fn kind(entry: &Entry) -> &'static str {
    match entry {
        Entry::Announcement(_) => "an announcement",
        Entry::Match(_) => "a match",
        Entry::Void(_) => "a void",
        Entry::Close(_) => "a close",
        Entry::Reveal(_) => "a reveal",
        Entry::Draw(_) => "a draw",
    }
}

fn expected(place: Place) -> &'static str {
    match place {
        Place::Announcement => "the announcement",
        Place::Draw => "the draw",
        Place::Matches => "a match, a void or the close",
        Place::Reveal => "the reveal",
        Place::End => "nothing more",
    }
}
