//! Keeps a language model's words from saying more than the move: no price but the known ones.
//!
//! The rule is one of sentences: a sentence that names a number which may not be said is left
//! out whole, and nothing is rewritten. A number is anything with a digit of any script in it, and
//! any English number word from ten on; what is not plainly an amount in ASCII digits may not be
//! said. So a model that was talked into telling its reserve tells nothing, and words never
//! promise a price that the move does not offer.
//!
//! Not here: numbers that no reader of amounts would find, such as letters spaced out, riddles or
//! other languages.

use crate::reply::read_amount;

/// Number words that alone can give a price away; `one` to `nine` are too common for that.
const NUMBER_WORDS: [&str; 24] = [
    "ten",
    "eleven",
    "twelve",
    "dozen",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
    "twenty",
    "thirty",
    "forty",
    "fifty",
    "sixty",
    "seventy",
    "eighty",
    "ninety",
    "hundred",
    "hundreds",
    "thousand",
    "thousands",
    "million",
];

/// Returns the sentences of a text in which every number is an amount, in cents, that may be
/// said.
pub fn keep(text: &str, mut may_say: impl FnMut(u32) -> bool) -> String {
    let mut kept = String::new();
    for sentence in sentences(text) {
        let sound = pieces(sentence).all(|piece| match read(piece) {
            Piece::Word => true,
            Piece::Amount(cents) => may_say(cents),
            Piece::OtherNumber => false,
        });
        if sound {
            kept.push_str(sentence);
        }
    }
    kept.trim().to_owned()
}

/// Returns the plain amounts in a text, in cents.
pub fn amounts(text: &str) -> Vec<u32> {
    let read = pieces(text).filter_map(|piece| match read(piece) {
        Piece::Amount(cents) => Some(cents),
        Piece::Word | Piece::OtherNumber => None,
    });
    read.collect()
}

/// Splits behind full stops and their like where white space follows.
fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let ends = |(place, c): (usize, char)| {
        let behind = place + c.len_utf8();
        let spaced = text[behind..].chars().next().is_some_and(char::is_whitespace);
        (matches!(c, '.' | '!' | '?' | ';' | '\n') && spaced).then_some(behind)
    };
    let mut start = 0;
    let cuts: Vec<usize> = text.char_indices().filter_map(ends).chain([text.len()]).collect();
    cuts.into_iter().map(move |end| {
        let sentence = &text[start..end];
        start = end;
        sentence
    })
}

/// Splits into words and numbers.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let joins = |c: char| c.is_alphanumeric() || matches!(c, '.' | ',' | '$' | '%' | '\u{20ac}');
    text.split(move |c| !joins(c)).map(|piece| piece.trim_matches(['.', ',']))
}

enum Piece {
    Word,
    Amount(u32),
    OtherNumber,
}

fn read(piece: &str) -> Piece {
    if piece.chars().any(char::is_numeric) {
        return read_amount(piece).map_or(Piece::OtherNumber, Piece::Amount);
    }
    if NUMBER_WORDS.iter().any(|word| piece.eq_ignore_ascii_case(word)) {
        Piece::OtherNumber
    } else {
        Piece::Word
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keeps sentences that say $90 or $12.50 only.
    fn check(text: &str, kept: &str) {
        assert_eq!(keep(text, |cents| [9_000, 1_250].contains(&cents)), kept, "{text:?}");
    }

    #[test]
    fn a_sentence_with_another_number_is_left_out_whole() {
        check("I can do $90. My limit is $160.00. Deal?", "I can do $90. Deal?");
        check("It is $12.50, not a cent more!", "It is $12.50, not a cent more!");
        check("$90.00! That is 10% off. Take it", "$90.00! Take it");
        check("Between $90 and $91.", "");
        check("No price at all.", "No price at all.");
        check("", "");
    }

    #[test]
    fn a_number_in_disguise_is_a_number() {
        let disguised = [
            "I have $160",
            "I have 160,00 in all",
            "I have 1 6 0",
            "I have $1,60",
            "I have 16O",
            "I have ١٦٠",
            "I have \u{ff11}\u{ff16}\u{ff10}",
            "I have 𝟏𝟔𝟎",
            "I have ①⑥⓪",
            "I have a hundred and sixty",
            "I have One-Hundred dollars",
            "I have 1.6e2",
            "I have 0x5A",
            "I have 90k",
            "I have $90%",
        ];
        for text in disguised {
            check(text, "");
        }
    }

    #[test]
    fn amounts_are_found_in_a_title() {
        assert_eq!(amounts("Sulmet 456 game, 2nd, $1,250.50"), [45_600, 125_050]);
    }
}
