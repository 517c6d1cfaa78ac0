//! A model that answers from a table: deterministic, for tests and dry runs.
//!
//! A script is TOML. Rules are tried in order and the first that fits answers; if none does,
//! the default reply answers:
//!
//! ```toml
//! context-tokens = 4096            # of prompt and reply together; may be left out
//! default = "Talk: No.\nAction: [REJECT]"
//!
//! [[rule]]
//! role = "user"                    # who said the last message
//! contains = "final offer"         # anywhere in the last message, case-sensitive
//! turn = 3                         # how many assistant messages came before, from 0
//! reply = "Turn {turn}: you said `{last}`. Action: [DEAL]"
//! ```
//!
//! A rule needs a reply, at most [`REPLY_BYTES_MAX`] bytes as written and as sent: what a
//! placeholder adds beyond it is cut. Each condition may be left out. In replies `{turn}` stands
//! for the number of assistant messages before, `{last}` for the last message and `{model}` for
//! the model's name; `{{` and `}}` are braces. Sampling, grammar and call key have no effect: what
//! is replied stands in the script. Tokens are counted as in [`crate::tokens`], plus one for each
//! message of a prompt.

use std::fmt;

use serde::Deserialize;
use sha2::{Digest, Sha256};
use toml::Spanned;

use crate::model::{
    Completion, FinishReason, LanguageModel, ModelError, ModelInfo, REPLY_BYTES_MAX,
};
use crate::request::{ChatRole, MODEL_NAME_BYTES_MAX, Request};
use crate::tokens;

/// Longest script in bytes.
pub const SCRIPT_BYTES_MAX: usize = 1 << 20;
/// Most rules of a script.
pub const RULES_MAX: usize = 1_024;
/// The context of a script that names none, in tokens.
pub const CONTEXT_TOKENS_DEFAULT: u32 = 32_768;

/// What a scripted model says of its engine.
const ENGINE: &str = "engine=script";

/// A model that answers from a table.
#[derive(Clone, Debug)]
pub struct ScriptedModel {
    info: ModelInfo,
    rules: Vec<Rule>,
    default: Template,
}

#[derive(Clone, Debug)]
struct Rule {
    role: Option<ChatRole>,
    contains: Option<String>,
    turn: Option<usize>,
    reply: Template,
}

/// Text with placeholders.
#[derive(Clone, Debug)]
struct Template(Vec<Part>);

#[derive(Clone, Debug)]
enum Part {
    Text(String),
    Turn,
    Last,
    Model,
}

/// A script that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptError {
    /// The model's name.
    pub model: String,
    /// Line of the mistake, from 1.
    pub line: usize,
    /// Column of the mistake in characters, from 1.
    pub column: usize,
    /// What is wrong, with the key or the value.
    pub message: String,
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ScriptError { model, line, column, message } = self;
        write!(f, "script of model `{model}`, line {line}, column {column}: {message}")
    }
}

impl std::error::Error for ScriptError {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ScriptFile {
    context_tokens: Option<Spanned<u32>>,
    default: Spanned<String>,
    #[serde(default, rename = "rule")]
    rules: Vec<Spanned<RuleFile>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleFile {
    role: Option<RoleName>,
    contains: Option<Spanned<String>>,
    turn: Option<u32>,
    reply: Spanned<String>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum RoleName {
    System,
    User,
    Assistant,
}

/// A mistake and the byte of the script at which it stands.
type Mistake = (usize, String);

impl ScriptedModel {
    /// Reads a script.
    ///
    /// # Errors
    /// Text that is not TOML, an unknown or missing key, an unknown placeholder, a value beyond
    /// its limit: with line, column and what is wrong.
    pub fn parse(name: &str, toml_text: &str) -> Result<ScriptedModel, ScriptError> {
        ScriptedModel::read(name, toml_text).map_err(|(at, message)| {
            let before = &toml_text[..toml_text.floor_char_boundary(at)];
            let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
            ScriptError {
                model: name.to_owned(),
                line: before.matches('\n').count() + 1,
                column: before[line_start..].chars().count() + 1,
                message,
            }
        })
    }

    fn read(name: &str, text: &str) -> Result<ScriptedModel, Mistake> {
        if name.is_empty() || name.len() > MODEL_NAME_BYTES_MAX {
            return Err((0, format!("a model's name has 1 to {MODEL_NAME_BYTES_MAX} bytes")));
        }
        if text.len() > SCRIPT_BYTES_MAX {
            return Err((SCRIPT_BYTES_MAX, format!("longer than {SCRIPT_BYTES_MAX} bytes")));
        }
        let file: ScriptFile = toml::from_str(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            (at, error.message().replace('\n', "; "))
        })?;
        if let Some(rule) = file.rules.get(RULES_MAX) {
            return Err((rule.span().start, format!("more than {RULES_MAX} rules")));
        }
        let context_tokens = match &file.context_tokens {
            Some(tokens) if *tokens.get_ref() == 0 => {
                return Err((
                    tokens.span().start,
                    "`context-tokens` must be at least 1".to_owned(),
                ));
            }
            Some(tokens) => *tokens.get_ref(),
            None => CONTEXT_TOKENS_DEFAULT,
        };
        Ok(ScriptedModel {
            info: ModelInfo {
                name: name.to_owned(),
                context_tokens,
                sha256: Sha256::digest(text.as_bytes()).into(),
                engine: ENGINE.to_owned(),
            },
            rules: file
                .rules
                .into_iter()
                .map(|rule| Rule::read(rule.into_inner()))
                .collect::<Result<_, _>>()?,
            default: Template::read("default", &file.default)?,
        })
    }
}

impl Rule {
    fn read(file: RuleFile) -> Result<Rule, Mistake> {
        if let Some(contains) = &file.contains
            && contains.get_ref().is_empty()
        {
            let message = "`contains` is empty and would fit every message: leave it out";
            return Err((contains.span().start, message.to_owned()));
        }
        Ok(Rule {
            role: file.role.map(|role| match role {
                RoleName::System => ChatRole::System,
                RoleName::User => ChatRole::User,
                RoleName::Assistant => ChatRole::Assistant,
            }),
            contains: file.contains.map(Spanned::into_inner),
            turn: file.turn.map(|turn| turn as usize),
            reply: Template::read("reply", &file.reply)?,
        })
    }

    fn fits(&self, request: &Request, turn: usize) -> bool {
        let Some(last) = request.messages.last() else {
            return false;
        };
        self.role.is_none_or(|role| role == last.role)
            && self.contains.as_ref().is_none_or(|text| last.text.contains(text))
            && self.turn.is_none_or(|number| number == turn)
    }
}

impl Template {
    fn read(key: &str, text: &Spanned<String>) -> Result<Template, Mistake> {
        let mistake = |message: String| (text.span().start, format!("`{key}` {message}"));
        let mut rest = text.get_ref().as_str();
        if rest.len() > REPLY_BYTES_MAX {
            return Err(mistake(format!("is longer than {REPLY_BYTES_MAX} bytes")));
        }
        let mut parts = Vec::new();
        while let Some(at) = rest.find(['{', '}']) {
            parts.push(Part::Text(rest[..at].to_owned()));
            let placeholders = [
                ("{{", Part::Text("{".to_owned())),
                ("}}", Part::Text("}".to_owned())),
                ("{turn}", Part::Turn),
                ("{last}", Part::Last),
                ("{model}", Part::Model),
            ];
            let found = placeholders.into_iter().find(|(sign, _)| rest[at..].starts_with(sign));
            let Some((sign, part)) = found else {
                let near: String = rest[at..].chars().take(16).collect();
                let hint = "known are {turn}, {last}, {model}, {{ and }}";
                let near = near.escape_debug();
                return Err(mistake(format!("has an unknown placeholder at `{near}`: {hint}")));
            };
            parts.push(part);
            rest = &rest[at + sign.len()..];
        }
        parts.push(Part::Text(rest.to_owned()));
        Ok(Template(parts))
    }

    /// Fills the placeholders in; returns at most [`REPLY_BYTES_MAX`] bytes, and whether all
    /// of the reply is there.
    fn fill(&self, model: &str, turn: usize, last: &str) -> (String, bool) {
        let mut text = String::new();
        for part in &self.0 {
            let number;
            let piece = match part {
                Part::Text(piece) => piece,
                Part::Turn => {
                    number = turn.to_string();
                    &number
                }
                Part::Last => last,
                Part::Model => model,
            };
            let room = REPLY_BYTES_MAX - text.len();
            text.push_str(&piece[..piece.floor_char_boundary(room)]);
            if piece.len() > room {
                return (text, false);
            }
        }
        (text, true)
    }
}

impl LanguageModel for ScriptedModel {
    fn info(&self) -> ModelInfo {
        self.info.clone()
    }

    fn count_prompt(&self, request: &Request) -> Result<Option<u32>, ModelError> {
        request.check()?;
        if request.model != self.info.name {
            return Err(ModelError::NotSupported);
        }
        Ok(Some(count_prompt(request)))
    }

    fn complete(&self, request: &Request) -> Result<Completion, ModelError> {
        request.check()?;
        if request.model != self.info.name {
            return Err(ModelError::NotSupported);
        }
        let input_tokens = count_prompt(request);
        let context = self.info.context_tokens;
        if input_tokens >= context {
            let detail = format!("prompt has {input_tokens} tokens, context is {context}");
            return Err(ModelError::InvalidInput(detail));
        }
        let before = &request.messages;
        let turn = before.iter().filter(|message| message.role == ChatRole::Assistant).count();
        let rule = self.rules.iter().find(|rule| rule.fits(request, turn));
        let template = rule.map_or(&self.default, |rule| &rule.reply);
        let last = before.last().map_or("", |message| message.text.as_str());
        let (full, whole) = template.fill(&self.info.name, turn, last);

        let stop = request.stop.iter().filter_map(|stop| full.find(stop.as_str())).min();
        let until_stop = &full[..stop.unwrap_or(full.len())];
        let room = request.max_tokens.min(context - input_tokens);
        let too_long = tokens::count(until_stop) > room;
        let text = if too_long { tokens::cut(until_stop, room) } else { until_stop };
        let ended = !too_long && (whole || stop.is_some());
        Ok(Completion {
            text: text.to_owned(),
            finish_reason: if ended { FinishReason::Stop } else { FinishReason::Length },
            input_tokens,
            output_tokens: tokens::count(text),
            tokens: None,
        })
    }
}

fn count_prompt(request: &Request) -> u32 {
    let counts = request.messages.iter().map(|message| tokens::count(&message.text));
    counts.fold(0, |total: u32, count| total.saturating_add(count).saturating_add(1))
}
