//! What a model is asked: a conversation, sampling parameters and the key of the draws.

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
/// Highest sampling temperature, in thousandths.
pub const TEMPERATURE_MILLI_MAX: u32 = 2_000;
/// Highest nucleus, in thousandths: the whole distribution.
pub const TOP_P_MILLI_MAX: u32 = 1_000;
/// Most stop texts of one request.
pub const STOPS_MAX: usize = 8;
/// Longest stop text in bytes.
pub const STOP_BYTES_MAX: usize = 64;

/// One question to a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The model's name, at most [`MODEL_NAME_BYTES_MAX`] bytes.
    pub model: String,
    /// The conversation, oldest first: 1 to [`MESSAGES_MAX`] messages.
    pub messages: Vec<Message>,
    /// Most tokens of the reply, from 1 to [`OUTPUT_TOKENS_MAX`].
    pub max_tokens: u32,
    /// Sampling temperature in thousandths; 0 takes the likeliest token.
    pub temperature_milli: u32,
    /// Share of the distribution that is sampled from, in thousandths, at least 1.
    pub top_p_milli: u32,
    /// Texts that end the reply, not empty, at most [`STOPS_MAX`].
    pub stop: Vec<String>,
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

    fn find_fault(&self) -> Option<String> {
        let bounds = [
            ("model", self.model.len(), 1, MODEL_NAME_BYTES_MAX, "bytes"),
            ("messages", self.messages.len(), 1, MESSAGES_MAX, "messages"),
            ("max-tokens", self.max_tokens as usize, 1, OUTPUT_TOKENS_MAX as usize, "tokens"),
            (
                "temperature-milli",
                self.temperature_milli as usize,
                0,
                TEMPERATURE_MILLI_MAX as usize,
                "thousandths",
            ),
            ("top-p-milli", self.top_p_milli as usize, 1, TOP_P_MILLI_MAX as usize, "thousandths"),
            ("stop", self.stop.len(), 0, STOPS_MAX, "texts"),
        ];
        let messages = self.messages.iter().map(|message| message.text.len());
        let total = messages.clone().fold(0, usize::saturating_add);
        bounds
            .into_iter()
            .chain(messages.map(|len| ("message", len, 0, MESSAGE_BYTES_MAX, "bytes")))
            .chain([("conversation", total, 0, CONVERSATION_BYTES_MAX, "bytes")])
            .chain(
                self.stop.iter().map(|stop| ("stop text", stop.len(), 1, STOP_BYTES_MAX, "bytes")),
            )
            .find(|(_, value, low, high, _)| value < low || value > high)
            .map(|(name, value, low, high, unit)| {
                format!("`{name}` is {value} {unit}, allowed are {low} to {high}")
            })
    }

    /// Returns the SHA-256 of the request's canonical bytes.
    ///
    /// The bytes are: `arena/request/v1`, a zero byte, model, number of messages, each message
    /// as role (one byte: 0 system, 1 user, 2 assistant) and text, `max_tokens`,
    /// `temperature_milli`, `top_p_milli`, number of stop texts, each stop text, seat seed (u64),
    /// call index. Texts are preceded by their length in bytes. Numbers are u32 where nothing
    /// else is said, big-endian.
    pub fn sha256(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        hash.update(b"arena/request/v1\0");
        hash_text(&mut hash, &self.model);
        hash_count(&mut hash, self.messages.len());
        for message in &self.messages {
            hash.update([message.role as u8]);
            hash_text(&mut hash, &message.text);
        }
        for number in [self.max_tokens, self.temperature_milli, self.top_p_milli] {
            hash.update(number.to_be_bytes());
        }
        hash_count(&mut hash, self.stop.len());
        for stop in &self.stop {
            hash_text(&mut hash, stop);
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
    use super::*;

    type Change = fn(&mut Request);

    fn request() -> Request {
        Request {
            model: "small".to_owned(),
            messages: vec![Message { role: ChatRole::User, text: "What do you pay?".to_owned() }],
            max_tokens: 64,
            temperature_milli: 700,
            top_p_milli: 950,
            stop: vec!["\n".to_owned()],
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
        let cases: [(Change, &str); 11] = [
            (|r| r.model.clear(), "`model` is 0 bytes, allowed are 1 to 64"),
            (|r| r.model = "m".repeat(65), "`model` is 65 bytes, allowed are 1 to 64"),
            (|r| r.messages.clear(), "`messages` is 0 messages, allowed are 1 to 1024"),
            (|r| r.max_tokens = 0, "`max-tokens` is 0 tokens, allowed are 1 to 32768"),
            (|r| r.max_tokens = 32_769, "`max-tokens` is 32769 tokens, allowed are 1 to 32768"),
            (
                |r| r.temperature_milli = u32::MAX,
                "`temperature-milli` is 4294967295 thousandths, allowed are 0 to 2000",
            ),
            (|r| r.top_p_milli = 0, "`top-p-milli` is 0 thousandths, allowed are 1 to 1000"),
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
        let cases: [Change; 11] = [
            |_| (),
            |r| r.model.push('!'),
            |r| r.messages[0].text.push('!'),
            |r| r.messages[0].role = ChatRole::System,
            |r| r.messages.push(r.messages[0].clone()),
            |r| r.max_tokens += 1,
            |r| r.temperature_milli += 1,
            |r| r.top_p_milli += 1,
            |r| r.stop.clear(),
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
        assert_eq!(hex, "d64c5bc6607a3655c7989ddc0c532e02789b89217c741933b01a8bad904a351b");
    }
}
