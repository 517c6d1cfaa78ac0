//! The one pass over a log: every record goes through every check, and none is kept.
//!
//! Memory depends on the agents, the items and the heads, never on how many matches there are.
//!
//! Not here: what a check says (`schedule`, `matches`, `usage`, `results`).

use arena_core::entry::{Entry, MatchEntry, TournamentId};
use arena_core::record::MatchRecord;
use arena_log::records::RecordRef;

use crate::announcement::Announced;
use crate::matches::{self, Drawn};
use crate::results::Results;
use crate::schedule::Order;
use crate::usage;
use crate::verdict::{Finding, Findings};

/// A log under way.
#[derive(Debug)]
pub(crate) struct Walk<'a> {
    announced: Option<&'a Announced>,
    drawn: Option<Drawn<'a>>,
    pub order: Order,
    pub results: Option<Results>,
    /// Entries that do not decode.
    pub undecoded: Findings,
    pub transcripts: Findings,
    pub transcript_count: u64,
    pub transcript_bytes: u64,
    pub scenarios: Findings,
    pub rules: Findings,
    pub usage: Findings,
}

impl<'a> Walk<'a> {
    /// Starts before the first entry.
    pub fn new(
        id: TournamentId,
        announced: Option<&'a Announced>,
        drawn: Option<Drawn<'a>>,
    ) -> Walk<'a> {
        Walk {
            announced,
            drawn,
            order: Order::new(id, announced),
            results: announced.map(Results::new),
            undecoded: Findings::default(),
            transcripts: Findings::default(),
            transcript_count: 0,
            transcript_bytes: 0,
            scenarios: Findings::default(),
            rules: Findings::default(),
            usage: Findings::default(),
        }
    }

    /// Takes the next record.
    pub fn take(&mut self, record: &RecordRef<'_>) {
        let index = record.index;
        let entry = match Entry::decode(record.entry) {
            Ok(entry) => entry,
            Err(error) => {
                let wanted = "an entry in canonical form";
                return self.undecoded.add(Finding::new("the entry", error, wanted).at(index));
            }
        };
        if !self.order.accept(index, &entry, self.announced) {
            return;
        }
        match entry {
            Entry::Match(entry) => self.take_match(index, &entry, record.attachment),
            Entry::Void(entry) => {
                if let Some(results) = &mut self.results {
                    results.add_void(&entry.void);
                }
                self.bind_nothing(index, record.attachment);
            }
            _ => self.bind_nothing(index, record.attachment),
        }
    }

    /// What lies beside an entry that binds nothing is nobody's.
    fn bind_nothing(&mut self, index: u64, attachment: Option<&[u8]>) {
        let bytes = attachment.map_or(0, <[u8]>::len);
        if bytes > 0 {
            let found = format!("{bytes} bytes");
            self.transcripts.add(Finding::new("the attachment", found, "none").at(index));
        }
    }

    fn take_match(&mut self, index: u64, entry: &MatchEntry, attachment: Option<&[u8]>) {
        let Some(bytes) = attachment else { return };
        let transcript = match matches::transcript(entry, bytes) {
            Ok(transcript) => transcript,
            Err(finding) => return self.transcripts.add(finding.at(index)),
        };
        self.transcript_count += 1;
        self.transcript_bytes += bytes.len() as u64;
        if let Some(drawn) = &mut self.drawn {
            self.scenarios.check(drawn.check(&transcript).map_err(|finding| finding.at(index)));
        }
        self.judge(index, transcript.record);
    }

    fn judge(&mut self, index: u64, record: MatchRecord) {
        let Some(announced) = self.announced else { return };
        self.rules.check(matches::rules(announced, &record).map_err(|found| found.at(index)));
        self.usage.check(usage::check(announced, &record).map_err(|found| found.at(index)));
        if let Some(results) = &mut self.results {
            results.add_match(index, record);
        }
    }
}
