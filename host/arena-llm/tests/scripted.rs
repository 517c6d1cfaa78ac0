//! The scripted model, as tables: script, conversation, reply.

use arena_core::seat::Sampling;
use arena_llm::model::{Completion, FinishReason, LanguageModel, ModelError, REPLY_BYTES_MAX};
use arena_llm::request::{CallKey, ChatRole, Message, Request};
use arena_llm::scripted::{RULES_MAX, SCRIPT_BYTES_MAX, ScriptedModel};

const SCRIPT: &str = r#"
default = "No."

[[rule]]
role = "system"
reply = "Who asks?"

[[rule]]
contains = "final offer"
turn = 1
reply = "Turn {turn}, {model} heard `{last}` {{so}}. Action: [DEAL]"

[[rule]]
contains = "final offer"
reply = "Not yet."
"#;

fn request(conversation: &[(ChatRole, &str)]) -> Request {
    let message =
        |&(role, text): &(ChatRole, &str)| Message { role, text: text.to_owned(), tokens: vec![] };
    Request {
        model: "small".to_owned(),
        messages: conversation.iter().map(message).collect(),
        max_tokens: 100,
        sampling: Sampling { temperature_milli: 1_000, ..Sampling::GREEDY },
        stop: vec![],
        grammar: None,
        key: CallKey { seat_seed: 1, call_index: 0 },
    }
}

fn answer(script: &str, request: &Request) -> Completion {
    let model = ScriptedModel::parse("small", script).expect("the script is sound");
    model.complete(request).expect("the request is sound")
}

fn check(conversation: &[(ChatRole, &str)], text: &str) {
    let completion = answer(SCRIPT, &request(conversation));
    assert_eq!(completion.text, text);
    assert_eq!(completion.finish_reason, FinishReason::Stop);
}

#[test]
fn the_first_rule_that_fits_answers_and_otherwise_the_default() {
    use ChatRole::{Assistant, System, User};
    check(&[(User, "hello")], "No.");
    check(&[(User, "hello"), (System, "final offer")], "Who asks?");
    check(&[(User, "final offer")], "Not yet.");
    check(&[(User, "final offer"), (Assistant, "No."), (User, "hello")], "No.");
    check(
        &[(User, "hello"), (Assistant, "No."), (User, "final offer: $9")],
        "Turn 1, small heard `final offer: $9` {so}. Action: [DEAL]",
    );
}

#[test]
fn the_earliest_stop_text_ends_the_reply_and_is_not_part_of_it() {
    let mut request = request(&[(ChatRole::User, "hi")]);
    request.stop = vec!["!".to_owned(), " c".to_owned()];
    let completion = answer(r#"default = "a b c d! e""#, &request);
    assert_eq!(completion.text, "a b");
    assert_eq!(completion.finish_reason, FinishReason::Stop);
    assert_eq!(completion.output_tokens, 2);
}

#[test]
fn max_tokens_and_context_cut_the_reply() {
    let mut request = request(&[(ChatRole::User, "one two")]);
    request.max_tokens = 3;
    let script = "context-tokens = 5\ndefault = 'a b c d'";
    let completion = answer(script, &request);
    assert_eq!((completion.text.as_str(), completion.input_tokens), ("a b", 3));
    assert_eq!(completion.finish_reason, FinishReason::Length);
    let completion = answer("default = 'a b c d'", &request);
    assert_eq!((completion.text.as_str(), completion.output_tokens), ("a b c", 3));
    assert_eq!(completion.finish_reason, FinishReason::Length);
    let completion = answer("default = 'a b c'", &request);
    assert_eq!(completion.finish_reason, FinishReason::Stop);
}

#[test]
fn a_prompt_that_fills_the_context_is_invalid() {
    let model = ScriptedModel::parse("small", "context-tokens = 3\ndefault = 'x'");
    let error = model.expect("sound").complete(&request(&[(ChatRole::User, "one two")]));
    let detail = "prompt has 3 tokens, context is 3".to_owned();
    assert_eq!(error, Err(ModelError::InvalidInput(detail)));
}

#[test]
fn another_models_name_is_not_supported() {
    let model = ScriptedModel::parse("large", "default = 'x'").expect("sound");
    let error = model.complete(&request(&[(ChatRole::User, "hi")]));
    assert_eq!(error, Err(ModelError::NotSupported));
}

#[test]
fn a_repeated_message_cannot_make_a_reply_longer_than_the_limit() {
    let mut request = request(&[(ChatRole::User, &"ä".repeat(REPLY_BYTES_MAX))]);
    request.max_tokens = 1_000;
    let completion = answer("default = '>{last}{last}'", &request);
    assert_eq!(completion.text.len(), REPLY_BYTES_MAX - 1);
    assert_eq!(completion.finish_reason, FinishReason::Length);
}

#[test]
fn the_identity_is_the_hash_of_the_script() {
    let hash = |script| ScriptedModel::parse("small", script).expect("sound").info().sha256;
    assert_eq!(hash("default = 'x'"), hash("default = 'x'"));
    assert_ne!(hash("default = 'x'"), hash("default = 'y'"));
}

#[test]
fn mistakes_in_scripts_are_named_with_their_line() {
    let long = format!("\ndefault = '{}'", "x".repeat(REPLY_BYTES_MAX + 1));
    let many = format!("default = 'x'\n{}", "[[rule]]\nreply = 'y'\n".repeat(RULES_MAX + 1));
    let cases = [
        ("", (1, 1), "missing field `default`"),
        ("default = 'x'\nreply = 'y'", (2, 1), "unknown field `reply`, expected one of"),
        ("default = 'x'\n[[rule]]\nturn = 1", (2, 1), "missing field `reply`"),
        ("default = 'x'\n[[rule]]\nreply = 'y'\nrole = 'boss'", (4, 8), "unknown variant `boss`"),
        (
            "default = 'x'\n[[rule]]\nreply = 'y'\nturn = -1",
            (4, 8),
            "invalid value: integer `-1`, expected u32",
        ),
        ("default = 'x'\n[[rule]]\nreply = 'y'\ncontains = ''", (4, 12), "`contains` is empty"),
        ("default = 'ä' '", (1, 15), ""),
        ("context-tokens = 0\ndefault = 'x'", (1, 18), "`context-tokens` must be at least 1"),
        ("default = '{price}'", (1, 11), "`default` has an unknown placeholder at `{price}`"),
        ("default = 'x}'", (1, 11), "`default` has an unknown placeholder at `}`"),
        ("default = '{'", (1, 11), "`default` has an unknown placeholder at `{`"),
        (&long, (2, 11), "`default` is longer than 16384 bytes"),
        (&many, (2 + 2 * RULES_MAX, 1), "more than 1024 rules"),
        (&"\n".repeat(SCRIPT_BYTES_MAX + 1), (SCRIPT_BYTES_MAX + 1, 1), "longer than"),
    ];
    for (script, position, message) in cases {
        let start: String = script.chars().take(60).collect();
        let error = ScriptedModel::parse("small", script).expect_err(&start);
        assert_eq!((error.line, error.column), position, "{start}: {error}");
        assert!(error.message.starts_with(message), "{start}: {error}");
        assert!(error.to_string().starts_with("script of model `small`, line "), "{error}");
    }
}

#[test]
fn a_model_needs_a_name_that_requests_can_carry() {
    for name in [String::new(), "x".repeat(65)] {
        let error = ScriptedModel::parse(&name, "default = 'x'").expect_err("a bad name");
        assert_eq!(error.message, "a model's name has 1 to 64 bytes");
    }
}
