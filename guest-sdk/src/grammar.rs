//! Grammars that bind what a language model writes: Lark text as llguidance reads it.
//!
//! [`answer`] allows exactly the three lines that [`crate::reply`] reads, with one sentence of
//! thought, one or two of talk, each of a bounded length, and only the actions that are legal
//! now, so that even a very small model gives an answer that can be played. [`sentence`] allows
//! one sentence.
//!
//! A grammar may hold a seat's reserve, as the bound of its offers: it goes to the own model and
//! to nobody else. What the opponent learns is the offer, as it would from any strategy.
//!
//! Not here: whether a host has an engine that reads grammars; one that has none refuses them.

use crate::game::{Role, dollars};
use crate::params::{ParamError, Params};
use crate::view::View;

/// Most deals that are spelled out, so that a grammar stays below the host's 4 KiB.
const DEALS_MAX: usize = 16;

/// The actions that an answer may name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Legal {
    /// Who moves.
    pub role: Role,
    /// The lowest and the highest price that may be offered, in cents; `None` for no offer.
    pub offers: Option<[u32; 2]>,
    /// The prices at which a deal may be named, in cents; the first sixteen count.
    pub deals: Vec<u32>,
    /// Whether the negotiation may be left.
    pub may_quit: bool,
}

impl Legal {
    /// Returns what a seat may do now that goes no further than `limit`, its reserve or less.
    ///
    /// Offers lie between the own start and the limit, below the opponent's standing offer from a
    /// buyer and above it from a seller, where a deal would be better, and concede at least
    /// `step` cents more than the last own one: to keep a price is to pass.
    pub fn now(view: &View, limit: u32, step: u32) -> Legal {
        let (last, standing) = (view.own.last().copied(), view.standing());
        let offers = match view.role {
            Role::Buyer => {
                let low = last.map_or(view.start(), |cents| cents.saturating_add(step));
                let high = standing.map_or(limit, |cents| limit.min(cents.saturating_sub(1)));
                [low, high]
            }
            Role::Seller => {
                let high = last.map_or(view.start(), |cents| cents.saturating_sub(step));
                let low = standing.map_or(limit, |cents| limit.max(cents.saturating_add(1)));
                [low, high]
            }
        };
        let mut deals = view.available();
        deals.retain(|cents| view.role.likes(*cents, limit));
        Legal {
            role: view.role,
            offers: (offers[0] <= offers[1]).then_some(offers),
            deals,
            may_quit: view.heard_count > 0,
        }
    }
}

/// Most characters of an answer's texts, the point in a number not counted; at least two are
/// always allowed. A sentence of talk may take half of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lengths {
    /// Of the thought.
    pub thought: u32,
    /// Of the talk.
    pub talk: u32,
}

impl Lengths {
    /// Takes the parameters `thought` (120) and `talk` (160).
    ///
    /// # Errors
    /// A parameter that cannot be read.
    pub fn take(params: &mut Params) -> Result<Lengths, ParamError> {
        Ok(Lengths {
            thought: params.count("thought", 120, [1, 1_000])?,
            talk: params.count("talk", 160, [0, 1_000])?,
        })
    }
}

/// Returns the grammar of an answer in three lines. To pass is always legal.
pub fn answer(legal: &Legal, lengths: Lengths) -> String {
    let verb = verb(legal.role);
    let prices = legal.offers.and_then(|[low, high]| amounts(low, high));
    let offer = prices.iter().map(|_| format!("\"{verb} $\" PRICE"));
    let deals = legal.deals.iter().take(DEALS_MAX);
    let deals = deals.map(|cents| format!("\"DEAL {}\"", dollars(*cents)));
    let quit = legal.may_quit.then(|| "\"QUIT\"".to_owned());
    let actions: Vec<String> =
        offer.chain(deals).chain(["\"REJECT\"".to_owned()]).chain(quit).collect();
    let mut text = format!(
        "start: \"Thought: \" THOUGHT \"\\nTalk: \" TALK (\" \" TALK)? \"\\nAction: [\" action \"]\"\n\
         action: {}\n\
         THOUGHT: {}\n\
         TALK: {}\n",
        actions.join(" | "),
        sentence_terminal(lengths.thought),
        sentence_terminal(lengths.talk / 2),
    );
    if let Some(prices) = prices {
        text.push_str(&format!("PRICE: /{prices}/\n"));
    }
    text
}

/// Returns the grammar of one sentence of at most so many characters.
pub fn sentence(chars_max: u32) -> String {
    format!("start: TALK\nTALK: {}\n", sentence_terminal(chars_max))
}

/// Returns the tag of an offer: `BUY` or `SELL`.
pub fn verb(role: Role) -> &'static str {
    match role {
        Role::Buyer => "BUY",
        Role::Seller => "SELL",
    }
}

/// A terminal of one visible sentence with its full stop, so that small models come to an end. A
/// point before a digit belongs to a number. Brackets are left out, so that a text cannot look
/// like an action.
fn sentence_terminal(chars_max: u32) -> String {
    const NEVER: &str = "\\t\\r\\n\\[\\]";
    let more = chars_max.saturating_sub(2);
    format!("/[^ .!?{NEVER}]([^.!?{NEVER}]|\\.[0-9]){{0,{more}}}[.!?]/")
}

/// Returns a regular expression for the amounts from `low` to `high` cents: dollars with no or
/// two decimals, `12` or `12.50`, and no needless zero in front. `None` if there is no amount.
pub fn amounts(low: u32, high: u32) -> Option<String> {
    if low > high {
        return None;
    }
    let ([first, last], [from, to]) = ([low / 100, high / 100], [low % 100, high % 100]);
    if first == last {
        return Some(within_dollar(first, from, to));
    }
    let mut options = vec![within_dollar(first, from, 99)];
    if first + 1 < last {
        options.push(format!("({})(\\.[0-9]{{2}})?", numbers(first + 1, last - 1).join("|")));
    }
    options.push(within_dollar(last, 0, to));
    Some(options.join("|"))
}

/// Amounts of so many whole dollars and `from` to `to` cents.
fn within_dollar(whole: u32, from: u32, to: u32) -> String {
    let mut cents = Vec::new();
    same_width("", &format!("{from:02}"), &format!("{to:02}"), &mut cents);
    let optional = if from == 0 { "?" } else { "" };
    format!("{whole}(\\.({})){optional}", cents.join("|"))
}

/// Whole numbers from `low` to `high`, as alternatives.
fn numbers(low: u32, high: u32) -> Vec<String> {
    let mut options = Vec::new();
    let (mut from, last) = (u64::from(low), u64::from(high));
    // Numbers of one count of digits at a time, of which there are at most ten.
    while from <= last {
        let power = 10_u64.pow(from.to_string().len() as u32);
        let to = last.min(power - 1);
        same_width("", &from.to_string(), &to.to_string(), &mut options);
        from = power;
    }
    options
}

/// Adds alternatives for the numbers from `low` to `high`, which have equally many digits,
/// behind a common prefix. It calls itself once for each digit at most twice.
fn same_width(prefix: &str, low: &str, high: &str, options: &mut Vec<String>) {
    let (Some(first), Some(last)) = (low.bytes().next(), high.bytes().next()) else {
        options.push(prefix.to_owned());
        return;
    };
    let (low_rest, high_rest) = (&low[1..], &high[1..]);
    let behind = |digit: u8| format!("{prefix}{}", char::from(digit));
    if first == last {
        same_width(&behind(first), low_rest, high_rest, options);
        return;
    }
    let (lowest, highest) = ("0".repeat(low_rest.len()), "9".repeat(low_rest.len()));
    let low_is_whole = low_rest == lowest;
    let high_is_whole = high_rest == highest;
    if !low_is_whole {
        same_width(&behind(first), low_rest, &highest, options);
    }
    let from = char::from(first + u8::from(!low_is_whole));
    let to = char::from(last - u8::from(!high_is_whole));
    if from <= to {
        let free = "[0-9]".repeat(low_rest.len());
        options.push(format!("{prefix}[{from}-{to}]{free}"));
    }
    if !high_is_whole {
        same_width(&behind(last), &lowest, high_rest, options);
    }
}

#[cfg(test)]
mod tests {
    use regex::Regex;

    use super::*;
    use crate::reply;

    const LENGTHS: Lengths = Lengths { thought: 120, talk: 80 };

    fn matcher(low: u32, high: u32) -> Regex {
        let pattern = amounts(low, high).expect("a range with something in it");
        Regex::new(&format!("^({pattern})$")).expect("a regular expression")
    }

    #[test]
    fn an_amount_matches_exactly_when_it_lies_in_the_range() {
        let ranges = [
            (0, 0),
            (1, 2_000),
            (100, 100),
            (999, 1_000),
            (1_005, 1_050),
            (1_999, 10_001),
            (7_000, 16_000),
            (9_999, 12_345),
        ];
        for (low, high) in ranges {
            let matcher = matcher(low, high);
            for cents in 0..20_000_u32 {
                let inside = (low..=high).contains(&cents);
                let (whole, rest) = (cents / 100, cents % 100);
                let long = format!("{whole}.{rest:02}");
                assert_eq!(matcher.is_match(&long), inside, "{long} in {low}..={high}");
                if rest == 0 {
                    let short = whole.to_string();
                    assert_eq!(matcher.is_match(&short), inside, "{short} in {low}..={high}");
                }
            }
            for other in ["", "00", "012", "1.5", "1.505", "1.", ".50", "1,000", "-1", "1e3"] {
                assert!(!matcher.is_match(other), "{other:?} in {low}..={high}");
            }
        }
        assert_eq!(amounts(2, 1), None);
    }

    #[test]
    fn the_largest_price_has_a_short_pattern() {
        let matcher = matcher(1, u32::MAX);
        for (text, inside) in
            [("0.01", true), ("0", false), ("42949672.95", true), ("42949672.96", false)]
        {
            assert_eq!(matcher.is_match(text), inside, "{text}");
        }
        let pattern = amounts(1, u32::MAX).expect("a range");
        assert!(pattern.len() < 600, "{} bytes", pattern.len());
    }

    #[test]
    fn an_answer_is_bound_to_three_lines_and_the_legal_actions() {
        let legal = Legal {
            role: Role::Buyer,
            offers: Some([7_000, 16_000]),
            deals: vec![15_000],
            may_quit: true,
        };
        let expected = [
            "start: \"Thought: \" THOUGHT \"\\nTalk: \" TALK (\" \" TALK)? \
             \"\\nAction: [\" action \"]\"",
            "action: \"BUY $\" PRICE | \"DEAL $150.00\" | \"REJECT\" | \"QUIT\"",
            &format!("THOUGHT: {}", sentence_terminal(120)),
            &format!("TALK: {}", sentence_terminal(40)),
            &format!("PRICE: /{}/", amounts(7_000, 16_000).expect("a range")),
            "",
        ];
        assert_eq!(answer(&legal, LENGTHS), expected.join("\n"));
    }

    #[test]
    fn a_sentence_ends_with_its_stop_and_may_hold_an_amount() {
        let terminal = sentence_terminal(24);
        let pattern = terminal.trim_matches('/');
        let matcher = Regex::new(&format!("^(?:{pattern})$")).expect("a regular expression");
        for text in ["Yes.", "I give $12.50 for it!", "Is it \"new\" \\ é?"] {
            assert!(matcher.is_match(text), "{text}");
        }
        let others =
            ["", ".", "No", " No.", "No. Yes.", "a\nb.", "a [x].", "12345678901234567890abcd."];
        for text in others {
            assert!(!matcher.is_match(text), "{text}");
        }
    }

    #[test]
    fn what_is_not_legal_is_not_in_the_grammar() {
        let legal = Legal { role: Role::Seller, offers: None, deals: vec![], may_quit: false };
        let text = answer(&legal, LENGTHS);
        assert!(text.contains("\naction: \"REJECT\"\n"), "{text}");
        assert!(!text.contains("PRICE") && !text.contains("SELL"), "{text}");
        let offers = Legal { offers: Some([100, 200]), ..legal };
        let text = answer(&offers, LENGTHS);
        assert!(text.contains("\naction: \"SELL $\" PRICE | \"REJECT\"\n"), "{text}");
    }

    #[test]
    fn the_longest_grammar_is_below_the_hosts_limit() {
        let legal = Legal {
            role: Role::Seller,
            offers: Some([1, u32::MAX]),
            deals: vec![u32::MAX; 1_000],
            may_quit: true,
        };
        let lengths = Lengths { thought: 1_000, talk: 1_000 };
        assert!(answer(&legal, lengths).len() < 4 << 10);
    }

    #[test]
    fn an_answer_of_the_grammars_shape_can_be_read() {
        let text = "Thought: They ask a lot.\nTalk: $70?\nAction: [BUY $70]";
        assert!(reply::read(text, Role::Buyer).is_ok());
        let text = "Thought: Good.\nTalk: Agreed.\nAction: [DEAL $150.00]";
        assert!(reply::read(text, Role::Seller).is_ok());
    }
}
