//! The order of an audit: the head, what was announced, the one pass, and the verdicts.
//!
//! The first, second and last entry are read ahead, because what they bind decides how all others
//! are checked; the pass meets them again and they must be the same.
//!
//! Not here: the checks themselves.

use std::path::Path;

use arena_core::entry::{AnnouncementEntry, DrawEntry, Entry, Reveal, TournamentId};
use arena_core::report::Report;
use arena_log::checkpoint::Head;
use arena_log::error::LogError;
use arena_log::hash::Hash;
use arena_log::note::Note;
use arena_log::policy::{Opened, Policy};
use arena_log::reader::{Access, LogReader};
use arena_log::tile;
use arena_log::tree::Frontier;

use crate::announcement::Announced;
use crate::draws::{self, Items, Shown, WITHHELD};
use crate::files::{self, CATALOG_BYTES_MAX};
use crate::folder::Folder;
use crate::heads::{HEAD_BYTES_MAX, Heads, SignedSizes};
use crate::matches::Drawn;
use crate::results::{RESULTS_FILE, Results};
use crate::sightings::{self, Sighting};
use crate::verdict::{Finding, Findings, STEPS, Verdict, Verdicts, count, not_checked, settle};
use crate::walk::Walk;
use crate::{Audit, AuditOptions, LIMITS, Progress, components, submissions};

/// Entries between two reports of progress.
const PROGRESS_ENTRIES: u64 = 4_096;

/// Audits the log in a folder. See [`crate::audit`].
pub(crate) fn audit(
    path: &Path,
    options: &AuditOptions<'_>,
    progress: &mut dyn FnMut(Progress),
) -> Audit {
    let mut audit = Audit {
        steps: Vec::new(),
        opened: None,
        tournament: None,
        announcement: None,
        voids: Vec::new(),
        report: None,
        limits: LIMITS,
    };
    let mut verdicts = Verdicts::new();
    match Log::open(path, options.policy) {
        Err(finding) => {
            let mut found = Findings::default();
            found.add(finding);
            verdicts.insert("checkpoint", found.or_verified(""));
        }
        Ok(mut log) => {
            verdicts.insert("checkpoint", checkpoint(&log.opened));
            audit.opened = Some(log.opened.clone());
            match Ahead::read(&mut log) {
                Ok(ahead) => whole(&log, &ahead, options, progress, &mut verdicts, &mut audit),
                Err(finding) => {
                    let mut found = Findings::default();
                    found.add(finding);
                    verdicts.insert("tree", found.or_verified(""));
                }
            }
        }
    }
    verdicts.insert("re-execution", not_checked("it was not asked for"));
    audit.steps = settle(STEPS, verdicts);
    audit
}

/// A log whose head is one to believe.
pub(crate) struct Log<'a> {
    pub path: &'a Path,
    pub folder: Folder,
    pub reader: LogReader,
    pub opened: Opened,
    /// Heads in the folder of the witnesses, and what is wrong with that folder.
    witnessed: Vec<(String, Vec<u8>)>,
    pub witness_findings: Findings,
    sightings: Vec<Sighting>,
}

impl<'a> Log<'a> {
    /// Opens the log in a folder.
    ///
    /// # Errors
    /// There is none, or none of its heads is one to believe.
    pub fn open(path: &'a Path, policy: &Policy) -> Result<Log<'a>, Finding> {
        let closed = |error: LogError| {
            let shown = path.display();
            Finding::new("the log", error, format!("one in `{shown}` with a signed head"))
        };
        let folder = Folder::open(path).map_err(closed)?;
        let reader = LogReader::open(path, Access::Public).map_err(closed)?;
        let mut witness_findings = Findings::default();
        let witnessed = files::witnessed(&folder, &mut witness_findings);
        // What cannot be read is a finding of the heads' own step.
        let beside = witnessed.iter().filter_map(|(_, bytes)| Note::parse(bytes).ok());
        let beside: Vec<Note> = beside.collect();
        let bytes = reader.checkpoint_bytes();
        let opened = policy.open_with(bytes, &beside).map_err(|error| {
            Finding::new("the head", error, "a trusted one").within(tile::CHECKPOINT)
        })?;
        let first = folder.read(&tile::checkpoint(1), HEAD_BYTES_MAX).ok().flatten();
        let heads = witnessed.iter().map(|(_, bytes)| bytes.as_slice());
        let heads = heads.chain(first.as_deref()).chain([bytes]);
        let sightings = sightings::gather(policy, &opened.log, heads);
        Ok(Log { path, folder, reader, opened, witnessed, witness_findings, sightings })
    }

    pub fn head(&self) -> &Head {
        &self.opened.head
    }
}

/// Says what the newest head is.
pub(crate) fn checkpoint(opened: &Opened) -> Verdict {
    let Head { origin, size, root } = &opened.head;
    let witnesses = match opened.cosigned.as_slice() {
        [] => "no witness asked for".to_owned(),
        cosigned => {
            let said =
                |one: &arena_log::policy::Cosigned| format!("{} at {}", one.witness, one.time);
            cosigned.iter().map(said).collect::<Vec<String>>().join(", ")
        }
    };
    let entries = count(*size, "entry", "entries");
    let detail = format!("`{origin}`, {entries}, root {root}; {witnesses}");
    Verdict::Verified { detail }
}

/// The entries that are read ahead.
struct Ahead {
    id: TournamentId,
    first: Vec<u8>,
    second: Option<Vec<u8>>,
    last: Vec<u8>,
    opening: Option<AnnouncementEntry>,
    draw: Option<DrawEntry>,
    reveal: Option<Reveal>,
}

impl Ahead {
    fn read(log: &mut Log<'_>) -> Result<Ahead, Finding> {
        let size = log.head().size;
        if size == 0 {
            return Err(Finding::new("the entries", "none", "an announcement").at(0));
        }
        let mut get = |index: u64| match log.reader.get(index) {
            Ok(record) => Ok(record.entry.to_vec()),
            Err(error) => Err(log.folder.finding(&error)),
        };
        let first = get(0)?;
        let second = if size > 1 { Some(get(1)?) } else { None };
        let last = get(size - 1)?;
        let opening = match Entry::decode(&first) {
            Ok(Entry::Announcement(opening)) => Some(opening),
            _ => None,
        };
        let draw = match second.as_deref().map(Entry::decode) {
            Some(Ok(Entry::Draw(draw))) => Some(draw),
            _ => None,
        };
        let reveal = match Entry::decode(&last) {
            Ok(Entry::Reveal(reveal)) => Some(reveal),
            _ => None,
        };
        let id = TournamentId::of_first_entry(&first);
        Ok(Ahead { id, first, second, last, opening, draw, reveal })
    }

    fn shown<'a>(&'a self, log: &'a Log<'_>) -> Shown<'a> {
        let (draw, reveal) = (self.draw.as_ref(), self.reveal.as_ref());
        Shown { draw, reveal, last: log.head().size - 1, sightings: &log.sightings }
    }

    /// Returns what an entry was when it was read ahead.
    fn seen(&self, index: u64, size: u64) -> Option<&[u8]> {
        match index {
            0 => Some(&self.first),
            1 => self.second.as_deref(),
            index if index == size - 1 => Some(&self.last),
            _ => None,
        }
    }
}

/// Reads what was announced.
fn announced(log: &Log<'_>, ahead: &Ahead) -> Result<Announced, Finding> {
    let Some(opening) = &ahead.opening else {
        return Err(Finding::new("the entry", "another one", "an announcement").at(0));
    };
    let hash = Hash(opening.announcement_sha256);
    let most = arena_core::announcement::ANNOUNCEMENT_BYTES_MAX as u64;
    let blob = log.reader.blob(&hash, most).map_err(|error| log.folder.finding(&error))?;
    let blob = blob
        .ok_or_else(|| Finding::new("the announcement", "none", "one").within(tile::blob(&hash)))?;
    Announced::read(ahead.id, &blob).map_err(|finding| finding.within(tile::blob(&hash)))
}

/// Everything after the head.
fn whole(
    log: &Log<'_>,
    ahead: &Ahead,
    options: &AuditOptions<'_>,
    progress: &mut dyn FnMut(Progress),
    verdicts: &mut Verdicts,
    audit: &mut Audit,
) {
    audit.tournament = Some(ahead.id);
    let read = announced(log, ahead);
    let announced = read.as_ref().ok();
    audit.announcement = announced.map(|announced| announced.announcement.clone());
    let shown = ahead.shown(log);
    match (&read, &ahead.opening) {
        (Ok(announced), Some(opening)) => {
            let found = announced.check(opening, &log.opened.log);
            verdicts.insert("announcement", found.or_verified(announced.detail()));
            let stated = submissions::check(announced, options.authors);
            verdicts.insert("submissions", stated);
            verdicts.insert("draws", draws::check(announced, shown));
        }
        (Ok(_), None) => {}
        (Err(finding), _) => {
            let mut found = Findings::default();
            found.add(finding.clone());
            verdicts.insert("announcement", found.or_verified(""));
        }
    }
    let items = announced.map(|announced| items(log, announced, shown, options));
    let root = announced.and_then(|announced| draws::root(announced, shown));
    let catalog = items.as_ref().and_then(|items| items.catalog.as_ref());
    let drawn = match (announced, catalog, root) {
        (Some(announced), Some(catalog), Some(root)) => Some(Drawn::new(announced, catalog, root)),
        _ => None,
    };
    let is_drawn = drawn.is_some();
    if let Some(items) = &items {
        verdicts.insert("catalog", items.verdict.clone());
    }
    let mut walk = Walk::new(ahead.id, announced, drawn);
    pass(log, ahead, announced, options, &mut walk, progress, verdicts);
    audit.voids = announced.map_or(Vec::new(), |announced| walk.order.counted.voids(announced));
    let report = conclude(log, announced, walk, is_drawn, verdicts);
    audit.report = report;
}

fn items(
    log: &Log<'_>,
    announced: &Announced,
    shown: Shown<'_>,
    options: &AuditOptions<'_>,
) -> Items {
    let hash = Hash(announced.announcement.catalog_sha256);
    let mut found = Findings::default();
    match log.reader.blob(&hash, CATALOG_BYTES_MAX) {
        Ok(published) => {
            // Blobs are published with the transcripts, and a catalog is nobody's to leave out:
            // an imported one cannot be made again.
            if published.is_none() && !log.reader.is_withheld() {
                let finding = Finding::new("the catalog", "none", "one");
                found.add(finding.within(tile::blob(&hash)));
            }
            draws::catalog(announced, shown, options.catalog, published.as_deref(), found)
        }
        Err(error) => {
            found.add(log.folder.finding(&error));
            Items { catalog: None, verdict: found.or_verified("") }
        }
    }
}

/// Reads every record once: tree, heads, and all checks of single entries.
fn pass(
    log: &Log<'_>,
    ahead: &Ahead,
    announced: Option<&Announced>,
    options: &AuditOptions<'_>,
    walk: &mut Walk<'_>,
    progress: &mut dyn FnMut(Progress),
    verdicts: &mut Verdicts,
) {
    let mut tree = Findings::default();
    let mut found_files = files::check(
        &log.folder,
        &log.opened.log,
        ahead.opening.as_ref().map(|opening| opening.announcement_sha256),
        announced.map(|announced| &announced.announcement),
    );
    found_files.merge(log.witness_findings.clone());
    match heads(log, options.held) {
        Err(finding) => tree.add(finding),
        Ok(mut heads) => {
            let read = read_all(log, ahead, walk, &mut heads, progress, &mut found_files);
            // Sizes are counted through only up to where entries were read: a head may claim any.
            let announced = announced.filter(|_| read.is_ok());
            tree.check(read);
            let signed = announced.map(|announced| signed_sizes(log, announced, walk));
            verdicts.insert("held-heads", heads.conclude(signed.as_ref()));
        }
    }
    let (size, root) = (log.head().size, log.head().root);
    let detail = match size {
        1 => format!("1 entry gives the root {root}"),
        _ => format!("{size} entries give the root {root}"),
    };
    verdicts.insert("tree", tree.or_verified(detail));
    verdicts.insert("files", found_files.or_verified("no file too many, none missing"));
}

/// Gathers every head of a log that is known: published ones, cosigned ones, `held` ones.
pub(crate) fn heads<'a>(log: &'a Log<'_>, held: &[Vec<u8>]) -> Result<Heads<'a>, Finding> {
    let published = log.reader.signed_sizes().map_err(|error| log.folder.finding(&error))?;
    let mut heads = Heads::new(&log.opened.log, log.head(), published);
    for (place, bytes) in held.iter().enumerate() {
        heads.hold(place, bytes);
    }
    for (path, bytes) in &log.witnessed {
        heads.witnessed(path, bytes);
    }
    heads.check_times(&log.sightings);
    Ok(heads)
}

fn signed_sizes(log: &Log<'_>, announced: &Announced, walk: &Walk<'_>) -> SignedSizes {
    let counted = &walk.order.counted;
    SignedSizes {
        every: u64::from(announced.config.log.checkpoint_every),
        opening: if announced.announcement.draws.need_draw_entry() { 2 } else { 1 },
        closed: counted.close.map(|(index, _)| index + 1),
        revealed: counted.revealed.then_some(log.head().size),
    }
}

fn read_all(
    log: &Log<'_>,
    ahead: &Ahead,
    walk: &mut Walk<'_>,
    heads: &mut Heads<'_>,
    progress: &mut dyn FnMut(Progress),
    found_files: &mut Findings,
) -> Result<(), Finding> {
    let said = |error: LogError| log.folder.finding(&error);
    let mut reader = LogReader::open(log.path, Access::Public).map_err(said)?;
    if reader.checkpoint_bytes() != log.reader.checkpoint_bytes() {
        let wanted = "the one that was read first";
        return Err(Finding::new("the head", "another one", wanted).within(tile::CHECKPOINT));
    }
    let Head { size, root, .. } = *log.head();
    let mut check = reader.tree_check().map_err(said)?;
    let mut frontier = Frontier::new();
    while let Some(record) = reader.next_record().map_err(said)? {
        let index = record.index;
        if ahead.seen(index, size).is_some_and(|seen| seen != record.entry) {
            let wanted = "the one that was read first";
            return Err(Finding::new("the entry", "another one", wanted).at(index));
        }
        frontier.append(check.push(&record).map_err(said)?.leaf);
        walk.take(&record);
        let entries_done = index + 1;
        if heads.has(entries_done) {
            heads.compare(&log.folder, entries_done, frontier.root());
        }
        if entries_done.is_multiple_of(PROGRESS_ENTRIES) || entries_done == size {
            progress(Progress { entries_done, entry_count: size });
        }
    }
    if (frontier.size(), frontier.root()) != (size, root) {
        let what = format!("the root of {size} entries");
        let finding = Finding::new(what, root, format!("{}, which they give", frontier.root()));
        return Err(finding.within(tile::CHECKPOINT));
    }
    // Blobs of unknown size and number are not hashed: the folder has failed already.
    if found_files.is_empty() {
        found_files.check(check.finish().map_err(said));
    }
    Ok(())
}

/// Ends what the pass began.
fn conclude(
    log: &Log<'_>,
    announced: Option<&Announced>,
    walk: Walk<'_>,
    is_drawn: bool,
    verdicts: &mut Verdicts,
) -> Option<Report> {
    let Walk { mut order, results, mut undecoded, .. } = walk;
    undecoded.merge(std::mem::take(&mut order.entries));
    let counted = &order.counted;
    let (matches, voids) = (counted.match_count, counted.void_count);
    let detail = format!(
        "{}: {}, {}",
        count(log.head().size, "entry", "entries"),
        count(matches, "match", "matches"),
        count(voids, "void", "voids")
    );
    verdicts.insert("entries", undecoded.or_verified(detail));
    let announced = announced?;
    let is_withheld = log.reader.is_withheld();
    let is_closed = counted.close.is_some();
    let reason = match (is_withheld, is_closed) {
        (true, true) => Some("the log is closed, but its transcripts are not published"),
        (true, false) => Some(WITHHELD),
        (false, _) => None,
    };
    let conclude = |found: Findings, detail: String| match reason {
        Some(reason) => found.or_not_checked(reason),
        None => found.or_verified(detail),
    };
    let played = walk.transcript_count;
    let transcripts = count(played, "transcript", "transcripts");
    let detail = format!("{transcripts}, {} bytes", walk.transcript_bytes);
    let matches = count(played, "match", "matches");
    verdicts.insert("transcripts", conclude(walk.transcripts, detail));
    verdicts.insert("rules", conclude(walk.rules, format!("{matches} judged again")));
    verdicts.insert("usage", conclude(walk.usage, format!("{} seats", played * 2)));
    let scenarios = match is_drawn {
        true => conclude(walk.scenarios, format!("drawn again for {matches}")),
        false => walk
            .scenarios
            .or_not_checked(reason.unwrap_or("the root of the draws or the items are not at hand")),
    };
    verdicts.insert("scenarios", scenarios);
    let components = match reason {
        Some(reason) => not_checked(reason),
        None => components::check(&announced.announcement, &log.reader, &log.folder),
    };
    verdicts.insert("components", components);
    let claim = match (log.folder.length(RESULTS_FILE), is_withheld) {
        (Ok(None), false) if !is_closed => Some("published transcripts"),
        (Ok(None), _) => None,
        _ => Some(RESULTS_FILE),
    };
    verdicts.insert("schedule", order.schedule_verdict(announced));
    verdicts.insert("counts", order.counts_verdict(announced, claim));
    tables(log, announced, results, reason, verdicts)
}

/// Makes the tables again, where every match is there and sound.
fn tables(
    log: &Log<'_>,
    announced: &Announced,
    results: Option<Results>,
    reason: Option<&str>,
    verdicts: &mut Verdicts,
) -> Option<Report> {
    let sound =
        ["tree", "entries", "announcement", "schedule", "transcripts", "rules", "scenarios"];
    let is_sound = sound.iter().all(|id| verdicts.get(id).is_some_and(Verdict::is_verified));
    let reason = reason.or((!is_sound).then_some("some matches are missing or not sound"));
    let (report, verdict) = match (reason, results) {
        (None, Some(results)) => {
            let (report, verdict) = results.conclude(&announced.announcement, &log.folder);
            (Some(report), verdict)
        }
        (reason, _) => (None, not_checked(reason.unwrap_or(WITHHELD))),
    };
    verdicts.insert("results", verdict);
    report
}
