//! What holds for any entry and for any bytes.

use arena_core::entry::{AgentEntry, Announcement, Close, Entry};
use arena_core::fault::{Fault, VoidReason};
use arena_core::price::Price;
use arena_core::record::{MatchRecord, Outcome, TurnRecord, VoidRecord};
use arena_core::scenario::{Horizon, Role};
use arena_core::seat::{ModelCall, Usage};
use arena_core::turn::{Belief, Move};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{Index, select};

fn price() -> impl Strategy<Value = Price> {
    any::<u32>().prop_map(Price)
}

fn role() -> impl Strategy<Value = Role> {
    select(&Role::BOTH[..])
}

fn action() -> impl Strategy<Value = Move> {
    prop_oneof![
        price().prop_map(Move::Offer),
        option::of(price()).prop_map(Move::Accept),
        Just(Move::Reject),
        Just(Move::Walk),
    ]
}

fn outcome() -> impl Strategy<Value = Outcome> {
    let fault = select(&Fault::ALL[..]);
    prop_oneof![
        price().prop_map(|price| Outcome::Deal { price }),
        role().prop_map(|by| Outcome::Walked { by }),
        Just(Outcome::TimedOut),
        (role(), action()).prop_map(|(by, action)| Outcome::Violated { by, action }),
        (role(), fault).prop_map(|(by, fault)| Outcome::Faulted { by, fault }),
    ]
}

fn turn() -> impl Strategy<Value = TurnRecord> {
    let belief = (price(), price()).prop_map(|(reserve, spread)| Belief { reserve, spread });
    (role(), vec(action(), 0..3), action(), any::<String>(), option::of(belief)).prop_map(
        |(by, refused, action, talk, belief)| TurnRecord { by, refused, action, talk, belief },
    )
}

fn model_call() -> impl Strategy<Value = ModelCall> {
    let numbers = any::<(u32, u8, u32, u32, Option<u32>)>();
    (numbers, any::<String>(), any::<[u8; 32]>(), any::<String>()).prop_map(
        |(numbers, model, request_sha256, text)| {
            let (act_index, finish_reason, input_tokens, output_tokens, weight_milli) = numbers;
            ModelCall {
                act_index,
                model,
                request_sha256,
                text,
                finish_reason,
                input_tokens,
                output_tokens,
                weight_milli,
            }
        },
    )
}

fn usage() -> impl Strategy<Value = Usage> {
    let fuel = vec(any::<u64>(), 0..4);
    let trace = vec(any::<String>(), 0..3);
    let metrics = vec((any::<String>(), any::<i32>()), 0..2);
    (fuel, trace, any::<bool>(), vec(model_call(), 0..2), metrics).prop_map(
        |(fuel_per_act, trace, trace_cut, model_calls, metrics)| Usage {
            fuel_per_act,
            trace,
            trace_cut,
            model_calls,
            metrics,
        },
    )
}

fn record() -> impl Strategy<Value = MatchRecord> {
    let place = (any::<u64>(), any::<u8>(), any::<[u16; 2]>(), any::<[u32; 2]>());
    let scenario = ([price(), price(), price()], role(), any::<u32>(), any::<bool>());
    let play = (any::<[u64; 2]>(), vec(turn(), 0..4), outcome(), [usage(), usage()]);
    (place, scenario, play).prop_map(|(place, scenario, play)| {
        let (pair_index, leg, agents, [item_index, repetition]) = place;
        let ([list_price, budget, cost], opener, turn_limit, hidden) = scenario;
        let (seeds, turns, outcome, usage) = play;
        MatchRecord {
            pair_index,
            leg,
            agents,
            item_index,
            repetition,
            list_price,
            budget,
            cost,
            opener,
            horizon: Horizon { turn_limit, hidden },
            seeds,
            turns,
            outcome,
            usage,
        }
    })
}

fn announcement() -> impl Strategy<Value = Announcement> {
    let agent = (any::<String>(), any::<[u8; 32]>(), any::<String>())
        .prop_map(|(name, component_sha256, params)| AgentEntry { name, component_sha256, params });
    let texts = any::<[String; 3]>();
    let numbers = any::<(u64, u32, u64)>();
    (texts, numbers, vec(agent, 0..3), any::<[u8; 32]>()).prop_map(
        |([name, config_toml, engine], (seed, item_count, pair_count), agents, hash)| {
            Announcement {
                name,
                config_toml,
                seed,
                engine,
                agents,
                catalog_sha256: hash,
                item_count,
                pair_count,
            }
        },
    )
}

fn void() -> impl Strategy<Value = VoidRecord> {
    let reason = select(&[VoidReason::ModelProvider, VoidReason::Host][..]);
    (any::<u64>(), any::<u32>(), reason).prop_map(|(pair_index, attempt, reason)| VoidRecord {
        pair_index,
        attempt,
        reason,
    })
}

fn entry() -> impl Strategy<Value = Entry> {
    let close =
        any::<[u64; 2]>().prop_map(|[match_count, void_count]| Close { match_count, void_count });
    prop_oneof![
        1 => announcement().prop_map(Entry::Announcement),
        5 => record().prop_map(Entry::Match),
        1 => void().prop_map(Entry::Void),
        1 => close.prop_map(Entry::Close),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_entry_decodes_to_itself(entry in entry()) {
        prop_assert_eq!(Entry::decode(&entry.encode()), Ok(entry));
    }

    #[test]
    fn no_flipped_bit_goes_unnoticed(entry in entry(), flips in vec(any::<Index>(), 64)) {
        let bytes = entry.encode();
        for flip in flips {
            let at = flip.index(bytes.len() * 8);
            let mut flipped = bytes.clone();
            flipped[at / 8] ^= 1 << (at % 8);
            if let Ok(other) = Entry::decode(&flipped) {
                prop_assert_ne!(&other, &entry);
                prop_assert_eq!(other.encode(), flipped);
            }
        }
    }

    #[test]
    fn no_part_of_an_entry_is_an_entry(entry in entry(), cuts in vec(any::<Index>(), 64)) {
        let bytes = entry.encode();
        for cut in cuts {
            prop_assert!(Entry::decode(&bytes[..cut.index(bytes.len())]).is_err());
        }
    }

    #[test]
    fn bytes_behind_an_entry_are_refused(entry in entry(), tail in vec(any::<u8>(), 1..9)) {
        prop_assert!(Entry::decode(&[entry.encode(), tail].concat()).is_err());
    }

    #[test]
    fn any_bytes_that_decode_are_the_one_encoding_of_what_they_say(
        kind in 1..=4_u8,
        body in vec(prop_oneof![3 => 0..3_u8, 1 => any::<u8>()], 0..400),
    ) {
        let bytes = [&b"ARNA\0\x01\0"[..], &[kind], &body].concat();
        if let Ok(entry) = Entry::decode(&bytes) {
            prop_assert_eq!(entry.encode(), bytes);
        }
    }
}

#[test]
fn a_huge_length_is_refused_without_allocating_it() {
    // The first field of an announcement is a text; its length is the first u32 of the body.
    let bytes = b"ARNA\0\x01\0\x01\xff\xff\xff\xffabc";
    assert!(Entry::decode(bytes).is_err());
}
