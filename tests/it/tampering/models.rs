//! What language models are said to have answered. Kinds 41, 42.

use arena_core::record::MatchRecord;
use arena_core::seat::{CallTokens, ModelCall, SampledToken};

use crate::tampering::honest::{drawn, seeded};
use crate::tampering::play::AGAIN;
use crate::tampering::rewrite::Rewrite;
use crate::tampering::scene::Asked;
use crate::tampering::{By, Expect, Tampering, assert_caught};

pub const TAMPERINGS: &[Tampering] = &[
    Tampering {
        number: 41,
        what: "a reply of a model is edited",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            scene.forge(|log| {
                change_calls(log, |calls| {
                    calls[0].text = "Talk: I pay all.\nAction: [BUY $99]".to_owned();
                });
            });
            Asked::audit(AGAIN)
        },
        expect: Expect::Fails { steps: "re-execution", what: "run again: ", found: "", wanted: "" },
    },
    Tampering {
        number: 41,
        what: "a reply is said to be of a model that was not granted",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            scene.forge(|log| {
                change_calls(log, |calls| calls[0].model = "oracle".to_owned());
            });
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "usage",
            what: "`haggler`",
            found: "`oracle`",
            wanted: "one of [\"scripted\"]",
        },
    },
    Tampering {
        number: 41,
        what: "another model is announced than the one that was asked",
        by: By::Organiser,
        of: seeded,
        tamper: |scene| {
            scene.forge(|log| {
                log.announcement.models[0].sha256 = [7; 32];
                log.announce();
            });
            Asked::audit(AGAIN)
        },
        expect: Expect::Named {
            limit: "Whether a language model gave the recorded replies",
            shown: "models were not asked, their recorded replies were given again",
        },
    },
    Tampering {
        number: 41,
        what: "a reply is said to be sampled otherwise",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            scene.forge(|log| {
                change_calls(log, |calls| calls[0].sampling.temperature_milli ^= 1);
            });
            Asked::audit(AGAIN)
        },
        expect: Expect::Fails { steps: "re-execution", what: "run again: ", found: "", wanted: "" },
    },
    Tampering {
        number: 41,
        what: "a reply has a temperature that no request can have",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            scene.forge(|log| {
                change_calls(log, |calls| calls[0].sampling.temperature_milli = 2_001);
            });
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "usage",
            what: "the `temperature-milli` of a model call of the",
            found: "2001",
            wanted: "0 to 2000",
        },
    },
    Tampering {
        number: 41,
        what: "a reply is said to be bound by a grammar, so that unlikely tokens look chosen",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            scene.forge(|log| change_calls(log, |calls| calls[0].is_grammar_bound ^= true));
            Asked::audit(AGAIN)
        },
        expect: Expect::Fails { steps: "re-execution", what: "run again: ", found: "", wanted: "" },
    },
    Tampering {
        number: 41,
        what: "a reply has more tokens than it is charged for",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            scene.forge(|log| {
                change_calls(log, |calls| {
                    let tokens = spelled(&calls[0], 1);
                    calls[0].tokens = Some(tokens);
                });
            });
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "usage",
            what: "the listed tokens of a reply of the",
            found: "",
            wanted: ", as counted",
        },
    },
    Tampering {
        number: 41,
        what: "a token is likelier than certain",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            scene.forge(|log| {
                change_calls(log, |calls| {
                    let mut tokens = spelled(&calls[0], 0);
                    tokens.output[0].logprob_micro = 1;
                    calls[0].tokens = Some(tokens);
                });
            });
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "usage",
            what: "the logarithm of its probability in millionths (reply token 0) of the",
            found: "1",
            wanted: "at most 0",
        },
    },
    Tampering {
        number: 42,
        what: "a prompt is said to repeat what was never said",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            scene.forge(|log| {
                change_calls(log, |calls| {
                    let mut tokens = spelled(&calls[0], 0);
                    tokens.reused = 7;
                    tokens.prompt.truncate(tokens.prompt.len() - 7);
                    calls[0].tokens = Some(tokens);
                });
            });
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "usage",
            what: "the reused tokens of a prompt of the",
            found: "7",
            wanted: "at most 0",
        },
    },
    Tampering {
        number: 42,
        what: "a call of a model is put in",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            scene.forge(|log| change_calls(log, |calls| calls.insert(1, calls[0].clone())));
            Asked::audit(AGAIN)
        },
        expect: Expect::Fails { steps: "re-execution", what: "run again: ", found: "", wanted: "" },
    },
    Tampering {
        number: 42,
        what: "more calls of a model than granted",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            scene.forge(|log| change_calls(log, |calls| calls.resize(9, calls[0].clone())));
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "usage",
            what: "the model calls of the",
            found: "9",
            wanted: "at most 8",
        },
    },
    Tampering {
        number: 42,
        what: "a call of a model is left out",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            scene.forge(|log| change_calls(log, |calls| drop(calls.remove(0))));
            Asked::audit(AGAIN)
        },
        expect: Expect::Fails { steps: "re-execution", what: "run again: ", found: "", wanted: "" },
    },
    Tampering {
        number: 42,
        what: "the calls of another match are used again",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            scene.forge(|log| {
                let other = log.find(|record| record.item_index == 1 && !calls(record).is_empty());
                let other = calls(&log.transcript(other).record).to_vec();
                change_calls(log, |calls| {
                    let count = calls.len().min(other.len());
                    calls[..count].clone_from_slice(&other[..count]);
                });
            });
            Asked::audit(AGAIN)
        },
        expect: Expect::Fails {
            steps: "re-execution",
            what: "run again: turn ",
            found: "",
            wanted: "",
        },
    },
    Tampering {
        number: 42,
        what: "calls of a model are not in the order of the turns",
        by: By::Organiser,
        of: drawn,
        tamper: |scene| {
            scene.forge(|log| change_calls(log, |calls| calls.reverse()));
            Asked::audit(&[])
        },
        expect: Expect::Fails {
            steps: "usage",
            what: "the turn of a model call of the",
            found: "",
            wanted: " to ",
        },
    },
];

/// Returns tokens for a call that has none, with so many too many in its reply.
fn spelled(call: &ModelCall, too_many: u32) -> CallTokens {
    let token = |id| SampledToken { id, logprob_micro: -1, sampled_logprob_micro: 0, top: vec![] };
    CallTokens {
        reused: 0,
        prompt: (0..call.input_tokens).collect(),
        output: (0..call.output_tokens + too_many).map(token).collect(),
    }
}

fn calls(record: &MatchRecord) -> &[ModelCall] {
    let usage = record.usage.iter().find(|usage| !usage.model_calls.is_empty());
    usage.map_or(&[], |usage| &usage.model_calls)
}

/// Changes the calls of the first match in which a model was asked more than once.
fn change_calls(log: &mut Rewrite, change: impl FnOnce(&mut Vec<ModelCall>)) {
    let index = log.find(|record| {
        let calls = calls(record);
        calls.first().map(|call| call.act_index) != calls.last().map(|call| call.act_index)
    });
    log.forge_record(index, |record| {
        let mut usages = record.usage.iter_mut().map(|usage| &mut usage.model_calls);
        change(usages.find(|calls| !calls.is_empty()).expect("a model was asked"));
    });
}

#[test]
fn lies_about_what_models_answered_are_caught() {
    assert_caught(TAMPERINGS);
}
