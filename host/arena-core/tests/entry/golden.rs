//! The bytes of a value of each kind: together, the parts of one log. The files were written from
//! the layout, not by this program: hexadecimal, with comments behind `#`, and the same as JSON.
//! Logs that exist must stay readable, so a file here changes only together with
//! `envelope::VERSION`.
//!
//! `SNAPSHOTS=overwrite cargo test -p arena-core` writes files that differ anew, without
//! comments.

use std::path::{Path, PathBuf};

use arena_core::announcement::{AgentEntry, Announcement, ModelEntry};
use arena_core::catalog::Budget;
use arena_core::config::{Limits, TournamentConfig};
use arena_core::draws::{
    BeaconRound, BeaconValue, CommittedDraws, Draws, commit_contribution, commit_secret, master,
};
use arena_core::entry::{
    AnnouncementEntry, Close, DrawEntry, Entry, MatchEntry, Reveal, TournamentId, VoidEntry,
};
use arena_core::envelope::EnvelopeError;
use arena_core::fault::{Fault, VoidReason};
use arena_core::hexadecimal::hex;
use arena_core::price::Price;
use arena_core::record::{MatchRecord, Outcome, TurnRecord, VoidRecord};
use arena_core::rules::{Rules, replay};
use arena_core::scenario::{Horizon, Role};
use arena_core::seat::{CallTokens, ModelCall, SampledToken, Sampling, TokenScore, Usage};
use arena_core::transcript::Transcript;
use arena_core::turn::{Belief, Move};
use borsh::BorshSerialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::view;

const SECRET: [u8; 32] = [0x5e; 32];
const CONTRIBUTION: [u8; 32] = [0xc0; 32];
const ROUND: u64 = 5_000_000;

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/log").join(name)
}

fn golden(name: &str) -> Vec<u8> {
    let text = std::fs::read_to_string(path(name)).expect("the golden file is there");
    let digits: String = text
        .lines()
        .flat_map(|line| line.split('#').next().unwrap_or("").chars())
        .filter(|character| !character.is_whitespace())
        .collect();
    let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).expect("hexadecimal");
    (0..digits.len()).step_by(2).map(byte).collect()
}

/// Compares bytes and their view with the files of this name.
fn check(name: &str, bytes: &[u8], shown: &Value) {
    let files = [format!("{name}.hex"), format!("{name}.json")];
    let read_view = || std::fs::read_to_string(path(&files[1])).unwrap_or_default();
    let view = || serde_json::from_str::<Value>(&read_view()).ok();
    if std::env::var_os("SNAPSHOTS").is_some_and(|action| action == "overwrite") {
        if !path(&files[0]).exists() || golden(&files[0]) != bytes {
            let lines: String = bytes.chunks(32).map(|line| format!("{}\n", hex(line))).collect();
            std::fs::write(path(&files[0]), lines).expect("the golden file is writable");
        }
        if view().as_ref() != Some(shown) {
            let text = serde_json::to_string_pretty(shown).expect("a view is plain");
            std::fs::write(path(&files[1]), format!("{text}\n")).expect("the view is writable");
        }
    }
    assert_eq!(hex(bytes), hex(&golden(&files[0])), "{name}");
    assert_eq!(Some(shown), view().as_ref(), "{name}");
}

fn check_entry(name: &str, entry: &Entry) {
    let bytes = entry.encode();
    let leaf_hash = TournamentId::of_first_entry(&bytes);
    let (kind, body) = view::entry(entry);
    check(name, &bytes, &json!({"kind": kind, "leaf_sha256": hex(&leaf_hash.0), "body": body}));
    assert_eq!(Entry::decode(&bytes).as_ref(), Ok(entry), "{name}");
}

fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

fn announcement() -> Announcement {
    let agent = |name: &str, byte: u8, params: &str, submission: Option<&str>| AgentEntry {
        name: name.to_owned(),
        component_sha256: [byte; 32],
        params: params.to_owned(),
        submission: submission.map(str::to_owned),
    };
    Announcement {
        name: "golden".to_owned(),
        config_toml: "name = \"golden\"\n".to_owned(),
        draws: Draws::Committed(CommittedDraws {
            secret_commitment: commit_secret(&SECRET),
            contributions: vec![
                commit_contribution(&CONTRIBUTION),
                commit_contribution(&[0xc1; 32]),
            ],
            beacon: Some(BeaconRound { chain: [0xd1; 32], round: ROUND }),
        }),
        engine: "engine=none\n".to_owned(),
        models: vec![ModelEntry {
            name: "small".to_owned(),
            context_tokens: 4_096,
            sha256: [0x33; 32],
            engine: "device=cpu\n".to_owned(),
        }],
        agents: vec![
            agent("boulware", 0xaa, "e = 0.2", None),
            agent("micro", 0xbb, "", Some("arena/submission/v1\n")),
        ],
        catalog_sha256: [0xcc; 32],
        item_count: 930,
        pair_count: 930,
        checkpoint_every: 4_096,
    }
}

fn opening() -> Entry {
    Entry::Announcement(AnnouncementEntry {
        origin: "arena.example/golden".to_owned(),
        log_key: [0x11; 32],
        announcement_sha256: sha256(&announcement().encode()),
    })
}

fn tournament() -> TournamentId {
    TournamentId::of_first_entry(&opening().encode())
}

fn draw() -> DrawEntry {
    DrawEntry {
        tournament: tournament(),
        contributions: vec![Some(CONTRIBUTION), None],
        beacon: Some(BeaconValue {
            round: ROUND,
            signature: std::array::from_fn(|place| place as u8),
        }),
    }
}

fn record() -> MatchRecord {
    let buyer = Usage {
        fuel_per_act: vec![1_000, 1 << 40, 7],
        trace: vec!["hm".to_owned()],
        trace_cut: true,
        model_calls: model_calls(),
        metrics: vec![("margin".to_owned(), -250)],
    };
    MatchRecord {
        pair_index: 129,
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
        unfinished: vec![Move::Offer(Price(55_000)), Move::Accept(Some(Price(52_000)))],
        outcome: Outcome::Faulted { by: Role::Seller, fault: Fault::IllegalMove },
        usage: [buyer, Usage::default()],
    }
}

/// The second call's prompt begins with all of the first call's.
fn model_calls() -> Vec<ModelCall> {
    let token = |id, logprob_micro, top: &[(u32, i32)]| SampledToken {
        id,
        logprob_micro,
        sampled_logprob_micro: -1,
        top: top.iter().map(|&(id, logprob_micro)| TokenScore { id, logprob_micro }).collect(),
    };
    let first = CallTokens {
        reused: 0,
        prompt: vec![1, 40_000, 2],
        output: vec![token(500, -250_000, &[(500, -250_000), (7, -1_750_000)]), token(2, -9, &[])],
    };
    let second =
        CallTokens { reused: 5, prompt: vec![3], output: vec![token(9, -20_000_000, &[])] };
    let call = ModelCall {
        act_index: 1,
        model: "small".to_owned(),
        request_sha256: [0xdd; 32],
        sampling: Sampling { temperature_milli: 700, top_k: 40, top_p_milli: 950, min_p_milli: 50 },
        is_grammar_bound: true,
        text: "Offer 500".to_owned(),
        finish_reason: 0,
        input_tokens: 3,
        output_tokens: 2,
        weight_milli: Some(500),
        tokens: Some(first),
    };
    vec![
        call.clone(),
        ModelCall {
            request_sha256: [0xde; 32],
            finish_reason: 2,
            input_tokens: 6,
            output_tokens: 1,
            tokens: Some(second),
            ..call.clone()
        },
        ModelCall {
            sampling: Sampling::GREEDY,
            is_grammar_bound: false,
            weight_milli: None,
            tokens: None,
            ..call
        },
    ]
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
    ]
}

/// The transcript's nonce comes from secret, contribution and beacon.
fn transcript() -> Transcript {
    Transcript::new(tournament(), master(&SECRET, tournament(), Some(&draw())), record())
}

fn match_entry() -> MatchEntry {
    let transcript = transcript();
    transcript.entry(&transcript.encode())
}

#[test]
fn every_entry_has_its_golden_bytes() {
    let void = VoidRecord { pair_index: 129, attempt: 1, reason: VoidReason::ModelProvider };
    let tournament = tournament();
    check_entry("announcement", &opening());
    check_entry("draw", &Entry::Draw(draw()));
    check_entry("void", &Entry::Void(VoidEntry { tournament, void }));
    check_entry("match", &Entry::Match(match_entry()));
    let close = Close { tournament, match_count: 1_860, void_count: 3 };
    check_entry("close", &Entry::Close(close));
    check_entry("reveal", &Entry::Reveal(Reveal { tournament, secret: Some(SECRET) }));
}

#[test]
fn an_announcement_and_a_transcript_have_their_golden_bytes() {
    let bytes = announcement().encode();
    let shown = view::announcement(&announcement());
    let shown = json!({"kind": "announcement", "sha256": hex(&sha256(&bytes)), "body": shown});
    check("announcement-blob", &bytes, &shown);
    assert_eq!(Announcement::decode(&bytes), Ok(announcement()));
    let bytes = transcript().encode();
    let shown = view::transcript(&transcript());
    let shown = json!({"kind": "transcript", "sha256": hex(&sha256(&bytes)), "body": shown});
    check("transcript", &bytes, &shown);
    assert_eq!(Transcript::decode(&bytes), Ok(transcript()));
}

#[test]
fn the_golden_match_is_one_that_the_rules_produce() {
    let text = "name = 'a'\nself_play = true\ncatalog = { kind = 'synthetic', items = 1 }\n\
                [[agents]]\nname = 'a'\ncomponent = 'builtin:a'\n";
    let config = TournamentConfig::parse(text).expect("a tournament file");
    assert_eq!(replay(&Rules::new(&config.rules, &Limits::default()), &record()), Ok(()));
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
    assert_eq!([bytes_of(&Role::Buyer), bytes_of(&Role::Seller)], [[0], [1]]);
    assert_eq!(bytes_of(&VoidReason::ModelProvider), [0]);
    assert_eq!(bytes_of(&VoidReason::Host), [1]);
    assert_eq!(bytes_of(&Move::Offer(Price(258))), [0, 2, 1, 0, 0]);
    assert_eq!(bytes_of(&Move::Accept(None)), [1, 0]);
    assert_eq!(bytes_of(&Move::Accept(Some(Price(258)))), [1, 1, 2, 1, 0, 0]);
    assert_eq!([bytes_of(&Move::Reject), bytes_of(&Move::Walk)], [[2], [3]]);
    assert_eq!(bytes_of(&Outcome::Deal { price: Price(258) }), [0, 2, 1, 0, 0]);
    assert_eq!(bytes_of(&Outcome::Walked { by: Role::Buyer }), [1, 0]);
    assert_eq!(bytes_of(&Outcome::TimedOut), [2]);
    let violated = Outcome::Violated { by: Role::Buyer, action: Move::Accept(None) };
    assert_eq!(bytes_of(&violated), [3, 0, 1, 0]);
    assert_eq!(bytes_of(&Draws::PublicSeed(258)), [0, 2, 1, 0, 0, 0, 0, 0, 0]);
    let committed =
        CommittedDraws { secret_commitment: [7; 32], contributions: Vec::new(), beacon: None };
    let expected = [&[1][..], &[7; 32], &[0; 4], &[0]].concat();
    assert_eq!(bytes_of(&Draws::Committed(committed)), expected);
    assert_eq!(bytes_of(&Budget::Fixed(Price(258))), [0, 2, 1, 0, 0]);
    assert_eq!(bytes_of(&Budget::Factor), [1]);
}

#[test]
fn what_is_not_an_entry_is_refused_with_its_reason() {
    let close = golden("close.hex");
    let changed = |at: usize, byte: u8| {
        let mut bytes = close.clone();
        bytes[at] = byte;
        Entry::decode(&bytes)
    };
    assert_eq!(Entry::decode(b""), Err(EnvelopeError::Magic));
    assert_eq!(Entry::decode(&close[..7]), Err(EnvelopeError::Magic));
    assert_eq!(changed(0, b'a'), Err(EnvelopeError::Magic));
    assert_eq!(changed(5, 1), Err(EnvelopeError::Version { found: 1 }));
    assert_eq!(changed(5, 2), Err(EnvelopeError::Version { found: 2 }));
    assert_eq!(changed(5, 4), Err(EnvelopeError::Version { found: 4 }));
    assert_eq!(changed(4, 1), Err(EnvelopeError::Version { found: 259 }));
    assert_eq!(changed(7, 0), Err(EnvelopeError::Kind { found: 0 }));
    assert_eq!(changed(7, 7), Err(EnvelopeError::Kind { found: 7 }));
    let longer = [&close[..], &[0]].concat();
    for bytes in [&close[..close.len() - 1], &longer] {
        assert!(matches!(Entry::decode(bytes), Err(EnvelopeError::Body { .. })));
    }
}

#[test]
fn a_value_of_one_kind_does_not_pass_for_another() {
    let (blob, transcript) = (golden("announcement-blob.hex"), golden("transcript.hex"));
    for (bytes, kind) in [(&blob, 256), (&transcript, 257)] {
        assert_eq!(Entry::decode(bytes), Err(EnvelopeError::Kind { found: kind }));
    }
    assert_eq!(Announcement::decode(&transcript), Err(EnvelopeError::Kind { found: 257 }));
    assert_eq!(Transcript::decode(&blob), Err(EnvelopeError::Kind { found: 256 }));
    assert_eq!(Transcript::decode(&golden("match.hex")), Err(EnvelopeError::Kind { found: 2 }));
    // The header names the kind, and the body must be one of it.
    let mut close = golden("close.hex");
    close[7] = 5;
    assert!(matches!(Entry::decode(&close), Err(EnvelopeError::Body { .. })));
}

#[test]
fn every_tag_and_length_that_is_not_canonical_is_refused() {
    let reveal = golden("reveal.hex");
    let at = 8 + 32;
    assert_eq!(reveal[at], 1, "the tag of the option");
    let with_tag = |tag| [&reveal[..at], &[tag], &reveal[at + 1..]].concat();
    for tag in [0, 2, 255] {
        assert!(matches!(Entry::decode(&with_tag(tag)), Err(EnvelopeError::Body { .. })));
    }
    let transcript = golden("transcript.hex");
    // After header, tournament, nonce, pair, leg, agents, item, repetition and three prices.
    let opener = 8 + 32 + 32 + 8 + 1 + 4 + 4 + 4 + 12;
    let hidden = opener + 1 + 4;
    assert_eq!((transcript[opener], transcript[hidden]), (0, 1));
    for (place, byte) in [(opener, 2), (hidden, 2), (hidden, 255)] {
        let mut bytes = transcript.clone();
        bytes[place] = byte;
        assert!(matches!(Transcript::decode(&bytes), Err(EnvelopeError::Body { .. })), "{place}");
    }
    let talk = transcript.windows(2).position(|pair| pair == "ü".as_bytes()).expect("Grüße");
    let mut bytes = transcript.clone();
    bytes[talk] = 0xff;
    assert!(matches!(Transcript::decode(&bytes), Err(EnvelopeError::Body { .. })), "not UTF-8");
}

#[test]
fn a_map_out_of_order_would_be_refused() {
    // No hashed type holds a map today. Should one ever, its order must be part of its bytes.
    type Map = std::collections::BTreeMap<u8, u8>;
    let read = |bytes: &[u8]| borsh::from_slice::<Map>(bytes);
    assert!(read(&[2, 0, 0, 0, 1, 9, 2, 9]).is_ok());
    assert!(read(&[2, 0, 0, 0, 2, 9, 1, 9]).is_err(), "out of order");
    assert!(read(&[2, 0, 0, 0, 1, 9, 1, 9]).is_err(), "twice");
}
