//! Fifty ways to tamper with a log, each as a test: one honest log, one change, one verdict.
//!
//! A stranger has no key and can only change bytes. The organiser has the key and signs whatever
//! was changed anew, so that only the change itself gives it away: by a head that others hold, by
//! what follows from the draws, by the rules, or by running the agents again. Where no audit of
//! one folder can find anything, the audit must say so in its own words.
//!
//! Not here: the same for logs without the program around them (`host/arena-audit/tests`).

// Which row is at work shows where one hangs.
#![allow(clippy::print_stderr)]

mod honest;
mod rewrite;
mod scene;

mod tree;
mod proofs;
mod signatures;
mod notes;
mod order;
mod draws;
mod play;
mod models;
mod form;

mod bits;

use std::process::Output;

use serde_json::Value;

use honest::Honest;
use scene::{Asked, Scene};

/// How many kinds of tampering there are.
const KINDS: u8 = 50;

/// One change to an honest log, and what an audit must say of it.
struct Tampering {
    /// The kind, from 1 to 50.
    number: u8,
    what: &'static str,
    by: By,
    /// The honest log.
    of: fn() -> &'static Honest,
    /// Makes the change; returns what is asked then.
    tamper: fn(&Scene) -> Asked,
    expect: Expect,
}

/// Who tampers.
#[derive(Clone, Copy, Debug)]
enum By {
    /// Someone without the log's key.
    Stranger,
    /// Someone with it.
    Organiser,
}

/// What must come of an audit, or of another question.
enum Expect {
    /// Exactly these steps fail, and a finding has both values: each text is a part of it.
    Fails { steps: &'static str, what: &'static str, found: &'static str, wanted: &'static str },
    /// Nothing fails, but this was not checked although it was asked for; what nobody asked for is
    /// named behind it.
    Unchecked { steps: &'static str, reason: &'static str },
    /// Nothing is found, and nothing could be: the audit names it among its limits, and shows
    /// what there is to see.
    Named { limit: &'static str, shown: &'static str },
    /// It changes nothing, because nothing is read from it.
    Ignored,
    /// The command ends with this code, and says all of this.
    Says { code: i32, words: &'static [&'static str] },
    /// The library refuses it with these words.
    Refuses { words: &'static str },
}

const TAMPERINGS: &[&[Tampering]] = &[
    tree::TAMPERINGS,
    proofs::TAMPERINGS,
    signatures::TAMPERINGS,
    notes::TAMPERINGS,
    order::TAMPERINGS,
    draws::TAMPERINGS,
    play::TAMPERINGS,
    models::TAMPERINGS,
    form::TAMPERINGS,
];

#[test]
fn every_kind_of_tampering_has_a_case() {
    let numbers = || TAMPERINGS.iter().copied().flatten().map(|tampering| tampering.number);
    let missing: Vec<u8> =
        (1..=KINDS).filter(|kind| !numbers().any(|number| number == *kind)).collect();
    assert!(missing.is_empty(), "no case of {missing:?}");
    assert!(numbers().all(|number| (1..=KINDS).contains(&number)));
}

#[test]
fn logs_that_nobody_tampered_with_are_verified() {
    for honest in [honest::drawn(), honest::seeded()] {
        let scene = Scene::of(honest);
        let said = scene.ask(&Asked::audit(&["--reexecute"]));
        assert!(printed(&said).contains("verdict: VERIFIED: all 18 steps"), "{}", both(&said));
        assert_eq!(said.status.code(), Some(0));
        // Signed anew without a change, they are the same.
        scene.publish(&scene.rewrite());
        crate::logs::assert_same(&scene.log(), &honest.log());
    }
}

/// Plays out every tampering of a group, and tells of all that were not caught.
#[track_caller]
fn assert_caught(tamperings: &[Tampering]) {
    let mut missed = Vec::new();
    for tampering in tamperings {
        let Tampering { number, what, by, .. } = tampering;
        eprintln!("tampering {number} by {by:?}: {what}");
        if let Err(said) = check(tampering) {
            missed.push(format!("tampering {number} by {by:?}: {what}\n{said}"));
        }
    }
    assert!(missed.is_empty(), "{} not caught:\n\n{}", missed.len(), missed.join("\n\n"));
}

fn check(tampering: &Tampering) -> Result<(), String> {
    let scene = Scene::of((tampering.of)());
    let asked = (tampering.tamper)(&scene);
    if let (Asked::Library(said), Expect::Refuses { words }) = (&asked, &tampering.expect) {
        let is_refused = said.as_ref().is_err_and(|error| error.contains(words));
        return ensure(is_refused, || format!("expected `{words}`, is {said:?}"));
    }
    let said = scene.ask(&asked);
    let text = both(&said);
    let code = said.status.code();
    match &tampering.expect {
        Expect::Says { code: wanted, words } => {
            ensure(code == Some(*wanted) && words.iter().all(|word| text.contains(word)), || {
                format!("expected code {wanted} and {words:?}, code is {code:?}:\n{text}")
            })
        }
        Expect::Fails { steps, what, found, wanted } => {
            ends(&said, 1, &format!("verdict: FAILED: {steps}\n"))?;
            let findings = findings(&scene.ask_for_steps(&asked));
            let is_it = |[is_what, is, should]: &&[String; 3]| {
                is_what.contains(what) && is.contains(found) && should.contains(wanted)
            };
            let Some([_, is, should]) = findings.iter().find(is_it) else {
                return Err(format!("not among {findings:#?}"));
            };
            ensure(is != should && !is.is_empty(), || format!("`{is}` and `{should}`"))?;
            ensure(text.contains(found) && text.contains(wanted), || text.clone())
        }
        Expect::Unchecked { steps, reason } => {
            ends(&said, 1, &format!("verdict: NOT VERIFIED: could not be checked: {steps}\n"))?;
            ensure(text.contains(reason), || format!("`{reason}` is not in:\n{text}"))
        }
        Expect::Named { limit, shown } => {
            ends(&said, 0, "verdict: VERIFIED: ")?;
            let (above, limits) = text.split_once("No offline audit can show:").unwrap_or_default();
            ensure(limits.contains(limit), || format!("`{limit}` is not in:\n{limits}"))?;
            ensure(above.contains(shown), || format!("`{shown}` is not in:\n{above}"))
        }
        Expect::Refuses { .. } => Err("only the library refuses".to_owned()),
        Expect::Ignored => {
            let untouched = Scene::of((tampering.of)());
            ends(&said, 0, "verdict: VERIFIED: ")?;
            let wanted = untouched.ask(&asked);
            ensure(printed(&wanted) == printed(&said), || format!("it changed something:\n{text}"))
        }
    }
}

fn ensure(holds: bool, said: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(said()) }
}

fn ends(said: &Output, code: i32, verdict: &str) -> Result<(), String> {
    let is = said.status.code() == Some(code) && printed(said).contains(verdict);
    ensure(is, || {
        format!("expected code {code} and `{verdict}`, is {:?}:\n{}", said.status, both(said))
    })
}

fn printed(said: &Output) -> String {
    String::from_utf8(said.stdout.clone()).expect("the output is UTF-8")
}

fn both(said: &Output) -> String {
    printed(said) + &String::from_utf8_lossy(&said.stderr)
}

/// Returns what, found and wanted of every finding in an audit's JSON.
fn findings(said: &Output) -> Vec<[String; 3]> {
    let value: Value = serde_json::from_str(&printed(said)).expect("one JSON document");
    let steps = value["steps"].as_array().expect("a list of steps");
    let findings = steps.iter().filter_map(|step| step["findings"].as_array()).flatten();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    findings
        .map(|finding| {
            let place = [text(&finding["file"]), text(&finding["what"])].join(": ");
            [place, text(&finding["found"]), text(&finding["wanted"])]
        })
        .collect()
}
