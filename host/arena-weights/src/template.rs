//! Turns messages into a prompt, by the model's own chat template.
//!
//! A template is a program from strangers, and so is what is said in messages. The program runs
//! on fuel, which pays for steps, bytes and items alike, and reads nothing but its arguments: no
//! file, no clock. It never sees what was said: it places a mark for every message, and the
//! content is put there afterwards, as a piece of its own. So `<|im_end|>` in a message is text,
//! and no message can change what the template does.
//!
//! A template that trims contents trims them here, too. One that does anything else to them,
//! leaves one out, or rewrites what came before a reply is refused: a dialogue must grow at its
//! end, since that is what is cached, recorded and scored.
//!
//! Not here: making tokens of pieces (`tokenizer`).

mod environment;
mod guard;

use minijinja::value::Value;
use minijinja::{Environment, context};

use crate::error::{WeightsError, shown};
use crate::tokenizer::TEXT_BYTES_MAX;

/// The longest template.
pub const TEMPLATE_BYTES_MAX: usize = 64 << 10;
/// The most messages of a prompt.
pub const MESSAGES_MAX: usize = 1024;
/// The longest name of a role.
pub const ROLE_BYTES_MAX: usize = 32;
/// The longest prompt, before contents are put in.
pub const OUTPUT_BYTES_MAX: usize = 1 << 20;
/// What one rendering may cost: a step, 64 bytes or two items are 1 each. A long dialogue in
/// the largest template of the supported families takes a tenth of it.
pub const FUEL: u64 = 300_000;

/// Begins and ends the place of a content. From the last private-use plane, which no template
/// has a use for; one that writes them itself is refused.
const OPEN: char = '\u{10f0a1}';
const CLOSE: char = '\u{10f0a2}';
/// Inside, so that a template which changes case is noticed.
const CASES: &str = "cC";

/// A part of a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Its text.
    pub text: String,
    /// The index of the message whose content this is; the template's own text has none.
    pub of_message: Option<usize>,
}

/// A message to be rendered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChatMessage<'a> {
    /// Such as `system`, `user`, `assistant`: lower-case letters and `_`.
    pub role: &'a str,
    /// What was said; the template never sees it.
    pub content: &'a str,
}

/// A model's chat template.
#[derive(Debug)]
pub struct ChatTemplate {
    environment: Environment<'static>,
    bos: String,
    eos: String,
}

impl ChatTemplate {
    /// Compiles a template. `bos` and `eos` are what it knows as `bos_token` and `eos_token`;
    /// empty where there is none.
    ///
    /// # Errors
    /// [`WeightsError::Template`] says what is wrong and where.
    pub fn new(source: &str, bos: &str, eos: &str) -> Result<ChatTemplate, WeightsError> {
        if source.len() > TEMPLATE_BYTES_MAX {
            let detail = format!("its {} bytes are more than {TEMPLATE_BYTES_MAX}", source.len());
            return Err(WeightsError::Template { detail });
        }
        let environment = environment::new(source).map_err(|error| refused(&error))?;
        Ok(ChatTemplate { environment, bos: bos.into(), eos: eos.into() })
    }

    /// Renders messages into the pieces of a prompt, in order; no piece is empty but contents.
    ///
    /// # Errors
    /// [`WeightsError::Template`] if the template fails, refuses the messages, runs out of fuel,
    /// or does to them what this module refuses. [`WeightsError::TextTooLong`].
    pub fn pieces(
        &self,
        messages: &[ChatMessage<'_>],
        add_generation_prompt: bool,
    ) -> Result<Vec<Piece>, WeightsError> {
        check(messages)?;
        let places = (0..messages.len()).map(place).collect::<Vec<_>>();
        let rendered = self.render(messages, &places, add_generation_prompt)?;
        let template = parse(&rendered, messages.len())?;
        self.check_growth(messages, &places, &rendered)?;
        let contents: Vec<Content<'_>> =
            messages.iter().map(|message| Content::of(message.content)).collect();
        if contents.iter().all(|content| content.lead.is_empty() && content.trail.is_empty()) {
            return Ok(assemble(&template, |message| messages[message].content.into()));
        }
        // Whether the template trims shows in a second rendering, where the space is real.
        let spaced: Vec<String> = contents
            .iter()
            .zip(&places)
            .map(|(content, place)| format!("{}{place}{}", content.lead, content.trail))
            .collect();
        let rendered = self.render(messages, &spaced, add_generation_prompt)?;
        let spaced = parse(&rendered, messages.len())?;
        let kept = kept_spaces(&template, &spaced, &contents)?;
        Ok(assemble(&template, |message| {
            let Content { lead, core, trail } = contents[message];
            let (before, after) = kept[message];
            format!("{}{core}{}", &lead[lead.len() - before..], &trail[..after])
        }))
    }

    /// Checks that the last reply follows what it was a reply to.
    fn check_growth(
        &self,
        messages: &[ChatMessage<'_>],
        places: &[String],
        rendered: &str,
    ) -> Result<(), WeightsError> {
        let last = messages.iter().rposition(|message| message.role == "assistant");
        let Some(reply) = last.filter(|&reply| reply > 0) else { return Ok(()) };
        let prompt = self.render(&messages[..reply], places, true)?;
        let rest = rendered.strip_prefix(&prompt);
        if rest.is_some_and(|rest| rest.starts_with(&places[reply])) {
            return Ok(());
        }
        let detail = format!("it does not put reply {reply} behind the prompt that it answers");
        Err(WeightsError::Template { detail })
    }

    fn render(
        &self,
        messages: &[ChatMessage<'_>],
        contents: &[String],
        add_generation_prompt: bool,
    ) -> Result<String, WeightsError> {
        let messages = messages.iter().zip(contents);
        let messages: Vec<Value> = messages
            .map(|(message, content)| context! { role => message.role, content => content })
            .collect();
        let token = |written: &str| match written {
            "" => Value::UNDEFINED,
            written => Value::from(written),
        };
        let context = context! {
            messages => messages,
            add_generation_prompt => add_generation_prompt,
            bos_token => token(&self.bos),
            eos_token => token(&self.eos),
            tools => (),
            documents => (),
        };
        let template = self.environment.get_template(environment::NAME);
        let rendered = template.and_then(|template| template.render(context));
        let rendered = rendered.map_err(|error| refused(&error))?;
        if rendered.len() > OUTPUT_BYTES_MAX {
            let detail =
                format!("it writes {} bytes, more than {OUTPUT_BYTES_MAX}", rendered.len());
            return Err(WeightsError::Template { detail });
        }
        Ok(rendered)
    }
}

fn check(messages: &[ChatMessage<'_>]) -> Result<(), WeightsError> {
    if messages.len() > MESSAGES_MAX {
        let detail = format!("{} messages are more than {MESSAGES_MAX}", messages.len());
        return Err(WeightsError::Template { detail });
    }
    for message in messages {
        let sound = message.role.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        if !sound || message.role.is_empty() || message.role.len() > ROLE_BYTES_MAX {
            let detail = format!("`{}` is no role", shown(message.role));
            return Err(WeightsError::Template { detail });
        }
    }
    let bytes = messages.iter().map(|message| message.content.len()).sum();
    if bytes > TEXT_BYTES_MAX {
        return Err(WeightsError::TextTooLong { bytes, most: TEXT_BYTES_MAX });
    }
    Ok(())
}

/// Stands for a content while the template runs.
fn place(message: usize) -> String {
    format!("{OPEN}{CASES}{message}{CLOSE}")
}

/// A rendered prompt: `texts[i]`, then the content of `messages[i]`, and so on; one text more
/// than messages.
struct Rendered<'a> {
    texts: Vec<&'a str>,
    messages: Vec<usize>,
}

/// Finds the places of contents. Every message must have exactly one.
fn parse(rendered: &str, message_count: usize) -> Result<Rendered<'_>, WeightsError> {
    let altered = || WeightsError::Template { detail: "it alters the contents of messages".into() };
    let mut parts = rendered.split(OPEN);
    let mut texts = vec![parts.next().unwrap_or_default()];
    let mut messages = Vec::new();
    for part in parts {
        let (place, text) = part.split_once(CLOSE).ok_or_else(altered)?;
        let number = place.strip_prefix(CASES).ok_or_else(altered)?;
        let message: usize = number.parse().map_err(|_| altered())?;
        if message >= message_count || number != message.to_string() {
            return Err(altered());
        }
        texts.push(text);
        messages.push(message);
    }
    if texts.iter().any(|text| text.contains(CLOSE)) {
        return Err(altered());
    }
    let mut counts = vec![0usize; message_count];
    messages.iter().for_each(|&message| counts[message] += 1);
    match counts.iter().position(|&count| count != 1) {
        None => Ok(Rendered { texts, messages }),
        Some(message) => {
            let detail = format!("it writes message {message} {} times", counts[message]);
            Err(WeightsError::Template { detail })
        }
    }
}

fn assemble(rendered: &Rendered<'_>, content: impl Fn(usize) -> String) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for (index, text) in rendered.texts.iter().enumerate() {
        if !text.is_empty() {
            pieces.push(Piece { text: (*text).into(), of_message: None });
        }
        if let Some(&message) = rendered.messages.get(index) {
            pieces.push(Piece { text: content(message), of_message: Some(message) });
        }
    }
    pieces
}

/// A content and the space around it.
#[derive(Clone, Copy)]
struct Content<'a> {
    lead: &'a str,
    core: &'a str,
    trail: &'a str,
}

impl Content<'_> {
    fn of(content: &str) -> Content<'_> {
        let start = content.len() - content.trim_start().len();
        let core = content.trim();
        let (lead, rest) = content.split_at(start);
        Content { lead, core, trail: &rest[core.len()..] }
    }
}

/// Returns how many bytes of the space before and behind each content the template keeps, by
/// comparing the texts between contents without and with that space.
fn kept_spaces(
    bare: &Rendered<'_>,
    spaced: &Rendered<'_>,
    contents: &[Content<'_>],
) -> Result<Vec<(usize, usize)>, WeightsError> {
    let altered = || WeightsError::Template { detail: "it alters the space in messages".into() };
    if bare.messages != spaced.messages {
        return Err(altered());
    }
    let mut kept = vec![(0, 0); contents.len()];
    for (index, (bare_text, spaced_text)) in bare.texts.iter().zip(&spaced.texts).enumerate() {
        let before = index.checked_sub(1).map(|index| bare.messages[index]);
        let behind = bare.messages.get(index).copied();
        let trail = before.map_or("", |message| contents[message].trail);
        let lead = behind.map_or("", |message| contents[message].lead);
        let (after, start) = around(bare_text, spaced_text, trail, lead).ok_or_else(altered)?;
        if let Some(message) = before {
            kept[message].1 = after;
        }
        if let Some(message) = behind {
            kept[message].0 = start;
        }
    }
    Ok(kept)
}

/// Finds `(a, b)` so that `spaced` is the first `a` bytes of `trail`, `bare`, and the last `b`
/// bytes of `lead`.
fn around(bare: &str, spaced: &str, trail: &str, lead: &str) -> Option<(usize, usize)> {
    let more = spaced.len().checked_sub(bare.len())?;
    (0..=more.min(trail.len())).rev().find_map(|after| {
        let start = more - after;
        let head = trail.get(..after)?;
        let tail = lead.get(lead.len().checked_sub(start)?..)?;
        let middle = spaced.strip_prefix(head)?.strip_suffix(tail)?;
        (middle == bare).then_some((after, start))
    })
}

fn refused(error: &minijinja::Error) -> WeightsError {
    WeightsError::Template { detail: shown(&error.to_string()) }
}
