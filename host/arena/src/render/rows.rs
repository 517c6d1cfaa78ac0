//! Matches and turns as rows with fixed columns, for programs that analyse them.
//!
//! `COLUMNS.md` describes the columns; a test holds it to what is here. Columns may be added
//! at the end, and are never renamed, moved or given another meaning.
//!
//! Not here: files and formats with a library of their own (`commands::log_export`).

use std::borrow::Cow;

use arena_core::entry::MatchEntry;
use arena_core::hexadecimal::hex;
use arena_core::record::{MatchRecord, Outcome, TurnRecord};
use arena_core::scenario::Role;
use arena_core::score;
use arena_core::turn::Move;

/// A column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// What its values are.
    pub kind: Kind,
}

/// What the values of a column are, where there are any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Whole numbers from 0.
    Number,
    /// Decimal numbers.
    Real,
    /// Text.
    Text,
    /// True or false.
    Flag,
}

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    /// Nothing: it does not apply, or is withheld.
    Null,
    /// A whole number.
    Number(u64),
    /// A decimal number.
    Real(f64),
    /// Text.
    Text(Cow<'a, str>),
    /// True or false.
    Flag(bool),
}

const fn column(name: &'static str, kind: Kind) -> Column {
    Column { name, kind }
}

/// The columns of matches.
pub const MATCHES: &[Column] = &[
    column("tournament", Kind::Text),
    column("entry_index", Kind::Number),
    column("pair_index", Kind::Number),
    column("leg", Kind::Number),
    column("item_index", Kind::Number),
    column("repetition", Kind::Number),
    column("buyer", Kind::Text),
    column("seller", Kind::Text),
    column("outcome", Kind::Text),
    column("outcome_by", Kind::Text),
    column("fault", Kind::Text),
    column("price_cents", Kind::Number),
    column("turn_count", Kind::Number),
    column("transcript_sha256", Kind::Text),
    column("list_price_cents", Kind::Number),
    column("budget_cents", Kind::Number),
    column("cost_cents", Kind::Number),
    column("opener", Kind::Text),
    column("turn_limit", Kind::Number),
    column("horizon_hidden", Kind::Flag),
    column("buyer_reward", Kind::Real),
    column("buyer_seed", Kind::Text),
    column("buyer_attempts", Kind::Number),
    column("buyer_fuel", Kind::Number),
    column("buyer_model_calls", Kind::Number),
    column("buyer_input_tokens", Kind::Number),
    column("buyer_output_tokens", Kind::Number),
    column("seller_reward", Kind::Real),
    column("seller_seed", Kind::Text),
    column("seller_attempts", Kind::Number),
    column("seller_fuel", Kind::Number),
    column("seller_model_calls", Kind::Number),
    column("seller_input_tokens", Kind::Number),
    column("seller_output_tokens", Kind::Number),
];

/// The columns of turns.
pub const TURNS: &[Column] = &[
    column("entry_index", Kind::Number),
    column("pair_index", Kind::Number),
    column("leg", Kind::Number),
    column("turn_index", Kind::Number),
    column("role", Kind::Text),
    column("agent", Kind::Text),
    column("move", Kind::Text),
    column("price_cents", Kind::Number),
    column("talk", Kind::Text),
    column("belief_reserve_cents", Kind::Number),
    column("belief_spread_cents", Kind::Number),
    column("refused_count", Kind::Number),
    column("refused", Kind::Text),
];

/// A match, as far as it is public.
#[derive(Clone, Copy, Debug)]
pub struct Match<'a> {
    /// The entry's place in the log.
    pub entry_index: u64,
    /// The entry.
    pub entry: &'a MatchEntry,
    /// Names of buyer and seller.
    pub names: [&'a str; 2],
    /// The record, where it is not withheld.
    pub record: Option<&'a MatchRecord>,
}

/// Returns the row of a match.
pub fn match_row<'a>(played: &Match<'a>) -> Vec<Value<'a>> {
    let Match { entry_index, entry, names, record } = *played;
    let (kind, by, fault) = match entry.outcome {
        Outcome::Deal { .. } => ("deal", None, None),
        Outcome::Walked { by } => ("walked", Some(by), None),
        Outcome::TimedOut => ("timed-out", None, None),
        Outcome::Violated { by, .. } => ("violated", Some(by), None),
        Outcome::Faulted { by, fault } => ("faulted", Some(by), Some(fault.name())),
    };
    let price = entry.outcome.deal_price();
    let mut row = vec![
        text(entry.tournament.to_string()),
        Value::Number(entry_index),
        Value::Number(entry.pair_index),
        Value::Number(entry.leg.into()),
        Value::Number(entry.item_index.into()),
        Value::Number(entry.repetition.into()),
        text(names[0]),
        text(names[1]),
        text(kind),
        by.map_or(Value::Null, |by| text(role(by))),
        fault.map_or(Value::Null, text),
        price.map_or(Value::Null, |price| Value::Number(price.cents().into())),
        Value::Number(entry.turn_count.into()),
        text(hex(&entry.transcript_sha256)),
    ];
    match record {
        Some(record) => row.extend(private_values(record)),
        None => row.resize(MATCHES.len(), Value::Null),
    }
    assert_eq!(row.len(), MATCHES.len(), "a row has a value for every column");
    row
}

fn private_values<'a>(record: &MatchRecord) -> Vec<Value<'a>> {
    let mut values = vec![
        Value::Number(record.list_price.cents().into()),
        Value::Number(record.budget.cents().into()),
        Value::Number(record.cost.cents().into()),
        text(role(record.opener)),
        Value::Number(record.horizon.turn_limit.into()),
        Value::Flag(record.horizon.hidden),
    ];
    let measures = score::measure(record);
    for role in Role::BOTH {
        let seat = &measures[role.index()];
        values.extend([
            Value::Real(seat.reward),
            text(record.seeds[role.index()].to_string()),
            Value::Number(seat.attempts.total().into()),
            Value::Number(seat.fuel),
            Value::Number(seat.model_calls.into()),
            Value::Number(seat.input_tokens),
            Value::Number(seat.output_tokens),
        ]);
    }
    values
}

/// Returns the row of a turn.
pub fn turn_row<'a>(played: &Match<'a>, turn_index: usize, turn: &'a TurnRecord) -> Vec<Value<'a>> {
    let (action, price) = movement(turn.action);
    let cents = |price: Option<u32>| price.map_or(Value::Null, |cents| Value::Number(cents.into()));
    let belief = turn.belief;
    let row = vec![
        Value::Number(played.entry_index),
        Value::Number(played.entry.pair_index),
        Value::Number(played.entry.leg.into()),
        Value::Number(turn_index as u64),
        text(role(turn.by)),
        text(played.names[turn.by.index()]),
        text(action),
        cents(price),
        text(turn.talk.as_str()),
        cents(belief.map(|belief| belief.reserve.cents())),
        cents(belief.map(|belief| belief.spread.cents())),
        Value::Number(turn.refused.len() as u64),
        text(refused(&turn.refused)),
    ];
    assert_eq!(row.len(), TURNS.len(), "a row has a value for every column");
    row
}

/// Writes refused moves in one value, such as `offer 1200; accept`.
fn refused(moves: &[Move]) -> String {
    let words = moves.iter().map(|action| match movement(*action) {
        (word, Some(cents)) => format!("{word} {cents}"),
        (word, None) => word.to_owned(),
    });
    words.collect::<Vec<String>>().join("; ")
}

fn movement(action: Move) -> (&'static str, Option<u32>) {
    match action {
        Move::Offer(price) => ("offer", Some(price.cents())),
        Move::Accept(named) => ("accept", named.map(|price| price.cents())),
        Move::Reject => ("reject", None),
        Move::Walk => ("walk", None),
    }
}

fn role(role: Role) -> &'static str {
    match role {
        Role::Buyer => "buyer",
        Role::Seller => "seller",
    }
}

fn text<'a>(text: impl Into<Cow<'a, str>>) -> Value<'a> {
    Value::Text(text.into())
}

/// Returns the line of names that opens a CSV file.
pub fn csv_head(columns: &[Column]) -> String {
    let names: Vec<&str> = columns.iter().map(|column| column.name).collect();
    format!("{}\r\n", names.join(","))
}

/// Returns a row as a line of CSV (RFC 4180). Text is always quoted, so that nothing and an
/// empty text are told apart.
pub fn csv_line(row: &[Value<'_>]) -> String {
    let cell = |value: &Value<'_>| match value {
        Value::Null => String::new(),
        Value::Number(number) => number.to_string(),
        Value::Real(number) => number.to_string(),
        Value::Text(text) => format!("\"{}\"", text.replace('"', "\"\"")),
        Value::Flag(flag) => flag.to_string(),
    };
    let cells: Vec<String> = row.iter().map(cell).collect();
    format!("{}\r\n", cells.join(","))
}

/// Returns a row as a line of JSON, with the columns in their order.
pub fn json_line(columns: &[Column], row: &[Value<'_>]) -> String {
    let cell = |(column, value): (&Column, &Value<'_>)| {
        let value = match value {
            Value::Null => serde_json::Value::Null,
            Value::Number(number) => (*number).into(),
            Value::Real(number) => (*number).into(),
            Value::Text(text) => text.as_ref().into(),
            Value::Flag(flag) => (*flag).into(),
        };
        format!("\"{}\":{value}", column.name)
    };
    let cells: Vec<String> = columns.iter().zip(row).map(cell).collect();
    format!("{{{}}}\n", cells.join(","))
}

#[cfg(test)]
mod tests {
    use arena_core::entry::TournamentId;
    use arena_core::price::Price;

    use super::*;

    fn entry() -> MatchEntry {
        MatchEntry {
            tournament: TournamentId([1; 32]),
            pair_index: 3,
            leg: 1,
            agents: [4, 5],
            item_index: 6,
            repetition: 0,
            outcome: Outcome::Deal { price: Price(1_234) },
            turn_count: 1,
            transcript_sha256: [2; 32],
        }
    }

    fn row_of_turn(talk: &str, line: fn(&[Value<'_>]) -> String) -> String {
        let entry = entry();
        let played = Match { entry_index: 9, entry: &entry, names: ["a", "b"], record: None };
        let refused = vec![Move::Offer(Price(5)), Move::Accept(None)];
        let (by, action, belief) = (Role::Seller, Move::Offer(Price(7)), None);
        let turn = TurnRecord { by, refused, action, talk: talk.to_owned(), belief };
        line(&turn_row(&played, 0, &turn))
    }

    #[test]
    fn talk_passes_through_csv_and_json_unchanged() {
        let talk = "\"so\", she said,\r\n=1+1\u{0}\u{202e}";
        let csv = row_of_turn(talk, csv_line);
        let wanted = "9,3,1,0,\"seller\",\"b\",\"offer\",7,\
                      \"\"\"so\"\", she said,\r\n=1+1\u{0}\u{202e}\",,,2,\"offer 5; accept\"\r\n";
        assert_eq!(csv, wanted);
        let json = row_of_turn(talk, |row| json_line(TURNS, row));
        assert_eq!(json.matches('\n').count(), 1, "one row is one line: {json}");
        let read: serde_json::Value = serde_json::from_str(&json).expect("a line of JSON");
        assert_eq!(read["talk"], talk);
        assert_eq!(read["belief_reserve_cents"], serde_json::Value::Null);
    }

    #[test]
    fn what_is_withheld_is_nothing_and_not_zero() {
        let entry = entry();
        let played = Match { entry_index: 9, entry: &entry, names: ["a", "b"], record: None };
        let row = match_row(&played);
        let at = |name: &str| {
            let place = MATCHES.iter().position(|column| column.name == name);
            row[place.expect("a column")].clone()
        };
        assert_eq!(at("price_cents"), Value::Number(1_234));
        for name in ["budget_cents", "buyer_reward", "seller_output_tokens"] {
            assert_eq!(at(name), Value::Null, "{name}");
        }
    }

    #[test]
    fn columns_md_describes_every_column_in_order() {
        let text = include_str!("../../COLUMNS.md");
        let named = |text: &str| -> Vec<String> {
            let rows = text.lines().filter_map(|line| line.strip_prefix("| `"));
            rows.filter_map(|row| row.split_once('`')).map(|(name, _)| name.to_owned()).collect()
        };
        let (matches, turns) = text.split_once("## Turns").expect("two tables");
        let names = |columns: &[Column]| -> Vec<String> {
            columns.iter().map(|column| column.name.to_owned()).collect()
        };
        assert_eq!(named(matches), names(MATCHES));
        assert_eq!(named(turns), names(TURNS));
    }
}
