//! Reads a language model's answer: Thought, Talk and Action lines become a move and words, or
//! a refusal that says why.
//!
//! ```text
//! Thought: private, never sent
//! Talk: what the other side hears
//! Action: [BUY $250.00]
//! ```
//!
//! The actions are `[BUY $x]` for a buyer and `[SELL $x]` for a seller, `[REJECT]`, `[DEAL]` or
//! `[DEAL $x]`, and `[QUIT]`; the format of arXiv 2604.09855 with the amount behind the tag and a
//! quantity of one in parentheses (`[BUY] $250 (1x kettle)`) is read too. The last Action line
//! counts, and the Thought and Talk before it. Labels may be in any case and may be bold.
//!
//! Nothing is guessed: an amount that people might read in two ways is refused, and so is more
//! than one action in a line. No text makes it panic.

use std::fmt;

use crate::game::{Move, Role};

/// Most bytes of an answer that are read.
pub const ANSWER_BYTES_MAX: usize = 64 << 10;

/// Most bytes of talk that are taken from an answer; a host's default limit is 1024.
pub const TALK_BYTES_MAX: usize = 1_000;

/// Most bytes of a thought that are kept.
pub const THOUGHT_BYTES_MAX: usize = 1_000;

/// What an answer says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The move.
    pub action: Move,
    /// The words for the other side, without control characters, cut at [`TALK_BYTES_MAX`].
    pub talk: String,
    /// What the model thought, for the own trace; cut at [`THOUGHT_BYTES_MAX`].
    pub thought: String,
}

/// Why an answer was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnswerError {
    /// The answer is longer than [`ANSWER_BYTES_MAX`].
    TooLong,
    /// No line starts with `Action:`.
    NoAction,
    /// The last Action line does not hold exactly one bracketed tag.
    NotOneTag,
    /// The tag is none of the known ones.
    UnknownTag(String),
    /// A buyer sells or a seller buys.
    WrongSide,
    /// The action needs an amount.
    NoAmount,
    /// The action takes no amount, or something stands behind the amount.
    Unexpected(String),
    /// The amount is not one that can only be read in one way.
    BadAmount(String),
}

impl fmt::Display for AnswerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AnswerError::TooLong => write!(f, "more than {ANSWER_BYTES_MAX} bytes"),
            AnswerError::NoAction => f.write_str("no line starts with `Action:`"),
            AnswerError::NotOneTag => f.write_str("the action is not one tag such as `[REJECT]`"),
            AnswerError::UnknownTag(tag) => write!(f, "`{tag}` is not an action"),
            AnswerError::WrongSide => f.write_str("a buyer can only BUY, a seller only SELL"),
            AnswerError::NoAmount => f.write_str("the action needs an amount such as `$12.50`"),
            AnswerError::Unexpected(text) => write!(f, "unexpected `{text}` in the action"),
            AnswerError::BadAmount(text) => {
                write!(f, "`{text}` is not an amount such as `$1250` or `$12.50`")
            }
        }
    }
}

impl std::error::Error for AnswerError {}

/// Reads an answer of the seat in that role.
///
/// # Errors
/// Anything that is not one clear action; see [`AnswerError`].
pub fn read(text: &str, role: Role) -> Result<Answer, AnswerError> {
    if text.len() > ANSWER_BYTES_MAX {
        return Err(AnswerError::TooLong);
    }
    let (mut thought, mut talk) = (Vec::new(), Vec::new());
    let mut label = Label::None;
    let mut found = None;
    for line in text.lines() {
        if let Some((new, rest)) = labelled(line) {
            label = new;
            match label {
                Label::Thought => thought = vec![rest],
                Label::Talk => talk = vec![rest],
                Label::Action => found = Some((rest, thought.join(" "), talk.join(" "))),
                Label::None => {}
            }
        } else {
            match label {
                Label::Thought => thought.push(line),
                Label::Talk => talk.push(line),
                Label::Action | Label::None => {}
            }
        }
    }
    let (action, thought, talk) = found.ok_or(AnswerError::NoAction)?;
    Ok(Answer {
        action: read_action(action, role)?,
        talk: plain(&talk, TALK_BYTES_MAX),
        thought: plain(&thought, THOUGHT_BYTES_MAX),
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Label {
    None,
    Thought,
    Talk,
    Action,
}

/// Splits a line into its label and the rest, if it starts with a label.
fn labelled(line: &str) -> Option<(Label, &str)> {
    let decoration = |c: char| c.is_whitespace() || matches!(c, '*' | '#' | '_');
    let (name, rest) = line.split_once(':')?;
    let name = name.trim_matches(decoration);
    let labels = [("thought", Label::Thought), ("talk", Label::Talk), ("action", Label::Action)];
    let (_, label) = labels.into_iter().find(|(known, _)| name.eq_ignore_ascii_case(known))?;
    Some((label, rest.trim_start_matches(['*', '_']).trim()))
}

fn read_action(line: &str, role: Role) -> Result<Move, AnswerError> {
    let line = line.trim_matches(|c: char| c.is_whitespace() || matches!(c, '*' | '`' | '_'));
    let (inside, behind) = line
        .strip_prefix('[')
        .and_then(|rest| rest.split_once(']'))
        .filter(|(inside, behind)| !inside.contains('[') && !behind.contains(['[', ']']))
        .ok_or(AnswerError::NotOneTag)?;
    let (tag, amount) =
        inside.trim().split_once(char::is_whitespace).unwrap_or((inside.trim(), ""));
    let amount = amount.trim();
    let behind = without_quantity(behind.trim().trim_end_matches('.'))?;
    let amount = match (amount, behind) {
        ("", behind) => behind,
        (amount, "") => amount,
        (_, behind) => return Err(AnswerError::Unexpected(shown(behind))),
    };
    let is = |name: &str| tag.eq_ignore_ascii_case(name);
    match role {
        _ if is("REJECT") => bare(amount, Move::Reject),
        _ if is("QUIT") => bare(amount, Move::Walk),
        _ if is("DEAL") && amount.is_empty() => Ok(Move::Accept(None)),
        _ if is("DEAL") => Ok(Move::Accept(Some(read_amount(amount)?))),
        Role::Buyer if is("BUY") => Ok(Move::Offer(read_amount(amount)?)),
        Role::Seller if is("SELL") => Ok(Move::Offer(read_amount(amount)?)),
        _ if is("BUY") || is("SELL") => Err(AnswerError::WrongSide),
        _ => Err(AnswerError::UnknownTag(shown(tag))),
    }
}

fn bare(amount: &str, action: Move) -> Result<Move, AnswerError> {
    if amount.is_empty() { Ok(action) } else { Err(AnswerError::Unexpected(shown(amount))) }
}

/// Takes `(1x something)` off the end. There is one of each thing on sale, so any other
/// quantity is refused.
fn without_quantity(text: &str) -> Result<&str, AnswerError> {
    let Some((before, quantity)) = text.split_once('(') else {
        return Ok(text);
    };
    let inside = quantity.trim().strip_suffix(')');
    let one = inside
        .and_then(|inside| inside.strip_prefix('1'))
        .filter(|rest| rest.is_empty() || rest.trim_start().starts_with(['x', 'X']));
    match one {
        Some(_) => Ok(before.trim()),
        None => Err(AnswerError::Unexpected(shown(text))),
    }
}

/// Reads an amount in dollars as cents: an optional dollar sign, digits with or without
/// thousands commas, at most two decimals.
///
/// # Errors
/// Everything else: other signs, digits and separators, three decimals, an amount beyond
/// 42,949,672.95 dollars.
pub fn read_amount(text: &str) -> Result<u32, AnswerError> {
    if text.is_empty() {
        return Err(AnswerError::NoAmount);
    }
    cents(text).ok_or_else(|| AnswerError::BadAmount(shown(text)))
}

fn cents(text: &str) -> Option<u32> {
    const DIGITS_MAX: usize = 10;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.strip_prefix('$').unwrap_or(text);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let mut groups = whole.split(',');
    let first = groups.next()?;
    let grouped = groups.clone().next().is_some();
    let threes = groups.all(|group| group.len() == 3 && digits(group));
    let sound = digits(first) && (!grouped || first.len() <= 3) && threes;
    if !sound || !digits(fraction) || fraction.len() > 2 || whole.len() > 2 * DIGITS_MAX {
        return None;
    }
    let joined: String = whole.chars().filter(|c| *c != ',').collect();
    let dollars = joined.parse::<u64>().ok()?;
    let hundredths = format!("{fraction:0<2}").parse::<u64>().ok()?;
    u32::try_from(dollars.checked_mul(100)?.checked_add(hundredths)?).ok()
}

/// Returns a piece of a model's text that can be shown in a message.
fn shown(text: &str) -> String {
    plain(text, 40)
}

/// Returns the text in one line, without characters that control or hide, cut at `bytes_max`
/// between characters.
pub fn plain(text: &str, bytes_max: usize) -> String {
    let mut plain = String::new();
    let mut gap = false;
    for c in text.chars() {
        if c.is_whitespace() || c.is_control() {
            gap = !plain.is_empty();
        } else if !hides(c) {
            if plain.len() + usize::from(gap) + c.len_utf8() > bytes_max {
                break;
            }
            plain.extend(gap.then_some(' '));
            plain.push(c);
            gap = false;
        }
    }
    plain
}

/// Returns whether a character is invisible or turns the direction of text.
fn hides(c: char) -> bool {
    matches!(
        c,
        '\u{ad}'
            | '\u{61c}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}
