//! How the case files write down a negotiation.
//!
//! A setup is words: a rule set, then what differs from its defaults, for example
//! `standard buyer<=100 seller>=60 turns=6 opens=S buyer=allow seller=penalise retries=2 talk<=40`.
//!
//! A line is `ROLE MOVE ["TALK"] [=> NOTE]`. Roles are `B` and `S`; moves are `offer 95`,
//! `accept`, `accept 95`, `reject`, `walk`, and `fault NAME` or `void NAME` for a seat that gives
//! no move. The note is what the judge says; without one the move is delivered. The last line
//! is `=> OUTCOME`. Amounts are in dollars.

use arena_core::fault::{Fault, VoidReason};
use arena_core::position::Judgement;
use arena_core::price::Price;
use arena_core::record::{MatchRecord, Outcome};
use arena_core::referee::Played;
use arena_core::rules::Rules;
use arena_core::scenario::{Horizon, Item, Regulation, Role, RuleSet, Scenario};
use arena_core::schedule::PairPlan;
use arena_core::turn::Move;

/// What a seat does in one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    Move(Move),
    Fault(Fault),
    Void(VoidReason),
}

/// One line of a case.
#[derive(Clone, Debug)]
pub struct Line {
    pub by: Role,
    pub act: Act,
    pub talk: String,
    pub note: String,
}

/// The rules and the scenario that a setup describes.
pub fn parse_setup(setup: &str) -> (Rules, Scenario) {
    let mut words = setup.split_whitespace();
    let set = match words.next() {
        Some("standard") => RuleSet::Standard,
        Some("amazon-history-price") => RuleSet::AmazonHistoryPrice,
        other => panic!("`{setup}` starts with {other:?}, not with a rule set"),
    };
    let mut rules = default_rules(set);
    let mut scenario = default_scenario();
    for word in words {
        let at = word.find(['=', '<', '>']).unwrap_or_else(|| panic!("`{word}` sets nothing"));
        let (key, value) = (&word[..at], word[at..].trim_start_matches(['<', '>', '=']));
        let number = || value.parse::<u32>().unwrap_or_else(|_| panic!("`{word}` has no number"));
        match (key, word.as_bytes()[at]) {
            ("buyer", b'<') => scenario.budget = amount(value),
            ("seller", b'>') => scenario.cost = amount(value),
            ("buyer", b'=') => rules.regulation[0] = parse_regulation(value),
            ("seller", b'=') => rules.regulation[1] = parse_regulation(value),
            ("turns", b'=') => scenario.horizon.turn_limit = number(),
            ("opens", b'=') => scenario.opener = parse_role(value),
            ("retries", b'=') => rules.retries = number(),
            ("talk", b'<') => rules.talk_bytes_max = number(),
            _ => panic!("`{word}` is not part of a setup"),
        }
    }
    (rules, scenario)
}

/// The regulation that each rule set has where a tournament file names none.
pub fn default_rules(set: RuleSet) -> Rules {
    let buyer = match set {
        RuleSet::Standard => Regulation::Refuse,
        RuleSet::AmazonHistoryPrice => Regulation::Penalise,
    };
    Rules { set, regulation: [buyer, Regulation::Refuse], retries: 2, talk_bytes_max: 40 }
}

/// Budget $100, cost $60, the buyer opens, twelve turns.
pub fn default_scenario() -> Scenario {
    let item = Item {
        id: "lamps/1".to_owned(),
        title: "Lamp".to_owned(),
        category: "lamps".to_owned(),
        description: "It glows.".to_owned(),
        list_price: Price(12_000),
    };
    let horizon = Horizon { turn_limit: 12, hidden: false };
    let (budget, cost) = (Price(10_000), Price(6_000));
    Scenario { item, budget, cost, opener: Role::Buyer, horizon }
}

fn parse_regulation(name: &str) -> Regulation {
    match name {
        "refuse" => Regulation::Refuse,
        "penalise" => Regulation::Penalise,
        "allow" => Regulation::Allow,
        other => panic!("`{other}` is not a regulation"),
    }
}

fn parse_role(letter: &str) -> Role {
    match letter {
        "B" => Role::Buyer,
        "S" => Role::Seller,
        other => panic!("`{other}` is not a role"),
    }
}

fn amount(text: &str) -> Price {
    Price::parse(text).unwrap_or_else(|error| panic!("{error}"))
}

/// Reads a line of a seat.
pub fn parse_line(line: &str) -> Line {
    let (said, note) = line.split_once("=>").unwrap_or((line, ""));
    let (moved, talk) = match said.split_once('"') {
        Some((moved, rest)) => {
            let talk = rest.trim_end().strip_suffix('"');
            (moved, talk.unwrap_or_else(|| panic!("`{line}` does not close its talk")))
        }
        None => (said, ""),
    };
    let words: Vec<&str> = moved.split_whitespace().collect();
    let act = match words[1..] {
        ["offer", price] => Act::Move(Move::Offer(amount(price))),
        ["accept"] => Act::Move(Move::Accept(None)),
        ["accept", price] => Act::Move(Move::Accept(Some(amount(price)))),
        ["reject"] => Act::Move(Move::Reject),
        ["walk"] => Act::Move(Move::Walk),
        ["fault", name] => Act::Fault(parse_fault(name)),
        ["void", "host"] => Act::Void(VoidReason::Host),
        ["void", "model-provider"] => Act::Void(VoidReason::ModelProvider),
        _ => panic!("`{line}` is not a line"),
    };
    let (talk, note) = (talk.to_owned(), note.trim().to_owned());
    Line { by: parse_role(words[0]), act, talk, note }
}

fn parse_fault(name: &str) -> Fault {
    let fault = Fault::ALL.into_iter().find(|fault| fault.name() == name);
    fault.unwrap_or_else(|| panic!("`{name}` is not a fault"))
}

/// The note that stands for a judgement.
pub fn note_of(judgement: Judgement) -> String {
    match judgement {
        Judgement::Delivered => String::new(),
        Judgement::Refused => "refused".to_owned(),
        Judgement::Penalised => "violated".to_owned(),
        Judgement::Illegal(illegal) => format!("illegal: {illegal}"),
    }
}

/// The text that stands for an outcome.
pub fn outcome_text(outcome: Outcome) -> String {
    match outcome {
        Outcome::Deal { price } => format!("deal {}", dollars(price)),
        Outcome::Walked { by } => format!("walked {}", letter(by)),
        Outcome::TimedOut => "timed out".to_owned(),
        Outcome::Violated { by, action } => format!("violated {} {}", letter(by), verb(action)),
        Outcome::Faulted { by, fault } => format!("faulted {} {fault}", letter(by)),
    }
}

/// The letter that stands for a role.
pub fn letter(role: Role) -> &'static str {
    match role {
        Role::Buyer => "B",
        Role::Seller => "S",
    }
}

fn verb(action: Move) -> String {
    match action {
        Move::Offer(price) => format!("offer {}", dollars(price)),
        Move::Accept(None) => "accept".to_owned(),
        Move::Accept(Some(price)) => format!("accept {}", dollars(price)),
        Move::Reject => "reject".to_owned(),
        Move::Walk => "walk".to_owned(),
    }
}

fn dollars(price: Price) -> String {
    let text = price.to_string();
    text.trim_start_matches('$').trim_end_matches(".00").to_owned()
}

/// The record of a match that was played by itself.
pub fn record_of(scenario: &Scenario, played: &Played) -> MatchRecord {
    let plan = PairPlan { index: 0, agents: [0, 1], item_index: 0, repetition: 0 };
    played.clone().into_record(&plan, 0, scenario, [1, 2])
}
