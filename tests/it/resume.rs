//! A tournament's log does not depend on how it came about: on any number of workers, killed
//! and started again, every file that is published has the same bytes, signed heads included.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use arena_core::draws::Draws;
use arena_core::entry::Entry;
use arena_core::record::Outcome;
use arena_core::seed::{Root, Stream};

use crate::logs;

/// How often a run is killed while it plays.
const KILLS: u64 = 20;
/// Longest that one run of the program may take before the test gives up.
const RUN_MAX: Duration = Duration::from_secs(240);
/// How often the log's size is looked at while waiting to kill.
const LOOK_EVERY: Duration = Duration::from_micros(500);
const ROOT_SEED: u64 = 20_260_409;

/// Heads are signed seven times while it is played, once at its close and once at its reveal.
const TOURNAMENT: &str = r#"
name = "resume"
schedule = "round-robin"
self_play = true

[rules]
set = "standard"
horizon = { mean_turns = 12, max_turns = 24 }

[log]
checkpoint_every = 256

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
    draws: &'static [&'static str],
}

/// Draws that anyone can repeat.
const SEEDED: &[&str] = &["--seed", "3"];
/// Draws from a secret that is always the same here.
const COMMITTED: &[&str] = &["--secret", "secret"];

impl Place {
    fn new(draws: &'static [&'static str]) -> Place {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let place = Place { folder, draws };
        std::fs::write(place.path("t.toml"), TOURNAMENT).expect("a tournament file");
        // Faults are part of what must repeat.
        let trapper = crate::kit::component(include_str!("../guests/trap-after-offer.wat"));
        std::fs::write(place.path("trapper.wasm"), trapper).expect("a component");
        logs::write_key(&place.path("key.pem"));
        std::fs::write(place.path("secret"), "5a".repeat(32) + "\n").expect("a secret");
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn start(&self, out: &str, workers: u32) -> Child {
        Command::new(crate::kit::ARENA)
            .current_dir(self.folder.path())
            .args(["tournament", "run", "t.toml", "--out", out, "--key", "key.pem"])
            .args(["--workers", &workers.to_string()])
            .args(self.draws)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts")
    }

    fn run(&self, out: &str, workers: u32) -> PathBuf {
        let ended = self.start(out, workers).wait_with_output().expect("the program ends");
        let complaint = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success(), "{out} on {workers} workers: {complaint}");
        self.path(out)
    }

    /// Starts a run and kills it once `is_time` says so. Returns whether it was still at work.
    fn kill_when(&self, out: &str, workers: u32, is_time: &dyn Fn(&Path) -> bool) -> bool {
        let mut child = self.start(out, workers);
        let started = Instant::now();
        while !is_time(&self.path(out)) {
            if let Some(status) = child.try_wait().expect("the program's state") {
                assert!(status.success(), "the program failed: {status}");
                return false;
            }
            assert!(started.elapsed() < RUN_MAX, "{out}: the time to kill does not come");
            std::thread::sleep(LOOK_EVERY);
        }
        child.kill().expect("the program can be killed");
        let status = child.wait().expect("the program ends");
        !status.success()
    }
}

#[test]
fn one_two_and_eight_workers_publish_the_same_files() {
    for draws in [SEEDED, COMMITTED] {
        let place = Place::new(draws);
        let one = place.run("one", 1);
        logs::assert_same(&place.run("two", 2), &one);
        logs::assert_same(&place.run("eight", 8), &one);
        check_entries(&one);
        for name in ["checkpoint", "checkpoints/1", "checkpoints/256", "results.json", "log.vkey"] {
            assert!(one.join(name).is_file(), "{name} is not published");
        }
    }
}

/// Every pair of the schedule has its two matches, in order, between announcement and close.
fn check_entries(log: &Path) {
    let log = logs::read(log);
    let [Entry::Announcement(_), matches @ .., Entry::Close(close), Entry::Reveal(reveal)] =
        &log.entries[..]
    else {
        panic!("the log does not begin or end as it should");
    };
    let match_count = 2 * log.announcement.pair_count;
    assert_eq!((matches.len() as u64, close.match_count), (match_count, match_count));
    let is_committed = matches!(log.announcement.draws, Draws::Committed(_));
    assert_eq!(reveal.secret, is_committed.then_some([0x5a; 32]));
    for (index, entry) in matches.iter().enumerate() {
        let Entry::Match(entry) = entry else { panic!("entry {} is no match", index + 1) };
        assert_eq!((entry.pair_index, entry.leg), (index as u64 / 2, (index % 2) as u8));
    }
    let faulted = |outcome| matches!(outcome, Outcome::Faulted { .. });
    let faults = log.records.iter().filter(|record| faulted(record.outcome)).count();
    assert!(faults > 0, "the trapping agent never faulted");
}

#[test]
fn a_run_killed_at_twenty_random_points_publishes_the_same_files() {
    let place = Place::new(COMMITTED);
    let whole = place.run("whole", 2);
    let bytes = logs::grown(&whole);
    let mut kill_points: Vec<u64> = (0..KILLS)
        .map(|kill| Stream::derive(Root::Seed(ROOT_SEED), "kill", &[kill]).below(bytes))
        .collect();
    kill_points.sort_unstable();
    let mut killed = 0;
    for (kill, &bytes) in kill_points.iter().enumerate() {
        let workers = [1, 2, 8][kill % 3];
        let is_time = |log: &Path| logs::grown(log) > bytes;
        killed += u32::from(place.kill_when("killed", workers, &is_time));
    }
    assert!(killed >= 15, "only {killed} kills hit a running tournament");
    let resumed = place.run("killed", 2);
    logs::assert_same(&resumed, &whole);
    place.run("killed", 1);
    logs::assert_same(&resumed, &whole);
}

#[test]
fn a_run_killed_at_its_end_publishes_the_same_files() {
    let place = Place::new(COMMITTED);
    let whole = place.run("whole", 2);
    let entries = logs::read(&whole).entries.len();
    let steps = [
        // Signed but not published; published but not revealed; revealed without results.
        format!("checkpoints/{}", entries - 1),
        "attachment".to_owned(),
        format!("checkpoints/{entries}"),
        "results.json".to_owned(),
    ];
    let mut killed = 0;
    for (run, step) in steps.iter().enumerate() {
        let out = format!("killed-{run}");
        let is_time = |log: &Path| log.join(step).symlink_metadata().is_ok();
        killed += u32::from(place.kill_when(&out, 2, &is_time));
        logs::assert_same(&place.run(&out, 2), &whole);
    }
    assert!(killed > 0, "no kill hit the end");
}

#[test]
fn an_interrupt_ends_the_run_cleanly_and_the_same_command_goes_on() {
    let place = Place::new(SEEDED);
    let whole = place.run("whole", 2);
    let child = place.start("interrupted", 1);
    let started = Instant::now();
    while logs::grown(&place.path("interrupted")) < 20_000 {
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
    logs::assert_same(&place.run("interrupted", 2), &whole);
}
