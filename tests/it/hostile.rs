//! Every hostile guest of `tests/guests` against an honest opponent: the named fault, nothing
//! worse, and the next match on the same sandbox is as if it had never been.
//!
//! A guest file opens with what it does and `;; expect:`, one or more of `fault NAME`,
//! `refused` and `contained`, separated by `|`.

use std::sync::{Arc, OnceLock};

use arena_core::config::Limits;
use arena_core::price::Price;
use arena_core::record::Outcome;
use arena_core::referee::{Played, play};
use arena_core::rules::Rules;
use arena_core::scenario::{Horizon, Item, Regulation, Role, RuleSet, Scenario};
use arena_core::turn::Move;
use arena_llm::model::LanguageModel;
use arena_llm::scripted::ScriptedModel;
use arena_sandbox::{Grants, LoadError, LoadedAgent, Sandbox};

use crate::kit;

/// Small, so that every limit is reached within a test; each is named by a guest that it stops.
pub fn small_limits() -> Limits {
    Limits {
        fuel_start_max: 2_000_000,
        fuel_turn_max: 2_000_000,
        fuel_match_max: 3_000_000,
        memory_bytes_max: 16 << 20,
        table_elements_max: 20_000,
        talk_bytes_max: 1_024,
        trace_bytes_max: 4_096,
        host_calls_max: 1_000,
        handles_max: 16,
        lifted_bytes_max: 64 << 10,
        model_calls_max: 4,
        model_input_tokens_max: 1_000,
        model_output_tokens_max: 100,
        model_calls_turn_max: 3,
        model_output_tokens_turn_max: 60,
    }
}

/// A model that answers everything with a few words.
fn echo_model() -> Arc<dyn LanguageModel> {
    let model = ScriptedModel::parse("echo", "default = \"as you say\"\n").unwrap();
    Arc::new(model)
}

/// Returns the sandbox that all tests share: one engine per process.
pub fn small_sandbox() -> &'static Sandbox {
    static SANDBOX: OnceLock<Sandbox> = OnceLock::new();
    SANDBOX.get_or_init(|| crate::kit::sandbox(small_limits()))
}

fn scenario() -> Scenario {
    Scenario {
        item: Item {
            id: "test/0".into(),
            title: "A lamp".into(),
            category: "test".into(),
            description: "Gives light.".into(),
            list_price: Price(12_000),
        },
        budget: Price(9_876),
        cost: Price(4_321),
        opener: Role::Buyer,
        horizon: Horizon { turn_limit: 20, hidden: false },
    }
}

fn rules() -> Rules {
    Rules {
        set: RuleSet::Standard,
        regulation: [Regulation::Refuse; 2],
        retries: 2,
        talk_bytes_max: small_limits().talk_bytes_max,
    }
}

/// Plays one match in the sandbox, the arrays being buyer and seller.
pub fn play_agents(agents: [&LoadedAgent; 2]) -> Played {
    let sandbox = small_sandbox();
    let grants = Grants { models: vec![echo_model()], training: None };
    let mut buyer = sandbox.seat(agents[0], &grants, 11).expect("a seat");
    let mut seller = sandbox.seat(agents[1], &grants, 12).expect("a seat");
    play(&rules(), &scenario(), ["", ""], [11, 12], [&mut buyer, &mut seller])
        .unwrap_or_else(|voided| panic!("the host failed: {voided:?}"))
}

/// Passes every time, and never ends a match itself.
fn honest() -> &'static LoadedAgent {
    static HONEST: OnceLock<LoadedAgent> = OnceLock::new();
    HONEST.get_or_init(|| small_sandbox().load(&kit::component("")).expect("honest"))
}

/// Offers its own reserve at once: someone whose reserve would be easy to use.
fn control() -> Played {
    play_agents([honest(), honest()])
}

struct Guest {
    name: String,
    expected: Vec<String>,
    component: Vec<u8>,
}

fn guests() -> Vec<Guest> {
    let folder = kit::root().join("tests/guests");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .expect("the guests are there")
        .map(|entry| entry.expect("a readable folder").path())
        .collect();
    files.sort();
    files.iter().map(|path| read_guest(path)).collect()
}

fn read_guest(path: &std::path::Path) -> Guest {
    let name = path.file_stem().expect("a file name").to_string_lossy().into_owned();
    let text = std::fs::read_to_string(path).expect("a readable guest");
    let expected = text
        .lines()
        .find_map(|line| line.strip_prefix(";; expect: "))
        .unwrap_or_else(|| panic!("{name}: no `;; expect:` line"))
        .split('|')
        .map(|verdict| verdict.trim().to_owned())
        .collect();
    Guest { name, expected, component: kit::component(&text) }
}

/// What became of a guest in one role: the same words as in `;; expect:`.
fn verdict(component: &[u8], role: Role) -> String {
    let agent = match small_sandbox().load(component) {
        Ok(agent) => agent,
        Err(LoadError::Refused(refusal)) => return start_fault(&refusal),
        Err(LoadError::Host(error)) => panic!("the host failed: {error}"),
    };
    let agents = match role {
        Role::Buyer => [&agent, honest()],
        Role::Seller => [honest(), &agent],
    };
    let first = play_agents(agents);
    let again = play_agents(agents);
    assert_eq!(first, again, "two runs of one match differ");
    match first.outcome {
        Outcome::Faulted { by, fault } => {
            assert_eq!(by, role, "the fault was laid on the wrong seat");
            format!("fault {fault}")
        }
        _ => "contained".to_owned(),
    }
}

/// A component that fails whatever it plays is found out by the trial at load; the fault is
/// the same one that a match would have recorded.
fn start_fault(refusal: &arena_sandbox::Refusal) -> String {
    match refusal {
        arena_sandbox::Refusal::Start { fault } => format!("fault {fault}"),
        _ => "refused".to_owned(),
    }
}

#[test]
fn every_hostile_guest_gets_its_named_fault_and_the_next_match_is_untouched() {
    let guests = guests();
    assert!(guests.len() >= 40, "only {} guests", guests.len());
    let before = control();
    let mut findings = Vec::new();
    for guest in &guests {
        for role in Role::BOTH {
            let verdict = verdict(&guest.component, role);
            if !guest.expected.contains(&verdict) {
                findings.push(format!(
                    "{} as {role}: {verdict}, expected {}",
                    guest.name,
                    guest.expected.join(" or ")
                ));
            }
            assert_eq!(control(), before, "after {} as {role}", guest.name);
        }
    }
    assert!(findings.is_empty(), "{} findings:\n{}", findings.len(), findings.join("\n"));
}

#[test]
fn ten_thousand_traps_in_a_row_leave_nothing_behind() {
    let rounds = if std::env::var_os("SLOW_TESTS").is_some() { 10_000 } else { 500 };
    let before = control();
    let agent = small_sandbox()
        .load(&kit::component("(func (export \"act\") (param i32 i32) (result i32) (unreachable))"))
        .expect("it loads");
    for _ in 0..rounds {
        let played = play_agents([&agent, honest()]);
        assert!(matches!(played.outcome, Outcome::Faulted { by: Role::Buyer, .. }));
    }
    assert_eq!(control(), before);
}

#[test]
fn a_probe_for_the_own_reserve_hears_the_same_refusal_every_time() {
    let probe = kit::component(
        &std::fs::read_to_string(kit::root().join("tests/guests/beyond-its-reserve.wat"))
            .expect("the guest is there"),
    );
    let agent = small_sandbox().load(&probe).expect("it loads");
    let played = play_agents([&agent, honest()]);
    let refused: usize = played.turns.iter().map(|turn| turn.refused.len()).sum();
    assert!(refused > 0, "nothing was refused");
    assert!(
        played.turns.iter().all(|turn| turn.by == Role::Seller
            || !matches!(turn.action, Move::Offer(Price(cents)) if cents > 9_876)),
        "an offer beyond the reserve was delivered"
    );
}

/// Searches a seat's memory for a number and traps when it is there. The reserves of the
/// scenario appear nowhere else, and the number is put together from two so that the search does
/// not find itself.
fn search(wanted: u32) -> LoadedAgent {
    let component = kit::component(&format!(
        r#"(func (export "act") (param i32 i32) (result i32)
  (local $at i32)
  (loop $again
    (if (i32.eq (i32.load (local.get $at)) (i32.add (i32.const {half}) (i32.const {rest})))
      (then (unreachable)))
    (local.set $at (i32.add (local.get $at) (i32.const 4)))
    (br_if $again (i32.lt_u (local.get $at) (i32.const 262140))))
  (call $reject))"#,
        half = wanted / 2,
        rest = wanted - wanted / 2,
    ));
    small_sandbox().load(&component).expect("it loads")
}

#[test]
fn no_seat_finds_its_opponents_reserve_anywhere_in_its_memory() {
    let found = |played: &Played| {
        matches!(played.outcome, Outcome::Faulted { fault: arena_core::fault::Fault::Trap, .. })
    };
    let own = play_agents([&search(9_876), honest()]);
    assert!(found(&own), "the search finds what is there, the own reserve: {own:?}");
    let others = play_agents([&search(4_321), honest()]);
    assert!(!found(&others), "the buyer saw the seller's cost: {others:?}");
    let others = play_agents([honest(), &search(9_876)]);
    assert!(!found(&others), "the seller saw the buyer's budget: {others:?}");
}
