use std::sync::mpsc::sync_channel;

use arena_core::seat::{SampledToken, Sampling};
use arena_llm::request::CallKey;
use proptest::prelude::*;

use super::*;
use crate::executor::AdapterId;
use crate::sequence::{Generation, Version, Work};
use crate::text::ReplyText;

/// What a row must hold: a digest of all tokens up to its own.
fn content(tokens: &[u32]) -> u64 {
    tokens.iter().fold(1, |sum, &token| {
        sum.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(u64::from(token) + 1)
    })
}

/// An executor that only remembers what its rows were computed from.
struct Device {
    rows: Vec<[u64; BLOCK_TOKENS]>,
}

impl Device {
    /// Computes a plan, and checks that every row finds before it what it must.
    fn compute(&mut self, plan: &Plan, schedule: &Schedule) {
        for copy in &plan.copies {
            let from = self.rows[copy.from.0 as usize];
            self.rows[copy.to.0 as usize][..copy.rows].copy_from_slice(&from[..copy.rows]);
        }
        for (part, (arrival, end)) in plan.batch.sequences.iter().zip(&plan.computed) {
            let tokens = &schedule.running[arrival].tokens;
            let start = part.start_position as usize;
            assert_eq!(start + part.rows.len(), *end);
            assert_eq!(plan.batch.tokens[part.rows.clone()], tokens[start..*end]);
            for position in start..*end {
                let block = part.blocks[position / BLOCK_TOKENS].0 as usize;
                self.rows[block][position % BLOCK_TOKENS] = content(&tokens[..=position]);
            }
        }
        for (part, (arrival, end)) in plan.batch.sequences.iter().zip(&plan.computed) {
            let tokens = &schedule.running[arrival].tokens;
            for position in 0..*end {
                let block = part.blocks[position / BLOCK_TOKENS].0 as usize;
                let found = self.rows[block][position % BLOCK_TOKENS];
                assert_eq!(found, content(&tokens[..=position]), "{arrival} at {position}");
            }
        }
    }
}

fn sequence(prompt: Vec<u32>, output_max: usize, is_score: bool) -> Sequence {
    let work = match is_score {
        true => Work::Score { reply: sync_channel(1).0 },
        false => Work::Generate(Generation {
            key: CallKey { seat_seed: 0, call_index: 0 },
            output_max,
            text: ReplyText::new(Vec::new(), 1),
            ignores_end: true,
            reply: sync_channel(1).0,
        }),
    };
    let prompt_count = prompt.len();
    let known = if is_score { output_max } else { 0 };
    Sequence {
        tokens: prompt.into_iter().chain(std::iter::repeat_n(5, known)).collect(),
        prompt_count,
        computed: 0,
        lease: None,
        version: Version::default(),
        sampling: Sampling::GREEDY,
        grammar: None,
        output: Vec::new(),
        work,
    }
}

/// Writes one token for each row of logits; returns who is done.
fn write(schedule: &mut Schedule, plan: &Plan) -> Vec<Arrival> {
    let mut done = Vec::new();
    for (arrival, rows) in &plan.wanted {
        let sequence = schedule.running.get_mut(arrival).expect("it runs");
        for _ in rows.clone() {
            let id = (content(&sequence.tokens) >> 40) as u32 % 3;
            let token =
                SampledToken { id, logprob_micro: 0, sampled_logprob_micro: 0, top: Vec::new() };
            sequence.output.push(token);
            if !sequence.is_score() {
                sequence.tokens.push(id);
            }
        }
        let output_max = match &sequence.work {
            Work::Generate(generation) => generation.output_max,
            Work::Score { .. } => sequence.tokens.len() - sequence.prompt_count,
        };
        assert!(sequence.output.len() <= output_max);
        if sequence.output.len() == output_max {
            done.push(*arrival);
        }
    }
    done
}

/// Plays requests of prompt, reply and whether it is scored, to their ends.
fn check(requests: Vec<(Vec<u32>, usize, bool)>, blocks: usize, slots: usize, step_tokens: usize) {
    let mut schedule = Schedule::new(PrefixCache::new(blocks), slots, step_tokens);
    let mut device = Device { rows: vec![[0; BLOCK_TOKENS]; blocks] };
    let mut left = requests.len();
    let mut queue = requests.into_iter();
    let mut steps = 0;
    while left > 0 {
        while schedule.has_room() {
            let Some((prompt, output_max, is_score)) = queue.next() else { break };
            schedule.add(sequence(prompt, output_max, is_score));
        }
        let oldest = schedule.running.keys().chain(schedule.waiting.keys()).min().copied();
        let plan = schedule.plan();
        assert!(plan.batch.tokens.len() <= step_tokens + slots);
        let first = plan.computed.first().map(|&(arrival, _)| arrival);
        assert_eq!(first, oldest, "every step moves the oldest on");
        device.compute(&plan, &schedule);
        schedule.note_computed(&plan);
        for arrival in write(&mut schedule, &plan) {
            schedule.finish(arrival);
            left -= 1;
        }
        steps += 1;
        assert!(steps < 100_000, "every request ends");
    }
    assert_eq!(schedule.cache.used_count(), 0);
}

#[test]
fn sixty_four_requests_end_in_a_pool_of_one_context_and_a_block() {
    let request = |index: u32| {
        let prompt = (0..60).map(|token| token + index % 3).collect();
        (prompt, 4 + index as usize, index % 9 == 8)
    };
    check((0..64).map(request).collect(), 9, 64, 80);
}

#[test]
fn a_common_beginning_is_computed_once_even_if_all_come_at_once() {
    let mut schedule = Schedule::new(PrefixCache::new(100), 8, 512);
    for index in 0..8 {
        let prompt = (0..64).chain([100 + index, 1, 2]).collect();
        schedule.add(sequence(prompt, 4, false));
    }
    let plan = schedule.plan();
    assert_eq!(plan.batch.tokens.len(), 67 + 7 * 3);
    assert_eq!(schedule.counts.reused_tokens, 7 * 64);
}

#[test]
fn a_sequence_keeps_the_adapter_that_was_newest_when_it_came() {
    let mut schedule = Schedule::new(PrefixCache::new(100), 1, 512);
    for number in [1, 2] {
        let slot = Some(AdapterId(number));
        let version = Version { number: u64::from(number), slot };
        schedule.add(Sequence { version, ..sequence(vec![1, 2, 3], 2, false) });
    }
    for number in [1, 2] {
        assert!(schedule.uses(2), "one that waits counts too");
        let plan = schedule.plan();
        assert_eq!(plan.batch.sequences[0].adapter, Some(AdapterId(number)));
        schedule.note_computed(&plan);
        schedule.finish(u64::from(number) - 1);
    }
    assert!(!schedule.uses(2));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_row_finds_before_it_what_it_must(
        requests in prop::collection::vec(
            (prop::collection::vec((0..2_u32, 1..14_usize), 1..8), 1..40_usize, 0..6_u32),
            1..20,
        ),
        spare in 0_usize..12,
        slots in 1_usize..12,
        rows in 4_usize..100,
    ) {
        let requests = requests.into_iter().map(|(runs, output_max, kind)| {
            let runs = runs.into_iter().flat_map(|(token, count)| vec![token; count]);
            (runs.collect(), output_max, kind == 0)
        });
        // The longest request takes 7 * 13 + 39 tokens.
        check(requests.collect(), 10 + spare, slots, slots + rows);
    }
}
