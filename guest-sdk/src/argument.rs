//! Recognises arguments in the opponent's words, by the words that give them away.
//!
//! Each kind counts once, however often it is repeated. It is a plain search for English words;
//! whoever wants to be persuaded by meaning asks a language model.

use crate::game::Role;

/// A kind of argument: its name, and the words that give it away, in lower case.
type Kind = (&'static str, [&'static str; 4]);

/// What a buyer may bring forward.
const OF_A_BUYER: [Kind; 5] = [
    ("its condition", ["used", "scratch", "defect", "damage"]),
    ("other sellers", ["elsewhere", "competitor", "other seller", "cheaper"]),
    ("past prices", ["price history", "lowest price", "average price", "last month"]),
    ("your budget", ["budget", "afford", "student", "savings"]),
    ("a quick deal", ["today", "right now", "cash", "immediately"]),
];

/// What a seller may bring forward.
const OF_A_SELLER: [Kind; 5] = [
    ("its quality", ["quality", "brand new", "durable", "best in class"]),
    ("the warranty", ["warranty", "guarantee", "returns", "support"]),
    ("the demand", ["other buyer", "demand", "selling fast", "popular"]),
    ("your costs", ["cost", "margin", "shipping", "wholesale"]),
    ("how rare it is", ["rare", "limited", "last one", "few left"]),
];

/// Bytes of one turn's talk that are searched.
const TALK_BYTES_MAX: usize = 2_048;

/// The kinds of argument heard so far.
#[derive(Clone, Debug)]
pub struct Arguments {
    kinds: [Kind; 5],
    heard: [bool; 5],
}

impl Arguments {
    /// Starts listening to an opponent in that role.
    pub fn of(opponent: Role) -> Arguments {
        let kinds = match opponent {
            Role::Buyer => OF_A_BUYER,
            Role::Seller => OF_A_SELLER,
        };
        Arguments { kinds, heard: [false; 5] }
    }

    /// Notes the arguments in one turn's talk and returns the name of the first new one.
    pub fn hear(&mut self, talk: &str) -> Option<&'static str> {
        let mut first = None;
        for (kind, found) in self.find(talk).into_iter().enumerate() {
            if found && !self.heard[kind] {
                self.heard[kind] = true;
                first = first.or(Some(self.kinds[kind].0));
            }
        }
        first
    }

    /// Returns which kinds one turn's talk has, heard before or not, and notes nothing.
    pub fn find(&self, talk: &str) -> [bool; 5] {
        let talk = talk[..talk.floor_char_boundary(TALK_BYTES_MAX)].to_ascii_lowercase();
        self.kinds.map(|(_, words)| words.iter().any(|word| talk.contains(word)))
    }

    /// Returns which kinds were heard.
    pub fn heard(&self) -> [bool; 5] {
        self.heard
    }

    /// Returns how many kinds were heard.
    pub fn count(&self) -> u32 {
        self.heard.iter().map(|heard| u32::from(*heard)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_argument_counts_once() {
        let mut arguments = Arguments::of(Role::Buyer);
        assert_eq!(
            arguments.hear("It is CHEAPER elsewhere, and it has a scratch."),
            Some("its condition")
        );
        assert_eq!(arguments.count(), 2);
        assert_eq!(arguments.hear("Cheaper! Cheaper!"), None);
        assert_eq!(arguments.hear("I pay cash."), Some("a quick deal"));
        assert_eq!(arguments.count(), 3);
    }

    #[test]
    fn finding_arguments_notes_nothing() {
        let mut arguments = Arguments::of(Role::Buyer);
        let talk = "On last month's price history, with my savings!";
        assert_eq!(arguments.find(talk), [false, false, true, true, false]);
        assert_eq!(arguments.heard(), [false; 5]);
        assert_eq!(arguments.hear(talk), Some("past prices"));
        assert_eq!(arguments.heard(), arguments.find(talk));
    }

    #[test]
    fn long_talk_is_cut_between_characters() {
        let mut arguments = Arguments::of(Role::Seller);
        assert_eq!(arguments.hear(&"é".repeat(5_000)), None);
        assert_eq!(arguments.hear(&format!("{}rare", " ".repeat(TALK_BYTES_MAX))), None);
        assert_eq!(arguments.hear("rare"), Some("how rare it is"));
    }
}
