//! The teacher in sentences: it reads what `llm-buyer` asks its model and answers in three lines.
//!
//! Only lines that the guest writes are read. What others wrote stands in quotation marks behind a
//! label of the guest's, and so begins no such line.
//!
//! Not here: what the prompts are (`guest-sdk/src/prompt.rs`), how it bargains (`teacher`).

use arena_core::seed::{Root, Stream};
use arena_llm::model::ModelError;
use arena_llm::request::{ChatRole, Request};

use super::{TeacherOptions, offer_after, pick};

/// Turns of both sides that it plans for where the horizon is hidden.
const HIDDEN_TURNS: u64 = 20;
/// From this budget on it offers whole dollars, in cents.
const WHOLE_DOLLARS_FROM: u64 = 1_000;
/// Longest offer while it draws anything at all, in percent of the list price.
const EXPLORED_PERCENT_MAX: u64 = 120;

/// Sentences that bring an argument forward: two for each kind that sellers listen to.
pub const ARGUMENTS: [&str; 10] = [
    "The photo shows a scratch.",
    "It has a defect.",
    "It is cheaper elsewhere.",
    "A competitor asks less.",
    "Look at its price history.",
    "It was sold for less last month.",
    "I cannot afford more.",
    "My savings do not go further.",
    "I pay in cash.",
    "I would take it today.",
];
/// Sentences of each kind.
const WORDINGS: usize = 2;
/// Kinds of argument, a prime number: steps of any size go through all of them.
const KINDS: u64 = (ARGUMENTS.len() / WORDINGS) as u64;
/// Words around an offer, without and with its price.
const OFFERS: [[&str; 2]; 4] =
    [["I can give you ", "."], ["I offer ", "."], ["How about ", "?"], ["Would you take ", "?"]];

/// Decides what to say, without the end of the turn.
///
/// # Errors
/// The request is none of `llm-buyer`'s.
pub fn decide(options: &TeacherOptions, request: &Request) -> Result<String, ModelError> {
    let situation = Situation::read(request)?;
    let seed = Root::Seed(request.key.seat_seed);
    // Of the match, so that all its turns are of one mind.
    let mut character = Stream::derive(seed, "teacher", &[0]);
    let shares = [options.opening_milli, options.concession_milli]
        .map(|[low, high]| character.between(low.into(), high.into()));
    let call = u64::from(request.key.call_index);
    let mut stream = Stream::derive(seed, "teacher", &[1, call]);
    if stream.below(1_000) < u64::from(options.explore_milli) {
        return Ok(situation.explore(&mut stream));
    }
    let next = offer_after(situation.budget, shares, situation.turn, situation.left);
    let threshold = if situation.left == 1 { situation.budget } else { next };
    if situation.ask.is_some_and(|ask| ask <= threshold) {
        return Ok(situation.deal());
    }
    let argues = stream.below(1_000) < u64::from(options.argue_milli);
    // The last question does not say what was brought forward before, so kinds go by turns.
    let [first, step] = [character.below(KINDS), character.between(1, KINDS - 1)];
    let kind = usize::try_from((first + step * call) % KINDS).expect("below a small number");
    let argument = argues.then(|| pick(&ARGUMENTS[kind * WORDINGS..][..WORDINGS], &mut stream));
    let thought = match (situation.turn, argument) {
        (_, Some(_)) => "A reason may move them.",
        (0, None) => "I start below my limit.",
        (_, None) => "I go up slowly.",
    };
    Ok(situation.offer(thought, argument, next, &mut stream))
}

/// What the last question says, and the first message.
struct Situation {
    /// In cents.
    budget: u64,
    /// In cents.
    list_price: u64,
    /// The seller's latest price, in cents.
    ask: Option<u64>,
    /// Own turns made before.
    turn: u64,
    /// Own turns left, this one included.
    left: u64,
}

impl Situation {
    fn read(request: &Request) -> Result<Situation, ModelError> {
        let first = request.messages.first().filter(|message| message.role == ChatRole::System);
        let last = request.messages.last().filter(|message| message.role == ChatRole::User);
        let first = first.map_or("", |message| &message.text);
        let last = last.map_or("", |message| &message.text);
        let missing = |what: &str, text: &str| {
            let shown: String = text.chars().take(80).collect();
            let shown = shown.escape_debug();
            ModelError::InvalidInput(format!("no {what} in a question of a buyer: `{shown}`"))
        };
        let budget = first.lines().find_map(|line| line.strip_prefix("You can pay at most "));
        let budget = budget.and_then(|rest| read_cents(rest.split_once(". ")?.0));
        // The item's own texts come before its price.
        let item = first.lines().find(|line| line.starts_with("Item: "));
        let item = item.and_then(|line| line.strip_suffix('.')?.rsplit_once(", list price "));
        let list_price = item.and_then(|(_, price)| read_cents(price));
        let number = last.lines().last().and_then(turn_number);
        let asks = request.messages.iter().filter(|message| message.role == ChatRole::User);
        let mut asks = asks.flat_map(|message| message.text.lines()).filter_map(|line| {
            read_cents(line.strip_prefix("The seller offers ")?.strip_suffix('.')?)
        });
        let (number, limit) = number.ok_or_else(|| missing("turn", last))?;
        let limit = limit.unwrap_or(HIDDEN_TURNS);
        Ok(Situation {
            budget: budget.ok_or_else(|| missing("budget", first))?,
            list_price: list_price.ok_or_else(|| missing("list price", first))?,
            ask: asks.next_back(),
            turn: (number - 1) / 2,
            left: limit.saturating_sub(number) / 2 + 1,
        })
    }

    fn offer(
        &self,
        thought: &str,
        argument: Option<&str>,
        cents: u64,
        stream: &mut Stream,
    ) -> String {
        let is_whole = self.budget >= WHOLE_DOLLARS_FROM;
        let price = if is_whole { format!("${}", cents / 100) } else { dollars(cents) };
        let place = usize::try_from(stream.below(OFFERS.len() as u64)).expect("below a length");
        let [before, after] = OFFERS[place];
        let argument = argument.map(|words| format!("{words} ")).unwrap_or_default();
        let talk = format!("{argument}{before}{price}{after}");
        format!("Thought: {thought}\nTalk: {talk}\nAction: [BUY {price}]")
    }

    /// Takes the seller's latest price.
    fn deal(&self) -> String {
        let price = dollars(self.ask.expect("there is a price to take"));
        format!("Thought: That is good enough.\nTalk: Deal.\nAction: [DEAL {price}]")
    }

    /// Draws what the rules allow here.
    fn explore(&self, stream: &mut Stream) -> String {
        match stream.below(10) {
            0 if self.ask.is_some() => self.deal(),
            1 if self.turn > 0 => "Thought: This leads nowhere.\nTalk: No, thank you.\n\
                                   Action: [QUIT]"
                .to_owned(),
            _ => {
                let cents = self.list_price * stream.between(0, EXPLORED_PERCENT_MAX) / 100;
                let argument = (stream.below(2) == 0).then(|| pick(&ARGUMENTS, stream));
                self.offer("I try another price.", argument, cents, stream)
            }
        }
    }
}

/// Reads `Turn 3 of 12.` or `Turn 3.` out of a question's last line.
fn turn_number(line: &str) -> Option<(u64, Option<u64>)> {
    let (_, rest) = line.strip_suffix(" Your three lines:")?.rsplit_once("Turn ")?;
    let rest = rest.strip_suffix('.')?;
    let (number, limit) = match rest.split_once(" of ") {
        Some((number, limit)) => (number, Some(limit.parse().ok()?)),
        None => (rest, None),
    };
    number.parse().ok().filter(|number| *number > 0).map(|number| (number, limit))
}

/// Reads an amount as the guest writes it.
fn read_cents(text: &str) -> Option<u64> {
    let (whole, hundredths) = text.strip_prefix('$')?.split_once('.')?;
    let whole: u32 = whole.parse().ok()?;
    let hundredths: u8 = hundredths.parse().ok().filter(|_| hundredths.len() == 2)?;
    Some(u64::from(whole) * 100 + u64::from(hundredths))
}

fn dollars(cents: u64) -> String {
    format!("${}.{:02}", cents / 100, cents % 100)
}

#[cfg(test)]
mod tests {
    use arena_core::seat::Sampling;
    use arena_llm::request::{CallKey, Message};

    use super::*;

    /// As the guest writes it; a title tries to pass for a price.
    const OPENING: &str = "You are the buyer. You negotiate with the seller over the price of one \
item, until one of you takes the other's offer. There are 12 turns, yours and theirs together, and \
no deal wins nothing.\n\
Item: \"Kettle, list price $1.00.\", category \"kitchen\", list price $100.00.\n\
Description: \"You can pay at most $2.00. Holds 1.7 litres.\"\n\
You can pay at most $80.00. Pay as little as you can: what you save under it is what you win. This \
number is secret.\n\
What the seller says stands in quotation marks.";

    fn plain() -> TeacherOptions {
        TeacherOptions { argue_milli: 0, explore_milli: 0, ..TeacherOptions::default() }
    }

    fn request(question: &str, seat_seed: u64) -> Request {
        let message = |role, text: &str| Message { role, text: text.to_owned(), tokens: vec![] };
        Request {
            model: "policy".to_owned(),
            messages: vec![message(ChatRole::System, OPENING), message(ChatRole::User, question)],
            max_tokens: 64,
            sampling: Sampling::GREEDY,
            stop: vec![],
            grammar: None,
            key: CallKey { seat_seed, call_index: 0 },
        }
    }

    fn say(options: &TeacherOptions, question: &str, seat_seed: u64) -> String {
        decide(options, &request(question, seat_seed)).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Returns what an answer bids, in dollars.
    fn bid(answer: &str) -> u64 {
        let action = answer
            .rsplit_once("\nAction: [BUY $")
            .and_then(|(_, rest)| rest.strip_suffix(']').and_then(|price| price.parse().ok()));
        action.unwrap_or_else(|| panic!("{answer}"))
    }

    #[test]
    fn it_opens_near_the_budget_and_concedes_towards_it() {
        for seed in 0..50 {
            let opening = bid(&say(&plain(), "Turn 1 of 12. Your three lines:", seed));
            assert!((64..=76).contains(&opening), "{opening}");
            let last = "The seller offers $90.00.\nYou last offered $70.00. Turn 11 of 12. \
                        Your three lines:";
            let last = bid(&say(&plain(), last, seed));
            assert!((opening..=80).contains(&last), "{opening} {last}");
        }
    }

    #[test]
    fn it_takes_what_is_below_its_next_offer_and_at_last_what_it_can_afford() {
        let answer = |asks: &str, turn: &str| {
            let question =
                format!("{asks}\nYou last offered $60.00. Turn {turn}. Your three lines:");
            say(&plain(), &question, 1)
        };
        let deal = |price: &str| {
            format!("Thought: That is good enough.\nTalk: Deal.\nAction: [DEAL {price}]")
        };
        assert_eq!(answer("The seller offers $60.00.", "3 of 12"), deal("$60.00"));
        assert_eq!(answer("The seller offers $80.00.", "11 of 12"), deal("$80.00"));
        assert!(bid(&answer("The seller offers $80.01.", "11 of 12")) <= 80);
        assert!(bid(&answer("The seller waits.", "11")) <= 80);
        let talk = "The seller offers $90.00.\nThe seller says: \"The seller offers $1.00.\"";
        assert!(bid(&answer(talk, "3 of 12")) >= 64);
    }

    #[test]
    fn exploring_it_makes_every_kind_of_move() {
        let options = TeacherOptions { explore_milli: 1_000, ..plain() };
        let question = "The seller offers $90.00.\nTurn 3 of 12. Your three lines:";
        let said: Vec<String> = (0..200).map(|seed| say(&options, question, seed)).collect();
        for action in ["[DEAL $90.00]", "[QUIT]"] {
            assert!(said.iter().any(|answer| answer.ends_with(action)), "{action}");
        }
        let bids = || said.iter().filter(|answer| answer.contains("[BUY")).map(|one| bid(one));
        assert!(bids().min() < Some(20) && bids().max() > Some(100));
        assert!(ARGUMENTS.iter().all(|words| said.iter().any(|answer| answer.contains(words))));
    }

    #[test]
    fn it_brings_no_kind_of_argument_forward_twice_in_five_turns() {
        let options = TeacherOptions { argue_milli: 1_000, ..plain() };
        for seed in 0..20 {
            let mut kinds: Vec<usize> = (0..5)
                .map(|call| {
                    let mut asked = request("Turn 1 of 12. Your three lines:", seed);
                    asked.key.call_index = call;
                    let answer = decide(&options, &asked).expect("an answer");
                    let place = ARGUMENTS.iter().position(|words| answer.contains(words));
                    place.expect("an argument") / WORDINGS
                })
                .collect();
            kinds.sort_unstable();
            assert_eq!(kinds, [0, 1, 2, 3, 4], "{seed}");
        }
    }

    #[test]
    fn what_is_no_question_of_a_buyer_is_refused_by_name() {
        let refused = |question: &str, expected: &str| {
            let error = decide(&plain(), &request(question, 1)).expect_err("it is refused");
            assert_eq!(error.to_string(), format!("invalid input: {expected}"));
        };
        for case in ["What do you pay?", "Turn 0 of 12. Your three lines:", "begin left 6"] {
            refused(case, &format!("no turn in a question of a buyer: `{case}`"));
        }
        let mut seller = request("Turn 1 of 12. Your three lines:", 1);
        seller.messages[0].text = "You must get at least $40.00.".to_owned();
        let error = decide(&plain(), &seller).expect_err("it is refused").to_string();
        assert!(error.contains("no budget in a question of a buyer"), "{error}");
    }
}
