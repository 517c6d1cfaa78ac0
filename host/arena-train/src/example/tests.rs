//! Sequences from calls that were written down as records write them.

use arena_core::seat::{SampledToken, Sampling};

use super::*;
use crate::fixture::{POLICY, WHOLE, call, sampled};

const REINFORCE: Purpose = Purpose::Reinforce { allow_cuts: false };

fn terms(purpose: Purpose) -> Terms<'static> {
    Terms { model: POLICY, context_tokens: 32, vocabulary: 50, purpose }
}

/// Adds a call with this prompt and reply, as a record would hold it.
fn say(usage: &mut Usage, prompt: &[u32], output: &[u32]) {
    let output: Vec<SampledToken> = output.iter().map(|id| sampled(*id)).collect();
    let tokens = dialogue::shorten(&usage.model_calls, POLICY, prompt.to_vec(), output);
    usage.model_calls.push(call(Some(tokens)));
}

fn learn(usage: &Usage) -> Vec<Example> {
    examples(usage, &terms(REINFORCE)).expect("it can be learned from")
}

#[test]
fn a_dialogue_that_only_grows_is_one_sequence_with_its_replies_scored() {
    let mut usage = Usage::default();
    say(&mut usage, &[1, 2, 3], &[4, 5]);
    say(&mut usage, &[1, 2, 3, 4, 5, 6], &[7]);
    say(&mut usage, &[1, 2, 3, 4, 5, 6, 7, 8, 9], &[10, 11]);
    let found = learn(&usage);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].sequence.tokens, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
    assert_eq!(found[0].sequence.scored, [3, 4, 6, 9, 10]);
    assert_eq!(found[0].sampled_logprobs, [-0.4, -0.5, -0.7, -1.0, -1.1]);
    assert_eq!(found[0].weights_milli, [1_000; 5]);
    assert_eq!((found[0].weight_milli(), found[0].is_cut), (5_000, false));
    assert_eq!(found[0].sequence.temperature, 1.0);
}

#[test]
fn a_prompt_that_does_not_extend_the_last_reply_starts_a_sequence() {
    let mut usage = Usage::default();
    say(&mut usage, &[1, 2], &[3, 4]);
    // The last token of the reply was dropped, as templates do with thoughts.
    say(&mut usage, &[1, 2, 3, 9], &[5]);
    say(&mut usage, &[1, 2, 3, 9, 5, 6], &[7]);
    let found = learn(&usage);
    let lists: Vec<(&[u32], &[u32])> = found
        .iter()
        .map(|example| (&example.sequence.tokens[..], &example.sequence.scored[..]))
        .collect();
    let expected: [(&[u32], &[u32]); 2] =
        [(&[1, 2, 3, 4], &[2, 3]), (&[1, 2, 3, 9, 5, 6, 7], &[4, 6])];
    assert_eq!(lists, expected, "what was said before is context and scored once");
}

#[test]
fn a_prompt_that_ends_inside_the_last_reply_starts_a_sequence() {
    let mut usage = Usage::default();
    say(&mut usage, &[1, 2], &[3, 4]);
    say(&mut usage, &[1, 2, 3], &[4, 5]);
    assert_eq!(learn(&usage).len(), 2);
}

#[test]
fn other_models_are_not_learned_from_and_do_not_break_a_dialogue() {
    let mut usage = Usage::default();
    say(&mut usage, &[1, 2], &[3]);
    usage.model_calls.push(ModelCall { model: "judge".to_owned(), ..call(None) });
    say(&mut usage, &[1, 2, 3, 4], &[5]);
    let found = learn(&usage);
    assert_eq!((found.len(), found[0].sequence.scored.clone()), (1, vec![2, 4]));
}

#[test]
fn weights_are_the_guests_and_nothing_is_learned_from_a_weight_of_zero() {
    let mut usage = Usage::default();
    say(&mut usage, &[1, 2], &[3]);
    say(&mut usage, &[1, 2, 3, 4], &[5]);
    say(&mut usage, &[1, 2, 3, 4, 5, 6], &[7, 8]);
    usage.model_calls[0].weight_milli = Some(0);
    usage.model_calls[2].weight_milli = Some(250);
    let found = learn(&usage);
    assert_eq!(found[0].sequence.scored, [4, 6, 7]);
    assert_eq!(found[0].weights_milli, [1_000, 250, 250]);
    usage.model_calls.iter_mut().for_each(|call| call.weight_milli = Some(0));
    assert_eq!(learn(&usage), []);
    assert_eq!(learn(&Usage::default()), []);
}

#[test]
fn a_change_of_temperature_starts_a_sequence() {
    let mut usage = Usage::default();
    say(&mut usage, &[1, 2], &[3]);
    say(&mut usage, &[1, 2, 3, 4], &[5]);
    usage.model_calls[1].sampling.temperature_milli = 700;
    let found = learn(&usage);
    assert_eq!(found.len(), 2);
    assert_eq!(found[1].sequence.temperature, 0.7);
    assert_eq!((found[1].sequence.tokens.len(), &found[1].sequence.scored), (5, &vec![4]));
}

#[test]
fn parts_of_the_distribution_are_refused_unless_they_are_asked_for() {
    let cuts: [fn(&mut ModelCall); 4] = [
        |call| call.sampling.top_k = 40,
        |call| call.sampling.top_p_milli = 950,
        |call| call.sampling.min_p_milli = 50,
        |call| call.is_grammar_bound = true,
    ];
    for cut in cuts {
        let mut usage = Usage::default();
        say(&mut usage, &[1], &[2]);
        say(&mut usage, &[1, 2, 3], &[4]);
        cut(&mut usage.model_calls[1]);
        let error = examples(&usage, &terms(REINFORCE)).expect_err("it was cut");
        assert_eq!(error, ExampleError { call: 1, reason: Unlearnable::Cut });
        let allowed = Purpose::Reinforce { allow_cuts: true };
        let found = examples(&usage, &terms(allowed)).expect("it is allowed");
        assert!(found.len() == 1 && found[0].is_cut);
        // Context may be cut, since nothing is learned from it.
        usage.model_calls[1].weight_milli = Some(0);
        assert!(!learn(&usage)[0].is_cut);
    }
}

#[test]
fn imitation_takes_any_reply_at_temperature_one() {
    let mut usage = Usage::default();
    say(&mut usage, &[1], &[2]);
    say(&mut usage, &[1, 2, 3], &[4]);
    usage.model_calls[0].sampling = Sampling::GREEDY;
    usage.model_calls[1].sampling = Sampling { temperature_milli: 500, top_k: 5, ..WHOLE };
    let found = examples(&usage, &terms(Purpose::Imitate)).expect("anything goes");
    assert_eq!((found.len(), found[0].sequence.temperature), (1, 1.0));
    let error = examples(&usage, &terms(REINFORCE)).expect_err("nothing was sampled");
    assert_eq!(error.reason, Unlearnable::Greedy);
}

#[test]
fn hostile_calls_are_refused_before_a_prompt_is_put_together() {
    type Break = fn(&mut ModelCall);
    let breaks: [(Break, &str); 7] = [
        (|call| call.tokens = None, "its tokens were not recorded"),
        (|call| tokens(call).reused = 4, "it says `7` tokens, of which some are not there"),
        (|call| tokens(call).reused = u32::MAX, "it has `4294967298` tokens, the context `32`"),
        (|call| tokens(call).prompt = vec![1; 31], "it has `35` tokens, the context `32`"),
        (|call| tokens(call).prompt[0] = 50, "it holds token `50`, the vocabulary has `50`"),
        (|call| tokens(call).output[0].id = 99, "it holds token `99`, the vocabulary has `50`"),
        (
            |call| call.weight_milli = Some(WEIGHT_MILLI_MAX + 1),
            "its weight is `1000001` thousandths, at most `1000000`",
        ),
    ];
    for (broken, says) in breaks {
        let mut usage = Usage::default();
        say(&mut usage, &[1], &[2]);
        say(&mut usage, &[1, 2, 3], &[4, 5]);
        broken(&mut usage.model_calls[1]);
        let error = examples(&usage, &terms(REINFORCE)).expect_err(says).to_string();
        assert_eq!(error, format!("cannot learn from model call `1`: {says}"));
    }
    let mut usage = Usage::default();
    say(&mut usage, &[], &[2]);
    let error = examples(&usage, &terms(REINFORCE)).expect_err("its first token has no context");
    assert_eq!(error, ExampleError { call: 0, reason: Unlearnable::NoPrompt });
}

fn tokens(call: &mut ModelCall) -> &mut CallTokens {
    call.tokens.as_mut().expect("it has tokens")
}
