//! A language of some eighty words in which a small model bargains as a buyer.
//!
//! The list price is the unit: level `n` is `2n` percent of it. The model is told its budget once
//! and before each of its turns what the seller did, for example
//!
//! ```text
//! system     budget 40
//! user       begin left 6
//! assistant  offer 22 quote
//! user       asks 47 first left 5
//! assistant  accept
//! ```
//!
//! Levels are rounded so that rounding alone never exceeds the budget: the budget and own offers
//! down, the seller's prices up. A model goes beyond its budget only where it writes a level
//! above it, or accepts one.
//!
//! Not here: asking the model (`agents/compact-buyer`), its tokenizer (`arena-train`, which has
//! the same words).

use crate::game::{Event, Move};
use crate::view::View;

/// The highest level: 120 % of the list price.
pub const LEVEL_MAX: u32 = 60;
/// Cents of the list price in one level, as a divisor.
const LEVELS_PER_LIST_PRICE: u64 = 50;
/// Most tokens of a reply: `offer`, a level, an argument, the end of the turn.
pub const REPLY_TOKENS_MAX: u32 = 4;

/// The words for a buyer's kinds of argument, in the order of [`crate::argument`].
pub const ARGUMENTS: [&str; 5] = ["defect", "quote", "history", "means", "cash"];

/// What stands for each kind of argument in talk.
const WORDINGS: [[&str; 4]; 5] = [
    [
        "The photo shows a scratch.",
        "I can see some damage on it.",
        "It has a defect that you do not mention.",
        "For one that has been used, that is what it is worth.",
    ],
    [
        "It is cheaper elsewhere.",
        "A competitor of yours asks less.",
        "Some other seller has it for less.",
        "Two shops down the road are cheaper.",
    ],
    [
        "Look at its price history.",
        "The lowest price so far was well below yours.",
        "Your price is far above the average price.",
        "It was sold for less last month.",
    ],
    [
        "I cannot afford more.",
        "I am a student.",
        "My savings do not go further.",
        "More is not in my budget.",
    ],
    [
        "I pay in cash.",
        "I would take it today.",
        "I can pay right now.",
        "You get the money immediately.",
    ],
];

/// What a model decides in a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Offers a level, with an argument, which is a place in [`ARGUMENTS`], or without one.
    Offer {
        /// The level, at most [`LEVEL_MAX`].
        level: u32,
        /// The kind of argument.
        argument: Option<usize>,
    },
    /// Takes the best price that can be had.
    Accept,
    /// Leaves.
    Walk,
}

/// Reads a model's reply: `offer LEVEL`, `offer LEVEL ARGUMENT`, `accept` or `walk`, single spaces
/// between words and one before the first or none. Everything else is nothing.
pub fn read(reply: &str) -> Option<Act> {
    let mut words = reply.strip_prefix(' ').unwrap_or(reply).split(' ');
    let act = match words.next()? {
        "offer" => {
            let level = read_level(words.next()?)?;
            let place = |word| ARGUMENTS.iter().position(|known| *known == word);
            let argument = match words.next() {
                None => None,
                Some(word) => Some(place(word)?),
            };
            Act::Offer { level, argument }
        }
        "accept" => Act::Accept,
        "walk" => Act::Walk,
        _ => return None,
    };
    words.next().is_none().then_some(act)
}

fn read_level(word: &str) -> Option<u32> {
    let level: u32 = word.parse().ok()?;
    (level <= LEVEL_MAX && level.to_string() == word).then_some(level)
}

/// Returns the price of a level in cents, rounded down.
pub fn cents(level: u32, list_price: u32) -> u32 {
    let cents = u64::from(level) * u64::from(list_price) / LEVELS_PER_LIST_PRICE;
    u32::try_from(cents).unwrap_or(u32::MAX)
}

/// Returns the highest level whose price is at most `cents`.
pub fn level_within(cents: u32, list_price: u32) -> u32 {
    let level = (u64::from(cents) * LEVELS_PER_LIST_PRICE).checked_div(u64::from(list_price));
    level
        .and_then(|level| u32::try_from(level).ok())
        .map_or(LEVEL_MAX, |level| level.min(LEVEL_MAX))
}

/// Returns the word for a price of the seller: the lowest level that covers it, or `above`.
pub fn level_covering(cents: u32, list_price: u32) -> String {
    let scaled = u64::from(cents) * LEVELS_PER_LIST_PRICE;
    let level = match (cents, list_price) {
        (0, _) => 0,
        (_, 0) => u64::MAX,
        (_, list_price) => scaled.div_ceil(u64::from(list_price)),
    };
    if level > u64::from(LEVEL_MAX) { "above".to_owned() } else { level.to_string() }
}

/// Returns the first message: what the model has to know before the first turn.
pub fn opening(view: &View) -> String {
    format!("budget {}", level_within(view.reserve, view.list_price))
}

/// Returns the message of a turn. `news` were heard by the view already.
pub fn situation(view: &View, news: &[Event]) -> String {
    let happened = match news.last() {
        None => "begin".to_owned(),
        Some(Event::Refused) => "refused".to_owned(),
        Some(Event::Turn(turn)) => match turn.action {
            Move::Offer(cents) => {
                format!("asks {} {}", level_covering(cents, view.list_price), movement(view))
            }
            Move::Reject | Move::Accept(_) | Move::Walk => "passes".to_owned(),
        },
    };
    let left = match view.turn_limit {
        Some(_) => view.turn_count.saturating_sub(view.turn_index).clamp(1, LEVEL_MAX).to_string(),
        None => "hidden".to_owned(),
    };
    format!("{happened} left {left}")
}

/// Returns how the seller's latest price differs from the one before.
fn movement(view: &View) -> &'static str {
    match view.theirs.as_slice() {
        [.., before, now] if now < before => "moved",
        [.., before, now] if now > before => "raised",
        [.., _, _] => "stays",
        _ => "first",
    }
}

/// Returns a sentence that brings an argument forward; `wording` picks one of several.
///
/// # Panics
/// If there is no such kind of argument.
pub fn sentence(argument: usize, wording: usize) -> &'static str {
    let wordings = &WORDINGS[argument];
    wordings[wording % wordings.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::argument::Arguments;
    use crate::game::{Brief, Item, Role, Turn};
    use crate::params::Params;

    fn view(list_price: u32, reserve: u32) -> View {
        let brief = Brief {
            role: Role::Buyer,
            item: Item {
                title: String::new(),
                category: String::new(),
                description: String::new(),
                list_price,
            },
            reserve,
            turn_limit: Some(12),
            opens: true,
            rules: Brief::AMAZON_HISTORY_PRICE.to_owned(),
            params: String::new(),
            seed: 1,
        };
        View::new(&brief, &mut Params::parse("").expect("no text")).expect("no parameters")
    }

    #[test]
    fn replies_are_read_strictly() {
        let offer = |level, argument| Some(Act::Offer { level, argument });
        assert_eq!(read("offer 30"), offer(30, None));
        assert_eq!(read(" offer 0 defect"), offer(0, Some(0)));
        assert_eq!(read("offer 60 cash"), offer(60, Some(4)));
        assert_eq!(read("accept"), Some(Act::Accept));
        assert_eq!(read(" walk"), Some(Act::Walk));
        let wrong = [
            "",
            " ",
            "offer",
            "offer 61",
            "offer 030",
            "offer -1",
            "offer +1",
            "offer 3.5",
            "offer 30 ",
            "offer  30",
            "offer 30 please",
            "offer 30 quote cash",
            "offer quote 30",
            "  accept",
            "accept 30",
            "Accept",
            "walk\n",
            "30",
            "budget 40",
        ];
        for reply in wrong {
            assert_eq!(read(reply), None, "{reply:?}");
        }
    }

    #[test]
    fn rounding_alone_never_goes_beyond_the_budget() {
        for list_price in [1, 3, 99, 100, 101, 2_999, 12_345, u32::MAX] {
            for reserve in [0, 1, list_price / 3, list_price - list_price / 5, list_price] {
                let budget = level_within(reserve, list_price);
                assert!(cents(budget, list_price) <= reserve, "{reserve} of {list_price}");
                for price in [reserve, reserve.saturating_add(1)] {
                    let shown = level_covering(price, list_price).parse::<u32>();
                    let seems_affordable = shown.is_ok_and(|level| level <= budget);
                    assert!(!seems_affordable || price <= reserve, "{price} of {list_price}");
                }
            }
        }
    }

    #[test]
    fn a_listed_price_of_nothing_and_prices_beyond_the_grid_have_words() {
        assert_eq!((cents(60, 0), level_within(5, 0)), (0, 60));
        assert_eq!([level_covering(0, 0), level_covering(1, 0)], ["0", "above"]);
        assert_eq!([level_covering(120, 100), level_covering(121, 100)], ["60", "above"]);
        assert_eq!(cents(60, u32::MAX), u32::MAX);
        assert_eq!(level_within(u32::MAX, 1), 60);
    }

    #[test]
    fn a_turn_is_told_in_a_few_words() {
        let mut view = view(10_000, 8_000);
        assert_eq!(opening(&view), "budget 40");
        assert_eq!(situation(&view, &[]), "begin left 6");
        let turn = |action| Event::Turn(Turn { by: Role::Seller, action, talk: String::new() });
        let told = [
            (Move::Offer(10_000), "asks 50 first left 5"),
            (Move::Offer(9_301), "asks 47 moved left 4"),
            (Move::Offer(9_301), "asks 47 stays left 3"),
            (Move::Reject, "passes left 2"),
            (Move::Offer(30_000), "asks above raised left 1"),
        ];
        for (action, expected) in told {
            let _ = view.offer(100);
            let news = [turn(action)];
            view.hear(&news);
            assert_eq!(situation(&view, &news), expected);
        }
        view.turn_limit = None;
        assert_eq!(situation(&view, &[Event::Refused]), "refused left hidden");
    }

    #[test]
    fn every_wording_brings_its_own_kind_of_argument_forward_and_no_other() {
        let arguments = Arguments::of(Role::Buyer);
        for (kind, wordings) in WORDINGS.iter().enumerate() {
            for (place, wording) in wordings.iter().enumerate() {
                let expected = std::array::from_fn(|other| other == kind);
                assert_eq!(arguments.find(wording), expected, "{wording}");
                assert_eq!(sentence(kind, place + 4), *wording);
            }
        }
    }
}
