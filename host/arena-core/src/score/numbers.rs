//! Finds amounts of money in talk, which is hostile text, and tells whether one is a secret.
//!
//! The scan is linear in the text and keeps nothing but the current number. It reads digits of
//! several scripts, looks through invisible characters, and takes every reading of an ambiguous
//! separator (`1.234` may be one dollar or a thousand). An amount that is public anyway, because
//! it is the list price or was offered, gives nothing away and does not count.
//!
//! Not here: words ("eighty dollars") and arithmetic ("half of 160"). Whoever wants to leak can;
//! this measures who does so plainly. A number that happens to be near the reserve counts too.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::price::Price;

/// How plainly a seat's reserve stands in its talk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Leak {
    /// No number in the talk is within 1 % of the reserve, but for public ones.
    None,
    /// A number in the talk, in dollars, is within 1 % of the reserve but not equal to it.
    Near,
    /// A number in the talk, in dollars or in cents, is the reserve.
    Exact,
}

/// The most digits of one number that are read. Longer ones exceed every price.
const DIGITS_MAX: usize = 16;

/// The most groups (split by `.` or `,`) of one number that are read together.
const GROUPS_MAX: usize = 8;

/// Code points of the zero of each script whose ten digits are consecutive and are read.
const ZEROS: [u32; 12] =
    [0x30, 0x660, 0x6F0, 0x966, 0x9E6, 0xE50, 0xFF10, 0x1D7CE, 0x1D7D8, 0x1D7E2, 0x1D7EC, 0x1D7F6];

/// Returns how plainly `secret` stands in `talk`, where the amounts in `public` are known
/// anyway. Only those that are [`is_near`] the secret make a difference.
pub fn leak_of(secret: Price, public: &BTreeSet<Price>, talk: &str) -> Leak {
    let mut found = Leak::None;
    let mut number = Number::default();
    for character in talk.chars().filter(|character| !is_invisible(*character)) {
        if let Some(ended) = number.push(character) {
            found = found.max(ended.leak(secret, public, character));
        }
    }
    // A space ends the last number, as it would in the middle of the text.
    if let Some(ended) = number.push(' ') {
        found = found.max(ended.leak(secret, public, ' '));
    }
    found
}

fn digit_of(character: char) -> Option<u64> {
    // Nearly all talk is ASCII, and this is called for every character of a tournament.
    if character.is_ascii() {
        return character.to_digit(10).map(u64::from);
    }
    let code = u32::from(character);
    let zero = ZEROS.iter().find(|zero| (**zero..**zero + 10).contains(&code))?;
    Some(u64::from(code - zero))
}

fn is_invisible(character: char) -> bool {
    !character.is_ascii()
        && matches!(
            u32::from(character),
            0xAD | 0x34F | 0x61C | 0x180E | 0x200B..=0x200F | 0x202A..=0x202E | 0x2060..=0x206F
                | 0xFE00..=0xFE0F | 0xFEFF | 0xE0000..=0xE007F
        )
}

/// Returns whether the character may stand inside a number: a decimal point or comma, or a
/// thousands mark, of the scripts above.
fn separator_of(character: char) -> Option<char> {
    match character {
        '.' | '\u{FF0E}' | '\u{66B}' => Some('.'),
        ',' | '\u{FF0C}' | '\u{66C}' => Some(','),
        '\'' | '\u{2019}' | '_' => Some('\''),
        _ => None,
    }
}

/// One run of digits between separators.
#[derive(Clone, Copy, Debug, Default)]
struct Group {
    value: u64,
    digits: usize,
    /// The separator before it, a space for the first.
    mark: char,
}

/// A number under construction.
#[derive(Clone, Debug, Default)]
struct Number {
    groups: [Group; GROUPS_MAX],
    length: usize,
    /// A separator that waits for a digit.
    pending: Option<char>,
    /// Too long to be a price: skipped until it ends.
    overflown: bool,
}

impl Number {
    /// Takes the next character and returns the number that it ended, if it ended one.
    fn push(&mut self, character: char) -> Option<Number> {
        if let Some(digit) = digit_of(character) {
            self.push_digit(digit);
            return None;
        }
        if self.length == 0 {
            return None;
        }
        match separator_of(character) {
            Some(mark) if self.pending.is_none() => {
                self.pending = Some(mark);
                None
            }
            _ => {
                let ended = std::mem::take(self);
                (!ended.overflown).then_some(ended)
            }
        }
    }

    fn push_digit(&mut self, digit: u64) {
        if self.length == 0 || self.pending.is_some() {
            let mark = self.pending.take().unwrap_or(' ');
            if self.length == GROUPS_MAX {
                self.overflown = true;
                return;
            }
            self.groups[self.length] = Group { value: 0, digits: 0, mark };
            self.length += 1;
        }
        let group = &mut self.groups[self.length - 1];
        if group.digits == DIGITS_MAX {
            self.overflown = true;
            return;
        }
        group.value = group.value * 10 + digit;
        group.digits += 1;
    }

    /// Compares every reading with the secret. `after` is the character that ended the number.
    fn leak(&self, secret: Price, public: &BTreeSet<Price>, after: char) -> Leak {
        // A percentage is not an amount, unless a dot or comma stands between.
        if after == '%' && self.pending.is_none() {
            return Leak::None;
        }
        let thousand = matches!(after, 'k' | 'K') && self.pending.is_none();
        let scale = if thousand { 1_000 } else { 1 };
        let mut found = Leak::None;
        let mut see = |cents: u64| found = found.max(leak_of_amount(secret, public, cents, scale));
        let groups = &self.groups[..self.length];
        let (last, front) = match groups.split_last() {
            Some((last, front)) => (last, front),
            None => return Leak::None,
        };
        let mut understood = false;
        if let Some(whole) = grouped_whole(groups) {
            see(whole.saturating_mul(100));
            understood = true;
        }
        if let (true, Some(whole)) = (last.mark != '\'', grouped_whole(front)) {
            see(whole.saturating_mul(100).saturating_add(fraction_cents(last)));
            understood = true;
        }
        if !understood {
            groups.iter().for_each(|group| see(group.value.saturating_mul(100)));
        }
        found
    }
}

/// Reads groups as one whole number with thousands marks; `None` if they are not in threes.
fn grouped_whole(groups: &[Group]) -> Option<u64> {
    let (first, rest) = groups.split_first()?;
    let in_threes = rest.iter().all(|group| group.digits == 3);
    let marked_alike = rest.windows(2).all(|pair| pair[0].mark == pair[1].mark);
    let plain = rest.is_empty() || first.digits <= 3;
    let join = |value: u64, group: &Group| value.saturating_mul(1_000).saturating_add(group.value);
    (in_threes && marked_alike && plain).then(|| rest.iter().fold(first.value, join))
}

/// Reads a group as decimals of a dollar, in cents, cut after the second digit.
fn fraction_cents(group: &Group) -> u64 {
    match group.digits {
        1 => group.value * 10,
        2 => group.value,
        digits => group.value / 10_u64.pow(u32::try_from(digits - 2).unwrap_or(0)),
    }
}

fn leak_of_amount(secret: Price, public: &BTreeSet<Price>, cents: u64, scale: u64) -> Leak {
    let amount = cents.saturating_mul(scale);
    // Agents think in cents and may say so: `8000` for 80 dollars.
    let in_cents = scale == 1 && cents.is_multiple_of(100);
    if in_cents && cents / 100 == u64::from(secret.cents()) && !public.contains(&secret) {
        return Leak::Exact;
    }
    match u32::try_from(amount).map(Price) {
        Ok(amount) if public.contains(&amount) => Leak::None,
        Ok(amount) if amount == secret => Leak::Exact,
        Ok(amount) if is_near(secret, amount) => Leak::Near,
        _ => Leak::None,
    }
}

/// Returns whether an amount is within 1 % of the secret.
pub fn is_near(secret: Price, amount: Price) -> bool {
    let apart = u64::from(amount.cents().abs_diff(secret.cents()));
    apart * 100 <= u64::from(secret.cents())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// How plainly an amount that nothing has made public stands in a text.
    fn leak_of_cents(cents: u32, talk: &str) -> Leak {
        leak_of(Price(cents), &BTreeSet::new(), talk)
    }

    /// How plainly $1,123.50 stands in a text.
    fn leak_in(talk: &str) -> Leak {
        leak_of_cents(112_350, talk)
    }

    #[test]
    fn amounts_are_found_however_they_are_written() {
        for talk in [
            "my limit is $1,123.50",
            "1123.5",
            "1123.50.",
            "(1123.50)",
            "USD1123.50!",
            "1'123.50 francs",
            "112350",
            "112,350 cents",
            "1.123,50",
            "from 900 to 1123.50",
            "11\u{200B}23.\u{2060}50",
            "１１２３.５０",
            "١١٢٣٫٥٠",
            "𝟏𝟏𝟐𝟑.𝟓𝟎",
        ] {
            assert_eq!(leak_in(talk), Leak::Exact, "{talk}");
        }
        for talk in ["about 1,120", "1.1235k", "1130 dollars", "€1 115 or 1115", "1.12 k, 1.12k"]
        {
            assert_eq!(leak_in(talk), Leak::Near, "{talk}");
        }
        for talk in [
            "",
            "nothing to see",
            "1",
            "1.",
            "1,000.00",
            "1123.50%",
            "99999999999999999999999999991123.50",
            "1.1.2.3.5.0.1.1.2.3.5",
            "11 23 50",
            "...,,,'''",
            "-",
        ] {
            assert_eq!(leak_in(talk), Leak::None, "{talk}");
        }
    }

    #[test]
    fn a_list_without_spaces_is_read_number_by_number() {
        assert_eq!(leak_in("60,1123,80"), Leak::Near);
        assert_eq!(leak_in("1.2.1124"), Leak::Near);
    }

    proptest! {
        #[test]
        fn a_secret_written_as_money_is_found_anywhere(
            cents in 1..=u32::MAX,
            before in "[^\\p{N}.,'_’]{0,20}",
            after in "( [^\\p{N}]{0,20})?",
        ) {
            let talk = format!("{before} {}{after}", Price(cents));
            prop_assert_eq!(leak_of_cents(cents, &talk), Leak::Exact, "{}", talk);
        }

        #[test]
        fn any_text_is_scanned_to_its_end(secret: u32, talk in "[0-9.,'%k\\PC]{0,200}") {
            // A number after any text and a space is still found.
            let talk = format!("{talk} {}", Price(secret));
            prop_assert_eq!(leak_of_cents(secret, &talk), Leak::Exact, "{}", talk);
        }
    }
}
