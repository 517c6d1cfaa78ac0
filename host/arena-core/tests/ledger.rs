//! Entries of a training run's ledger: one encoding for each value, bounds on both ways, and
//! nothing that passes for an entry of a tournament.

use arena_core::entry::{Close, Entry, TournamentId};
use arena_core::hexadecimal::{hex, unhex};
use arena_core::ledger::{
    LedgerClose, LedgerEntry, LedgerOpening, RunId, STEP_MATCHES_BYTES_MAX, STEP_MATCHES_MAX,
    StepEntry, StepMatch, StepMatches,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

fn opening() -> LedgerOpening {
    LedgerOpening {
        origin: "arena/run".to_owned(),
        log_key: [0x11; 32],
        name: "compact".to_owned(),
        experiment_sha256: [0x22; 32],
        reward: "surplus".to_owned(),
        objective: "grpo".to_owned(),
        policy_sha256: [0x33; 32],
        seed: 7,
        engine: "a=b\n".to_owned(),
    }
}

fn step() -> StepEntry {
    StepEntry {
        run: RunId([0xaa; 32]),
        step: 1,
        tournament: TournamentId([0xbb; 32]),
        log_size: 300,
        log_root: [0xcc; 32],
        policy_before: [0x33; 32],
        policy_after: [0x44; 32],
        match_count: 2,
        matches_sha256: [0xdd; 32],
        dropped_groups: 1,
        learning_rate_bits: 1.0_f64.to_bits(),
    }
}

fn matches() -> StepMatches {
    let learned =
        StepMatch { reward_micro: -1_000_000, advantage_bits: Some((-0.5_f64).to_bits()) };
    let dropped = StepMatch { reward_micro: 250_000, advantage_bits: None };
    StepMatches { run: RunId([0xaa; 32]), step: 1, matches: vec![learned, dropped] }
}

fn check_bytes(found: &[u8], parts: &[&str]) {
    let wanted: String = parts.concat().split_whitespace().collect();
    assert_eq!(hex(found), wanted);
}

fn of(byte: &str) -> String {
    byte.repeat(32)
}

#[test]
fn an_opening_has_the_bytes_that_the_page_says() {
    let bytes = LedgerEntry::Opening(opening()).encode();
    check_bytes(
        &bytes,
        &[
            "41524e41 0003 0020",
            "09000000 6172656e612f72756e",
            &of("11"),
            "07000000 636f6d70616374",
            &of("22"),
            "07000000 737572706c7573 04000000 6772706f",
            &of("33"),
            "0700000000000000 04000000 613d620a",
        ],
    );
    let id = RunId::of_first_entry(&bytes);
    assert_eq!(id.0, TournamentId::of_first_entry(&bytes).0, "the leaf hash of RFC 6962");
    assert_eq!(LedgerEntry::decode(&bytes), Ok(LedgerEntry::Opening(opening())));
}

#[test]
fn a_step_has_the_bytes_that_the_page_says() {
    let bytes = LedgerEntry::Step(step()).encode();
    check_bytes(
        &bytes,
        &[
            "41524e41 0003 0021",
            &of("aa"),
            "01000000",
            &of("bb"),
            "2c01000000000000",
            &of("cc"),
            &of("33"),
            &of("44"),
            "02000000",
            &of("dd"),
            "01000000 000000000000f03f",
        ],
    );
    assert_eq!(LedgerEntry::decode(&bytes), Ok(LedgerEntry::Step(step())));
}

#[test]
fn a_close_and_what_a_step_learned_from_have_the_bytes_that_the_page_says() {
    let close = LedgerClose { run: RunId([0xaa; 32]), step_count: 1, policy_sha256: [0x44; 32] };
    let bytes = LedgerEntry::Close(close).encode();
    check_bytes(&bytes, &["41524e41 0003 0022", &of("aa"), "01000000", &of("44")]);
    assert_eq!(LedgerEntry::decode(&bytes), Ok(LedgerEntry::Close(close)));
    let bytes = matches().encode();
    check_bytes(
        &bytes,
        &[
            "41524e41 0003 0102",
            &of("aa"),
            "01000000 02000000",
            "c0bdf0ff 01 000000000000e0bf",
            "90d00300 00",
        ],
    );
    assert_eq!(StepMatches::decode(&bytes), Ok(matches()));
}

#[test]
fn entries_of_ledgers_and_of_tournaments_are_never_taken_for_each_other() {
    let close = Close { tournament: TournamentId([1; 32]), match_count: 2, void_count: 0 };
    let found = LedgerEntry::decode(&Entry::Close(close).encode()).expect_err("another kind");
    assert_eq!(found.to_string(), "unexpected kind 4");
    for entry in [LedgerEntry::Opening(opening()), LedgerEntry::Step(step())] {
        Entry::decode(&entry.encode()).expect_err("another kind");
        StepMatches::decode(&entry.encode()).expect_err("another kind");
    }
}

/// Changes bytes of an entry and reads them.
fn check_refused(bytes: &[u8], place: usize, with: &str, wanted: &str) {
    let with = (0..with.len()).step_by(2).map(|at| &with[at..at + 2]);
    let mut changed = bytes.to_vec();
    for (at, digits) in with.enumerate() {
        changed[place + at] = u8::from_str_radix(digits, 16).expect("hexadecimal");
    }
    let found = match bytes[7] {
        2 => StepMatches::decode(&changed).map(drop),
        _ => LedgerEntry::decode(&changed).map(drop),
    };
    assert_eq!(found.expect_err("out of bounds").to_string(), wanted);
}

#[test]
fn what_is_out_of_bounds_is_refused_with_field_and_value() {
    let bytes = LedgerEntry::Step(step()).encode();
    let end = bytes.len();
    check_refused(&bytes, 40, "00000000", "`step` is `0`, it must be 1 to 999999");
    let wanted = "`learning_rate_bits` is `inf`, it must be the bits of a finite number";
    check_refused(&bytes, end - 8, "000000000000f07f", wanted);
    let wanted = "`dropped_groups` is `3`, it must be 0 to 2";
    check_refused(&bytes, end - 12, "03000000", wanted);
    let wanted = "`match_count` is `65537`, it must be 1 to 65536";
    check_refused(&bytes, end - 48, "01000100", wanted);
    let bytes = matches().encode();
    let wanted = "`advantage_bits` is `NaN`, it must be the bits of a finite number";
    check_refused(&bytes, bytes.len() - 13, "000000000000f87f", wanted);
    let bytes = LedgerEntry::Opening(opening()).encode();
    check_refused(&bytes, 12, "20", "`origin` is ` rena/run`, it must be the name of a log");
    check_refused(&bytes, 57, "2f", "`name` is `/ompact`, it must be a name");
    let wanted = "`reward` is `s\nrplus`, it must be 1 to 256 bytes on one line";
    check_refused(&bytes, 101, "0a", wanted);
}

#[test]
fn a_length_that_is_not_there_is_refused_without_taking_memory_for_it() {
    let mut bytes = matches().encode();
    bytes[44..48].copy_from_slice(&u32::MAX.to_le_bytes());
    StepMatches::decode(&bytes).expect_err("there are two");
    let long = vec![0; STEP_MATCHES_BYTES_MAX + 1];
    let found = StepMatches::decode(&long).expect_err("too long").to_string();
    assert_eq!(found, "`bytes` is `1048577`, it must be at most 1048576");
}

#[test]
fn the_largest_step_fits_into_its_bounds() {
    let one = StepMatch { reward_micro: i32::MIN, advantage_bits: Some(u64::MAX >> 12) };
    let matches = vec![one; STEP_MATCHES_MAX as usize];
    let bytes = StepMatches { run: RunId([0; 32]), step: 1, matches }.encode();
    assert!(bytes.len() <= STEP_MATCHES_BYTES_MAX, "{}", bytes.len());
    StepMatches::decode(&bytes).expect("the largest one is read");
}

proptest! {
    #[test]
    fn what_was_written_is_read_and_nothing_else_is_read_as_it(
        rewards in vec((any::<i32>(), option::of(-1e9..1e9_f64)), 1..40),
        step in 1..1_000_u32,
        place in any::<prop::sample::Index>(),
        other in any::<u8>(),
    ) {
        let one = |(reward_micro, advantage): &(i32, Option<f64>)| StepMatch {
            reward_micro: *reward_micro,
            advantage_bits: advantage.map(f64::to_bits),
        };
        let matches = rewards.iter().map(one).collect();
        let written = StepMatches { run: RunId([9; 32]), step, matches };
        let mut bytes = written.encode();
        prop_assert_eq!(StepMatches::decode(&bytes), Ok(written.clone()));
        let place = place.index(bytes.len());
        let changed = bytes[place] != other;
        bytes[place] = other;
        if changed {
            prop_assert_ne!(StepMatches::decode(&bytes), Ok(written));
        }
    }
}

#[test]
fn hashes_are_those_of_sha_256() {
    let wanted = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(Some(StepMatches::sha256(b"abc")), unhex(wanted));
}
