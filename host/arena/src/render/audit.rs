//! The steps of an audit as a person reads them, and as a JSON value.
//!
//! A step that was not checked never looks like one that was verified. Values in findings are
//! strangers', so whatever could mislead is written out.

use std::fmt::Write;

use arena_audit::{AgentVoids, Finding, Step, Verdict};
use arena_log::policy::Opened;
use serde_json::{Value, json};

use crate::escape::{escape, harmless};
use crate::render::table::{Align, Cell, Table};
use crate::render::transcript::{count, thousands};
use crate::screen::{Paint, Tone};

/// Returns the list of steps, then the findings.
pub fn steps(steps: &[Step], paint: Paint) -> String {
    let mut table =
        Table::new(&[("verdict", Align::Left), ("step", Align::Left), ("what", Align::Left)]);
    for step in steps {
        let (verdict, said) = match &step.verdict {
            Verdict::Verified { detail } => (Cell::toned("verified", Tone::Good), one_line(detail)),
            Verdict::Failed { finding_count, .. } => {
                let findings = count(*finding_count, "finding");
                (Cell::toned("FAILED", Tone::Bad), format!("{findings}: {}", step.title))
            }
            Verdict::NotChecked { reason } => {
                (Cell::toned("not checked", Tone::Note), one_line(reason))
            }
        };
        table.row(vec![verdict, step.id.into(), said.into()]);
    }
    let mut text = table.render(paint);
    text.push_str(&findings(steps, paint));
    text
}

fn findings(steps: &[Step], paint: Paint) -> String {
    let mut text = String::new();
    for step in steps {
        let Verdict::Failed { findings, finding_count } = &step.verdict else { continue };
        let heading = format!("{}: {}, which does not hold", step.id, step.title);
        let _ = writeln!(text, "\n{}", paint.paint(Tone::Bold, &heading));
        for finding in findings {
            text.push_str(&lines_of(finding));
        }
        let more = finding_count.saturating_sub(findings.len() as u64);
        if more > 0 {
            let _ = writeln!(text, "  and {} more", thousands(more));
        }
    }
    text
}

/// Returns a finding as a line of where and what, and a line for each of both values.
fn lines_of(finding: &Finding) -> String {
    let mut place = String::new();
    if let Some(entry) = finding.entry {
        let _ = write!(place, "entry {entry}: ");
    }
    if let Some(file) = &finding.file {
        let _ = write!(place, "`{file}`: ");
    }
    format!(
        "  {}{}\n    found     {}\n    expected  {}\n",
        one_line(&place),
        one_line(&finding.what),
        one_line(&finding.found),
        one_line(&finding.wanted),
    )
}

fn one_line(text: &str) -> String {
    harmless(&text.replace('\n', "\\n"))
}

/// Returns a line of whose pairs were voided and how often, where any was.
pub fn voids(voids: &[AgentVoids]) -> String {
    let voided = voids.iter().filter(|of| of.voided_count > 0);
    let said: Vec<String> = voided
        .map(|of| {
            let (agent, percent) = (escape(&of.agent), 100.0 * of.rate().unwrap_or_default());
            let (voided, pairs) = (thousands(of.voided_count), thousands(of.pair_count));
            format!("{agent} {voided} of {pairs} ({percent:.1} %)")
        })
        .collect();
    if said.is_empty() { String::new() } else { format!("\nvoided pairs: {}\n", said.join(", ")) }
}

/// Returns the same for every agent.
pub fn voids_to_json(voids: &[AgentVoids]) -> Value {
    let one = |of: &AgentVoids| {
        json!({
            "agent": of.agent,
            "pairs": of.pair_count,
            "voided": of.voided_count,
            "rate": of.rate(),
        })
    };
    voids.iter().map(one).collect()
}

/// Returns a head that is believed, and who signed it.
pub fn head_to_json(opened: &Opened) -> Value {
    let cosigned = opened.cosigned.iter();
    let cosigned = cosigned.map(|by| json!({ "witness": by.witness, "time": by.time }));
    json!({
        "origin": opened.head.origin,
        "size": opened.head.size,
        "root": opened.head.root.to_string(),
        "vkey": opened.log.to_string(),
        "cosigned": cosigned.collect::<Vec<Value>>(),
    })
}

/// Returns the steps with everything that they say.
pub fn to_json(steps: &[Step]) -> Value {
    steps.iter().map(step_to_json).collect()
}

fn step_to_json(step: &Step) -> Value {
    let mut value = match &step.verdict {
        Verdict::Verified { detail } => json!({ "verdict": "verified", "detail": detail }),
        Verdict::NotChecked { reason } => json!({ "verdict": "not-checked", "reason": reason }),
        Verdict::Failed { findings, finding_count } => json!({
            "verdict": "failed",
            "finding_count": finding_count,
            "findings": findings.iter().map(finding_to_json).collect::<Vec<Value>>(),
        }),
    };
    value["step"] = json!(step.id);
    value["title"] = json!(step.title);
    value
}

fn finding_to_json(finding: &Finding) -> Value {
    json!({
        "entry": finding.entry,
        "file": finding.file,
        "what": finding.what,
        "found": finding.found,
        "wanted": finding.wanted,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(id: &'static str, verdict: Verdict) -> Step {
        Step { id, title: "what is so", verdict }
    }

    #[test]
    fn each_verdict_has_its_word_and_findings_show_both_values() {
        let finding = Finding::new("the reward", "1\u{1b}[2J", "0\n").at(17);
        let all = [
            step("tree", Verdict::Verified { detail: "3 entries".to_owned() }),
            step("rules", Verdict::Failed { findings: vec![finding], finding_count: 3 }),
            step("usage", Verdict::NotChecked { reason: "withheld".to_owned() }),
        ];
        let text = steps(&all, Paint::OFF);
        let wanted = "  \
  verdict      step   what
  verified     tree   3 entries
  FAILED       rules  3 findings: what is so
  not checked  usage  withheld

rules: what is so, which does not hold
  entry 17: the reward
    found     1\\u{1b}[2J
    expected  0\\n
  and 2 more
";
        assert_eq!(text, wanted);
        let json = to_json(&all);
        assert_eq!(json[1]["findings"][0]["entry"], 17);
        assert_eq!(json[2]["verdict"], "not-checked");
    }

    #[test]
    fn whose_pairs_were_voided_is_a_line_and_every_agent_is_in_the_json() {
        let of = |agent: &str, pair_count, voided_count| AgentVoids {
            agent: agent.to_owned(),
            pair_count,
            voided_count,
        };
        let all = [of("a", 2_000, 1_001), of("b", 10, 0), of("c\u{1b}", 3, 1), of("d", 0, 0)];
        let line = "\nvoided pairs: a 1,001 of 2,000 (50.0 %), c\\u{1b} 1 of 3 (33.3 %)\n";
        assert_eq!(voids(&all), line);
        assert_eq!(voids(&all[1..2]), "");
        let json = voids_to_json(&all[1..]);
        assert_eq!(json[0], json!({ "agent": "b", "pairs": 10, "voided": 0, "rate": 0.0 }));
        assert_eq!(json[2]["rate"], Value::Null);
    }
}
