//! The agent's parameters: `key=value` pairs from the tournament file.
//!
//! Pairs are separated by white space or commas, for example `b=0.5 low=20%`. An unknown key, a
//! key given twice or a value that cannot be read is an error, never ignored.

use std::fmt;

use crate::game::Brief;

/// Longest text that is read, in bytes; the same as the host's limit.
const TEXT_BYTES_MAX: usize = 4_096;

/// Reads the parameters of a brief with `build`, which takes the keys that the agent knows.
///
/// # Panics
/// If the text is malformed, `build` fails or a key is left over. In a component this is a
/// trap, and the message is in the trace.
pub fn read<T>(brief: &Brief, build: impl FnOnce(&mut Params) -> Result<T, ParamError>) -> T {
    let built = Params::parse(&brief.params).and_then(|mut params| {
        let built = build(&mut params)?;
        params.finish()?;
        Ok(built)
    });
    built.unwrap_or_else(|error| panic!("{error}"))
}

/// Pairs that were given and not taken yet.
#[derive(Clone, Debug)]
pub struct Params {
    pairs: Vec<(String, String)>,
    known: Vec<&'static str>,
}

impl Params {
    /// Splits a text into pairs.
    ///
    /// # Errors
    /// A piece without `=`, an empty key, a key given twice, more than 4096 bytes.
    pub fn parse(text: &str) -> Result<Params, ParamError> {
        if text.len() > TEXT_BYTES_MAX {
            return Err(ParamError::TooLong { bytes: text.len() });
        }
        let mut pairs: Vec<(String, String)> = Vec::new();
        let pieces = text.split(|c: char| c.is_whitespace() || c == ',');
        for piece in pieces.filter(|piece| !piece.is_empty()) {
            let Some((key, value)) = piece.split_once('=').filter(|(key, _)| !key.is_empty())
            else {
                return Err(ParamError::NotAPair { piece: piece.to_owned() });
            };
            if pairs.iter().any(|(known, _)| known == key) {
                return Err(ParamError::Twice { key: key.to_owned() });
            }
            pairs.push((key.to_owned(), value.to_owned()));
        }
        Ok(Params { pairs, known: Vec::new() })
    }

    /// Takes a value as it was written.
    pub fn text(&mut self, key: &'static str) -> Option<String> {
        self.known.push(key);
        let place = self.pairs.iter().position(|(given, _)| given == key)?;
        Some(self.pairs.remove(place).1)
    }

    /// Takes a number from `low` to `high`: digits and at most six decimals.
    ///
    /// # Errors
    /// Not such a number, or outside the range.
    pub fn number(
        &mut self,
        key: &'static str,
        default: f64,
        [low, high]: [f64; 2],
    ) -> Result<f64, ParamError> {
        let Some(text) = self.text(key) else {
            return Ok(default);
        };
        let number = decimal(&text).filter(|number| (low..=high).contains(number));
        let expected = || format!("a number from {} to {}", plain(low), plain(high));
        number.ok_or_else(|| bad(key, &text, expected()))
    }

    /// Takes a whole number from `low` to `high`.
    ///
    /// # Errors
    /// Not a whole number, or outside the range.
    pub fn count(
        &mut self,
        key: &'static str,
        default: u32,
        [low, high]: [u32; 2],
    ) -> Result<u32, ParamError> {
        let Some(text) = self.text(key) else {
            return Ok(default);
        };
        match text.parse::<u32>() {
            Ok(number) if (low..=high).contains(&number) => Ok(number),
            _ => Err(bad(key, &text, format!("a whole number from {low} to {high}"))),
        }
    }

    /// Takes a share such as `12.5%`, from 0 % to 100 %, as a number from 0 to 1.
    ///
    /// # Errors
    /// Not a percentage, or outside the range.
    pub fn share(&mut self, key: &'static str, default: f64) -> Result<f64, ParamError> {
        let Some(text) = self.text(key) else {
            return Ok(default);
        };
        let share = percentage(&text).filter(|share| *share <= 1.0);
        share.ok_or_else(|| bad(key, &text, "a percentage from 0% to 100%".to_owned()))
    }

    /// Takes a range such as `0.5/2` or `5%/12.5%`, or one number for both of its ends.
    ///
    /// # Errors
    /// Not one or two numbers or percentages, outside of the bounds, or the ends the wrong way
    /// round.
    pub fn range(
        &mut self,
        key: &'static str,
        default: [f64; 2],
        [low, high]: [f64; 2],
    ) -> Result<[f64; 2], ParamError> {
        let Some(text) = self.text(key) else {
            return Ok(default);
        };
        let (first, last) = text.split_once('/').unwrap_or((&text, &text));
        let read = |end: &str| percentage(end).or_else(|| decimal(end));
        match (read(first), read(last)) {
            (Some(first), Some(last)) if low <= first && first <= last && last <= high => {
                Ok([first, last])
            }
            _ => {
                let [low, high] = [plain(low), plain(high)];
                Err(bad(key, &text, format!("a range such as `{low}/{high}`, within that")))
            }
        }
    }

    /// Takes shares joined by `/`, such as `44%/63%/95%`: at least one, at most `count_max`.
    ///
    /// # Errors
    /// Too many, or one that is not a percentage from 0 % to 100 %.
    pub fn shares(
        &mut self,
        key: &'static str,
        count_max: usize,
    ) -> Result<Option<Vec<f64>>, ParamError> {
        let Some(text) = self.text(key) else {
            return Ok(None);
        };
        let read = |piece| percentage(piece).filter(|share| *share <= 1.0);
        let shares: Option<Vec<f64>> = text.split('/').map(read).collect();
        let expected = || format!("up to {count_max} percentages joined by `/`");
        match shares.filter(|shares| shares.len() <= count_max) {
            Some(shares) => Ok(Some(shares)),
            None => Err(bad(key, &text, expected())),
        }
    }

    /// Takes a price: cents such as `1250`, or a percentage of `whole` (the list price) such
    /// as `20%`, rounded down to a cent.
    ///
    /// # Errors
    /// Neither cents nor a percentage from 0 % to 1000 %.
    pub fn price(&mut self, key: &'static str, whole: u32) -> Result<Option<u32>, ParamError> {
        let Some(text) = self.text(key) else {
            return Ok(None);
        };
        let share = percentage(&text).filter(|share| *share <= 10.0);
        let cents = match share {
            Some(share) => Some((share * f64::from(whole)).min(f64::from(u32::MAX)) as u32),
            None => text.parse::<u32>().ok(),
        };
        let expected = || "cents, or a percentage of the list price".to_owned();
        cents.map(Some).ok_or_else(|| bad(key, &text, expected()))
    }

    /// Takes one of the named choices and returns its place; the first is the default.
    ///
    /// # Errors
    /// None of the choices.
    pub fn choice(&mut self, key: &'static str, choices: &[&str]) -> Result<usize, ParamError> {
        let Some(text) = self.text(key) else {
            return Ok(0);
        };
        let place = choices.iter().position(|choice| *choice == text);
        place.ok_or_else(|| bad(key, &text, format!("one of: {}", choices.join(", "))))
    }

    /// Checks that every pair was taken.
    ///
    /// # Errors
    /// A key that nothing asked for.
    pub fn finish(self) -> Result<(), ParamError> {
        match self.pairs.into_iter().next() {
            Some((key, _)) => Err(ParamError::Unknown { key, known: self.known }),
            None => Ok(()),
        }
    }
}

fn percentage(text: &str) -> Option<f64> {
    Some(decimal(text.strip_suffix('%')?)? / 100.0)
}

/// Reads digits and at most six decimals. The standard library's reader would do, but it makes
/// every component a third larger.
fn decimal(text: &str) -> Option<f64> {
    const DECIMALS_MAX: usize = 6;
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || fraction.len() > DECIMALS_MAX {
        return None;
    }
    let millionths = format!("{whole}{fraction:0<DECIMALS_MAX$}").parse::<u64>().ok()?;
    Some(millionths as f64 / 1e6)
}

/// Writes a number of at most six decimals.
fn plain(number: f64) -> String {
    let millionths = (number * 1e6 + 0.5) as u64;
    let text = format!("{}.{:06}", millionths / 1_000_000, millionths % 1_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn bad(key: &'static str, value: &str, expected: String) -> ParamError {
    ParamError::Value { key, value: value.to_owned(), expected }
}

/// Why parameters were refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParamError {
    /// The text is longer than any host hands over.
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// A piece that is not `key=value`.
    NotAPair {
        /// The piece.
        piece: String,
    },
    /// A key that comes twice.
    Twice {
        /// The key.
        key: String,
    },
    /// A key that this agent does not know.
    Unknown {
        /// The key.
        key: String,
        /// The keys that it knows.
        known: Vec<&'static str>,
    },
    /// A value that this key cannot have.
    Value {
        /// The key.
        key: &'static str,
        /// The value as written.
        value: String,
        /// What it must be.
        expected: String,
    },
}

impl fmt::Display for ParamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ParamError::TooLong { bytes } => {
                write!(f, "parameters have {bytes} bytes, at most {TEXT_BYTES_MAX} are read")
            }
            ParamError::NotAPair { piece } => write!(f, "parameter `{piece}` is not `key=value`"),
            ParamError::Twice { key } => write!(f, "parameter `{key}` is given twice"),
            ParamError::Unknown { key, known } => {
                write!(f, "unknown parameter `{key}`: this agent knows {}", known.join(", "))
            }
            ParamError::Value { key, value, expected } => {
                write!(f, "parameter `{key}` is `{value}`, expected {expected}")
            }
        }
    }
}

impl std::error::Error for ParamError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(text: &str) -> Params {
        Params::parse(text).expect("the text is well formed")
    }

    #[test]
    fn pairs_are_taken_by_key() {
        let mut given = params("b=0.5, low=20%  high=1250,turns=7 mode=absolute");
        assert_eq!(given.number("b", 1.0, [0.0, 9.0]), Ok(0.5));
        assert_eq!(given.number("k", 0.25, [0.0, 1.0]), Ok(0.25));
        assert_eq!(given.price("low", 999), Ok(Some(199)));
        assert_eq!(given.price("high", 999), Ok(Some(1_250)));
        assert_eq!(given.count("turns", 1, [1, 10]), Ok(7));
        assert_eq!(given.choice("mode", &["relative", "absolute"]), Ok(1));
        assert_eq!(given.share("kindness", 0.01), Ok(0.01));
        assert_eq!(given.finish(), Ok(()));
    }

    #[test]
    fn malformed_text_is_refused() {
        for text in ["b", "=1", "b=1 b=2", "b=1 c", "b = 1"] {
            assert!(Params::parse(text).is_err(), "{text}");
        }
        assert!(Params::parse(&"a=1 ".repeat(2_000)).is_err());
    }

    #[test]
    fn values_outside_their_range_are_refused() {
        for text in [
            "b=",
            "b=x",
            "b=NaN",
            "b=inf",
            "b=-1",
            "b=10",
            "b=.5",
            "b=1.",
            "b=1e0",
            "b=+1",
            "b=0.1234567",
            "b=99999999999999999999",
            "b=1;c",
        ] {
            let error = params(text).number("b", 1.0, [0.25, 9.0]).expect_err(text);
            assert!(error.to_string().ends_with("expected a number from 0.25 to 9"), "{error}");
        }
        for text in ["low=-1", "low=1.5", "low=2000%", "low=%", "low=99999999999", "low=NaN%"] {
            assert!(params(text).price("low", 100).is_err(), "{text}");
        }
        assert!(params("mode=other").choice("mode", &["relative"]).is_err());
        assert!(params("kindness=0.5").share("kindness", 0.0).is_err());
    }

    #[test]
    fn a_range_has_two_ends_or_one() {
        let range = |text: &str| params(text).range("b", [0.5, 1.0], [0.25, 9.0]);
        assert_eq!(range(""), Ok([0.5, 1.0]));
        assert_eq!(range("b=0.5/2"), Ok([0.5, 2.0]));
        assert_eq!(range("b=25%/50%"), Ok([0.25, 0.5]));
        assert_eq!(range("b=3"), Ok([3.0, 3.0]));
        for text in ["b=", "b=/", "b=2/1", "b=0.2/1", "b=1/10", "b=1/2/3", "b=x/2", "b=1/-2"] {
            let error = range(text).expect_err(text).to_string();
            assert!(error.ends_with("expected a range such as `0.25/9`, within that"), "{error}");
        }
    }

    #[test]
    fn a_key_that_nothing_asked_for_is_named() {
        let mut given = params("bb=1");
        let _ = given.number("b", 1.0, [0.0, 9.0]);
        let error = given.finish().expect_err("`bb` is left over");
        assert_eq!(error.to_string(), "unknown parameter `bb`: this agent knows b");
    }
}
