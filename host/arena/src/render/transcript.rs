//! One match as a person reads it: who, what, turn by turn, and how it ended.
//!
//! Talk and notes are strangers' words, so they are escaped, quoted and wrapped.

use std::fmt::Write;

use arena_core::price::Price;
use arena_core::record::{MatchRecord, Outcome, TurnRecord};
use arena_core::rules::Rules;
use arena_core::scenario::{Item, Role};
use arena_core::score;
use arena_core::turn::Move;
use unicode_width::UnicodeWidthChar;

use crate::escape::{escape, excerpt};
use crate::render::number::signed;
use crate::render::table::{Align, Cell, Table};
use crate::screen::{Paint, Tone};

/// How wide quoted text may become before it goes on in the next line.
const QUOTE_COLUMNS: usize = 52;
/// How much of a title is shown.
const TITLE_CHARS: usize = 72;
/// How much of one private note is shown.
const NOTE_CHARS: usize = 2_000;

/// What a transcript needs beside the record.
#[derive(Debug)]
pub struct Scene<'a> {
    /// Names of buyer and seller.
    pub names: [&'a str; 2],
    /// The thing on sale, where it is known.
    pub item: Option<&'a Item>,
    /// The rules of play.
    pub rules: &'a Rules,
    /// Whether private notes are shown.
    pub trace: bool,
}

/// Returns the transcript of a match.
pub fn render(record: &MatchRecord, scene: &Scene<'_>, paint: Paint) -> String {
    let mut text = heading(record, scene, paint);
    text.push('\n');
    text.push_str(&turns(record, scene, paint));
    text.push('\n');
    let toned = match record.outcome {
        Outcome::Deal { .. } => Tone::Good,
        Outcome::Violated { .. } | Outcome::Faulted { .. } => Tone::Bad,
        Outcome::Walked { .. } | Outcome::TimedOut => Tone::Plain,
    };
    let _ = writeln!(text, "{}\n", paint.paint(toned, &ending(record)));
    text.push_str(&sides(record, scene, paint));
    if scene.trace {
        text.push_str(&notes(record, scene, paint));
    }
    text
}

fn heading(record: &MatchRecord, scene: &Scene<'_>, paint: Paint) -> String {
    let mut text = String::new();
    let mut line = |label: &str, value: String| {
        let _ = writeln!(text, "{}  {value}", paint.paint(Tone::Bold, &format!("{label:6}")));
    };
    let listed = format!("listed at {}", record.list_price);
    match scene.item {
        Some(item) => {
            let title = excerpt(&item.title, TITLE_CHARS);
            line("item", format!("{title} ({}), {listed}", escape(&item.id)));
        }
        None => line("item", format!("number {} of the catalog, {listed}", record.item_index)),
    }
    line("buyer", format!("{}, pays at most {}", scene.names[0], record.budget));
    line("seller", format!("{}, takes at least {}", scene.names[1], record.cost));
    let hidden = if record.horizon.hidden { " that nobody knows" } else { "" };
    let limit = count(u64::from(record.horizon.turn_limit), "turn");
    let set = scene.rules.set.name();
    line("rules", format!("{set}, at most {limit}{hidden}, the {} opens", record.opener));
    text
}

fn turns(record: &MatchRecord, scene: &Scene<'_>, paint: Paint) -> String {
    let believes = record.turns.iter().any(|turn| turn.belief.is_some());
    let mut heads = vec![
        ("turn", Align::Right),
        ("role", Align::Left),
        ("agent", Align::Left),
        ("move", Align::Left),
    ];
    if believes {
        heads.push(("belief", Align::Left));
    }
    heads.push(("talk", Align::Left));
    let mut table = Table::new(&heads);
    let mut line =
        |number: String, role: &str, name: &str, action: Cell, belief: Cell, talk: String| {
            let mut cells = vec![number.into(), role.into(), name.into(), action];
            if believes {
                cells.push(belief);
            }
            cells.push(talk.into());
            table.row(cells);
        };
    for (index, turn) in record.turns.iter().enumerate() {
        let name = scene.names[turn.by.index()];
        let role = turn.by.to_string();
        for action in &turn.refused {
            let refused = Cell::toned(format!("{}, refused", movement(*action)), Tone::Bad);
            line(String::new(), &role, name, refused, "".into(), String::new());
        }
        let mut quoted = quote(&turn.talk).into_iter();
        let first = quoted.next().unwrap_or_default();
        let number = (index + 1).to_string();
        line(number, &role, name, movement(turn.action).into(), belief(turn), first);
        for more in quoted {
            line(String::new(), "", "", "".into(), "".into(), more);
        }
    }
    table.render(paint)
}

/// What a seat thought of the opponent's reserve; nobody else was told.
fn belief(turn: &TurnRecord) -> Cell {
    let shown = turn.belief.map(|belief| format!("{} ± {}", belief.reserve, belief.spread));
    Cell::toned(shown.unwrap_or_default(), Tone::Dim)
}

/// Says a move in words.
pub fn movement(action: Move) -> String {
    match action {
        Move::Offer(price) => format!("offers {price}"),
        Move::Accept(None) => "accepts".to_owned(),
        Move::Accept(Some(price)) => format!("accepts {price}"),
        Move::Reject => "rejects".to_owned(),
        Move::Walk => "walks away".to_owned(),
    }
}

/// Says how a match ended.
pub fn ending(record: &MatchRecord) -> String {
    let after = format!("after {}", count(record.turns.len() as u64, "turn"));
    match record.outcome {
        Outcome::Deal { price } => format!("deal at {price} {after}{}", zone(record, price)),
        Outcome::Walked { by } => format!("no deal: the {by} walked away {after}"),
        Outcome::TimedOut => format!("no deal: out of turns {after}"),
        Outcome::Violated { by, action } => {
            let beyond = record_reserve(record, by);
            format!("no deal: the {by} {} beyond its reserve {beyond} {after}", movement(action))
        }
        Outcome::Faulted { by, fault } => format!("no deal: the {by} faulted, {fault}, {after}"),
    }
}

fn zone(record: &MatchRecord, price: Price) -> &'static str {
    if record.budget < record.cost {
        return ", although no price suits both";
    }
    if price > record.budget || price < record.cost {
        return ", beyond a reserve";
    }
    ""
}

fn record_reserve(record: &MatchRecord, role: Role) -> Price {
    match role {
        Role::Buyer => record.budget,
        Role::Seller => record.cost,
    }
}

fn sides(record: &MatchRecord, scene: &Scene<'_>, paint: Paint) -> String {
    let mut table = Table::new(&[
        ("role", Align::Left),
        ("agent", Align::Left),
        ("reserve", Align::Right),
        ("reward", Align::Right),
        ("refused", Align::Right),
        ("fuel", Align::Right),
        ("most in a turn", Align::Right),
        ("model calls", Align::Right),
    ]);
    for role in Role::BOTH {
        let usage = &record.usage[role.index()];
        let own = record.turns.iter().filter(|turn| turn.by == role);
        let refused: usize = own.map(|turn| turn.refused.len()).sum();
        // A forged log may say anything.
        let fuel = usage.fuel_per_act.iter().fold(0_u64, |sum, fuel| sum.saturating_add(*fuel));
        let most = usage.fuel_per_act.iter().max().copied().unwrap_or(0);
        table.row(vec![
            role.to_string().into(),
            scene.names[role.index()].into(),
            record_reserve(record, role).to_string().into(),
            signed(Some(score::reward(record, role))).into(),
            refused.to_string().into(),
            thousands(fuel).into(),
            thousands(most).into(),
            usage.model_calls.len().to_string().into(),
        ]);
    }
    table.render(paint)
}

fn notes(record: &MatchRecord, scene: &Scene<'_>, paint: Paint) -> String {
    let mut text = String::new();
    for role in Role::BOTH {
        let usage = &record.usage[role.index()];
        let heading = format!("notes of the {role}, {}", scene.names[role.index()]);
        let _ = writeln!(text, "\n{}", paint.paint(Tone::Bold, &heading));
        if usage.trace.is_empty() {
            text.push_str("  none\n");
        }
        for note in &usage.trace {
            let _ = writeln!(text, "  {}", excerpt(note, NOTE_CHARS));
        }
        if usage.trace_cut {
            text.push_str("  (the rest was cut at the trace limit)\n");
        }
    }
    text
}

/// Escapes talk, puts it in quotation marks and breaks it into lines.
fn quote(talk: &str) -> Vec<String> {
    if talk.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![String::from("\"")];
    let mut columns = 1;
    for word in escape(talk).split_inclusive(' ') {
        let width: usize = word.chars().filter_map(UnicodeWidthChar::width).sum();
        if columns > 1 && columns + width > QUOTE_COLUMNS {
            lines.push(String::from(" "));
            columns = 1;
        }
        for character in word.chars() {
            if columns >= QUOTE_COLUMNS {
                lines.push(String::from(" "));
                columns = 1;
            }
            let last = lines.last_mut().expect("there is a first line");
            last.push(character);
            columns += character.width().unwrap_or(0);
        }
    }
    lines.last_mut().expect("there is a first line").push('"');
    lines
}

/// Returns a count with its noun.
pub fn count(number: u64, noun: &str) -> String {
    let (stem, plural) = match noun.strip_suffix("ry") {
        _ if number == 1 => (noun, ""),
        Some(_) => (&noun[..noun.len() - 1], "ies"),
        None if noun.ends_with("ch") => (noun, "es"),
        None => (noun, "s"),
    };
    format!("{} {stem}{plural}", thousands(number))
}

/// Returns a number with commas between groups of three digits.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_talk_is_wrapped_and_every_line_stays_in_its_column() {
        let lines = quote(&format!("{} {}", "word ".repeat(30), "x".repeat(200)));
        assert!(lines.len() > 5);
        for line in &lines {
            assert!(line.chars().count() <= QUOTE_COLUMNS + 1, "{line}");
        }
        assert!(lines.first().is_some_and(|line| line.starts_with('"')));
        assert!(lines.last().is_some_and(|line| line.ends_with('"')));
    }

    #[test]
    fn numbers_have_commas_and_counts_agree_with_their_nouns() {
        assert_eq!(thousands(1_234_567), "1,234,567");
        assert_eq!(thousands(999), "999");
        assert_eq!(count(1, "turn"), "1 turn");
        assert_eq!(count(0, "turn"), "0 turns");
        assert_eq!(count(12_000, "match"), "12,000 matches");
        assert_eq!(count(2, "entry"), "2 entries");
    }
}
