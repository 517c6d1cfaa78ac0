//! What holds for anything that is hashed and for any bytes.

use arena_core::announcement::{AgentEntry, Announcement, ModelEntry};
use arena_core::config::AGENTS_MAX;
use arena_core::draws::{BeaconRound, BeaconValue, CommittedDraws, Draws};
use arena_core::entry::{
    AnnouncementEntry, Close, DrawEntry, ENTRY_BYTES_MAX, Entry, ORIGIN_BYTES_MAX, Reveal,
    TournamentId, VoidEntry,
};
use arena_core::envelope::{EnvelopeError, HEADER_BYTES};
use arena_core::fault::{Fault, VoidReason};
use arena_core::price::Price;
use arena_core::record::{MatchRecord, Outcome, TurnRecord, VoidRecord};
use arena_core::scenario::{Horizon, Role};
use arena_core::seat::{CallTokens, ModelCall, SampledToken, Sampling, TokenScore, Usage};
use arena_core::transcript::Transcript;
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

fn sampled_token() -> impl Strategy<Value = SampledToken> {
    let top = vec(any::<(u32, i32)>(), 0..6);
    (any::<(u32, i32, i32)>(), top).prop_map(|(numbers, top)| {
        let (id, logprob_micro, sampled_logprob_micro) = numbers;
        let score = |(id, logprob_micro)| TokenScore { id, logprob_micro };
        let top = top.into_iter().map(score).collect();
        SampledToken { id, logprob_micro, sampled_logprob_micro, top }
    })
}

fn call_tokens() -> impl Strategy<Value = CallTokens> {
    (any::<u32>(), vec(any::<u32>(), 0..4), vec(sampled_token(), 0..3))
        .prop_map(|(reused, prompt, output)| CallTokens { reused, prompt, output })
}

fn sampling() -> impl Strategy<Value = Sampling> {
    any::<[u32; 4]>().prop_map(|[temperature_milli, top_k, top_p_milli, min_p_milli]| Sampling {
        temperature_milli,
        top_k,
        top_p_milli,
        min_p_milli,
    })
}

fn model_call() -> impl Strategy<Value = ModelCall> {
    let numbers = any::<(u32, u8, u32, u32, Option<u32>, bool)>();
    let tokens = (sampling(), option::of(call_tokens()));
    (numbers, any::<String>(), any::<[u8; 32]>(), any::<String>(), tokens).prop_map(
        |(numbers, model, request_sha256, text, (sampling, tokens))| {
            let (
                act_index,
                finish_reason,
                input_tokens,
                output_tokens,
                weight_milli,
                is_grammar_bound,
            ) = numbers;
            ModelCall {
                act_index,
                model,
                request_sha256,
                sampling,
                is_grammar_bound,
                text,
                finish_reason,
                input_tokens,
                output_tokens,
                weight_milli,
                tokens,
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
    let turns = (vec(turn(), 0..4), vec(action(), 0..3));
    let play = (any::<[u64; 2]>(), turns, outcome(), [usage(), usage()]);
    (place, scenario, play).prop_map(|(place, scenario, play)| {
        let (pair_index, leg, agents, [item_index, repetition]) = place;
        let ([list_price, budget, cost], opener, turn_limit, hidden) = scenario;
        let (seeds, (turns, unfinished), outcome, usage) = play;
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
            unfinished,
            outcome,
            usage,
        }
    })
}

fn draws() -> impl Strategy<Value = Draws> {
    let beacon = any::<([u8; 32], u64)>().prop_map(|(chain, round)| BeaconRound { chain, round });
    let committed = (any::<[u8; 32]>(), vec(any::<[u8; 32]>(), 0..3), option::of(beacon)).prop_map(
        |(secret_commitment, contributions, beacon)| {
            Draws::Committed(CommittedDraws { secret_commitment, contributions, beacon })
        },
    );
    prop_oneof![any::<u64>().prop_map(Draws::PublicSeed), committed]
}

fn announcement() -> impl Strategy<Value = Announcement> {
    let agent = any::<(String, [u8; 32], String, Option<String>)>().prop_map(
        |(name, component_sha256, params, submission)| AgentEntry {
            name,
            component_sha256,
            params,
            submission,
        },
    );
    let model = any::<(String, u32, [u8; 32], String)>().prop_map(
        |(name, context_tokens, sha256, engine)| ModelEntry {
            name,
            context_tokens,
            sha256,
            engine,
        },
    );
    let lists = (vec(agent, 0..3), vec(model, 0..3));
    let numbers = any::<(u32, u64, u32)>();
    (any::<[String; 3]>(), draws(), numbers, lists, any::<[u8; 32]>()).prop_map(
        |([name, config_toml, engine], draws, numbers, (agents, models), catalog_sha256)| {
            let (item_count, pair_count, checkpoint_every) = numbers;
            Announcement {
                name,
                config_toml,
                draws,
                engine,
                models,
                agents,
                catalog_sha256,
                item_count,
                pair_count,
                checkpoint_every,
            }
        },
    )
}

fn tournament() -> impl Strategy<Value = TournamentId> {
    any::<[u8; 32]>().prop_map(TournamentId)
}

fn transcript() -> impl Strategy<Value = Transcript> {
    (tournament(), any::<[u8; 32]>(), record()).prop_map(|(tournament, nonce, record)| Transcript {
        tournament,
        nonce,
        record,
    })
}

fn opening() -> impl Strategy<Value = AnnouncementEntry> {
    any::<(String, [u8; 32], [u8; 32])>().prop_map(|(origin, log_key, announcement_sha256)| {
        AnnouncementEntry { origin, log_key, announcement_sha256 }
    })
}

fn void() -> impl Strategy<Value = VoidEntry> {
    let reason = select(&[VoidReason::ModelProvider, VoidReason::Host][..]);
    (tournament(), any::<u64>(), any::<u32>(), reason).prop_map(
        |(tournament, pair_index, attempt, reason)| VoidEntry {
            tournament,
            void: VoidRecord { pair_index, attempt, reason },
        },
    )
}

fn draw() -> impl Strategy<Value = DrawEntry> {
    let beacon = (any::<u64>(), vec(any::<u8>(), 48)).prop_map(|(round, signature)| BeaconValue {
        round,
        signature: signature.try_into().expect("48 bytes"),
    });
    (tournament(), vec(any::<Option<[u8; 32]>>(), 0..3), option::of(beacon)).prop_map(
        |(tournament, contributions, beacon)| DrawEntry { tournament, contributions, beacon },
    )
}

fn entry() -> impl Strategy<Value = Entry> {
    let close =
        (tournament(), any::<[u64; 2]>()).prop_map(|(tournament, [match_count, void_count])| {
            Close { tournament, match_count, void_count }
        });
    let reveal = (tournament(), any::<Option<[u8; 32]>>())
        .prop_map(|(tournament, secret)| Reveal { tournament, secret });
    prop_oneof![
        opening().prop_map(Entry::Announcement),
        transcript().prop_map(|transcript| Entry::Match(transcript.entry(&transcript.encode()))),
        void().prop_map(Entry::Void),
        close.prop_map(Entry::Close),
        reveal.prop_map(Entry::Reveal),
        draw().prop_map(Entry::Draw),
    ]
}

/// Anything that is hashed in an envelope.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Hashed {
    Entry(Entry),
    Announcement(Announcement),
    Transcript(Transcript),
}

impl Hashed {
    fn encode(&self) -> Vec<u8> {
        match self {
            Hashed::Entry(entry) => entry.encode(),
            Hashed::Announcement(announcement) => announcement.encode(),
            Hashed::Transcript(transcript) => transcript.encode(),
        }
    }

    /// Reads bytes as whatever they are; there is at most one such thing.
    fn decode(bytes: &[u8]) -> Option<Hashed> {
        let read = [
            Entry::decode(bytes).ok().map(Hashed::Entry),
            Announcement::decode(bytes).ok().map(Hashed::Announcement),
            Transcript::decode(bytes).ok().map(Hashed::Transcript),
        ];
        let mut read = read.into_iter().flatten();
        let first = read.next();
        assert_eq!(read.next(), None, "bytes are of one kind");
        first
    }
}

fn hashed() -> impl Strategy<Value = Hashed> {
    prop_oneof![
        2 => entry().prop_map(Hashed::Entry),
        1 => announcement().prop_map(Hashed::Announcement),
        2 => transcript().prop_map(Hashed::Transcript),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_hashed_decodes_to_itself(value in hashed()) {
        prop_assert_eq!(Hashed::decode(&value.encode()), Some(value));
    }

    #[test]
    fn no_flipped_bit_goes_unnoticed(value in hashed(), flips in vec(any::<Index>(), 64)) {
        let bytes = value.encode();
        for flip in flips {
            let at = flip.index(bytes.len() * 8);
            let mut flipped = bytes.clone();
            flipped[at / 8] ^= 1 << (at % 8);
            if let Some(other) = Hashed::decode(&flipped) {
                prop_assert_ne!(&other, &value);
                prop_assert_eq!(other.encode(), flipped);
            }
        }
    }

    #[test]
    fn no_part_of_a_value_is_a_value(value in hashed(), cuts in vec(any::<Index>(), 64)) {
        let bytes = value.encode();
        for cut in cuts {
            prop_assert_eq!(Hashed::decode(&bytes[..cut.index(bytes.len())]), None);
        }
    }

    #[test]
    fn bytes_behind_a_value_are_refused(value in hashed(), tail in vec(any::<u8>(), 1..9)) {
        prop_assert_eq!(Hashed::decode(&[value.encode(), tail].concat()), None);
    }

    #[test]
    fn another_kind_or_version_is_refused(value in hashed(), version: u16, kind: u16) {
        let mut bytes = value.encode();
        bytes[4..6].copy_from_slice(&version.to_be_bytes());
        prop_assert_eq!(Hashed::decode(&bytes).is_some(), version == 2);
        let mut bytes = value.encode();
        bytes[6..8].copy_from_slice(&kind.to_be_bytes());
        let known = (1..=6).contains(&kind);
        let found = Entry::decode(&bytes);
        prop_assert_eq!(found == Err(EnvelopeError::Kind { found: kind }), !known);
    }

    #[test]
    fn any_bytes_that_decode_are_the_one_encoding_of_what_they_say(
        kind in prop_oneof![1..=6_u16, 256..=257_u16],
        body in vec(prop_oneof![3 => 0..3_u8, 1 => any::<u8>()], 0..400),
    ) {
        let bytes = [&b"ARNA\0\x03"[..], &kind.to_be_bytes(), &body].concat();
        if let Some(value) = Hashed::decode(&bytes) {
            prop_assert_eq!(value.encode(), bytes);
        }
    }

    #[test]
    fn damaged_values_that_decode_are_the_one_encoding_of_what_they_say(
        value in hashed(),
        bytes in vec((any::<Index>(), prop_oneof![0..3_u8, any::<u8>()]), 1..4),
    ) {
        let mut damaged = value.encode();
        for (place, byte) in bytes {
            let place = HEADER_BYTES + place.index(damaged.len() - HEADER_BYTES);
            damaged[place] = byte;
        }
        if let Some(value) = Hashed::decode(&damaged) {
            prop_assert_eq!(value.encode(), damaged);
        }
    }

    #[test]
    fn an_entry_names_its_tournament_unless_it_makes_it(entry in entry()) {
        let first = matches!(entry, Entry::Announcement(_));
        prop_assert_eq!(entry.tournament().is_none(), first);
    }
}

#[test]
fn a_huge_length_is_refused_without_allocating_it() {
    // The first field of an announcement is a text; its length is the first u32 of the body.
    let bytes = b"ARNA\0\x03\0\x01\xff\xff\xff\xffabc";
    assert!(Entry::decode(bytes).is_err());
    let bytes = b"ARNA\0\x03\x01\0\xff\xff\xff\xffabc";
    assert!(Announcement::decode(bytes).is_err());
}

#[test]
fn the_largest_entries_fit_their_bundle() {
    let draw = DrawEntry {
        tournament: TournamentId([0; 32]),
        contributions: vec![Some([0; 32]); AGENTS_MAX],
        beacon: Some(BeaconValue { round: 0, signature: [0; 48] }),
    };
    let opening = AnnouncementEntry {
        origin: "o".repeat(ORIGIN_BYTES_MAX),
        log_key: [0; 32],
        announcement_sha256: [0; 32],
    };
    for entry in [Entry::Draw(draw), Entry::Announcement(opening)] {
        assert!(entry.encode().len() <= ENTRY_BYTES_MAX);
    }
}
