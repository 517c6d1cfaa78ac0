//! Plays a tournament that is prepared: joins the runner, the sandbox and the disk.
//!
//! Not here: what is played (`preparation`), and what is printed of it (`commands`).

use std::path::Path;
use std::sync::atomic::AtomicBool;

use arena_core::catalog::draw_scenario;
use arena_core::entry::DrawEntry;
use arena_core::fault::SeatError;
use arena_core::referee;
use arena_core::scenario::Role;
use arena_core::seat::Seat;
use arena_log::checkpoint::Head;
use arena_log::error::LogError;
use arena_runner::error::RunError;
use arena_runner::event::{RunEvent, Summary};
use arena_runner::{Job, SeatRequest, SeatSource};

use crate::error::{CliError, Complaint};
use crate::examination::last_words;
use crate::preparation::Prepared;
use crate::screen;

/// Seed of the seats that are briefed once before the first match. It is no match's.
const BRIEFING_SEED: u64 = 0;

/// Plays what the log does not hold yet. See [`arena_runner::run`].
///
/// # Errors
/// The log is another tournament's or damaged, or the machine failed.
pub fn play(
    prepared: &Prepared,
    draw: Option<&DrawEntry>,
    stop: &AtomicBool,
    events: &mut dyn FnMut(RunEvent),
) -> Result<Summary, CliError> {
    let seats = |request: SeatRequest| seat(prepared, request);
    with_job(prepared, draw, &seats, |job| arena_runner::run(job, stop, events))
        .map_err(|error| judge(&error, &prepared.out_dir))
}

/// Signs the announcement alone; returns the log's newest head.
///
/// # Errors
/// As [`play`].
pub fn announce(prepared: &Prepared) -> Result<Head, CliError> {
    let seats = |request: SeatRequest| seat(prepared, request);
    with_job(prepared, None, &seats, arena_runner::announce)
        .map_err(|error| judge(&error, &prepared.out_dir))
}

/// Briefs every agent as its matches will, and says who faults at that. A mistake in its parameters
/// would otherwise show only as a table full of faults. The agent plays all the same, and loses.
pub fn brief_once(prepared: &Prepared) {
    // The draws may not be open yet, and what is drawn here is no match's scenario then.
    let root = prepared.catalog_root;
    let scenario = draw_scenario(&prepared.config, &prepared.catalog, root, 0, 0);
    for (agent, entrant) in prepared.config.agents.iter().zip(&prepared.entrants) {
        let faults = Role::BOTH.into_iter().find_map(|role| {
            let params = &agent.params;
            let brief = referee::brief(&prepared.rules, &scenario, role, params, BRIEFING_SEED);
            let seat = prepared.sandbox.seat(&entrant.component, &entrant.grants, BRIEFING_SEED);
            let mut seat = seat.ok()?;
            match seat.begin(&brief) {
                Err(SeatError::Fault(fault)) => Some((fault, seat.take_usage().trace)),
                _ => None,
            }
        });
        if let Some((fault, trace)) = faults {
            screen::remark(&format!(
                "warning: agent `{}` faults when it is briefed: {fault}{}\n  \
                 hint: check its `params`; as they are, it loses every match",
                agent.name,
                last_words(&trace),
            ));
        }
    }
}

/// Does something with the tournament as the runner takes it.
fn with_job<T>(
    prepared: &Prepared,
    draw: Option<&DrawEntry>,
    seats: &SeatSource<'_, '_>,
    action: impl FnOnce(&Job<'_, '_>) -> T,
) -> T {
    let blobs: Vec<&[u8]> = prepared.blobs.iter().map(Vec::as_slice).collect();
    action(&Job {
        announcement: &prepared.announcement,
        opening: &prepared.opening,
        draw,
        secret: prepared.secrets.secret,
        key: &prepared.secrets.key,
        blobs: &blobs,
        rules: &prepared.rules,
        schedule: &prepared.schedule,
        catalog: &prepared.catalog,
        config: &prepared.config,
        out_dir: &prepared.out_dir,
        workers: prepared.workers,
        seats,
    })
}

fn seat<'a>(prepared: &'a Prepared, request: SeatRequest) -> Result<Box<dyn Seat + 'a>, SeatError> {
    let entrant = &prepared.entrants[usize::from(request.agent)];
    let seat = prepared.sandbox.seat(&entrant.component, &entrant.grants, request.seed)?;
    Ok(Box::new(seat))
}

/// Gives a failed run its kind: the log's content is input, everything else the machine.
fn judge(error: &RunError, out_dir: &Path) -> CliError {
    let mut complaint = Complaint::new("cannot play the tournament", error);
    complaint.facts.push(format!("log folder: {}", out_dir.display()));
    complaint.hint = error.hint().map(str::to_owned);
    match error {
        RunError::Log(LogError::Io { .. } | LogError::Locked { .. } | LogError::Memory { .. })
        | RunError::Voided { .. }
        | RunError::Panicked { .. }
        | RunError::Thread(_) => CliError::Infrastructure(complaint),
        _ => CliError::Input(complaint),
    }
}
