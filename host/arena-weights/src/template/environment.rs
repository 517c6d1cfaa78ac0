//! What a chat template finds around it: Jinja as `transformers` sets it up, with a budget.
//!
//! Source: `transformers`, `utils/chat_template_utils.py`, `_compile_jinja_template`. Left out
//! on purpose: `strftime_now`, since a prompt must be the same on any day (templates that ask
//! first whether it is there have a date of their own), and filters that would put a content in
//! quotes or escapes, since contents are put in afterwards.

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Value, ValueKind};
use minijinja::{AutoEscape, Environment, Error, ErrorKind, Output, State, escape_formatter};
use minijinja_contrib::pycompat;

use crate::template::{FUEL, guard};

/// What the only template is called.
pub(super) const NAME: &str = "chat";

/// Filters that would have to act on what was said, and those that put lists into lists.
const REMOVED_FILTERS: [&str; 11] = [
    "tojson",
    "urlencode",
    "escape",
    "e",
    "pprint",
    "format",
    "batch",
    "chain",
    "groupby",
    "slice",
    "zip",
];
/// The longest list that a template keeps.
const LIST_MAX: usize = 4096;
/// How deep loops, conditions and macros nest: each takes part of the thread's stack.
const RECURSION_MAX: usize = 100;
/// Bytes that one unit of fuel pays for. Source: minijinja, `Environment::set_fuel`.
const FUEL_BYTES: usize = 64;

/// Compiles a template in an environment of its own.
pub(super) fn new(source: &str) -> Result<Environment<'static>, Error> {
    let mut environment = Environment::new();
    let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?;
    environment.set_syntax(syntax);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_fuel(Some(FUEL));
    environment.set_recursion_limit(RECURSION_MAX);
    environment.set_unknown_method_callback(method);
    for filter in REMOVED_FILTERS {
        environment.remove_filter(filter);
    }
    environment.remove_global("dict");
    environment.remove_global("debug");
    environment.set_formatter(write);
    // To the engine, nothing is an empty list; to Python, it is none.
    environment.add_test("iterable", |value: &Value| !value.is_none() && value.try_iter().is_ok());
    environment.add_filter("join", join);
    environment.add_function(guard::KEEP, keep);
    environment.add_function("raise_exception", |message: String| -> Result<Value, Error> {
        Err(Error::new(ErrorKind::InvalidOperation, message))
    });
    let source = guard::guarded(&without_generation_tags(source))
        .map_err(|what| Error::new(ErrorKind::SyntaxError, what))?;
    environment.add_template_owned(NAME, source)?;
    Ok(environment)
}

/// Writes texts and numbers. Lists and maps have no written form that a model was trained on.
fn write(out: &mut Output, state: &mut State, value: &Value) -> Result<(), Error> {
    match value.kind() {
        ValueKind::Undefined | ValueKind::String | ValueKind::Number | ValueKind::Bool => {
            escape_formatter(out, state, value)
        }
        // As Python writes it.
        ValueKind::None => out.write_str("None").map_err(Error::from),
        kind => Err(Error::new(ErrorKind::InvalidOperation, format!("cannot write a {kind}"))),
    }
}

/// Checks a value that is kept: a list must be short.
fn keep(value: Value) -> Result<Value, Error> {
    if !matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable) {
        return Ok(value);
    }
    let most = value.len().unwrap_or(LIST_MAX + 1);
    let short = most <= LIST_MAX || value.try_iter()?.take(LIST_MAX + 1).count() <= LIST_MAX;
    if !short {
        let detail = format!("a list of more than {LIST_MAX} is too long");
        return Err(Error::new(ErrorKind::InvalidOperation, detail));
    }
    // Lists that are put together are only noted as such until they are read: read it now.
    value.try_iter().map(|items| items.collect::<Vec<_>>().into())
}

/// Python's methods, but for those that can write more than they pay for.
fn method(state: &mut State, value: &Value, name: &str, args: &[Value]) -> Result<Value, Error> {
    match (name, value.kind(), args) {
        ("join", ValueKind::String, [items]) => {
            join(state, items.clone(), value.as_str().map(str::to_string))
        }
        ("join" | "format", ValueKind::String, _) => Err(Error::from(ErrorKind::UnknownMethod)),
        _ => pycompat::unknown_method_callback(state, value, name, args),
    }
}

/// Joins texts, and pays for every byte before it is written.
fn join(state: &State, items: Value, separator: Option<String>) -> Result<Value, Error> {
    let separator = separator.unwrap_or_default();
    let mut joined = String::new();
    for (index, item) in items.try_iter()?.enumerate() {
        let item = item.as_str().ok_or_else(|| {
            Error::new(ErrorKind::InvalidOperation, format!("cannot join {}", item.kind()))
        })?;
        state.consume_fuel(1 + ((separator.len() + item.len()) / FUEL_BYTES) as u64)?;
        if index > 0 {
            joined.push_str(&separator);
        }
        joined.push_str(item);
    }
    Ok(Value::from(joined))
}

/// Makes `{% generation %}`, with which training marks what the assistant said, a condition
/// that always holds: the text is the same, and the engine knows no tags of others.
fn without_generation_tags(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some((before, tag)) = rest.split_once("{%") {
        out.push_str(before);
        out.push_str("{%");
        rest = tag;
        let Some((inner, _)) = tag.split_once("%}") else { break };
        let keyword = inner.trim_matches(['-', '+']).trim();
        let replacement = match keyword {
            "generation" => "if true",
            "endgeneration" => "endif",
            _ => continue,
        };
        out.push_str(&inner.replacen(keyword, &format!(" {replacement} "), 1));
        rest = &tag[inner.len()..];
    }
    out + rest
}
