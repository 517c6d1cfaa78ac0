//! A buyer that knows how to bargain but not how to bargain well, as a language model: what a new
//! compact model learns its language from, and a large one the three lines of `llm-buyer`.
//!
//! It reads the situation from the conversation and answers in the policy's own tokens, so that a
//! tournament in which it plays is a record to learn from. It opens near its budget, concedes
//! slowly towards it, takes what is below its next offer, and seldom argues, with each kind of
//! argument once. A share of its offers is drawn over all levels and arguments, so that later
//! sampling finds them.
//!
//! The same request gives the same answer.
//!
//! Not here: what the words mean (`guest-sdk/src/compact.rs`), learning from records (`example`).

pub mod talk;

use arena_core::seat::SampledToken;
use arena_core::seed::{Root, Stream};
use arena_llm::model::{
    Completion, FinishReason, LanguageModel, ModelError, ModelInfo, ReplyTokens,
};
use arena_llm::request::{ChatRole, Request};
use arena_weights::error::WeightsError;
use arena_weights::template::{ChatMessage, ChatTemplate};
use arena_weights::tokenizer::Tokenizer;
use arena_weights::weights::Weights;
use sha2::{Digest, Sha256};

use crate::compact::vocabulary::{ARGUMENTS, LEVEL_MAX};

/// Turns that it plans for where the horizon is hidden.
const HIDDEN_TURNS: u32 = 10;

/// How what it says is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// Compact words, as `compact-buyer` reads them.
    Compact,
    /// Thought, Talk and Action lines, as `llm-buyer` reads them.
    Talk,
}

/// What the teacher is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TeacherOptions {
    /// The first offer as a share of the budget, lowest and highest, in thousandths.
    pub opening_milli: [u32; 2],
    /// How much of what is left to the budget it concedes by its last turn, lowest and highest,
    /// in thousandths.
    pub concession_milli: [u32; 2],
    /// Offers that carry an argument, in thousandths.
    pub argue_milli: u32,
    /// Turns in which it draws anything at all, in thousandths.
    pub explore_milli: u32,
}

impl Default for TeacherOptions {
    /// Opens where untrained models do: arXiv 2604.09855's base model and its replications have
    /// first offers of 0.80 to 0.93 of the budget.
    fn default() -> TeacherOptions {
        TeacherOptions {
            opening_milli: [800, 950],
            concession_milli: [700, 1_000],
            argue_milli: 50,
            explore_milli: 40,
        }
    }
}

impl TeacherOptions {
    /// Argues more often: sentences are what it is to show.
    pub fn talking() -> TeacherOptions {
        TeacherOptions { argue_milli: 300, ..TeacherOptions::default() }
    }

    /// Returns one `key=value` a line.
    fn description(&self, language: Language) -> String {
        let TeacherOptions { opening_milli, concession_milli, argue_milli, explore_milli } = self;
        format!(
            "engine={} {}\nopening-milli={}..{}\nconcession-milli={}..{}\nargue-milli={}\n\
             explore-milli={}\n",
            match language {
                Language::Compact => "teacher",
                Language::Talk => "teacher-talk",
            },
            env!("CARGO_PKG_VERSION"),
            opening_milli[0],
            opening_milli[1],
            concession_milli[0],
            concession_milli[1],
            argue_milli,
            explore_milli,
        )
    }
}

/// The teacher of one policy.
pub struct TeacherModel {
    info: ModelInfo,
    language: Language,
    options: TeacherOptions,
    tokenizer: Tokenizer,
    chat_template: ChatTemplate,
    /// Ends a reply.
    end: Option<u32>,
}

impl TeacherModel {
    /// Makes a teacher of compact words that answers to `name` in the tokens of this policy.
    ///
    /// # Errors
    /// As [`TeacherModel::of`].
    ///
    /// # Panics
    /// As [`TeacherModel::of`].
    pub fn new(
        name: &str,
        policy: &Weights,
        options: TeacherOptions,
    ) -> Result<TeacherModel, WeightsError> {
        TeacherModel::of(Language::Compact, name, policy, options)
    }

    /// Makes a teacher that answers to `name` in the tokens of this policy.
    ///
    /// # Errors
    /// The tokenizer or the chat template cannot be used.
    ///
    /// # Panics
    /// If a range of the options is the wrong way round, or goes beyond the whole.
    pub fn of(
        language: Language,
        name: &str,
        policy: &Weights,
        options: TeacherOptions,
    ) -> Result<TeacherModel, WeightsError> {
        let ranges = [options.opening_milli, options.concession_milli];
        for [low, high] in ranges {
            assert!(low <= high && high <= 1_000, "a range of shares runs from low to high");
        }
        let engine = options.description(language);
        let info = ModelInfo {
            name: name.to_owned(),
            context_tokens: u32::try_from(policy.config().context_tokens).unwrap_or(u32::MAX),
            sha256: Sha256::digest(engine.as_bytes()).into(),
            engine,
        };
        let (tokenizer, chat_template) = (policy.tokenizer()?, policy.chat_template()?);
        let end = policy.config().eos.first().copied();
        Ok(TeacherModel { info, language, options, tokenizer, chat_template, end })
    }

    /// Decides what to say, without the end of the turn.
    fn decide(&self, request: &Request) -> Result<String, ModelError> {
        let situation = Situation::read(request)?;
        let seed = Root::Seed(request.key.seat_seed);
        // Of the match, so that all its turns are of one mind.
        let mut character = Stream::derive(seed, "teacher", &[0]);
        let [opening, concession] = [self.options.opening_milli, self.options.concession_milli]
            .map(|[low, high]| character.between(low.into(), high.into()));
        let call = u64::from(request.key.call_index);
        let mut stream = Stream::derive(seed, "teacher", &[1, call]);
        if stream.below(1_000) < u64::from(self.options.explore_milli) {
            return Ok(explore(&situation, &mut stream));
        }
        let next = situation.next(opening, concession);
        let threshold = if situation.left == 1 { situation.budget } else { next };
        if situation.ask.is_some_and(|ask| ask <= threshold) {
            return Ok("accept".to_owned());
        }
        let argues = stream.below(1_000) < u64::from(self.options.argue_milli);
        let fresh = situation.fresh();
        Ok(if argues && !fresh.is_empty() {
            format!("offer {next} {}", pick(&fresh, &mut stream))
        } else {
            format!("offer {next}")
        })
    }

    fn spell(&self, ids: &[u32]) -> String {
        let bytes: Vec<u8> = ids
            .iter()
            .filter(|id| !self.tokenizer.is_control(**id))
            .flat_map(|id| self.tokenizer.bytes(*id).to_vec())
            .collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn check(&self, request: &Request) -> Result<(), ModelError> {
        request.check()?;
        if request.model != self.info.name {
            return Err(ModelError::NotSupported);
        }
        if request.grammar.is_some() || !request.stop.is_empty() {
            let detail = "a teacher is held to no grammar and knows no stop texts";
            return Err(ModelError::InvalidInput(detail.to_owned()));
        }
        Ok(())
    }

    fn encode(&self, request: &Request) -> Result<Vec<u32>, ModelError> {
        let invalid = |error: WeightsError| ModelError::InvalidInput(error.to_string());
        let messages: Vec<ChatMessage<'_>> = request
            .messages
            .iter()
            .map(|message| ChatMessage { role: message.role.name(), content: &message.text })
            .collect();
        let written: Vec<&[u32]> =
            request.messages.iter().map(|message| &message.tokens[..]).collect();
        let pieces = self.chat_template.pieces(&messages, true).map_err(invalid)?;
        self.tokenizer.encode_pieces(&pieces, &written).map_err(invalid)
    }
}

impl LanguageModel for TeacherModel {
    fn info(&self) -> ModelInfo {
        self.info.clone()
    }

    fn count_prompt(&self, request: &Request) -> Result<Option<u32>, ModelError> {
        self.check(request)?;
        Ok(Some(count(self.encode(request)?.len())))
    }

    /// Answers in whole words. How to sample has no effect: what the teacher draws, it draws from
    /// the request's key, and it says of every token that it was certain of it.
    fn complete(&self, request: &Request) -> Result<Completion, ModelError> {
        self.check(request)?;
        let prompt = self.encode(request)?;
        let room = self.info.context_tokens.saturating_sub(count(prompt.len()));
        if room == 0 {
            let detail = format!(
                "prompt has {} tokens, context is {}",
                prompt.len(),
                self.info.context_tokens
            );
            return Err(ModelError::InvalidInput(detail));
        }
        let text = match self.language {
            // As the policy would write it: every word with the space before it.
            Language::Compact => format!(" {}", self.decide(request)?),
            Language::Talk => talk::decide(&self.options, request)?,
        };
        let written = self.tokenizer.encode_text(&text);
        let written = written.map_err(|error| ModelError::InvalidInput(error.to_string()))?;
        let mut ids: Vec<u32> = written.into_iter().chain(self.end).collect();
        let most = room.min(request.max_tokens) as usize;
        let is_whole = ids.len() <= most;
        ids.truncate(most);
        let text = if is_whole { text } else { self.spell(&ids) };
        let certain =
            |id| SampledToken { id, logprob_micro: 0, sampled_logprob_micro: 0, top: vec![] };
        Ok(Completion {
            text,
            finish_reason: if is_whole { FinishReason::Stop } else { FinishReason::Length },
            input_tokens: count(prompt.len()),
            output_tokens: count(ids.len()),
            tokens: Some(ReplyTokens { prompt, output: ids.into_iter().map(certain).collect() }),
        })
    }
}

fn count(len: usize) -> u32 {
    u32::try_from(len).expect("contexts are far smaller")
}

/// What a conversation says.
struct Situation {
    /// The budget's level.
    budget: u32,
    /// The seller's latest price, where there is one on the grid.
    ask: Option<u32>,
    /// Own turns made before.
    turn: u32,
    /// Own turns left, this one included.
    left: u32,
    /// Kinds of argument that it brought forward before.
    used: [bool; ARGUMENTS.len()],
}

impl Situation {
    fn read(request: &Request) -> Result<Situation, ModelError> {
        let mut situation =
            Situation { budget: 0, ask: None, turn: 0, left: 0, used: [false; ARGUMENTS.len()] };
        for message in &request.messages {
            let words: Vec<&str> = message.text.split_ascii_whitespace().collect();
            let known = match (message.role, words.as_slice()) {
                (ChatRole::Assistant, words) => {
                    situation.turn += 1;
                    for (used, kind) in situation.used.iter_mut().zip(ARGUMENTS) {
                        *used |= words.contains(&kind);
                    }
                    Some(())
                }
                (ChatRole::System, ["budget", level]) => {
                    read_level(level).map(|level| situation.budget = level)
                }
                (ChatRole::User, [what @ .., "left", left]) => situation.hear(what, left),
                _ => None,
            };
            if known.is_none() {
                let shown: String = message.text.chars().take(80).collect();
                let detail = format!("not in the compact language: `{}`", shown.escape_debug());
                return Err(ModelError::InvalidInput(detail));
            }
        }
        situation.left = situation.left.max(1);
        Ok(situation)
    }

    fn hear(&mut self, what: &[&str], left: &str) -> Option<()> {
        self.left = match left {
            "hidden" => HIDDEN_TURNS.saturating_sub(self.turn),
            left => read_level(left)?,
        };
        match what {
            ["asks", "above", _] => self.ask = None,
            ["asks", level, _] => self.ask = Some(read_level(level)?),
            ["begin" | "passes" | "refused"] => {}
            _ => return None,
        }
        Some(())
    }

    /// Returns the kinds of argument that it has not brought forward: repeating one moves nobody.
    fn fresh(&self) -> Vec<&'static str> {
        let kinds = ARGUMENTS.iter().zip(self.used);
        kinds.filter(|(_, used)| !used).map(|(kind, _)| *kind).collect()
    }

    /// Returns the level that it would offer now.
    fn next(&self, opening_milli: u64, concession_milli: u64) -> u32 {
        let [budget, turn, left] = [self.budget, self.turn, self.left].map(u64::from);
        let level = offer_after(budget, [opening_milli, concession_milli], turn, left);
        u32::try_from(level).expect("a level is small")
    }
}

/// Returns what it offers after `turn` own turns, with `left` to come: from a share of the budget
/// even steps to another one, both in thousandths, of what is left to the budget.
fn offer_after(budget: u64, [opening, concession]: [u64; 2], turn: u64, left: u64) -> u64 {
    // In thousandths of the budget's unit.
    let opening = budget * opening;
    let way = (budget * 1_000 - opening) * concession / 1_000;
    let turns = (turn + left - 1).max(1);
    ((opening + way * turn / turns) / 1_000).min(budget)
}

/// Draws what the language allows here.
fn explore(situation: &Situation, stream: &mut Stream) -> String {
    match stream.below(10) {
        0 if situation.ask.is_some() => "accept".to_owned(),
        1 if situation.turn > 0 => "walk".to_owned(),
        _ => {
            let level = stream.between(0, LEVEL_MAX.into());
            match usize::try_from(stream.below(ARGUMENTS.len() as u64 + 1)) {
                Ok(kind) if kind < ARGUMENTS.len() => format!("offer {level} {}", ARGUMENTS[kind]),
                _ => format!("offer {level}"),
            }
        }
    }
}

fn pick<'a>(words: &[&'a str], stream: &mut Stream) -> &'a str {
    words[usize::try_from(stream.below(words.len() as u64)).expect("below a length")]
}

fn read_level(word: &str) -> Option<u32> {
    word.parse().ok().filter(|level| *level <= LEVEL_MAX)
}

#[cfg(test)]
mod tests {
    use arena_core::seat::Sampling;
    use arena_llm::request::{CallKey, Message};

    use super::*;
    use crate::compact::initialise;
    use crate::experiment::Shape;

    const SHAPE: Shape =
        Shape { layers: 1, width: 8, heads: 1, kv_heads: 1, feed_forward: 8, context_tokens: 128 };

    fn teacher(options: TeacherOptions) -> TeacherModel {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("policy");
        initialise(&path, &SHAPE, 1).expect("a new model");
        TeacherModel::new("policy", &Weights::open(&path).expect("a model"), options)
            .expect("a teacher")
    }

    fn plain() -> TeacherOptions {
        TeacherOptions { argue_milli: 0, explore_milli: 0, ..TeacherOptions::default() }
    }

    /// A conversation: the budget, then situations and replies in turn.
    fn request(lines: &[&str], seat_seed: u64) -> Request {
        let message = |(place, text): (usize, &&str)| Message {
            role: match place {
                0 => ChatRole::System,
                place if place % 2 == 1 => ChatRole::User,
                _ => ChatRole::Assistant,
            },
            text: (*text).to_owned(),
            tokens: vec![],
        };
        let call_index = u32::try_from(lines.len() / 2 - 1).expect("few");
        Request {
            model: "policy".to_owned(),
            messages: lines.iter().enumerate().map(message).collect(),
            max_tokens: 4,
            sampling: Sampling::GREEDY,
            stop: vec![],
            grammar: None,
            key: CallKey { seat_seed, call_index },
        }
    }

    fn say(teacher: &TeacherModel, lines: &[&str], seat_seed: u64) -> String {
        let request = request(lines, seat_seed);
        let completion = teacher.complete(&request).expect("a reply");
        completion.check(&request).expect("a reply that can be");
        assert_eq!(completion, teacher.complete(&request).expect("the same reply"));
        completion.text
    }

    fn level(reply: &str) -> u32 {
        let level = reply.strip_prefix(" offer ").and_then(|rest| rest.split(' ').next());
        level.and_then(|level| level.parse().ok()).unwrap_or_else(|| panic!("{reply}"))
    }

    #[test]
    fn it_opens_near_the_budget_and_concedes_towards_it() {
        let teacher = teacher(plain());
        for seed in 0..50 {
            let first = say(&teacher, &["budget 40", "begin left 6"], seed);
            let opening = level(&first);
            assert!((32..=38).contains(&opening), "{first}");
            let lines = ["budget 40", "begin left 6", &first, "asks 60 first left 1"];
            let last = level(&say(&teacher, &lines, seed));
            assert!((opening..=40).contains(&last), "{first}{last}");
        }
    }

    #[test]
    fn it_takes_what_is_below_its_next_offer_and_at_last_what_it_can_afford() {
        let teacher = teacher(plain());
        let answer =
            |asks: &str| say(&teacher, &["budget 40", "begin left 6", " offer 34", asks], 1);
        assert_eq!(answer("asks 30 first left 5"), " accept");
        assert!(answer("asks 40 first left 5").starts_with(" offer"));
        assert_eq!(answer("asks 40 first left 1"), " accept");
        assert!(answer("asks 41 first left 1").starts_with(" offer"));
        assert!(answer("asks above first left 1").starts_with(" offer"));
        assert!(answer("passes left hidden").starts_with(" offer"));
    }

    #[test]
    fn exploring_it_finds_every_level_and_argument() {
        let teacher = teacher(TeacherOptions { explore_milli: 1_000, ..plain() });
        let lines = ["budget 40", "begin left 6", " offer 34", "asks 45 first left 5"];
        let said: std::collections::BTreeSet<String> =
            (0..3_000).map(|seed| say(&teacher, &lines, seed)).collect();
        assert!(said.contains(" accept") && said.contains(" walk"));
        let levels = said.iter().filter(|reply| reply.starts_with(" offer")).map(|r| level(r));
        assert_eq!(levels.collect::<std::collections::BTreeSet<_>>().len(), 61);
        let argued = |word: &str| said.iter().any(|reply| reply.ends_with(word));
        assert!(ARGUMENTS.iter().all(|word| argued(word)));
    }

    #[test]
    fn it_brings_no_kind_of_argument_forward_twice() {
        let teacher = teacher(TeacherOptions { argue_milli: 1_000, ..plain() });
        let mut lines = vec!["budget 40".to_owned(), "begin left 6".to_owned()];
        let mut brought = std::collections::BTreeSet::new();
        for left in (0..6).rev() {
            let shown: Vec<&str> = lines.iter().map(String::as_str).collect();
            let reply = say(&teacher, &shown, 3);
            brought.extend(reply.split(' ').nth(3).map(str::to_owned));
            assert_eq!(brought.len(), ARGUMENTS.len().min(lines.len() / 2), "{reply}");
            lines.extend([reply, format!("asks 60 stays left {left}")]);
        }
    }

    #[test]
    fn its_replies_are_the_policys_tokens() {
        let teacher = teacher(TeacherOptions { argue_milli: 1_000, ..plain() });
        let asked = request(&["budget 40", "begin left 6"], 1);
        let reply = teacher.complete(&asked).expect("a reply");
        let tokens = reply.tokens.expect("tokens");
        assert_eq!(tokens.prompt.len(), 10);
        assert_eq!((tokens.output.len(), reply.finish_reason), (4, FinishReason::Stop));
        assert_eq!(tokens.output[3].id, crate::compact::vocabulary::END);
        let short = Request { max_tokens: 2, ..asked };
        let cut = teacher.complete(&short).expect("a reply");
        assert_eq!((cut.output_tokens, cut.finish_reason), (2, FinishReason::Length));
        assert!(reply.text.starts_with(&cut.text), "{} {}", reply.text, cut.text);
    }

    #[test]
    fn what_is_not_in_the_language_is_refused_by_name() {
        let teacher = teacher(plain());
        let refused = |lines: &[&str]| match teacher.complete(&request(lines, 1)) {
            Err(error) => error.to_string(),
            Ok(reply) => panic!("{}", reply.text),
        };
        let cases = [
            "What do you pay?",
            "begin",
            "left 6",
            "begin left 61",
            "asks 61 first left 5",
            "asks 50 left 5",
            "begin left six",
        ];
        for case in cases {
            let expected = format!("invalid input: not in the compact language: `{case}`");
            assert_eq!(refused(&["budget 40", case]), expected);
        }
        let grammar = Request {
            grammar: Some("start: \"a\"".to_owned()),
            ..request(&["budget 1", "begin left 1"], 1)
        };
        assert!(teacher.complete(&grammar).is_err());
    }
}
