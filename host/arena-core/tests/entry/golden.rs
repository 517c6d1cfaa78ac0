//! The bytes of one entry of each kind. The files were written from the layout, not by this
//! program: hexadecimal, with comments behind `#`. Logs that exist must stay readable, so a file
//! here changes only together with `entry::VERSION`.

use std::path::Path;

use arena_core::entry::{AgentEntry, Announcement, Close, Entry, EntryError};
use arena_core::fault::{Fault, VoidReason};
use arena_core::price::Price;
use arena_core::record::{MatchRecord, Outcome, TurnRecord, VoidRecord};
use arena_core::scenario::{Horizon, Role};
use arena_core::seat::{ModelCall, Usage};
use arena_core::turn::{Belief, Move};
use borsh::BorshSerialize;

fn golden(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/entry/golden");
    let text = std::fs::read_to_string(folder.join(name)).expect("the golden file is there");
    let digits: String = text
        .lines()
        .flat_map(|line| line.split('#').next().unwrap_or("").chars())
        .filter(|character| !character.is_whitespace())
        .collect();
    let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).expect("hexadecimal");
    (0..digits.len()).step_by(2).map(byte).collect()
}

fn check(name: &str, entry: &Entry) {
    let bytes = golden(name);
    assert_eq!(entry.encode(), bytes, "{name}");
    assert_eq!(Entry::decode(&bytes).as_ref(), Ok(entry), "{name}");
}

fn agent(name: &str, byte: u8, params: &str) -> AgentEntry {
    let (name, params) = (name.to_owned(), params.to_owned());
    AgentEntry { name, component_sha256: [byte; 32], params }
}

#[test]
fn an_announcement_has_its_golden_bytes() {
    let announcement = Announcement {
        name: "smoke".to_owned(),
        config_toml: "seed = 7\n".to_owned(),
        seed: 7,
        engine: "engine=none\n".to_owned(),
        agents: vec![agent("boulware", 0xaa, "e = 0.2"), agent("micro", 0xbb, "")],
        catalog_sha256: [0xcc; 32],
        item_count: 930,
        pair_count: 930,
    };
    check("announcement.hex", &Entry::Announcement(announcement));
}

#[test]
fn a_void_and_a_close_have_their_golden_bytes() {
    let void = VoidRecord { pair_index: 41, attempt: 1, reason: VoidReason::ModelProvider };
    check("void.hex", &Entry::Void(void));
    check("close.hex", &Entry::Close(Close { match_count: 1_860, void_count: 3 }));
}

#[test]
fn a_match_has_its_golden_bytes() {
    let buyer = Usage {
        fuel_per_act: vec![1_000, 1 << 40],
        trace: vec!["hm".to_owned()],
        trace_cut: true,
        model_calls: vec![ModelCall {
            act_index: 1,
            model: "small".to_owned(),
            request_sha256: [0xdd; 32],
            text: "Offer 500".to_owned(),
            finish_reason: 2,
            input_tokens: 30,
            output_tokens: 2,
            weight_milli: Some(500),
        }],
        metrics: vec![("margin".to_owned(), -250)],
    };
    let record = MatchRecord {
        pair_index: 258,
        leg: 1,
        agents: [1, 0],
        item_index: 57,
        repetition: 2,
        list_price: Price(112_350),
        budget: Price(89_880),
        cost: Price(60_000),
        opener: Role::Buyer,
        horizon: Horizon { turn_limit: 12, hidden: true },
        seeds: [0x0102_0304_0506_0708, 9],
        turns: turns(),
        outcome: Outcome::Walked { by: Role::Seller },
        usage: [buyer, Usage::default()],
    };
    check("match.hex", &Entry::Match(record));
}

fn turns() -> Vec<TurnRecord> {
    let (fifty, ninety) = (Price(50_000), Price(90_000));
    let turn = |by, refused: &[Move], action, talk: &str, belief| TurnRecord {
        by,
        refused: refused.to_vec(),
        action,
        talk: talk.to_owned(),
        belief,
    };
    let belief = Some(Belief { reserve: Price(55_000), spread: Price(2_500) });
    let accepts = [Move::Accept(None), Move::Accept(Some(fifty))];
    vec![
        turn(Role::Buyer, &[Move::Offer(ninety)], Move::Offer(fifty), "Grüße", belief),
        turn(Role::Seller, &accepts, Move::Reject, "", None),
        turn(Role::Buyer, &[], Move::Reject, "No.", None),
        turn(Role::Seller, &[], Move::Walk, "", None),
    ]
}

fn bytes_of(value: &impl BorshSerialize) -> Vec<u8> {
    borsh::to_vec(value).expect("writing to memory cannot fail")
}

#[test]
fn the_numbers_of_enums_are_fixed_by_the_layout() {
    for (byte, fault) in (0..).zip([
        Fault::Trap,
        Fault::Fuel,
        Fault::Memory,
        Fault::Protocol,
        Fault::IllegalMove,
        Fault::TalkTooLong,
        Fault::ModelBudget,
    ]) {
        assert_eq!(bytes_of(&fault), [byte]);
        let by = Role::Seller;
        assert_eq!(bytes_of(&Outcome::Faulted { by, fault }), [4, 1, byte]);
    }
    assert_eq!(bytes_of(&VoidReason::ModelProvider), [0]);
    assert_eq!(bytes_of(&VoidReason::Host), [1]);
    assert_eq!(bytes_of(&Outcome::Deal { price: Price(258) }), [0, 2, 1, 0, 0]);
    assert_eq!(bytes_of(&Outcome::Walked { by: Role::Buyer }), [1, 0]);
    assert_eq!(bytes_of(&Outcome::TimedOut), [2]);
    let violated = Outcome::Violated { by: Role::Buyer, action: Move::Accept(None) };
    assert_eq!(bytes_of(&violated), [3, 0, 1, 0]);
}

#[test]
fn what_is_not_an_entry_is_refused_with_its_reason() {
    let close = golden("close.hex");
    let changed = |at: usize, byte: u8| {
        let mut bytes = close.clone();
        bytes[at] = byte;
        Entry::decode(&bytes)
    };
    assert_eq!(Entry::decode(b""), Err(EntryError::Magic));
    assert_eq!(Entry::decode(&close[..7]), Err(EntryError::Magic));
    assert_eq!(changed(0, b'a'), Err(EntryError::Magic));
    assert_eq!(changed(5, 2), Err(EntryError::Version { found: 2 }));
    assert_eq!(changed(4, 1), Err(EntryError::Version { found: 257 }));
    assert_eq!(changed(7, 0), Err(EntryError::Kind { found: 0 }));
    assert_eq!(changed(7, 5), Err(EntryError::Kind { found: 5 }));
    let longer = [&close[..], &[0]].concat();
    for bytes in [&close[..close.len() - 1], &longer] {
        assert!(matches!(Entry::decode(bytes), Err(EntryError::Body { .. })));
    }
}
