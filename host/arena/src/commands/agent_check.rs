//! `arena agent check`: examines a component as a tournament would, and harder.

use std::num::NonZeroUsize;

use arena_core::config::Limits;
use arena_core::hexadecimal::hex;
use arena_sandbox::{Grants, LoadError, LoadedAgent, Sandbox};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::cli::CheckArgs;
use crate::error::{CliError, Complaint, EXIT_FINDINGS, EXIT_OK};
use crate::escape::escape;
use crate::examination::{self, Finding, Subject, Verdict};
use crate::render::table::{Align, Cell, Table};
use crate::render::transcript::thousands;
use crate::screen::{self, Paint, Tone};
use crate::{inputs, sandbox};

/// Prints what was found; the exit code is the verdict.
///
/// # Errors
/// The file cannot be read, or the host failed.
pub fn run(args: &CheckArgs) -> Result<u8, CliError> {
    let bytes = inputs::component(&args.agent).map_err(CliError::Input)?;
    let limits = Limits::default();
    let sandbox = sandbox::open(&limits, NonZeroUsize::MIN)?;
    let findings = match sandbox.load(&bytes) {
        Ok(agent) => {
            let mut findings = vec![accepted(&bytes)];
            findings.extend(examine(args, &sandbox, &agent, &limits)?);
            findings
        }
        Err(LoadError::Refused(refusal)) => vec![Finding {
            test: "is a component that the sandbox takes".to_owned(),
            verdict: Verdict::Fail,
            detail: format!("{refusal}; {}", refusal.hint()),
        }],
        Err(LoadError::Host(error)) => {
            let failed = format!("cannot load `{}`", escape(&args.agent));
            return Err(CliError::Infrastructure(Complaint::new(failed, error)));
        }
    };
    print(args, &bytes, &findings)?;
    Ok(if passed(&findings) { EXIT_OK } else { EXIT_FINDINGS })
}

fn accepted(bytes: &[u8]) -> Finding {
    let size = thousands(bytes.len() as u64);
    Finding {
        test: "is a component that the sandbox takes".to_owned(),
        verdict: Verdict::Pass,
        detail: format!("{size} bytes; imports, structure, exports and compilation are fine"),
    }
}

fn examine(
    args: &CheckArgs,
    sandbox: &Sandbox,
    agent: &LoadedAgent,
    limits: &Limits,
) -> Result<Vec<Finding>, CliError> {
    let grants = Grants::default();
    let subject =
        Subject { sandbox, agent, grants: &grants, params: &args.params, limits, seed: args.seed };
    examination::examine(&subject).map_err(|voided| {
        let fact = format!("{}: {}", voided.reason.name(), voided.detail);
        let failed = format!("cannot examine `{}`", escape(&args.agent));
        CliError::Infrastructure(Complaint::new(failed, fact))
    })
}

fn passed(findings: &[Finding]) -> bool {
    findings.iter().all(|finding| finding.verdict != Verdict::Fail)
}

fn print(args: &CheckArgs, bytes: &[u8], findings: &[Finding]) -> Result<(), CliError> {
    let sha256 = hex(&Sha256::digest(bytes));
    if args.json {
        let tests = findings.iter().map(|finding| {
            json!({
                "test": finding.test,
                "verdict": finding.verdict.name(),
                "detail": finding.detail,
            })
        });
        return screen::json(&json!({
            "agent": args.agent,
            "component_bytes": bytes.len(),
            "component_sha256": sha256,
            "passed": passed(findings),
            "tests": tests.collect::<Vec<Value>>(),
        }));
    }
    let paint = Paint::of_stdout();
    let mut table =
        Table::new(&[("verdict", Align::Left), ("test", Align::Left), ("detail", Align::Left)]);
    for finding in findings {
        let tone = match finding.verdict {
            Verdict::Pass => Tone::Good,
            Verdict::Note => Tone::Note,
            Verdict::Fail => Tone::Bad,
        };
        table.row(vec![
            Cell::toned(finding.verdict.name(), tone),
            finding.test.as_str().into(),
            escape(&finding.detail).into(),
        ]);
    }
    let failed = findings.iter().filter(|finding| finding.verdict == Verdict::Fail).count();
    let agent = escape(&args.agent);
    let last = match failed {
        0 => format!("the agent may play; next: arena match {agent} builtin:boulware"),
        _ => format!(
            "the agent may not play: {}",
            if failed == 1 { "1 test failed".to_owned() } else { format!("{failed} tests failed") }
        ),
    };
    screen::results(&format!("{agent}, sha-256 {sha256}\n{}{last}\n", table.render(paint)))
}
