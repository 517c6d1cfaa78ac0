//! Chat templates: what they make of messages, and what they cannot do.

use arena_weights::error::WeightsError;
use arena_weights::template::{ChatMessage, ChatTemplate, Piece};
use proptest::prelude::*;
use serde_json::Value;

/// Written by `fixtures/templates.py`.
const PROMPTS: &str = include_str!("../fixtures/templates.json");

fn message<'a>(role: &'a str, content: &'a str) -> ChatMessage<'a> {
    ChatMessage { role, content }
}

fn text(pieces: &[Piece]) -> String {
    pieces.iter().map(|piece| piece.text.as_str()).collect()
}

fn compile(source: &str) -> ChatTemplate {
    ChatTemplate::new(source, "<|begin|>", "<|eot|>").expect("the template is sound")
}

/// Renders one question, which must fail, and says how.
fn failure(source: &str) -> String {
    let template = match ChatTemplate::new(source, "", "") {
        Ok(template) => template,
        Err(error) => return error.to_string(),
    };
    match template.pieces(&[message("user", "Hi")], true) {
        Ok(pieces) => panic!("`{source}` rendered {:?}", text(&pieces)),
        Err(error) => error.to_string(),
    }
}

#[test]
fn prompts_are_those_of_transformers() {
    let fixture: Value = serde_json::from_str(PROMPTS).unwrap();
    let mut compared = 0;
    for row in fixture["prompts"].as_array().unwrap() {
        let name = row["template"].as_str().unwrap();
        let template = compile(fixture["templates"][name].as_str().unwrap());
        let messages: Vec<ChatMessage<'_>> = row["messages"]
            .as_array()
            .unwrap()
            .iter()
            .map(|pair| message(pair[0].as_str().unwrap(), pair[1].as_str().unwrap()))
            .collect();
        let generation = row["add_generation_prompt"].as_bool().unwrap();
        let pieces = template.pieces(&messages, generation);
        // That one writes something behind the dialogue, so no reply could follow its prompt.
        if name == "blocks" && messages.len() > 1 {
            let error = pieces.expect_err("replies are not behind their prompts").to_string();
            assert!(error.contains("does not put reply 1 behind the prompt"), "{error}");
            continue;
        }
        let pieces = pieces.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(text(&pieces), row["prompt"].as_str().unwrap(), "{name}");
        for (index, message) in messages.iter().enumerate() {
            let piece = pieces.iter().find(|piece| piece.of_message == Some(index));
            assert_eq!(piece.unwrap().text.trim(), message.content.trim());
        }
        compared += 1;
    }
    assert_eq!(compared, 26);
}

#[test]
fn a_growing_dialogue_only_grows_at_its_end() {
    let fixture: Value = serde_json::from_str(PROMPTS).unwrap();
    for name in ["chatml", "llama3", "qwen3"] {
        let template = compile(fixture["templates"][name].as_str().unwrap());
        let mut dialogue = vec![message("system", "Buy."), message("user", "Go.")];
        for round in 0..20 {
            let prompt = text(&template.pieces(&dialogue, true).unwrap());
            dialogue.push(message("assistant", "I offer less."));
            dialogue.push(message("user", "No."));
            let next = text(&template.pieces(&dialogue, true).unwrap());
            let reply = next.strip_prefix(&prompt).expect("the prompt is kept");
            assert!(reply.starts_with("I offer less."), "{name}, round {round}");
        }
    }
}

#[test]
fn a_template_never_sees_what_was_said() {
    let spying = "{% for m in messages %}{% if 'secret' in m.content %}SEEN{% endif %}\
                  {{ m.content }}{% endfor %}";
    let pieces = compile(spying).pieces(&[message("user", "the secret")], false).unwrap();
    assert_eq!(text(&pieces), "the secret");
}

#[test]
fn what_is_kept_is_what_was_said_to_be() {
    let source = "{% set a = missing %}{% set b = messages[0:] %}{% set c = {'k': 'v'} %}\
                  {% set d = 'x' if true %}{% set ns = namespace(e=1, f=[2]) %}\
                  {% macro f(p, q=[1, 2]) -%}\n  {{ p }}{{ q | length }}{%- endmacro %}{{ f('p') }}\
                  {%- set ns.e = ns.e + ns.f[0] -%}\n{% set g %}{{ d * 1 }}{% endset %}\
                  [{{ a }}{{ b | length }}{{ c.k }}{{ d }}{{ ns.e }}\
                  {{ none }}{{ true }}{{ tools is iterable }}]\
                  {{ messages[0].content }}";
    let source = source.replace("d * 1", "'z' * 2");
    let pieces = compile(&source).pieces(&[message("user", "Hi")], false).unwrap();
    assert_eq!(text(&pieces), "p2[1vx3NoneTrueFalse]Hi");
}

#[test]
fn a_template_that_alters_or_loses_what_was_said_is_refused() {
    for (body, said) in [
        ("{{ m.content | upper }}", "alters the contents"),
        ("{{ m.content | title }}", "alters the contents"),
        ("{{ m.content[1:] }}", "alters the contents"),
        ("{{ m.content[:2] }}", "alters the contents"),
        ("{{ m.content | tojson }}", "unknown filter"),
        ("{{ m.content | e }}", "unknown filter"),
        ("{{ m.content | list | join('') | replace('0', '7') }}", "alters the contents"),
        ("{{ m.content }}{{ m.content }}", "writes message 0 2 times"),
        ("{{ m.role }}", "writes message 0 0 times"),
        ("\u{10f0a1}cC0\u{10f0a2}{{ m.content }}", "writes message 0 2 times"),
        ("{{ m.content }}\u{10f0a2}", "alters the contents"),
        ("\u{10f0a1}cC00\u{10f0a2}", "alters the contents"),
        ("\u{10f0a1}cC7\u{10f0a2}", "alters the contents"),
    ] {
        let error = failure(&format!("{{% for m in messages %}}{body}{{% endfor %}}"));
        assert!(error.contains(said), "{body}: {error}");
    }
}

#[test]
fn a_template_that_fails_says_why() {
    for (source, said) in [
        ("{{ raise_exception('roles must alternate') }}", "roles must alternate"),
        ("{{ strftime_now('%Y') }}", "strftime_now"),
        ("{% include 'other' %}", "include"),
        ("{% for m in messages %}", "chat"),
        ("{{ messages[0].no.such }}", "undefined"),
        ("{{ '{:>9}'.format(1) }}", "format"),
    ] {
        let error = failure(source);
        assert!(error.starts_with("chat template: ") && error.contains(said), "{source}: {error}");
    }
    let error = ChatTemplate::new(&"x".repeat(70_000), "", "").unwrap_err().to_string();
    assert!(error.contains("70000 bytes are more than 65536"), "{error}");
}

/// Macros `f0` to `f{count}`, each of which calls the next with a sum of so many of its argument,
/// and a call of `f{first}`.
fn macros_in_a_row(count: usize, width: usize, first: usize) -> String {
    let sum = vec!["a"; width].join(" + ");
    let one =
        |n: usize| format!("{{% macro f{n}(a) %}}{{{{ f{}({sum}) }}}}{{% endmacro %}}", n + 1);
    let last = format!("{{% macro f{count}(a) %}}{{{{ '' ~ a }}}}{{% endmacro %}}");
    (0..count).map(one).collect::<String>() + &last + &format!("{{{{ f{first}(['x']) }}}}")
}

/// Programs that would take forever, or all memory there is.
fn bombs() -> Vec<(&'static str, String)> {
    let again = |start: &str, step: &str, end: &str| format!("{start}{}{end}", step.repeat(60));
    let ns = "{% set ns = namespace(s='0123456789') %}";
    let sixty = "{% for i in range(60) %}";
    vec![
        (
            "loops",
            "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}".into(),
        ),
        ("output", "{% for i in range(99999) %}{{ 'x' * 1000 }}{% endfor %}".into()),
        ("doubling", format!("{ns}{sixty}{{% set ns.s = ns.s ~ ns.s %}}{{% endfor %}}")),
        ("adding", format!("{ns}{sixty}{{% set ns.s = ns.s + ns.s %}}{{% endfor %}}")),
        ("capturing", again("{% set a = 'x' %}", "{% set a %}{{ a }}{{ a }}{% endset %}", "")),
        ("lists in lists", again("{% set a = ['x'] %}", "{% set a = [a, a] %}", "{{ '' ~ a }}")),
        ("tuples", again("{% set a = 'x' %}", "{% set a = (a, a) %}", "{{ '' ~ a }}")),
        ("bare tuples", again("{% set a = 'x' %}", "{% set a = a, a %}", "{{ '' ~ a }}")),
        ("dicts", again("{% set a = 'x' %}", "{% set a = dict(a=a, b=a) %}", "{{ '' ~ a }}")),
        ("maps", again("{% set a = 'x' %}", "{% set a = {'a': a} %}", "{{ '' ~ a }}")),
        ("zips", again("{% set a = ['x'] %}", "{% set a = a | zip(a) | list %}", "{{ '' ~ a }}")),
        ("list + list", again("{% set a = ['x'] %}", "{% set a = a + a %}", "{{ '' ~ a }}")),
        (
            "list + list in ns",
            format!(
                "{{% set ns = namespace(s=[1]) %}}{sixty}\
            {{% set ns.s = ns.s + ns.s %}}{{% endfor %}}{{{{ ns.s | length }}}}"
            ),
        ),
        (
            "namespace in itself",
            "{% set ns = namespace() %}{% set ns.a = ns %}{{ '' ~ ns }}".into(),
        ),
        ("namespace alias", "{% set n = namespace %}{% set ns = n() %}{% set ns.a = ns %}".into()),
        (
            "namespace passed",
            "{% set ns = namespace() %}{% macro f(x) %}{% endmacro %}{{ f(ns) }}".into(),
        ),
        ("repeated text", "{{ 'x' * 99999999 }}".into()),
        ("repeated list", "{{ '' ~ ['x'] * 99999999 }}".into()),
        ("joined by a filter", "{{ ('x' * 99999).split('') | join('y' * 99999) }}".into()),
        ("joined by a method", "{{ ('y' * 99999).join(('x' * 99999).split('')) }}".into()),
        ("replaced by a method", "{{ ('x' * 99999).replace('x', 'x' * 99999) }}".into()),
        ("replaced by a filter", "{{ ('x' * 99999) | replace('x', 'x' * 99999) }}".into()),
        ("indented", "{{ 'x' | indent(999999999, true) }}".into()),
        ("formatted", "{{ '%999999999d' | format(1) }}".into()),
        ("long range", "{{ range(999999999) | list }}".into()),
        ("list written", "{{ [1, 2] }}".into()),
        ("doubling macros", "{% macro f(a) %}{{ f(a + a) }}{% endmacro %}{{ f([1, 2]) }}".into()),
        (
            "doubling loops",
            "{% for m in [1] recursive %}{{ loop(messages + messages) }}{% endfor %}".into(),
        ),
        ("raw", "{% raw %}{{ x }}{% endraw %}".into()),
        ("with", again("{% set a = ['x'] %}", "{% with a = a + a %}", "{{ '' ~ a }}")),
        ("targets in brackets", again("{% set a = ['x'] %}", "{% set ((a)) = a + a %}", "{{ a }}")),
        ("macros in a row", macros_in_a_row(90, 2, 70)),
        ("macros in a row, wide", macros_in_a_row(9, 30, 0)),
        ("autoescape", "{% autoescape 'json' %}{{ [1] }}{% endautoescape %}".into()),
        ("own check", "{% set a = __keep([1]) %}".into()),
    ]
}

#[test]
fn bombs_are_refused_or_run_out_of_fuel() {
    for (what, bomb) in bombs() {
        let error = failure(&bomb);
        let stopped = [
            "fuel",
            "is not supported",
            "too many",
            "too long",
            "too large",
            "limit",
            "no constant",
            "a tuple",
            "multiplied",
            "namespace",
            "unknown f",
            "cannot write",
            "`raw`",
            "not its to use",
            "undefined",
            "larger than",
        ];
        assert!(stopped.iter().any(|stop| error.contains(stop)), "{what}: {error}");
    }
}

#[test]
fn recursion_ends_before_the_stack_does() {
    let tag = |unit: &str, count: usize, end: &str| {
        format!("{{% set a = {}{end} %}}", unit.repeat(count))
    };
    let mut sources = vec![
        "{% macro f(n) %}{{ f(n + 1) }}{% endmacro %}{{ f(0) }}".to_string(),
        "{% for m in [[[]]] recursive %}{{ loop([[1]]) }}{% endfor %}".to_string(),
        "{% if true %}".repeat(2000) + &"{% endif %}".repeat(2000),
        "{% if false %}".to_string() + &"{% elif false %}".repeat(2000) + "{% endif %}",
        "{% if false %}".to_string() + &"{% elif false %}".repeat(128) + "{% endif %}{{ f() }}",
    ];
    for (unit, end) in [
        ("not ", "1"),
        ("-", "1"),
        ("1 - ", "1"),
        ("1 + ", "1"),
        ("1 and ", "1"),
        ("1 == ", "1"),
        ("1 ** ", "1"),
        ("1 if 1 else ", "1"),
        ("(", "1"),
        ("[", "1"),
    ] {
        let words = unit.split_whitespace().count();
        sources.extend([15_000 / unit.len(), 500 / words, 30].map(|count| tag(unit, count, end)));
    }
    for unit in ["|trim", ".a", "[0]", "()", " is defined", ".a()"] {
        sources.extend([15_000 / unit.len(), 100].map(|count| tag("'x'", 1, &unit.repeat(count))));
    }
    for source in sources {
        // On a stack as small as threads have.
        let run = std::thread::Builder::new().stack_size(2 << 20).spawn(move || {
            // What is short enough may well render.
            let Ok(template) = ChatTemplate::new(&source, "", "") else { return };
            let _ = template.pieces(&[message("user", "Hi")], true);
        });
        run.unwrap().join().expect("an error, and no overflow");
    }
}

#[test]
fn messages_that_are_out_of_bounds_are_refused() {
    let template = compile("{% for m in messages %}{{ m.content }}{% endfor %}");
    for role in ["", "User", "user\n", "<|im_end|>", "a-role-that-goes-on-and-on-and-on"] {
        let error = template.pieces(&[message(role, "x")], true).unwrap_err().to_string();
        assert!(error.contains("is no role"), "{error}");
    }
    let many = vec![message("user", "x"); 1025];
    assert!(template.pieces(&many, true).unwrap_err().to_string().contains("more than 1024"));
    let long = "x".repeat(300_000);
    let error = template.pieces(&[message("user", &long)], true).unwrap_err();
    assert!(matches!(error, WeightsError::TextTooLong { bytes: 300_000, .. }));
    assert_eq!(template.pieces(&many[..1024], true).unwrap().len(), 1024);
}

proptest! {
    #[test]
    fn any_content_comes_out_as_it_went_in(content in "\\PC*|[ \\t\\n<|>a-z{}%]*") {
        let template = compile("<|im_start|>{{ messages[0].content }}<|im_end|>");
        let pieces = template.pieces(&[message("user", &content)], false).unwrap();
        prop_assert_eq!(pieces.len(), 3);
        prop_assert_eq!(&pieces[1], &Piece { text: content, of_message: Some(0) });
    }

    #[test]
    fn a_content_that_is_trimmed_is_only_trimmed(content in "[ \\n\u{a0}\u{2003}a]*") {
        let template = compile("a {{ messages[0].content | trim }} a");
        let pieces = template.pieces(&[message("user", &content)], false).unwrap();
        prop_assert_eq!(pieces[1].text.as_str(), content.trim());
    }
}
