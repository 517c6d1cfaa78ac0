//! Recorded scores against those of engines that are the same, alike, coarser, or another model's.

use arena_audit::rescore::{RescoreError, Rescoring, Scores, Statement, TOKENS_MIN};
use arena_core::dialogue;
use arena_core::price::Price;
use arena_core::record::{MatchRecord, Outcome};
use arena_core::scenario::{Horizon, Role};
use arena_core::seat::{ModelCall, SampledToken, Sampling, TokenScore, Usage};
use arena_core::seed::{Root, Stream};

const VOCABULARY: u64 = 50;

/// A model of nothing: scores from a hash of the last two tokens, moved by `error_micro` at most.
struct Model {
    weights: u64,
    error_micro: u64,
}

impl Model {
    /// The scores of all tokens behind two others, likeliest first.
    fn scores(&self, before: [u32; 2]) -> Vec<TokenScore> {
        let address = [self.weights, before[0].into(), before[1].into()];
        let mut stream = Stream::derive(Root::Seed(1), "scores", &address);
        let mut errors = Stream::derive(Root::Seed(self.error_micro), "errors", &address);
        let mut scores: Vec<TokenScore> = (0..VOCABULARY as u32)
            .map(|id| {
                let exact = -(stream.below(8_000_000) as i32) - 1_000_000;
                let error = errors.below(2 * self.error_micro + 1) as i32;
                TokenScore { id, logprob_micro: exact + error - self.error_micro as i32 }
            })
            .collect();
        scores.sort_by_key(|score| (-score.logprob_micro, score.id));
        scores
    }

    fn score(&self, prompt: &[u32], output: &[u32]) -> Vec<SampledToken> {
        let all = [prompt, output].concat();
        (prompt.len()..all.len())
            .map(|place| {
                let scores = self.scores([all[place - 2], all[place - 1]]);
                let own = scores.iter().find(|score| score.id == all[place]).expect("a token");
                SampledToken {
                    id: own.id,
                    logprob_micro: own.logprob_micro,
                    sampled_logprob_micro: 0,
                    top: scores[..5].to_vec(),
                }
            })
            .collect()
    }

    fn write(&self, prompt: &[u32], tokens: usize) -> Vec<SampledToken> {
        let mut ids = prompt.to_vec();
        for _ in 0..tokens {
            ids.push(self.scores([ids[ids.len() - 2], ids[ids.len() - 1]])[0].id);
        }
        self.score(prompt, &ids[prompt.len()..])
    }
}

const TRUE: Model = Model { weights: 1, error_micro: 0 };

/// A match in which the buyer asked `calls` times for `tokens` tokens, in one dialogue.
fn played(calls: usize, tokens: usize) -> MatchRecord {
    let mut list: Vec<ModelCall> = Vec::new();
    let mut ids = vec![1, 2, 3];
    for number in 0..calls {
        ids.extend([4, number as u32 % 40, 5]);
        let output = TRUE.write(&ids, tokens);
        let call = ModelCall {
            act_index: 0,
            model: "small".to_owned(),
            request_sha256: [0; 32],
            sampling: Sampling::GREEDY,
            is_grammar_bound: false,
            text: String::new(),
            finish_reason: 0,
            input_tokens: ids.len() as u32,
            output_tokens: tokens as u32,
            weight_milli: None,
            tokens: Some(dialogue::shorten(&list, "small", ids.clone(), output.clone())),
        };
        list.push(call);
        ids.extend(output.iter().map(|token| token.id));
    }
    MatchRecord {
        pair_index: 0,
        leg: 0,
        agents: [1, 0],
        item_index: 0,
        repetition: 0,
        list_price: Price(1),
        budget: Price(1),
        cost: Price(1),
        opener: Role::Buyer,
        horizon: Horizon { turn_limit: 2, hidden: false },
        seeds: [0; 2],
        turns: vec![],
        unfinished: vec![],
        outcome: Outcome::TimedOut,
        usage: [Usage { model_calls: list, ..Usage::default() }, Usage::default()],
    }
}

fn rescore(record: &MatchRecord, model: &Model) -> Rescoring {
    let mut rescoring = Rescoring::new("small", 2);
    let score = |prompt: &[u32], output: &[u32]| Ok(model.score(prompt, output));
    let found = rescoring.score(record, &score).expect("a sound record");
    rescoring.add(&found);
    rescoring
}

fn calls(record: &mut MatchRecord) -> &mut Vec<ModelCall> {
    &mut record.usage[0].model_calls
}

fn output(record: &mut MatchRecord, call: usize) -> &mut Vec<SampledToken> {
    &mut calls(record)[call].tokens.as_mut().expect("tokens").output
}

fn because(scores: &Scores) -> String {
    match scores.statement() {
        Statement::Consistent => "consistent".to_owned(),
        Statement::Inconsistent { because } => format!("inconsistent: {because}"),
        Statement::None { because } => format!("no statement: {because}"),
    }
}

#[test]
fn the_same_engine_gives_the_same_scores_to_the_last_digit() {
    let rescoring = rescore(&played(10, 40), &TRUE);
    let all = rescoring.all();
    assert_eq!((all.calls, all.tokens, all.equal), (10, 400, 400));
    assert_eq!((all.ranks, all.greedy, all.greedy_misses), ([400, 0, 0, 0, 0, 0], 400, 0));
    assert_eq!(all.difference_micro(1_000), Some(0));
    assert_eq!(all.statement(), Statement::Consistent);
    // Agent 1 bought and asked, agent 0 did not.
    assert_eq!(rescoring.agents()[1], *all);
    assert_eq!(because(&rescoring.agents()[0]), "no statement: 0 tokens are too few, it takes 300");
}

#[test]
fn another_device_rounds_otherwise_and_is_consistent_without_equal_bits() {
    let all = rescore(&played(10, 40), &Model { weights: 1, error_micro: 5_000 }).all().clone();
    assert!(all.equal < 10, "{} are equal", all.equal);
    assert_eq!(all.statement(), Statement::Consistent);
}

#[test]
fn coarser_weights_are_inconsistent_and_what_lies_between_is_not_said() {
    let coarse = Model { weights: 1, error_micro: 300_000 };
    let said = because(rescore(&played(10, 40), &coarse).all());
    assert!(said.starts_with("inconsistent: the median difference in millionths: "), "{said}");
    let between = Model { weights: 1, error_micro: 40_000 };
    let said = because(rescore(&played(10, 40), &between).all());
    assert!(said.starts_with("no statement: the median difference in millionths: "), "{said}");
}

#[test]
fn another_model_is_inconsistent_however_few_tokens_there_are() {
    let said = because(rescore(&played(1, 20), &Model { weights: 2, error_micro: 0 }).all());
    assert!(said.starts_with("inconsistent: "), "{said}");
    assert!(said.ends_with(" of 20 tokens differ by more than any rounding"), "{said}");
}

#[test]
fn too_few_tokens_say_nothing() {
    let tokens = TOKENS_MIN as usize - 1;
    let said = because(rescore(&played(1, tokens), &TRUE).all());
    assert_eq!(said, "no statement: 299 tokens are too few, it takes 300");
    assert_eq!(because(rescore(&played(1, tokens + 1), &TRUE).all()), "consistent");
}

#[test]
fn one_reply_that_was_edited_shows_among_many() {
    let mut record = played(10, 40);
    let forged = output(&mut record, 9);
    // The scores stay those of the true reply.
    for (token, place) in forged.iter_mut().zip(0..) {
        token.id = place % 50;
    }
    let said = because(rescore(&record, &TRUE).all());
    assert!(said.ends_with(" of 400 tokens differ by more than any rounding"), "{said}");
}

#[test]
fn a_reply_that_was_not_the_likeliest_shows_although_its_scores_are_the_models() {
    let mut record = played(10, 40);
    for number in 0..10 {
        let prompt = dialogue::prompt(&record.usage[0].model_calls, number).expect("a prompt");
        let wanted: Vec<u32> = (0..40).map(|place| place * 7 % 50).collect();
        *output(&mut record, number) = TRUE.score(&prompt, &wanted);
    }
    // What later prompts repeat was rewritten with it, as a forger would.
    let said = because(rescore(&record, &TRUE).all());
    assert!(said.contains("not the likeliest as they should be"), "{said}");
    calls(&mut record).iter_mut().for_each(|call| call.is_grammar_bound = true);
    let said = because(rescore(&record, &TRUE).all());
    assert_eq!(said, "consistent", "under a grammar the likeliest token may not be allowed");
}

#[test]
fn a_call_whose_tokens_are_left_out_takes_the_statement_away() {
    let mut record = played(12, 40);
    calls(&mut record)[11].tokens = None;
    let rescoring = rescore(&record, &TRUE);
    assert_eq!((rescoring.all().calls, rescoring.all().calls_without_tokens), (11, 1));
    assert_eq!(because(rescoring.all()), "no statement: 1 of 12 calls hold no tokens");
}

#[test]
fn calls_of_other_models_are_left_alone() {
    let mut record = played(3, 10);
    calls(&mut record)[2].model = "other".to_owned();
    assert_eq!(rescore(&record, &TRUE).all().calls, 2);
}

#[test]
fn a_broken_record_or_engine_is_an_error() {
    let record = played(2, 10);
    let rescoring = Rescoring::new("small", 2);
    let down = |_: &[u32], _: &[u32]| Err("no memory".to_owned());
    let detail = "no memory".to_owned();
    assert_eq!(rescoring.score(&record, &down), Err(RescoreError::Engine { detail }));
    let short = |_: &[u32], _: &[u32]| Ok(vec![]);
    let mismatch = RescoreError::Mismatch { asked: 10, scored: 0 };
    assert_eq!(rescoring.score(&record, &short), Err(mismatch));
    let mut broken = record.clone();
    calls(&mut broken)[1].tokens.as_mut().expect("tokens").reused = 999;
    let score = |prompt: &[u32], output: &[u32]| Ok(TRUE.score(prompt, output));
    let error = RescoreError::Prompt { role: Role::Buyer, call_index: 1 };
    assert_eq!(rescoring.score(&broken, &score), Err(error));
}
