//! Logs written by an enemy: tiles, hashes and signatures are right, what they hold is not; or
//! files are torn, gone or something else. Whatever a log says, the program says what is wrong or
//! prints it, harmlessly, and never breaks.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use arena_core::announcement::{AgentEntry, Announcement};
use arena_core::draws::Draws;
use arena_core::entry::{AnnouncementEntry, Close, Entry, Reveal, TournamentId};
use arena_core::fault::Fault;
use arena_core::price::Price;
use arena_core::record::{MatchRecord, Outcome, TurnRecord};
use arena_core::scenario::{Horizon, Role};
use arena_core::seat::{CallTokens, ModelCall, SampledToken, Sampling, TokenScore, Usage};
use arena_core::transcript::Transcript;
use arena_core::turn::{Belief, Move};
use arena_log::blobs::Visibility;
use arena_log::hash::Hash;
use arena_log::writer::{LogSettings, LogWriter, Record};

use crate::{kit, logs};

/// What a reader must never be shown as it is: a terminal command, a reversal, a forged line.
const EVIL: &str = "\u{1b}[31m\u{202e}\u{7}\u{9b}2J\r\nforged: line \u{200b}";

/// The name of every log here.
const ORIGIN: &str = "arena.test/forged";

/// A tournament file that could have been played.
const TOURNAMENT: &str = r#"
name = "forged"
[catalog]
kind = "synthetic"
items = 1
[[agents]]
name = "a"
component = "builtin:linear"
[[agents]]
name = "b"
component = "builtin:linear"
"#;

/// Ways to show a log, and whether the answer is JSON.
const VIEWS: [(&[&str], bool); 6] = [
    (&[], false),
    (&["--full"], false),
    (&["--json"], true),
    (&["--pair", "0", "--trace"], false),
    (&["--pair", "0", "--json"], true),
    (&["--pair", "18446744073709551615"], false),
];

fn announcement() -> Announcement {
    let agent = |name: &str| AgentEntry {
        name: name.to_owned(),
        component_sha256: [7; 32],
        params: String::new(),
        submission: None,
    };
    Announcement {
        name: "forged".to_owned(),
        config_toml: TOURNAMENT.to_owned(),
        draws: Draws::PublicSeed(1),
        engine: "engine=none\n".to_owned(),
        models: Vec::new(),
        agents: vec![agent("a"), agent("b")],
        catalog_sha256: [9; 32],
        item_count: 1,
        pair_count: 1,
        checkpoint_every: 256,
    }
}

fn opening(announcement: &Announcement) -> AnnouncementEntry {
    AnnouncementEntry {
        origin: ORIGIN.to_owned(),
        log_key: logs::key().public().to_bytes(),
        announcement_sha256: Hash::of(&announcement.encode()).0,
    }
}

fn record(leg: u8) -> MatchRecord {
    let agents = if leg == 0 { [0, 1] } else { [1, 0] };
    let turn = |by, action, talk: &str| TurnRecord {
        by,
        refused: vec![],
        action,
        talk: talk.to_owned(),
        belief: Some(Belief { reserve: Price(5_000), spread: Price(100) }),
    };
    MatchRecord {
        pair_index: 0,
        leg,
        agents,
        item_index: 0,
        repetition: 0,
        list_price: Price(10_000),
        budget: Price(9_000),
        cost: Price(4_000),
        opener: Role::Buyer,
        horizon: Horizon { turn_limit: 20, hidden: false },
        seeds: [1, 2],
        turns: vec![
            turn(Role::Buyer, Move::Offer(Price(5_000)), "five?"),
            turn(Role::Seller, Move::Accept(None), "done"),
        ],
        unfinished: vec![],
        outcome: Outcome::Deal { price: Price(5_000) },
        usage: [Usage::default(), Usage::default()],
    }
}

/// Writes a log of one pair, after `forge` has had its way with both legs.
fn write(folder: &Path, announcement: &Announcement, forge: &dyn Fn(&mut MatchRecord)) {
    let mut legs = [record(0), record(1)];
    legs.iter_mut().for_each(forge);
    let opening = Entry::Announcement(opening(announcement)).encode();
    let tournament = TournamentId::of_first_entry(&opening);
    let mut records = vec![(opening, Vec::new())];
    for leg in legs {
        let transcript = Transcript { tournament, nonce: [3; 32], record: leg };
        let bytes = transcript.encode();
        records.push((Entry::Match(transcript.entry(&bytes)).encode(), bytes));
    }
    let close = Close { tournament, match_count: 2, void_count: 0 };
    records.push((Entry::Close(close).encode(), Vec::new()));
    let reveal = Reveal { tournament, secret: None };
    records.push((Entry::Reveal(reveal).encode(), Vec::new()));
    write_records(folder, &announcement.encode(), &records);
}

/// An entry and what lies beside it.
type Raw = (Vec<u8>, Vec<u8>);

/// Writes and signs a log of any bytes.
fn write_records(folder: &Path, announcement: &[u8], records: &[Raw]) {
    let settings =
        LogSettings { origin: ORIGIN.to_owned(), key: logs::key(), checkpoint_every: 256 };
    let mut writer = LogWriter::create(folder, settings).expect("a folder for the log");
    writer.put_blob(announcement, Visibility::Public).expect("the announcement is written");
    let records: Vec<Record<'_>> =
        records.iter().map(|(entry, attachment)| Record { entry, attachment }).collect();
    writer.append_all(&records).expect("the log is written");
    writer.checkpoint().expect("the log is signed");
    writer.publish().expect("the log is published");
}

/// Shows a log in every way there is.
fn show_everything(what: &str, log: &Path) -> Vec<i32> {
    let show = |(words, is_json): (&[&str], bool)| {
        let mut command = Command::new(kit::ARENA);
        command.args(["tournament", "show"]).arg(log).args(words);
        check(&format!("{what}, show {words:?}"), &command.output().expect("it runs"), is_json)
    };
    VIEWS.map(show).to_vec()
}

fn check(what: &str, output: &Output, is_json: bool) -> i32 {
    let code = output.status.code().unwrap_or_else(|| panic!("{what}: ended by a signal"));
    let out = String::from_utf8(output.stdout.clone()).expect("text");
    let err = String::from_utf8(output.stderr.clone()).expect("text");
    assert!([0, 2, 3].contains(&code), "{what}: exit code {code}: {err}");
    assert_eq!(code == 0, err.is_empty() || !err.starts_with("error"), "{what}: {err}");
    let evil = |c: char| (c.is_control() && c != '\n') || "\u{202e}\u{200b}".contains(c);
    assert!(!err.contains(evil), "{what}: {err:?}");
    assert!(!format!("\n{out}\n{err}").contains("\nforged: line"), "{what}: {out}");
    if is_json && code == 0 {
        let document = serde_json::from_str::<serde_json::Value>(&out);
        assert!(document.is_ok(), "{what}: {document:?}");
    } else {
        assert!(!out.contains(evil), "{what}: {out:?}");
        assert!(!out.contains("NaN"), "{what}: {out}");
    }
    code
}

type Forgery = (&'static str, fn(&mut MatchRecord));

/// Records that decode and cannot have been played.
const FORGERIES: &[Forgery] = &[
    ("nothing", |_| {}),
    ("an agent that was not announced", |match_| match_.agents = [0, 65_535]),
    ("an agent against itself", |match_| match_.agents = [1, 1]),
    ("a pair beyond the schedule", |match_| match_.pair_index = u64::MAX),
    ("a third leg", |match_| match_.leg = 255),
    ("the last item there can be", |match_| match_.item_index = u32::MAX),
    ("the last repetition there can be", |match_| match_.repetition = u32::MAX),
    ("no turns", |match_| match_.turns.clear()),
    ("no price at all", |match_| {
        (match_.list_price, match_.budget, match_.cost) = (Price(0), Price(0), Price(0));
        match_.outcome = Outcome::Deal { price: Price(0) };
    }),
    ("the highest prices", |match_| {
        (match_.list_price, match_.budget) = (Price(u32::MAX), Price(u32::MAX));
        match_.outcome = Outcome::Deal { price: Price(u32::MAX) };
    }),
    ("a cost far above the budget", |match_| {
        (match_.budget, match_.cost) = (Price(0), Price(u32::MAX));
    }),
    ("beliefs without end", |match_| {
        for turn in &mut match_.turns {
            turn.belief = Some(Belief { reserve: Price(u32::MAX), spread: Price(0) });
        }
    }),
    ("a horizon of nothing", |match_| {
        match_.horizon = Horizon { turn_limit: 0, hidden: true };
    }),
    ("one side that always moves", |match_| {
        let turn = match_.turns[0].clone();
        match_.turns = vec![turn; 10_000];
        match_.outcome = Outcome::TimedOut;
    }),
    ("a thousand refusals in a turn", |match_| {
        match_.turns[0].refused = vec![Move::Accept(Some(Price(u32::MAX))); 1_000];
    }),
    ("fuel beyond counting", |match_| {
        match_.usage[0].fuel_per_act = vec![u64::MAX; 1_000];
    }),
    ("an impossible violation", |match_| {
        match_.outcome = Outcome::Violated { by: Role::Seller, action: Move::Walk };
    }),
    ("a fault without a turn", |match_| {
        match_.turns.clear();
        match_.outcome = Outcome::Faulted { by: Role::Buyer, fault: Fault::ModelBudget };
    }),
    ("evil words", |match_| {
        for turn in &mut match_.turns {
            turn.talk = EVIL.repeat(20);
        }
        match_.usage[0].trace = vec![EVIL.to_owned(), "\n".repeat(1_000)];
        match_.usage[1].metrics = vec![(EVIL.to_owned(), i32::MIN); 10];
        match_.usage[0].model_calls = vec![ModelCall {
            act_index: u32::MAX,
            model: EVIL.to_owned(),
            request_sha256: [0; 32],
            sampling: Sampling {
                temperature_milli: u32::MAX,
                top_k: u32::MAX,
                top_p_milli: u32::MAX,
                min_p_milli: u32::MAX,
            },
            is_grammar_bound: true,
            text: EVIL.to_owned(),
            finish_reason: 255,
            input_tokens: u32::MAX,
            output_tokens: u32::MAX,
            weight_milli: Some(u32::MAX),
            tokens: Some(CallTokens {
                reused: u32::MAX,
                prompt: vec![u32::MAX; 9],
                output: vec![
                    SampledToken {
                        id: u32::MAX,
                        logprob_micro: i32::MAX,
                        sampled_logprob_micro: i32::MIN,
                        top: vec![TokenScore { id: u32::MAX, logprob_micro: i32::MAX }; 9],
                    };
                    9
                ],
            }),
        }];
    }),
];

#[test]
fn records_that_cannot_have_been_played_break_nothing() {
    for (what, forge) in FORGERIES {
        let folder = tempfile::tempdir().expect("a folder");
        write(folder.path(), &announcement(), forge);
        let codes = show_everything(what, folder.path());
        assert!(*what != "nothing" || codes[..5] == [0; 5], "the honest log is shown: {codes:?}");
    }
}

type Lie = (&'static str, fn(&mut Announcement));

#[test]
fn announcements_that_lie_break_nothing() {
    let lies: &[Lie] = &[
        ("no agents", |announced| announced.agents.clear()),
        ("seventy thousand agents", |announced| {
            announced.agents = vec![announced.agents[0].clone(); 70_000];
        }),
        ("evil names", |announced| {
            announced.name = EVIL.to_owned();
            announced.engine = EVIL.to_owned();
            announced.config_toml = EVIL.to_owned();
            for agent in &mut announced.agents {
                agent.name = EVIL.to_owned();
                agent.params = EVIL.to_owned();
            }
        }),
        ("names of a mebibyte", |announced| announced.agents[0].name = "x".repeat(1 << 20)),
        ("pairs without end", |announced| announced.pair_count = u64::MAX),
        ("no pairs", |announced| announced.pair_count = 0),
        ("no items", |announced| announced.item_count = 0),
    ];
    for (what, lie) in lies {
        let folder = tempfile::tempdir().expect("a folder");
        let mut announced = announcement();
        lie(&mut announced);
        write(folder.path(), &announced, &|_| {});
        show_everything(what, folder.path());
    }
}

#[test]
fn an_announcement_of_more_agents_than_may_play_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut announced = announcement();
    announced.agents = vec![announced.agents[0].clone(); 1_001];
    write(folder.path(), &announced, &|_| {});
    assert_eq!(show_everything("1,001 agents", folder.path()), [3; VIEWS.len()]);
}

#[test]
fn a_pair_of_agents_that_were_not_announced_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), &announcement(), &|match_| match_.agents = [0, 65_535]);
    assert_eq!(show_everything("agent 65,535", folder.path())[..5], [3; 5]);
}

#[test]
fn lengths_that_promise_gigabytes_are_refused() {
    let honest = announcement().encode();
    let transcript =
        Transcript { tournament: TournamentId([1; 32]), nonce: [3; 32], record: record(0) }
            .encode();
    for at in 8..transcript.len().saturating_sub(4) {
        let mut bomb = transcript.clone();
        bomb[at..at + 4].copy_from_slice(&[0xff, 0xff, 0xff, 0x7f]);
        // Decoding answers at once and takes no more memory than the bytes that are there.
        let _ = Transcript::decode(&bomb);
    }
    for at in [8, 12] {
        let mut bomb = honest.clone();
        bomb[at..at + 4].copy_from_slice(&[0xff; 4]);
        let opening = AnnouncementEntry {
            announcement_sha256: Hash::of(&bomb).0,
            ..opening(&announcement())
        };
        let entry = Entry::Announcement(opening).encode();
        let folder = tempfile::tempdir().expect("a folder");
        write_records(folder.path(), &bomb, &[(entry, Vec::new())]);
        assert_eq!(show_everything("a length of four gigabytes", folder.path()), [3; VIEWS.len()]);
    }
}

#[test]
fn entries_out_of_place_or_of_another_tournament_are_refused() {
    let opened = Entry::Announcement(opening(&announcement())).encode();
    let id = TournamentId::of_first_entry(&opened);
    let matched = |tournament, leg| {
        let transcript = Transcript { tournament, nonce: [3; 32], record: record(leg) };
        let bytes = transcript.encode();
        (Entry::Match(transcript.entry(&bytes)).encode(), bytes)
    };
    let plain = |entry: Entry| (entry.encode(), Vec::new());
    let close =
        |tournament| plain(Entry::Close(Close { tournament, match_count: 2, void_count: 0 }));
    let (first, second) = (matched(id, 0), matched(id, 1));
    let reveal = plain(Entry::Reveal(Reveal { tournament: id, secret: None }));
    let other = TournamentId([9; 32]);
    let again = (opened.clone(), Vec::new());
    let swapped = (first.0.clone(), second.1.clone());
    let cases: [(&str, Vec<Raw>); 8] = [
        ("a second announcement", vec![again]),
        ("a match of another tournament", vec![matched(other, 0), matched(other, 1)]),
        ("a close of another tournament", vec![first.clone(), second.clone(), close(other)]),
        ("another match's transcript", vec![swapped, second.clone()]),
        ("no transcript", vec![(first.0.clone(), Vec::new()), second.clone()]),
        ("a reveal before the close", vec![first.clone(), second.clone(), reveal.clone()]),
        ("a match after the close", vec![first.clone(), second.clone(), close(id), first.clone()]),
        ("junk", vec![(b"ARNAjunk".to_vec(), Vec::new())]),
    ];
    for (what, rest) in cases {
        let folder = tempfile::tempdir().expect("a folder");
        let mut records = vec![(opened.clone(), Vec::new())];
        records.extend(rest);
        write_records(folder.path(), &announcement().encode(), &records);
        assert_eq!(show_everything(what, folder.path())[..3], [3; 3], "{what}");
    }
}

#[test]
fn an_announcement_that_is_not_the_announced_one_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let entry = Entry::Announcement(opening(&announcement())).encode();
    let mut other = announcement();
    other.pair_count = 2;
    write_records(folder.path(), &other.encode(), &[(entry, Vec::new())]);
    assert_eq!(show_everything("another announcement", folder.path()), [3; VIEWS.len()]);
}

/// The files of a log, but for those that nothing is read from here.
fn files_that_matter(log: &Path) -> Vec<PathBuf> {
    let unread = |path: &PathBuf| {
        ["log.vkey", "checkpoints", "tile/0"].iter().any(|prefix| path.starts_with(prefix))
    };
    logs::public_files(log).into_keys().filter(|path| !unread(path)).collect()
}

type Damage = (&'static str, fn(&Path));

#[test]
fn a_file_that_is_torn_changed_gone_or_no_file_is_told_of() {
    let honest = tempfile::tempdir().expect("a folder");
    write(honest.path(), &announcement(), &|_| {});
    let files = files_that_matter(honest.path());
    assert_eq!(files.len(), 4, "checkpoint, entries, attachments, announcement: {files:?}");
    let damage: [Damage; 5] = [
        ("torn", |path| {
            let bytes = std::fs::read(path).expect("a file");
            std::fs::write(path, &bytes[..bytes.len() / 2]).expect("written");
        }),
        ("changed", |path| {
            let mut bytes = std::fs::read(path).expect("a file");
            // In a checkpoint, where nothing but the signature follows, that is the root.
            let place = bytes.len() / 4;
            bytes[place] ^= 0x10;
            std::fs::write(path, bytes).expect("written");
        }),
        ("longer", |path| {
            let bytes = std::fs::read(path).expect("a file");
            std::fs::write(path, [&bytes[..], &[0; 100]].concat()).expect("written");
        }),
        ("gone", |path| std::fs::remove_file(path).expect("removed")),
        ("a pipe", |path| {
            std::fs::remove_file(path).expect("removed");
            let made = Command::new("mkfifo").arg(path).status().expect("mkfifo runs");
            assert!(made.success());
        }),
    ];
    for file in &files {
        for (what, harm) in damage {
            let folder = tempfile::tempdir().expect("a folder");
            write(folder.path(), &announcement(), &|_| {});
            harm(&folder.path().join(file));
            let codes = show_everything(&format!("{} {what}", file.display()), folder.path());
            assert_eq!(codes, [3; VIEWS.len()], "{} {what}", file.display());
        }
    }
}

#[test]
fn a_running_log_without_its_private_folder_is_withheld_and_not_damaged() {
    let folder = tempfile::tempdir().expect("a folder");
    let opening = Entry::Announcement(opening(&announcement())).encode();
    let tournament = TournamentId::of_first_entry(&opening);
    let settings =
        LogSettings { origin: ORIGIN.to_owned(), key: logs::key(), checkpoint_every: 256 };
    let mut writer = LogWriter::create(folder.path(), settings).expect("a folder for the log");
    writer.put_blob(&announcement().encode(), Visibility::Public).expect("written");
    let transcript = Transcript { tournament, nonce: [3; 32], record: record(0) };
    let bytes = transcript.encode();
    let entry = Entry::Match(transcript.entry(&bytes)).encode();
    let records =
        [Record { entry: &opening, attachment: &[] }, Record { entry: &entry, attachment: &bytes }];
    writer.append_all(&records).expect("written");
    writer.checkpoint().expect("signed");
    drop(writer);
    assert_eq!(show_everything("as its owner", folder.path())[0], 0);
    std::fs::remove_dir_all(folder.path().join("private")).expect("removed");
    let mut command = Command::new(kit::ARENA);
    let shown = command.args(["tournament", "show"]).arg(folder.path()).output().expect("it runs");
    let err = String::from_utf8_lossy(&shown.stderr);
    assert_eq!(shown.status.code(), Some(3));
    assert!(err.contains("withheld until all are played"), "{err}");
}

#[test]
fn errors_name_evil_paths_and_values_in_plain_letters_and_not_at_length() {
    let folder = tempfile::tempdir().expect("a folder");
    let name = EVIL.replace('/', "");
    for words in [
        &["tournament", "show"][..],
        &["tournament", "run"],
        &["agent", "check"],
        &["match", "builtin:linear"],
        &["catalog", "show"],
        &["catalog", "import"],
    ] {
        let mut command = Command::new(kit::ARENA);
        command.args(words).arg(&name).current_dir(folder.path());
        let code = check(&format!("{words:?}"), &command.output().expect("it runs"), false);
        assert!([2, 3].contains(&code), "{words:?}: {code}");
    }
    let price = "9".repeat(1 << 20);
    let row = format!(
        r#"[{{"title":"t","category":"c","list_price":"{price}","highest_price":"1",
        "lowest_price":"1"}}]"#
    );
    std::fs::write(folder.path().join("a.json"), row).expect("written");
    let mut command = Command::new(kit::ARENA);
    let output = command.args(["catalog", "import"]).arg(folder.path()).output().expect("it runs");
    assert_eq!(check("a price of a mebibyte", &output, false), 3);
    assert!(output.stderr.len() < 10_000, "{} bytes of error", output.stderr.len());
}
