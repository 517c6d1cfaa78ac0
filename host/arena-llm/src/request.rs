//! What a model is asked: a conversation, sampling parameters and the key of the draws.

use arena_core::seat::Sampling;
use sha2::{Digest, Sha256};

use crate::model::ModelError;

/// Longest model name in bytes.
pub const MODEL_NAME_BYTES_MAX: usize = 64;
/// Most messages of one conversation.
pub const MESSAGES_MAX: usize = 1_024;
/// Longest message in bytes.
pub const MESSAGE_BYTES_MAX: usize = 256 << 10;
/// Bytes of all messages of one conversation together.
pub const CONVERSATION_BYTES_MAX: usize = 1 << 20;
/// Most tokens that one request may ask for.
pub const OUTPUT_TOKENS_MAX: u32 = 32_768;
/// Most stop texts of one request.
pub const STOPS_MAX: usize = 8;
/// Longest stop text in bytes.
pub const STOP_BYTES_MAX: usize = 64;
/// Longest grammar in bytes.
pub const GRAMMAR_BYTES_MAX: usize = 4 << 10;

/// One question to a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The model's name, at most [`MODEL_NAME_BYTES_MAX`] bytes.
    pub model: String,
    /// The conversation, oldest first: 1 to [`MESSAGES_MAX`] messages.
    pub messages: Vec<Message>,
    /// Most tokens of the reply, from 1 to [`OUTPUT_TOKENS_MAX`].
    pub max_tokens: u32,
    /// How the reply is sampled.
    pub sampling: Sampling,
    /// Texts that end the reply, not empty, at most [`STOPS_MAX`].
    pub stop: Vec<String>,
    /// What the reply must be, in Lark as `llguidance` reads it: 1 to [`GRAMMAR_BYTES_MAX`] bytes.
    pub grammar: Option<String>,
    /// The key of the draws.
    pub key: CallKey,
}

/// One message of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Who speaks.
    pub role: ChatRole,
    /// What is said, at most [`MESSAGE_BYTES_MAX`] bytes.
    pub text: String,
    /// The tokens of a reply that the model itself wrote, as sampled, so that it is never tokenised
    /// again: at most [`OUTPUT_TOKENS_MAX`]. Empty for everything else.
    pub tokens: Vec<u32>,
}

/// Who speaks in a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChatRole {
    /// Standing instructions.
    System,
    /// What the model answers to.
    User,
    /// The model.
    Assistant,
}

impl ChatRole {
    /// Returns the name used in files and in chat templates.
    pub fn name(self) -> &'static str {
        match self {
            ChatRole::System => "system",
            ChatRole::User => "user",
            ChatRole::Assistant => "assistant",
        }
    }
}

/// Names one call of one seat of one match. A model draws token number `n` from the key and
/// `n` alone (counter-based sampling), so batching and thread order cannot change a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallKey {
    /// The seat's seed. The root seed, the pair, the leg and the role determine it, so that it
    /// stands for match and seat.
    pub seat_seed: u64,
    /// Which of the seat's model calls this is, from 0.
    pub call_index: u32,
}

impl Request {
    /// Checks every bound that holds for all models. Models may assume them.
    ///
    /// # Errors
    /// [`ModelError::InvalidInput`], naming the first value that is out of bounds.
    pub fn check(&self) -> Result<(), ModelError> {
        self.find_fault().map_or(Ok(()), |fault| Err(ModelError::InvalidInput(fault)))
    }

    /// Returns the first value that is out of bounds, with the bounds.
    pub(crate) fn find_fault(&self) -> Option<String> {
        let bounds = [
            ("model", self.model.len(), 1, MODEL_NAME_BYTES_MAX, "bytes"),
            ("messages", self.messages.len(), 1, MESSAGES_MAX, "messages"),
            ("max-tokens", self.max_tokens as usize, 1, OUTPUT_TOKENS_MAX as usize, "tokens"),
            ("stop", self.stop.len(), 0, STOPS_MAX, "texts"),
        ];
        let sampling = self.sampling.bounds().map(|(name, value, range)| {
            let unit = if name == "top-k" { "tokens" } else { "thousandths" };
            (name, value as usize, *range.start() as usize, *range.end() as usize, unit)
        });
        let messages = self.messages.iter().map(|message| message.text.len());
        let total = messages.clone().fold(0, usize::saturating_add);
        let tokens = self.messages.iter().map(|message| message.tokens.len());
        let tokens_max = OUTPUT_TOKENS_MAX as usize;
        let stops = self.stop.iter().map(String::len);
        let grammar = self.grammar.iter().map(String::len);
        bounds
            .into_iter()
            .chain(sampling)
            .chain(messages.map(|len| ("message", len, 0, MESSAGE_BYTES_MAX, "bytes")))
            .chain([("conversation", total, 0, CONVERSATION_BYTES_MAX, "bytes")])
            .chain(tokens.map(|len| ("tokens of a message", len, 0, tokens_max, "tokens")))
            .chain(stops.map(|len| ("stop text", len, 1, STOP_BYTES_MAX, "bytes")))
            .chain(grammar.map(|len| ("grammar", len, 1, GRAMMAR_BYTES_MAX, "bytes")))
            .find(|(_, value, low, high, _)| value < low || value > high)
            .map(|(name, value, low, high, unit)| {
                format!("`{name}` is {value} {unit}, allowed are {low} to {high}")
            })
    }

    /// Returns the SHA-256 of the request's canonical bytes.
    ///
    /// The bytes are: `arena/request/v2`, a zero byte, model, number of messages, each message
    /// as role (one byte: 0 system, 1 user, 2 assistant), text, number of tokens and each token,
    /// then `max_tokens`, temperature, top-k, top-p and min-p, number of stop texts, each stop
    /// text, one byte that is 1 where a grammar follows and else 0, the grammar, seat seed (u64),
    /// call index. Texts are preceded by their length in bytes. Numbers are u32 where nothing
    /// else is said, big-endian.
    pub fn sha256(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        hash.update(b"arena/request/v2\0");
        hash_text(&mut hash, &self.model);
        hash_count(&mut hash, self.messages.len());
        for message in &self.messages {
            hash.update([message.role as u8]);
            hash_text(&mut hash, &message.text);
            hash_count(&mut hash, message.tokens.len());
            message.tokens.iter().for_each(|token| hash.update(token.to_be_bytes()));
        }
        let Sampling { temperature_milli, top_k, top_p_milli, min_p_milli } = self.sampling;
        for number in [self.max_tokens, temperature_milli, top_k, top_p_milli, min_p_milli] {
            hash.update(number.to_be_bytes());
        }
        hash_count(&mut hash, self.stop.len());
        for stop in &self.stop {
            hash_text(&mut hash, stop);
        }
        hash.update([u8::from(self.grammar.is_some())]);
        if let Some(grammar) = &self.grammar {
            hash_text(&mut hash, grammar);
        }
        hash.update(self.key.seat_seed.to_be_bytes());
        hash.update(self.key.call_index.to_be_bytes());
        hash.finalize().into()
    }
}

fn hash_text(hash: &mut Sha256, text: &str) {
    hash_count(hash, text.len());
    hash.update(text.as_bytes());
}

fn hash_count(hash: &mut Sha256, count: usize) {
    let count = u32::try_from(count).expect("requests are far smaller than 4 GiB");
    hash.update(count.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use arena_core::seat::TOP_K_MAX;

    use super::*;

    type Change = fn(&mut Request);

    fn request() -> Request {
        Request {
            model: "small".to_owned(),
            messages: vec![Message {
                role: ChatRole::User,
                text: "What do you pay?".to_owned(),
                tokens: vec![],
            }],
            max_tokens: 64,
            sampling: Sampling {
                temperature_milli: 700,
                top_k: 40,
                top_p_milli: 950,
                min_p_milli: 50,
            },
            stop: vec!["\n".to_owned()],
            grammar: None,
            key: CallKey { seat_seed: 7, call_index: 0 },
        }
    }

    fn changed(change: Change) -> Request {
        let mut request = request();
        change(&mut request);
        request
    }

    #[test]
    fn every_bound_is_reported_with_name_value_and_limits() {
        assert_eq!(request().check(), Ok(()));
        let cases: [(Change, &str); 16] = [
            (|r| r.model.clear(), "`model` is 0 bytes, allowed are 1 to 64"),
            (|r| r.model = "m".repeat(65), "`model` is 65 bytes, allowed are 1 to 64"),
            (|r| r.messages.clear(), "`messages` is 0 messages, allowed are 1 to 1024"),
            (|r| r.max_tokens = 0, "`max-tokens` is 0 tokens, allowed are 1 to 32768"),
            (|r| r.max_tokens = 32_769, "`max-tokens` is 32769 tokens, allowed are 1 to 32768"),
            (
                |r| r.sampling.temperature_milli = u32::MAX,
                "`temperature-milli` is 4294967295 thousandths, allowed are 0 to 2000",
            ),
            (
                |r| r.sampling.top_p_milli = 0,
                "`top-p-milli` is 0 thousandths, allowed are 1 to 1000",
            ),
            (
                |r| r.sampling.top_k = TOP_K_MAX + 1,
                "`top-k` is 1000001 tokens, allowed are 0 to 1000000",
            ),
            (
                |r| r.sampling.min_p_milli = 1_001,
                "`min-p-milli` is 1001 thousandths, allowed are 0 to 1000",
            ),
            (|r| r.grammar = Some(String::new()), "`grammar` is 0 bytes, allowed are 1 to 4096"),
            (
                |r| r.grammar = Some("g".repeat(4_097)),
                "`grammar` is 4097 bytes, allowed are 1 to 4096",
            ),
            (
                |r| r.messages[0].tokens = vec![1; 32_769],
                "`tokens of a message` is 32769 tokens, allowed are 0 to 32768",
            ),
            (|r| r.stop = vec!["x".to_owned(); 9], "`stop` is 9 texts, allowed are 0 to 8"),
            (|r| r.stop[0].clear(), "`stop text` is 0 bytes, allowed are 1 to 64"),
            (
                |r| r.messages[0].text = "x".repeat(MESSAGE_BYTES_MAX + 1),
                "`message` is 262145 bytes, allowed are 0 to 262144",
            ),
            (
                |r| {
                    r.messages[0].text = "x".repeat(MESSAGE_BYTES_MAX);
                    r.messages = vec![r.messages[0].clone(); 5];
                },
                "`conversation` is 1310720 bytes, allowed are 0 to 1048576",
            ),
        ];
        for (change, message) in cases {
            let expected = Err(ModelError::InvalidInput(message.to_owned()));
            assert_eq!(changed(change).check(), expected);
        }
    }

    #[test]
    fn the_hash_covers_every_field() {
        let cases: [Change; 17] = [
            |_| (),
            |r| r.model.push('!'),
            |r| r.messages[0].text.push('!'),
            |r| r.messages[0].role = ChatRole::System,
            |r| r.messages.push(r.messages[0].clone()),
            |r| r.max_tokens += 1,
            |r| r.messages[0].tokens.push(0),
            |r| r.messages[0].tokens.push(1),
            |r| r.sampling.temperature_milli += 1,
            |r| r.sampling.top_k += 1,
            |r| r.sampling.top_p_milli += 1,
            |r| r.sampling.min_p_milli += 1,
            |r| r.stop.clear(),
            |r| r.grammar = Some("start: \"a\"".to_owned()),
            |r| r.grammar = Some("start: \"b\"".to_owned()),
            |r| r.key.seat_seed += 1,
            |r| r.key.call_index += 1,
        ];
        let hashes: std::collections::BTreeSet<[u8; 32]> =
            cases.into_iter().map(|change| changed(change).sha256()).collect();
        assert_eq!(hashes.len(), cases.len());
    }

    #[test]
    fn text_cannot_move_between_fields_without_changing_the_hash() {
        let one = changed(|r| r.stop = vec!["ab".to_owned(), "c".to_owned()]);
        let other = changed(|r| r.stop = vec!["a".to_owned(), "bc".to_owned()]);
        assert_ne!(one.sha256(), other.sha256());
    }

    #[test]
    fn the_hash_is_pinned_because_records_hold_it() {
        let hex: String = request().sha256().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, "4570ba952f636b035cfb5f321dc8652f29b2836fe4bf397086dd9518b7451061");
    }
}
