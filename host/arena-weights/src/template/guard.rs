//! What a template may not write, because fuel would not pay for it.
//!
//! The engine charges for steps, bytes and items, but not for lists that are put together from
//! themselves: those grow to any size at no cost, and are only charged for when they are written
//! out. Its compiler takes stack for every operator of a chain. So before a template is compiled:
//! tags and chains are short, lists and maps in it hold constants, nothing but a text is
//! multiplied, namespaces are used through their attributes alone, and every value that is kept
//! goes through a check of its size. Templates of the supported families do none of this.
//!
//! Not here: the budget itself (`environment`).

/// The most words, numbers, texts and signs of one tag.
const TOKENS_MAX: usize = 512;
/// The most additions of one tag.
const ADDITIONS_MAX: usize = 32;
/// The most `elif` of a template: they nest.
const ALTERNATIVES_MAX: usize = 128;

/// Tags that keep values or write them in ways of their own, and that no supported family uses.
const REFUSED_TAGS: [&str; 3] = ["autoescape", "raw", "with"];

/// What checks the size of kept values. No template may write it itself.
pub(super) const KEEP: &str = "__keep";

/// Words after which a bracket opens a list or a group, not an index or a call.
const KEYWORDS: [&str; 22] = [
    "and",
    "autoescape",
    "block",
    "call",
    "do",
    "elif",
    "else",
    "extends",
    "filter",
    "for",
    "from",
    "if",
    "import",
    "in",
    "include",
    "is",
    "macro",
    "not",
    "or",
    "recursive",
    "set",
    "with",
];
/// Words that a constant list may hold.
const CONSTANTS: [&str; 6] = ["true", "false", "none", "True", "False", "None"];

/// Checks a template, and returns it with a check around every value that it keeps; or says what
/// it may not write.
pub(super) fn guarded(source: &str) -> Result<String, String> {
    let tags = tags(source)?;
    let namespaces: Vec<&str> = tags.iter().filter_map(|tag| tag.namespace()).collect();
    let alternatives = tags.iter().filter(|tag| tag.word(0) == Some("elif")).count();
    if alternatives > ALTERNATIVES_MAX {
        return Err(format!("{alternatives} `elif` are more than {ALTERNATIVES_MAX}"));
    }
    let mut out = String::with_capacity(source.len());
    let mut copied = 0;
    for tag in &tags {
        check(tag, &namespaces).map_err(|what| format!("{what}, in line {}", tag.line(source)))?;
        if let Some(value) = tag.kept_value() {
            out.push_str(&source[copied..value]);
            out.push_str(&format!(" {KEEP}("));
            out.push_str(&source[value..tag.end]);
            out.push_str(") ");
            copied = tag.end;
        }
        let after = tag.end + tag.sign.len();
        for parameter in tag.parameters() {
            out.push_str(&source[copied..after]);
            // The same sign at its end, so that space behind it is treated the same.
            out.push_str(&format!("{{% set {parameter} = {KEEP}({parameter}) {}", tag.sign));
            copied = after;
        }
    }
    out.push_str(&source[copied..]);
    Ok(out)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Word,
    Number,
    Text,
    Sign,
}

#[derive(Clone, Copy)]
struct Token<'a> {
    kind: Kind,
    text: &'a str,
    /// Where it ends in the template.
    end: usize,
}

impl Token<'_> {
    /// Returns how much deeper it is behind this token.
    fn depth(&self) -> isize {
        match (self.kind, self.text) {
            (Kind::Sign, "(" | "[" | "{") => 1,
            (Kind::Sign, ")" | "]" | "}") => -1,
            _ => 0,
        }
    }
}

/// One `{{ … }}` or `{% … %}`.
struct Tag<'a> {
    tokens: Vec<Token<'a>>,
    /// The sign that ends it, such as `-%}`, and where that begins.
    sign: &'a str,
    end: usize,
    is_block: bool,
}

impl<'a> Tag<'a> {
    fn word(&self, index: usize) -> Option<&'a str> {
        self.tokens.get(index).filter(|token| token.kind == Kind::Word).map(|token| token.text)
    }

    fn is_sign(&self, index: usize, sign: &str) -> bool {
        self.tokens.get(index).is_some_and(|token| token.kind == Kind::Sign && token.text == sign)
    }

    /// Returns the name in `set NAME = namespace(`.
    fn namespace(&self) -> Option<&'a str> {
        let sets = self.is_block && self.word(0) == Some("set") && self.is_sign(2, "=");
        let makes = self.word(3) == Some("namespace") && self.is_sign(4, "(");
        self.word(1).filter(|_| sets && makes)
    }

    /// Returns where the value begins in `set TARGET = VALUE`.
    fn kept_value(&self) -> Option<usize> {
        let sets = self.is_block && self.word(0) == Some("set");
        let equals = self.outer("=").next().filter(|_| sets)?;
        Some(self.tokens[equals].end)
    }

    /// Returns the parameters in `macro NAME(PARAMETER, PARAMETER=DEFAULT)`.
    fn parameters(&self) -> Vec<&'a str> {
        let first = self.is_block && self.word(0) == Some("macro") && self.is_sign(2, "(");
        if !first {
            return Vec::new();
        }
        let mut depth = 0;
        let mut parameters = Vec::new();
        for (index, token) in self.tokens.iter().enumerate().skip(2) {
            let begins =
                depth == 1 && (self.is_sign(index - 1, "(") || self.is_sign(index - 1, ","));
            if begins && token.kind == Kind::Word {
                parameters.push(token.text);
            }
            depth += token.depth();
        }
        parameters
    }

    /// Returns the indices of a sign outside of all brackets.
    fn outer(&self, sign: &str) -> impl Iterator<Item = usize> {
        let mut depth = 0;
        self.tokens.iter().enumerate().filter_map(move |(index, token)| {
            depth += token.depth();
            (depth == 0 && self.is_sign(index, sign)).then_some(index)
        })
    }

    fn line(&self, source: &str) -> usize {
        source[..self.end].lines().count()
    }
}

/// A bracket that is open.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bracket {
    Call,
    Group,
    Index,
    /// A list or a map.
    Constant,
}

fn check(tag: &Tag<'_>, namespaces: &[&str]) -> Result<(), String> {
    if tag.tokens.len() > TOKENS_MAX {
        return Err(format!("a tag of {} words is longer than {TOKENS_MAX}", tag.tokens.len()));
    }
    if let Some(word) = tag.word(0).filter(|word| tag.is_block && REFUSED_TAGS.contains(word)) {
        return Err(format!("`{word}` is not supported"));
    }
    let added = |token: &&Token<'_>| token.kind == Kind::Sign && matches!(token.text, "+" | "~");
    if tag.tokens.iter().filter(added).count() > ADDITIONS_MAX {
        return Err(format!("a tag adds more than {ADDITIONS_MAX} times"));
    }
    let mut open: Vec<Bracket> = Vec::new();
    let mut targets = tag.is_block && tag.word(0) == Some("for");
    for (index, token) in tag.tokens.iter().enumerate() {
        let before = index.checked_sub(1).map(|index| tag.tokens[index]);
        if open.last() == Some(&Bracket::Constant) && !is_constant(token) {
            return Err(format!("a list or map holds `{}`, which is no constant", token.text));
        }
        match (token.kind, token.text) {
            (Kind::Word, "in") => targets = false,
            (Kind::Word, word) => check_word(tag, index, word, namespaces)?,
            (Kind::Sign, "(") if ends_operand(before) => open.push(Bracket::Call),
            (Kind::Sign, "(") => open.push(Bracket::Group),
            (Kind::Sign, "[") if ends_operand(before) => open.push(Bracket::Index),
            (Kind::Sign, "[" | "{") => open.push(Bracket::Constant),
            (Kind::Sign, ")" | "]" | "}") => drop(open.pop()),
            (Kind::Sign, ",") => {
                let listed = matches!(open.last(), Some(Bracket::Call | Bracket::Constant));
                if !(listed || targets && open.is_empty()) {
                    return Err("a tuple is not supported".into());
                }
            }
            (Kind::Sign, "*") if before.is_none_or(|token| token.kind != Kind::Text) => {
                return Err("only a text that is written out may be multiplied".into());
            }
            _ => {}
        }
    }
    Ok(())
}

fn check_word(tag: &Tag<'_>, index: usize, word: &str, namespaces: &[&str]) -> Result<(), String> {
    if word == KEEP {
        return Err(format!("`{KEEP}` is not its to use"));
    }
    if index > 0 && tag.is_sign(index - 1, ".") {
        return Ok(());
    }
    let made_here = tag.namespace().is_some();
    if word == "namespace" && !(made_here && index == 3) {
        return Err("a namespace is made elsewhere than in `set NAME = namespace(…)`".into());
    }
    let named_here = made_here && index == 1;
    if namespaces.contains(&word) && !named_here && !tag.is_sign(index + 1, ".") {
        return Err(format!("namespace `{word}` is used as a value"));
    }
    Ok(())
}

fn is_constant(token: &Token<'_>) -> bool {
    match token.kind {
        Kind::Number | Kind::Text => true,
        Kind::Word => CONSTANTS.contains(&token.text),
        Kind::Sign => matches!(token.text, "," | ":" | "-" | "[" | "]" | "{" | "}"),
    }
}

/// Says whether an operand ends before a bracket, which then indexes or calls it.
fn ends_operand(before: Option<Token<'_>>) -> bool {
    before.is_some_and(|token| match token.kind {
        Kind::Word => !KEYWORDS.contains(&token.text),
        Kind::Number | Kind::Text => true,
        Kind::Sign => matches!(token.text, ")" | "]" | "}"),
    })
}

/// Cuts a template into its tags, at the same places as the engine: brackets are counted on from
/// one tag to the next, and a tag ends only where all are closed.
fn tags(source: &str) -> Result<Vec<Tag<'_>>, String> {
    let mut tags = Vec::new();
    let mut balance = 0;
    let mut at = 0;
    while let Some(start) = source[at..].find('{').map(|found| at + found) {
        at = start + 2;
        let end = match source.as_bytes().get(start + 1) {
            Some(b'#') => {
                let end = source[at..].find("#}").ok_or("a comment does not end")?;
                at += end + 2;
                continue;
            }
            Some(b'{') => "}}",
            Some(b'%') => "%}",
            _ => {
                at = start + 1;
                continue;
            }
        };
        at += usize::from(matches!(source.as_bytes().get(at), Some(b'-' | b'+')));
        let tag = tag(source, &mut at, end, &mut balance)?;
        tags.push(tag);
    }
    Ok(tags)
}

fn tag<'a>(
    source: &'a str,
    at: &mut usize,
    end: &str,
    balance: &mut isize,
) -> Result<Tag<'a>, String> {
    let mut tokens = Vec::new();
    loop {
        let rest = source[*at..].trim_ascii_start();
        *at = source.len() - rest.len();
        let trimmed = rest.strip_prefix(['-', '+']).unwrap_or(rest);
        let ended = [trimmed, rest].into_iter().find(|rest| rest.starts_with(end));
        if let Some(tail) = ended.filter(|_| *balance == 0) {
            let sign = &rest[..rest.len() - tail.len() + end.len()];
            let tag = Tag { tokens, sign, end: *at, is_block: end == "%}" };
            *at += sign.len();
            return Ok(tag);
        }
        let (kind, len) = token(rest)?;
        *at += len;
        let token = Token { kind, text: &rest[..len], end: *at };
        *balance += token.depth();
        tokens.push(token);
    }
}

/// Returns the kind and length of the first token.
fn token(rest: &str) -> Result<(Kind, usize), String> {
    let wordy = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let first = rest.chars().next().ok_or("a tag does not end")?;
    match first {
        '\'' | '"' => {
            let mut escaped = false;
            let end = rest[1..].find(|letter| {
                let closes = letter == first && !escaped;
                escaped = letter == '\\' && !escaped;
                closes
            });
            end.map(|end| (Kind::Text, end + 2)).ok_or_else(|| "a text does not end".into())
        }
        '0'..='9' => Ok((Kind::Number, rest.find(|letter| !wordy(letter)).unwrap_or(rest.len()))),
        letter if wordy(letter) => {
            Ok((Kind::Word, rest.find(|letter| !wordy(letter)).unwrap_or(rest.len())))
        }
        sign if sign.is_ascii_punctuation() => Ok((Kind::Sign, 1)),
        other => Err(format!("`{}` outside of texts", other.escape_debug())),
    }
}
