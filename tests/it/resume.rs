//! A tournament's log does not depend on how it came about: on any number of workers, killed
//! and started again, it has the same bytes.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use arena_core::entry::Entry;
use arena_core::seed::{Root, Stream};
use arena_log::plain::reader::LogReader;

/// How often a run is killed.
const KILLS: u64 = 20;
/// Longest that one run of the program may take before the test gives up.
const RUN_MAX: Duration = Duration::from_secs(240);
/// How often the log's size is looked at while waiting to kill.
const LOOK_EVERY: Duration = Duration::from_micros(500);
const ROOT_SEED: u64 = 20_260_409;

const TOURNAMENT: &str = r#"
name = "resume"
seed = 3
schedule = "round-robin"
self_play = true

[rules]
set = "standard"
horizon = { mean_turns = 12, max_turns = 24 }

[catalog]
kind = "synthetic"
items = 60
infeasible_share = 0.2

[[agents]]
name = "boulware"
component = "builtin:boulware"

[[agents]]
name = "bayesian"
component = "builtin:bayesian"

[[agents]]
name = "zero-intelligence"
component = "builtin:zero-intelligence"

[[agents]]
name = "injector"
component = "builtin:injector"

[[agents]]
name = "trapper"
component = "trapper.wasm"
"#;

struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::write(folder.path().join("t.toml"), TOURNAMENT).expect("a tournament file");
        // Faults are part of what must repeat.
        let trapper = crate::kit::component(include_str!("../guests/trap-after-offer.wat"));
        std::fs::write(folder.path().join("trapper.wasm"), trapper).expect("a component");
        Place { folder }
    }

    fn log(&self, out: &str) -> PathBuf {
        self.folder.path().join(out).join("log.arena")
    }

    fn start(&self, out: &str, workers: u32) -> Child {
        Command::new(crate::kit::ARENA)
            .current_dir(self.folder.path())
            .args(["tournament", "run", "t.toml", "--out", out, "--workers", &workers.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts")
    }

    fn run(&self, out: &str, workers: u32) -> Vec<u8> {
        let ended = self.start(out, workers).wait_with_output().expect("the program ends");
        let complaint = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success(), "{out} on {workers} workers: {complaint}");
        std::fs::read(self.log(out)).expect("a log")
    }
}

#[test]
fn one_two_and_eight_workers_write_the_same_log() {
    let place = Place::new();
    let one = place.run("one", 1);
    assert!(place.run("two", 2) == one, "two workers wrote another log than one");
    assert!(place.run("eight", 8) == one, "eight workers wrote another log than one");
    check_entries(&place.log("one"));
}

/// Every pair of the schedule has its two matches, in order, between announcement and close.
fn check_entries(log: &Path) {
    let mut reader = LogReader::open(log).expect("a log");
    let mut entries = Vec::new();
    while let Some(bytes) = reader.next_entry().expect("an entry") {
        entries.push(Entry::decode(bytes).expect("a known entry"));
    }
    let Some((Entry::Announcement(announcement), rest)) = entries.split_first() else {
        panic!("the first entry is no announcement");
    };
    let Some((Entry::Close(close), matches)) = rest.split_last() else {
        panic!("the last entry is no close");
    };
    assert_eq!(matches.len() as u64, 2 * announcement.pair_count);
    assert_eq!(close.match_count, 2 * announcement.pair_count);
    let mut faults = 0;
    for (index, entry) in matches.iter().enumerate() {
        let Entry::Match(record) = entry else { panic!("entry {} is no match", index + 1) };
        assert_eq!((record.pair_index, record.leg), (index as u64 / 2, (index % 2) as u8));
        let faulted = matches!(record.outcome, arena_core::record::Outcome::Faulted { .. });
        faults += usize::from(faulted);
    }
    assert!(faults > 0, "the trapping agent never faulted");
}

#[test]
fn a_run_killed_at_twenty_random_points_ends_in_the_same_log() {
    let place = Place::new();
    let whole = place.run("whole", 2);
    let mut kill_points: Vec<u64> = (0..KILLS)
        .map(|kill| Stream::derive(Root::Seed(ROOT_SEED), "kill", &[kill]).below(whole.len() as u64))
        .collect();
    kill_points.sort_unstable();
    let mut killed = 0;
    for (kill, &size) in kill_points.iter().enumerate() {
        let workers = [1, 2, 8][kill % 3];
        killed += u32::from(kill_at(&place, "killed", workers, size));
    }
    assert!(killed >= 15, "only {killed} kills hit a running tournament");
    assert!(place.run("killed", 2) == whole, "the resumed log differs (seed {ROOT_SEED})");
    assert!(place.run("killed", 1) == whole, "a finished tournament was touched");
}

/// Starts a run and kills it once the log has `size` bytes. Returns whether it was still at work.
fn kill_at(place: &Place, out: &str, workers: u32, size: u64) -> bool {
    let mut child = place.start(out, workers);
    let started = Instant::now();
    loop {
        let written = std::fs::metadata(place.log(out)).map_or(0, |meta| meta.len());
        if let Some(status) = child.try_wait().expect("the program's state") {
            assert!(status.success(), "the program failed: {status}");
            return false;
        }
        if written > size {
            break;
        }
        assert!(started.elapsed() < RUN_MAX, "the log did not reach {size} bytes");
        std::thread::sleep(LOOK_EVERY);
    }
    child.kill().expect("the program can be killed");
    let status = child.wait().expect("the program ends");
    !status.success()
}

#[test]
fn an_interrupt_ends_the_run_cleanly_and_the_same_command_goes_on() {
    let place = Place::new();
    let whole = place.run("whole", 2);
    let child = place.start("interrupted", 1);
    let started = Instant::now();
    while std::fs::metadata(place.log("interrupted")).map_or(0, |meta| meta.len()) < 20_000 {
        assert!(started.elapsed() < RUN_MAX, "the log does not grow");
        std::thread::sleep(LOOK_EVERY);
    }
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(sent.expect("kill runs").success());
    let ended = child.wait_with_output().expect("the program ends");
    let said = String::from_utf8_lossy(&ended.stderr);
    if ended.status.code() == Some(130) {
        assert!(said.contains("tournament run"), "does not say how to go on: {said}");
    } else {
        assert!(ended.status.success(), "{said}");
    }
    assert!(place.run("interrupted", 2) == whole, "the resumed log differs");
}
