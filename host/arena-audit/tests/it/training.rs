//! Training runs: a small one is verified, and each thing that may be wrong with one is found where
//! it is. What is learned here is made up; logs, ledger and what they say of each other are not.

use std::path::PathBuf;
use std::sync::OnceLock;

use arena_audit::Verdict;
use arena_audit::training::{
    self, Course, ExperimentFacts, Lesson, Rewarded, RunAudit, RunAuditOptions,
};
use arena_core::ledger::{
    LedgerClose, LedgerEntry, LedgerOpening, RunId, StepEntry, StepMatch, StepMatches,
};
use arena_core::record::MatchRecord;
use arena_core::scenario::Role;
use arena_core::score::reward;
use arena_core::transcript::Transcript;
use arena_log::blobs::Visibility;
use arena_log::key::SigningKey;
use arena_log::policy::Policy;
use arena_log::reader::{Access, LogReader};
use arena_log::writer::{LogSettings, LogWriter, Record};
use tempfile::TempDir;

use crate::honest::{Log, Tournament};

const ORIGIN: &str = "arena.example/run";
const STEPS: u8 = 3;

fn key() -> SigningKey {
    // That of the steps' logs.
    SigningKey::from_seed([0x10; 32])
}

/// The tournament file of a step.
fn file(step: u32, policy: [u8; 32]) -> String {
    let mut file = format!(
        "# Of the policy {:02x}.\nname = \"step-{step}\"\nseed = {}\nschedule = \"gauntlet\"\n\
         roles = \"candidates-buy\"\nrepetitions = 4\nscenario_group = 4\n\
         [log]\ncheckpoint_every = 256\n[rules]\nopener = \"drawn\"\n\
         [catalog]\nkind = \"uniform\"\nitems = 2\nlow = \"10\"\nhigh = \"200\"\n\
         [[models]]\nname = \"policy\"\nscript = \"teacher\"\n",
        policy[0],
        40 + step
    );
    for (name, more) in
        [("learner", "candidate = true\nmodels = [\"policy\"]\n"), ("one", ""), ("two", "")]
    {
        file += &format!("[[agents]]\nname = \"{name}\"\ncomponent = \"{name}.wasm\"\n{more}");
    }
    file
}

fn play(step: u32, policy: [u8; 32]) -> Tournament {
    let mut played = Tournament::play_with_models(file(step, policy), policy);
    played.results = None;
    played
}

fn worth(record: &MatchRecord) -> Result<i32, String> {
    Ok((reward(record, Role::Buyer) * 1e6).round() as i32)
}

/// What is learned: rewards less the mean of those of one scenario and opponent.
fn lesson(step: u32, matches: &[Rewarded]) -> Result<Lesson, String> {
    let group = |one: &Rewarded| (one.agents[1], one.item_index, one.repetition / 4);
    let mut dropped = std::collections::BTreeSet::new();
    let advantage = |one: &Rewarded| {
        let own = matches.iter().filter(|other| group(other) == group(one));
        let rewards: Vec<i64> = own.map(|other| other.reward_micro.into()).collect();
        let sum: i64 = rewards.iter().sum();
        if rewards.iter().all(|reward| *reward == rewards[0]) {
            dropped.insert(group(one));
            return None;
        }
        let count = rewards.len() as i64;
        Some((count * i64::from(one.reward_micro) - sum) as f64 / (count as f64 * 1e6))
    };
    let advantages = matches.iter().map(advantage).collect();
    let dropped_groups = dropped.len() as u32;
    Ok(Lesson { advantages, dropped_groups, learning_rate: f64::from(step) / 1_000.0 })
}

/// A run before its ledger is written.
#[derive(Clone)]
struct Run {
    facts: ExperimentFacts,
    entries: Vec<LedgerEntry>,
    blobs: Vec<StepMatches>,
}

/// The logs of the honest run's steps, and what was learned from them.
fn honest() -> &'static (Run, Vec<Log>) {
    static RUN: OnceLock<(Run, Vec<Log>)> = OnceLock::new();
    RUN.get_or_init(|| {
        let opening = LedgerOpening {
            origin: ORIGIN.to_owned(),
            log_key: key().public().to_bytes(),
            name: "compact".to_owned(),
            experiment_sha256: [0xee; 32],
            reward: "surplus".to_owned(),
            objective: "grpo".to_owned(),
            policy_sha256: [0; 32],
            seed: 7,
            engine: "engine=none".to_owned(),
        };
        let facts = ExperimentFacts {
            sha256: opening.experiment_sha256,
            name: opening.name.clone(),
            reward: opening.reward.clone(),
            objective: opening.objective.clone(),
            seed: opening.seed,
            step_count: STEPS.into(),
            policy_sha256: Some(opening.policy_sha256),
        };
        let mut run =
            Run { facts, entries: vec![LedgerEntry::Opening(opening)], blobs: Vec::new() };
        let logs = (1..=STEPS).map(|step| {
            let log = play(step.into(), [step - 1; 32]).write();
            run.learn(step, &log);
            log
        });
        let logs = logs.collect();
        let (step_count, policy_sha256) = (STEPS.into(), [STEPS; 32]);
        let close = LedgerClose { run: run.id(), step_count, policy_sha256 };
        run.entries.push(LedgerEntry::Close(close));
        (run, logs)
    })
}

/// Reads the matches of a step's log as the run does.
fn rewarded(log: &Log) -> Vec<Rewarded> {
    let mut reader = LogReader::open(log.path(), Access::Public).expect("there is a log");
    let mut found = Vec::new();
    while let Some(record) = reader.next_record().expect("the log is whole") {
        let Ok(Transcript { record, .. }) =
            Transcript::decode(record.attachment.expect("it is public"))
        else {
            continue;
        };
        found.push(Rewarded {
            pair_index: record.pair_index,
            agents: record.agents,
            item_index: record.item_index,
            repetition: record.repetition,
            reward_micro: worth(&record).expect("every match has a reward"),
        });
    }
    found
}

impl Run {
    fn id(&self) -> RunId {
        RunId::of_first_entry(&self.entries[0].encode())
    }

    /// Writes down the next step, which turns policy n - 1 into n.
    fn learn(&mut self, step: u8, log: &Log) {
        let rewarded = rewarded(log);
        let lesson = lesson(step.into(), &rewarded).expect("there is something to learn");
        let one = |(rewarded, advantage): (&Rewarded, &Option<f64>)| StepMatch {
            reward_micro: rewarded.reward_micro,
            advantage_bits: advantage.map(f64::to_bits),
        };
        let matches = rewarded.iter().zip(&lesson.advantages).map(one).collect();
        let matches = StepMatches { run: self.id(), step: step.into(), matches };
        let head = log.audit().head().expect("a signed head").clone();
        self.entries.push(LedgerEntry::Step(StepEntry {
            run: self.id(),
            step: step.into(),
            tournament: log.audit().tournament.expect("a tournament"),
            log_size: head.size,
            log_root: head.root.0,
            policy_before: [step - 1; 32],
            policy_after: [step; 32],
            match_count: matches.matches.len() as u32,
            matches_sha256: StepMatches::sha256(&matches.encode()),
            dropped_groups: lesson.dropped_groups,
            learning_rate_bits: lesson.learning_rate.to_bits(),
        }));
        self.blobs.push(matches);
    }

    fn step(&mut self, step: usize) -> &mut StepEntry {
        match &mut self.entries[step] {
            LedgerEntry::Step(entry) => entry,
            other => panic!("{other:?} is no step"),
        }
    }

    /// Changes what a step learned from, and binds it anew.
    fn forge(&mut self, step: usize, change: impl FnOnce(&mut StepMatches)) {
        change(&mut self.blobs[step - 1]);
        let sha256 = StepMatches::sha256(&self.blobs[step - 1].encode());
        self.step(step).matches_sha256 = sha256;
    }

    /// Writes the ledger as its owner does.
    fn write(&self) -> TempDir {
        let folder = TempDir::new().expect("a temporary folder");
        let settings = LogSettings { origin: ORIGIN.to_owned(), key: key(), checkpoint_every: 256 };
        let mut writer = LogWriter::create(folder.path(), settings).expect("a new log");
        for blob in &self.blobs {
            writer.put_blob(&blob.encode(), Visibility::Public).expect("the disk works");
        }
        for entry in &self.entries {
            let record = Record { entry: &entry.encode(), attachment: &[] };
            writer.append_all(&[record]).expect("the disk works");
            writer.checkpoint().expect("the disk works");
            writer.publish().expect("the disk works");
        }
        folder
    }
}

/// What an auditor looks at.
struct Case<'a> {
    run: Run,
    ledger: TempDir,
    /// The folders of the steps' logs, from step 1.
    logs: Vec<PathBuf>,
    held: Vec<Vec<u8>>,
    reward: &'a dyn Fn(&MatchRecord) -> Result<i32, String>,
}

impl Case<'_> {
    fn of(run: Run) -> Case<'static> {
        let logs = honest().1.iter().map(|log| log.path().to_owned()).collect();
        Case { ledger: run.write(), run, logs, held: Vec::new(), reward: &worth }
    }

    fn audit(&self) -> RunAudit {
        let policy = Policy::of_vkey(key().vkey(ORIGIN).expect("an origin")).expect("a key");
        let nowhere = self.ledger.path().join("nowhere");
        let log = |step: u32| {
            let place = usize::try_from(step).expect("few steps") - 1;
            self.logs.get(place).cloned().unwrap_or_else(|| nowhere.clone())
        };
        let course = Course {
            log: &log,
            tournament: &file,
            model: "policy",
            reward: self.reward,
            lesson: &lesson,
        };
        let options = RunAuditOptions {
            ledger: self.ledger.path(),
            policy: &policy,
            held: &self.held,
            catalog: None,
            experiment: &self.run.facts,
            course: &course,
        };
        training::audit(&options, &mut |_| {})
    }
}

/// Shows every step that is not verified.
fn shown(audit: &RunAudit) -> String {
    let mut text = String::new();
    for step in &audit.steps {
        match &step.verdict {
            Verdict::Verified { .. } => {}
            Verdict::NotChecked { reason } => {
                text.push_str(&format!("{} not checked: {reason}\n", step.id));
            }
            Verdict::Failed { findings, .. } => {
                for finding in findings {
                    text.push_str(&format!("{} failed: {finding}\n", step.id));
                }
            }
        }
    }
    text
}

#[track_caller]
fn assert_fails(audit: &RunAudit, steps: &[&str], says: &[&str]) {
    let shown = shown(audit);
    let failed = audit.steps.iter().filter(|step| step.verdict.is_failed());
    let failed: Vec<&str> = failed.map(|step| step.id).collect();
    assert_eq!(failed, steps, "\n{shown}");
    for says in says {
        assert!(shown.contains(says), "nothing says `{says}`:\n{shown}");
    }
}

/// Audits the honest run after a change of what its ledger says.
fn forged(change: impl FnOnce(&mut Run)) -> RunAudit {
    let mut run = honest().0.clone();
    change(&mut run);
    Case::of(run).audit()
}

#[test]
fn an_honest_run_is_verified() {
    let audit = Case::of(honest().0.clone()).audit();
    assert_eq!(shown(&audit), "updates not checked: it was not asked for\n");
    assert!(audit.is_verified_without(&["updates"]) && !audit.is_verified_without(&[]));
    assert_eq!((audit.step_count, audit.match_count), (3, 48));
    assert_eq!(audit.run, Some(honest().0.id()));
    let detail = |id: &str| match &audit.step(id).expect("it is there").verdict {
        Verdict::Verified { detail } => detail.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(detail("logs"), "3 steps, 48 matches");
    assert_eq!(detail("rewards"), "48 matches recomputed");
    assert_eq!(detail("end"), "closed after 3 steps");
    assert_eq!(detail("advantages"), "8 matches learned from, 10 groups dropped");
}

#[test]
fn repeated_updates_are_entered_and_stand_on_the_rest() {
    let mut audit = Case::of(honest().0.clone()).audit();
    audit.conclude_updates(Verdict::Verified { detail: "3 updates, the same bits".to_owned() });
    assert!(audit.is_verified_without(&[]));
    let mut audit = forged(|run| run.step(2).policy_before = [9; 32]);
    audit.conclude_updates(Verdict::Verified { detail: "3 updates, the same bits".to_owned() });
    let updates = audit.step("updates").expect("it is there");
    let reason = "step `tournaments` failed".to_owned();
    assert_eq!(updates.verdict, Verdict::NotChecked { reason });
}

#[test]
fn a_changed_reward_is_found_with_its_step_and_match() {
    let audit = forged(|run| {
        run.forge(2, |matches| matches.matches[5].reward_micro += 1);
    });
    let says = "entry 2: step 2: the reward of match 5 (pair 5, leg 0): found ";
    assert_fails(&audit, &["rewards"], &[says, "advantages not checked: step `rewards` failed"]);
}

#[test]
fn a_changed_advantage_is_found_with_its_step_and_match() {
    let (step, place) = (1..=3)
        .find_map(|step| {
            let mut matches = honest().0.blobs[step - 1].matches.iter();
            matches.position(|one| one.advantage_bits.is_some()).map(|place| (step, place))
        })
        .expect("something is learned");
    let audit = forged(|run| {
        run.forge(step, |matches| {
            let bits = matches.matches[place].advantage_bits.as_mut().expect("it is learned from");
            *bits ^= 1;
        });
    });
    let says =
        format!("entry {step}: step {step}: the advantage of match {place} (pair {place}): found ");
    assert_fails(&audit, &["advantages"], &[&says]);
    let audit = forged(|run| {
        run.forge(step, |matches| matches.matches[place].advantage_bits = None);
    });
    assert_fails(&audit, &["advantages"], &[&says, "found none, expected "]);
}

#[test]
fn counts_and_rates_of_an_update_are_held_against_the_experiment() {
    let audit = forged(|run| run.step(1).dropped_groups += 1);
    assert_fails(&audit, &["advantages"], &["entry 1: step 1: the dropped groups: found "]);
    let audit = forged(|run| run.step(1).learning_rate_bits = 0.5_f64.to_bits());
    let says = "entry 1: step 1: the learning rate: found 0.5 (3fe0000000000000), expected 0.001";
    assert_fails(&audit, &["advantages"], &[says]);
}

#[test]
fn swapped_steps_are_found() {
    let audit = forged(|run| run.entries.swap(1, 2));
    let says = "entry 1: the entry: found step 2, expected step 1, or the close of 0 steps";
    assert_fails(&audit, &["entries"], &[says]);
    // The same with their numbers put right, and their matches with them.
    let audit = Case::of(renumbered()).audit();
    let policy = "entry 1: the policy before step 1: found 0101";
    let root = "entry 1: step 1: the root of its log: found ";
    assert_fails(&audit, &["policies", "logs"], &[policy, root]);
    // And with their logs.
    let mut case = Case::of(renumbered());
    case.logs.swap(0, 1);
    let says = "step 1: line 2 of its tournament file: found `name = \"step-2\"`, expected";
    assert_fails(&case.audit(), &["policies", "tournaments"], &[says]);
}

/// The honest run with steps 1 and 2 swapped and their numbers put right.
fn renumbered() -> Run {
    let mut run = honest().0.clone();
    run.entries.swap(1, 2);
    run.blobs.swap(0, 1);
    for step in [1, 2] {
        run.step(step).step = step as u32;
        run.forge(step, |matches| matches.step = step as u32);
    }
    run
}

#[test]
fn logs_of_other_steps_are_not_those_that_the_ledger_names() {
    let mut case = Case::of(honest().0.clone());
    case.logs.swap(1, 2);
    let says = ["entry 2: step 2: the root of its log", "entry 3: step 3: the root of its log"];
    assert_fails(&case.audit(), &["logs"], &says);
}

#[test]
fn a_missing_step_is_found() {
    let audit = forged(|run| drop(run.entries.remove(2)));
    let says = "entry 2: the entry: found step 3, expected step 2, or the close of 1 steps";
    assert_fails(&audit, &["entries"], &[says]);
    let mut case = Case::of(honest().0.clone());
    case.logs[1] = case.ledger.path().join("nowhere");
    assert_fails(&case.audit(), &["logs"], &["entry 2: the log of step 2: found "]);
    // The last step is left out, and the close counts without it.
    let audit = forged(|run| {
        run.entries.remove(3);
        let close = run.entries.pop().expect("a close");
        let LedgerEntry::Close(close) = close else { panic!("{close:?} is no close") };
        let close = LedgerClose { step_count: 2, policy_sha256: [2; 32], ..close };
        run.entries.push(LedgerEntry::Close(close));
    });
    let says = [
        "entry 3: the steps of the ledger: found 2, expected 3",
        "the log of step 3: found one, expected none",
    ];
    assert_fails(&audit, &["end"], &says);
}

#[test]
fn a_log_of_another_policy_is_found() {
    // The organiser plays step 2 with another policy, and says so nowhere.
    let mut file_of_another = play(2, [1; 32]);
    file_of_another.announcement.models[0].sha256 = [0x77; 32];
    file_of_another.announce();
    file_of_another.results = None;
    let other = file_of_another.write();
    let mut run = honest().0.clone();
    let close = run.entries.pop().expect("a close");
    let third = run.entries.pop().expect("a step");
    run.entries.pop();
    let blob = run.blobs.pop().expect("what step 3 learned from");
    run.blobs.pop();
    run.learn(2, &other);
    run.entries.extend([third, close]);
    run.blobs.push(blob);
    let mut case = Case::of(run);
    case.logs[1] = other.path().to_owned();
    let says = "entry 2: step 2: the policy that played: found 7777";
    assert_fails(&case.audit(), &["tournaments"], &[says]);
}

#[test]
fn an_extra_step_is_found() {
    let fourth = play(4, [3; 32]).write();
    let mut run = honest().0.clone();
    run.entries.pop();
    run.learn(4, &fourth);
    let close = LedgerClose { run: run.id(), step_count: 4, policy_sha256: [4; 32] };
    run.entries.push(LedgerEntry::Close(close));
    let mut case = Case::of(run);
    case.logs.push(fourth.path().to_owned());
    let says = "entry 4: the steps of the ledger: found 4, expected 3";
    assert_fails(&case.audit(), &["end"], &[says]);
    let audit = forged(|run| run.entries.push(run.entries[3].clone()));
    let says = "entry 5: the entry: found step 3, expected nothing more";
    assert_fails(&audit, &["entries"], &[says]);
    // A log beyond the end of a closed ledger.
    let mut case = Case::of(honest().0.clone());
    case.logs.push(fourth.path().to_owned());
    let says = "the log of step 4: found one, expected none: the ledger is closed before it";
    assert_fails(&case.audit(), &["end"], &[says]);
}

#[test]
fn a_ledger_that_is_cut_is_not_taken_for_whole() {
    // A sound beginning of it: only whoever holds a later head can tell.
    let audit = forged(|run| run.entries.truncate(3));
    assert_fails(&audit, &[], &["end not checked: the ledger is not closed: 2 steps of 3"]);
    assert!(!audit.is_verified_without(&["updates"]));
    let mut case = Case::of(honest().0.clone());
    let held = std::fs::read(case.ledger.path().join("checkpoint")).expect("a head");
    case = Case {
        held: vec![held],
        ..Case::of({
            let mut run = case.run;
            run.entries.truncate(3);
            run
        })
    };
    let says = "the entries of the log: found 3, expected at least the 5 of held head 1";
    assert_fails(&case.audit(), &["held-heads"], &[says]);
    // Bytes of it are gone.
    let case = Case::of(honest().0.clone());
    let bundle = case.ledger.path().join("tile/entries/000.p/5");
    let bytes = std::fs::read(&bundle).expect("a bundle");
    std::fs::write(&bundle, &bytes[..bytes.len() - 1]).expect("the disk works");
    assert_fails(&case.audit(), &["tree"], &["`tile/entries/000.p/5`"]);
}

#[test]
fn what_a_step_learned_from_must_be_there_and_its_own() {
    let case = Case::of(honest().0.clone());
    let hash = arena_log::hash::Hash(case.run.clone().step(2).matches_sha256).to_string();
    let blob = case.ledger.path().join(format!("blob/{}/{hash}", &hash[..2]));
    std::fs::remove_file(blob).expect("it is there");
    let says = "the matches of step 2: found none, expected one blob";
    assert_fails(&case.audit(), &["files"], &[says]);
    let audit = forged(|run| run.forge(2, |matches| matches.step = 1));
    assert_fails(&audit, &["entries"], &["entry 2: the step of the matches of step 2: found 1"]);
    let audit = forged(|run| {
        run.forge(2, |matches| matches.matches.truncate(15));
        run.step(2).match_count -= 1;
    });
    let says = "entry 2: the matches of step 2: found 15 in the ledger";
    assert_fails(&audit, &["rewards"], &[says]);
    // A step that a crash took leaves its blob.
    let mut run = honest().0.clone();
    run.blobs.push(StepMatches { run: run.id(), step: 4, matches: run.blobs[0].matches.clone() });
    let audit = Case::of(run).audit();
    assert!(audit.is_verified_without(&["updates"]), "{}", shown(&audit));
    let files = &audit.step("files").expect("it is there").verdict;
    let Verdict::Verified { detail } = files else { panic!("{files:?}") };
    assert!(detail.ends_with("1 blob that no step names, as a crash leaves it"), "{detail}");
}

#[test]
fn a_run_of_another_experiment_is_found() {
    for (change, says) in [
        (
            (|facts| facts.sha256 = [1; 32]) as fn(&mut ExperimentFacts),
            "the hash of the experiment",
        ),
        (|facts| facts.reward = "none".to_owned(), "the reward: found `surplus`, expected `none`"),
        (|facts| facts.seed = 8, "the seed: found `7`, expected `8`"),
        (|facts| facts.policy_sha256 = Some([5; 32]), "the first policy: found `0000"),
    ] {
        let mut case = Case::of(honest().0.clone());
        change(&mut case.run.facts);
        assert_fails(&case.audit(), &["experiment"], &[says]);
    }
}

#[test]
fn a_log_signed_by_another_key_is_not_the_runs() {
    let mut played = play(2, [1; 32]);
    played.key_seed = [0x99; 32];
    played.opening.log_key = SigningKey::from_seed([0x99; 32]).public().to_bytes();
    played.announce();
    played.results = None;
    let log = played.write();
    let mut case = Case::of(honest().0.clone());
    case.logs[1] = log.path().to_owned();
    assert_fails(
        &case.audit(),
        &["logs"],
        &["entry 2: `checkpoint`: step 2: its log: the head: found no"],
    );
}

#[test]
fn a_tampered_log_of_a_step_is_found_with_the_step() {
    let mut played = play(2, [1; 32]);
    let place = played.match_at(3, 0);
    played.forge(place, |transcript| transcript.record.seeds = [1, 2]);
    let log = played.write();
    let mut run = honest().0.clone();
    let head = log.audit().head().expect("a signed head").clone();
    (run.step(2).log_size, run.step(2).log_root) = (head.size, head.root.0);
    let mut case = Case::of(run);
    case.logs[1] = log.path().to_owned();
    let says = format!("entry 2: step 2: its log, entry {place}: the seats' seeds");
    assert_fails(&case.audit(), &["logs"], &[&says]);
}

#[test]
fn what_cannot_be_computed_here_is_not_checked() {
    let asks_a_judge = |_: &MatchRecord| Err("a judge is needed".to_owned());
    let case = Case { reward: &asks_a_judge, ..Case::of(honest().0.clone()) };
    let audit = case.audit();
    let says = [
        "rewards not checked: step 1: match 0: a judge is needed, and 47 more places",
        "advantages not checked: step 1: not every reward is known, and 2 more steps",
    ];
    assert_fails(&audit, &[], &says);
    assert!(!audit.is_verified_without(&["updates"]));
}
