//! Transcripts: each case says what the judge answers to every line and how the match ends.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use arena_core::fault::SeatError;
use arena_core::position::{Illegal, Judgement, Position, Terms};
use arena_core::record::TurnRecord;
use arena_core::referee::{Played, Voided, play};
use arena_core::rules::{ReplayError, Rules, TurnBreach, breaks_reserve, replay};
use arena_core::scenario::{Role, RuleSet, Scenario};
use arena_core::script::ScriptedSeat;
use arena_core::turn::{Move, Reply};
use serde::Deserialize;

use crate::notation::{
    Act, Line, letter, note_of, outcome_text, parse_line, parse_setup, record_of,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseFile {
    case: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    setup: String,
    lines: Vec<String>,
}

fn case_files() -> Vec<(PathBuf, CaseFile)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases/rules");
    let listing = std::fs::read_dir(&folder).expect("the folder of rule cases is there");
    let mut paths: Vec<PathBuf> = listing.map(|file| file.expect("listed").path()).collect();
    paths.sort();
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).expect("a case file is text");
        let file =
            toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        (path, file)
    };
    paths.into_iter().map(read).collect()
}

fn every_case() -> Vec<(String, Case)> {
    let label = |path: &Path, case: &Case| {
        let file = path.file_name().expect("a case file has a name");
        format!("{}: {}", file.display(), case.name)
    };
    case_files()
        .into_iter()
        .flat_map(|(path, file)| file.case.into_iter().map(move |case| (label(&path, &case), case)))
        .collect()
}

#[test]
fn every_case_is_judged_played_and_replayed_as_it_says() {
    let cases = every_case();
    for (label, case) in &cases {
        check(label, case);
    }
    let names: BTreeSet<&str> = cases.iter().map(|(_, case)| case.name.as_str()).collect();
    assert_eq!(names.len(), cases.len(), "a case's name says what is special about it");
    assert!(cases.len() >= 60, "only {} cases were found", cases.len());
}

/// What a case's lines amount to.
#[derive(Default)]
struct Reading {
    /// What the seats are to answer: buyer, seller.
    answers: [Vec<Result<Reply, SeatError>>; 2],
    /// The turns that must be in the record.
    turns: Vec<TurnRecord>,
    /// What was tried in the turn that a fault or a violation ended.
    unfinished: Vec<Move>,
    /// Lines that no seat can bring about, with the number of turns before them.
    impossible: Vec<(usize, Role, Move, Illegal)>,
}

fn check(label: &str, case: &Case) {
    let (rules, scenario) = parse_setup(&case.setup);
    let (last, lines) = case.lines.split_last().expect("a case has lines");
    let outcome = last.strip_prefix("=> ").unwrap_or_else(|| panic!("{label}: no outcome"));
    let lines: Vec<Line> = lines.iter().map(|line| parse_line(line)).collect();
    let reading = read_lines(label, &rules, &scenario, &lines);

    let mut seats = reading.answers.clone().map(ScriptedSeat::new);
    let [buyer, seller] = &mut seats;
    let played = play(&rules, &scenario, ["", ""], [1, 2], [buyer, seller]);
    assert_eq!(ending(&played), outcome, "{label}");
    for seat in &seats {
        assert!(seat.answers.is_empty(), "{label}: lines were left over");
    }
    let Ok(played) = played else { return };
    assert_eq!(played.turns, reading.turns, "{label}");
    assert_eq!(played.unfinished, reading.unfinished, "{label}");

    let record = record_of(&scenario, &played);
    assert_eq!(replay(&rules, &record), Ok(()), "{label}");
    for (turn_index, by, action, illegal) in reading.impossible {
        let mut record = record.clone();
        let (refused, talk, belief) = (vec![], String::new(), None);
        record.turns.insert(turn_index, TurnRecord { by, refused, action, talk, belief });
        let breach = TurnBreach::NotDeliverable { action, judgement: Judgement::Illegal(illegal) };
        assert_eq!(replay(&rules, &record), Err(ReplayError::Turn { turn_index, breach }));
    }
}

fn ending(played: &Result<Played, Voided>) -> String {
    match played {
        Ok(played) => outcome_text(played.outcome),
        Err(voided) => format!("void {} {}", letter(voided.by), voided.reason.name()),
    }
}

fn read_lines(label: &str, rules: &Rules, scenario: &Scenario, lines: &[Line]) -> Reading {
    let mut reading = Reading::default();
    let mut position = Position::start(*rules, Terms::of_scenario(scenario)).expect("sound terms");
    let mut refused = Vec::new();
    for line in lines {
        let by = line.by;
        let action = match line.act {
            Act::Move(action) => action,
            Act::Fault(fault) => {
                reading.answers[by.index()].push(Err(SeatError::Fault(fault)));
                continue;
            }
            Act::Void(reason) => {
                let detail = "as the case says".to_owned();
                reading.answers[by.index()].push(Err(SeatError::Void { reason, detail }));
                continue;
            }
        };
        let judgement = position.judge(by, action);
        if let Judgement::Illegal(illegal @ (Illegal::NotYourTurn | Illegal::Ended)) = judgement {
            assert_eq!(line.note, note_of(judgement), "{label}: {line:?}");
            reading.impossible.push((reading.turns.len(), by, action, illegal));
            continue;
        }
        let talk = line.talk.clone();
        reading.answers[by.index()].push(Ok(Reply { action, talk: talk.clone(), belief: None }));
        if talk.len() > rules.talk_bytes_max as usize {
            assert_eq!(line.note, "talk-too-long", "{label}: {line:?}");
            continue;
        }
        assert_eq!(line.note, note_of(judgement), "{label}: {line:?}");
        let turn = match judgement {
            Judgement::Delivered => {
                let refused = std::mem::take(&mut refused);
                TurnRecord { by, refused, action, talk, belief: None }
            }
            Judgement::Refused => {
                refused.push(action);
                if refused.len() < rules.attempts_max() {
                    continue;
                }
                let (refused, talk) = (std::mem::take(&mut refused), String::new());
                TurnRecord { by, refused, action: Move::Reject, talk, belief: None }
            }
            Judgement::Penalised => continue,
            Judgement::Illegal(_) => {
                refused.push(action);
                continue;
            }
        };
        position.deliver(by, turn.action);
        reading.turns.push(turn);
    }
    reading.unfinished = refused;
    reading
}

#[test]
fn the_cases_break_every_reserve_under_every_regulation() {
    let mut missing = BTreeSet::new();
    for set in [RuleSet::Standard, RuleSet::AmazonHistoryPrice] {
        for role in Role::BOTH {
            for regulation in ["Refuse", "Penalise", "Allow"] {
                for verb in ["offers", "accepts"] {
                    missing.insert(format!("{} {role} {regulation} {verb}", set.name()));
                }
            }
        }
    }
    for (_, case) in every_case() {
        let (rules, scenario) = parse_setup(&case.setup);
        let lines: Vec<Line> =
            case.lines[..case.lines.len() - 1].iter().map(|line| parse_line(line)).collect();
        let mut offers = [None, None];
        for line in &lines {
            let (by, Act::Move(action)) = (line.by, line.act) else {
                continue;
            };
            let (verb, price) = match action {
                Move::Offer(price) => ("offers", Some(price)),
                Move::Accept(named) => ("accepts", named.or(offers[by.other().index()])),
                Move::Reject | Move::Walk => continue,
            };
            if let Move::Offer(price) = action {
                offers[by.index()] = Some(price);
            }
            if price.is_some_and(|price| breaks_reserve(by, scenario.reserve(by), price)) {
                let regulation = rules.regulation[by.index()];
                missing.remove(&format!("{} {by} {regulation:?} {verb}", rules.set.name()));
            }
        }
    }
    assert!(missing.is_empty(), "no case in which {missing:#?}");
}
