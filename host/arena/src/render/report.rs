//! A tournament's tables. Every number comes out of the report; what has no value is `-`.

use std::fmt::Write;

use arena_core::report::{Report, Row};
use arena_core::statistics::bootstrap::Estimate;
use arena_core::statistics::compare::SIGNIFICANCE;
use arena_core::statistics::metric::Metric;
use arena_core::statistics::reference::Ladder;

use crate::reading::{Reading, Stage};
use crate::render::number::{
    decimal, hundredths, interval, interval_head, percent, points, signed, tenth,
};
use crate::render::table::{Align, Cell, Table};
use crate::render::transcript::{count, thousands};
use crate::render::{faults, metrics};
use crate::screen::{Paint, Tone};

/// Agents up to which everyone's result against everyone is printed without being asked for:
/// more do not fit in 120 columns.
const HEAD_TO_HEAD_MAX: usize = 18;

/// Returns all tables of a tournament, the lines around them and what to run next.
pub fn render(report: &Report, reading: &Reading, full: bool, paint: Paint) -> String {
    let mut text = heading(report, reading, paint);
    text.push('\n');
    text.push_str(&standings(report, paint));
    text.push_str(&legend(paint));
    if full || report.rows.len() <= HEAD_TO_HEAD_MAX {
        let title = "rating in points, and mean reward of row against column in hundredths";
        let _ = writeln!(text, "\n{}", paint.paint(Tone::Bold, title));
        text.push_str(&head_to_head(report, paint));
        let meaning = "  Points: how often an agent gets more than its opponent, not how much \
                       (Bradley-Terry);\n  400 points are odds of ten to one.\n";
        text.push_str(&paint.paint(Tone::Dim, meaning));
    }
    let _ = writeln!(text, "\n{}", paint.paint(Tone::Bold, "how to read it"));
    text.push_str(&remarks(report));
    if full {
        let _ = writeln!(text, "\n{}", paint.paint(Tone::Bold, "every metric, mean per match"));
        text.push_str(&metrics::render(report, paint));
    }
    text.push_str(&faults::render(report, reading, paint));
    for warning in &report.warnings {
        let _ = writeln!(text, "{} {warning}", paint.paint(Tone::Note, "note:"));
    }
    text.push_str(&next(reading, full));
    text
}

fn heading(report: &Report, reading: &Reading, paint: Paint) -> String {
    let header = &report.header;
    let draws = match header.seed {
        Some(seed) => format!("seed {seed}"),
        None => "committed draws".to_owned(),
    };
    let mut text = format!(
        "{}: {}, {}, {}, {draws}\n",
        paint.paint(Tone::Bold, &header.tournament),
        count(header.agent_count as u64, "agent"),
        count(u64::from(header.item_count), "item"),
        count(header.matches_played, "match"),
    );
    if !reading.is_closed() {
        let (played, all) = (thousands(header.pairs_played), count(header.pair_count, "pair"));
        let line = format!(
            "unfinished: {played} of {all}; looking early and stopping at a pleasant moment \
             makes every interval too narrow"
        );
        let _ = writeln!(text, "{}", paint.paint(Tone::Bad, &line));
    }
    if reading.is_torn {
        let torn = "the last pair has one match only, as after a crash";
        let _ = writeln!(text, "{torn}; the same run goes on from there");
    }
    if reading.stage == Stage::Closed {
        let line = "closed, but what was secret is not shown yet; the same run does that";
        let _ = writeln!(text, "{}", paint.paint(Tone::Bad, line));
    }
    let voids = header.voids_model_provider + header.voids_host;
    if voids > 0 {
        let pairs = count(voids, "pair");
        let _ = writeln!(text, "{pairs} played again, because the host or a model failed");
    }
    text
}

fn standings(report: &Report, paint: Paint) -> String {
    let interval = interval_head();
    let mut table = Table::new(&[
        ("#", Align::Right),
        ("agent", Align::Left),
        ("reward", Align::Right),
        (&interval, Align::Left),
        ("buying", Align::Right),
        ("selling", Align::Right),
        ("SE+", Align::Right),
        ("deals", Align::Right),
        ("AGR+", Align::Right),
        ("FAGR-", Align::Right),
        ("turns", Align::Right),
        ("faults", Align::Right),
        ("group", Align::Left),
    ]);
    for row in &report.rows {
        table.row(standing(row));
    }
    table.render(paint)
}

fn standing(row: &Row) -> Vec<Cell> {
    let faults: u64 = row.faults.iter().map(|entry| entry.count).sum();
    let tone = if faults > 0 { Tone::Bad } else { Tone::Plain };
    let estimates = &row.estimates;
    vec![
        row.rank.to_string().into(),
        row.name.as_str().into(),
        signed(estimates.reward.value).into(),
        interval(&estimates.reward, signed).into(),
        signed(estimates.buyer_reward.value).into(),
        signed(estimates.seller_reward.value).into(),
        decimal(estimates.surplus_share.value).into(),
        percent(row.metrics.get(Metric::DealRate)).into(),
        percent(row.metrics.get(Metric::Agreement)).into(),
        percent(row.metrics.get(Metric::FalseAgreement)).into(),
        tenth(row.metrics.get(Metric::Turns)).into(),
        Cell::toned(thousands(faults), tone),
        row.group_letters.as_str().into(),
    ]
}

fn legend(paint: Paint) -> String {
    let level = SIGNIFICANCE * 100.0;
    let lines = format!(
        "  SE+ and AGR+: surplus share and agreement where a deal is possible; FAGR-: agreement \
         where none is.\n  Agents that share a group letter cannot be told apart (Holm, \
         {level:.0} %).\n"
    );
    paint.paint(Tone::Dim, &lines)
}

fn head_to_head(report: &Report, paint: Paint) -> String {
    let numbers: Vec<String> = report.rows.iter().map(|row| row.rank.to_string()).collect();
    let mut heads = vec![
        ("#", Align::Right),
        ("agent", Align::Left),
        ("points", Align::Right),
        ("interval", Align::Left),
    ];
    heads.extend(numbers.iter().map(|number| (number.as_str(), Align::Right)));
    let mut table = Table::new(&heads).tight();
    for (row, meetings) in report.rows.iter().zip(&report.head_to_head) {
        let mut cells: Vec<Cell> = vec![
            row.rank.to_string().into(),
            row.name.as_str().into(),
            points(row.rating.value).into(),
            interval(&row.rating, points).into(),
        ];
        let reward = |met: &Option<_>| -> Cell { hundredths(met.as_ref().map(rewarded)).into() };
        cells.extend(meetings.iter().map(reward));
        table.row(cells);
    }
    table.render(paint)
}

fn rewarded(meeting: &arena_core::report::Meeting) -> f64 {
    meeting.reward
}

fn remarks(report: &Report) -> String {
    let mut text = String::new();
    let effect = &report.role_effect;
    let _ = writeln!(
        text,
        "  role     buyers' mean reward minus sellers': {}; buying is worth {} points",
        estimated(&effect.buyer_reward_lead, signed),
        estimated(&effect.buyer_points, points)
    );
    let _ = writeln!(text, "  first    {}", fragility(report));
    let lines = &report.references;
    let _ = writeln!(
        text,
        "  lines    {} of matches can end in a deal; reward at first best {}, at the midpoint {}",
        percent(lines.feasible_rate),
        signed(lines.first_best_reward),
        signed(lines.midpoint_reward)
    );
    if let Some(second_best) = lines.second_best_efficiency {
        let share = percent(Some(second_best));
        let _ = writeln!(text, "  theory   no mechanism reaches more than {share} of all gains");
    }
    if let Some([buyer, seller]) = &lines.ladders {
        let sampled = match lines.ladders_sampled {
            true => ", chosen on the first scenarios",
            false => "",
        };
        let intro = "best prices without listening, against one that takes all it can";
        let _ = writeln!(text, "  ladders  {intro}{sampled}:");
        for (verb, best) in [("buying", buyer), ("selling", seller)] {
            let _ = writeln!(text, "{:11}{verb} {}", "", ladder(best));
        }
    }
    text
}

fn estimated(estimate: &Estimate, show: fn(Option<f64>) -> String) -> String {
    format!("{} ({})", show(estimate.value), interval(estimate, show))
}

fn fragility(report: &Report) -> String {
    let name = |agent: u16| {
        let found = report.rows.iter().find(|row| row.agent == agent);
        found.map_or("-", |row| row.name.as_str())
    };
    let Some(fragility) = report.fragility else {
        return "fewer than two agents to compare".to_owned();
    };
    let leader = name(fragility.leader);
    match (fragility.successor, fragility.pair_count) {
        (Some(successor), Some(pairs)) => {
            let all = thousands(report.header.pairs_played);
            let pairs = thousands(pairs);
            let successor = name(successor);
            format!("{leader} leads; without {pairs} of {all} pairs {successor} would")
        }
        _ => format!("{leader} leads, whichever pairs are left out"),
    }
}

fn ladder(ladder: &Ladder) -> String {
    format!(
        "{} (opens at {} of the list price, {} a step)",
        signed(Some(ladder.reward)),
        percent(Some(f64::from(ladder.opening_milli) / 1_000.0)),
        percent(Some(f64::from(ladder.step_milli) / 1_000.0))
    )
}

fn next(reading: &Reading, full: bool) -> String {
    let log = reading.path.display();
    let more = if full { "--json" } else { "--full" };
    let pair = match reading.examples.first() {
        Some(example) => format!("--pair {} --trace to see what went wrong", example.pair_index),
        None => "--pair 0 to read a game".to_owned(),
    };
    let vkey = &reading.vkey;
    format!(
        "\nlog: {log}\n\
         key: {vkey}, says the log itself; its signatures are not checked here\n\
         more: arena tournament show {log} {more}, or {pair}\n\
         next: arena audit {log} --key {vkey}\n"
    )
}
