//! Has a component compiled by a child process that can be killed.
//!
//! Whatever the component makes the compiler do, this process gets code, a refusal or an
//! error within the time limit, and the child is gone afterwards.
//!
//! Not here: what the child does (`worker`), and loading its code (`sandbox`).

use std::io::{self, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::refusal::{CompileBound, LoadError, Refusal, SandboxError};
use crate::worker;

/// Bytes of machine code of one component. StarlingMonkey compiles to 50 million.
pub const CODE_BYTES_MAX: u64 = 128 << 20;

/// How often a finished child is looked for once it has answered.
const REAP_INTERVAL: Duration = Duration::from_millis(1);

/// How long a child that has closed its output may take to end.
const REAP_TIME_MAX: Duration = Duration::from_secs(5);

/// The program that compiles: it must call [`crate::worker::serve`] and do nothing else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompileWorker {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
}

/// What compiling one component may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompileLimits {
    /// Bytes of address space of the child.
    pub memory_bytes_max: u64,
    /// Seconds of processor time of the child.
    pub cpu_seconds_max: u64,
    /// Elapsed time.
    pub wall_max: Duration,
}

impl Default for CompileLimits {
    /// Room for CPython on a slow and busy machine: measured are 20 s and 0.4 GB.
    fn default() -> CompileLimits {
        CompileLimits {
            memory_bytes_max: 2 << 30,
            cpu_seconds_max: 120,
            wall_max: Duration::from_secs(600),
        }
    }
}

/// Returns the component's machine code.
///
/// # Errors
/// [`LoadError::Refused`] when the compiler says no, exceeds a limit or dies;
/// [`LoadError::Host`] when the worker cannot be run or does not behave as one.
pub(crate) fn compile(
    worker: &CompileWorker,
    limits: &CompileLimits,
    component: &[u8],
) -> Result<Vec<u8>, LoadError> {
    let failed = |detail: String| SandboxError::Worker { program: worker.program.clone(), detail };
    let mut child = Command::new(&worker.program)
        .args(&worker.args)
        .env_clear()
        // An interrupt from the terminal is for this process, which decides what to do about it.
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| failed(error.to_string()))?;
    let talk = converse(&mut child, limits, component);
    let status = end(&mut child, talk.is_some()).map_err(|error| failed(error.to_string()))?;
    let Some(answer) = talk else {
        let limit_ms = u64::try_from(limits.wall_max.as_millis()).unwrap_or(u64::MAX);
        let bound = CompileBound::Wall { limit_ms };
        return Err(Refusal::CompileExceeded { bound }.into());
    };
    if let Some(bound) = exceeded(status, limits) {
        return Err(Refusal::CompileExceeded { bound }.into());
    }
    let answer = answer.map_err(|error| failed(error.to_string()))?;
    let bytes = answer.len() as u64;
    // Nobody reads on, so such a child ends on a broken pipe.
    if bytes > ANSWER_HEADER_BYTES as u64 + CODE_BYTES_MAX {
        let bound = CompileBound::Code { bytes, limit: CODE_BYTES_MAX };
        return Err(Refusal::CompileExceeded { bound }.into());
    }
    if !status.success() {
        return Err(failed(format!("the worker ended with {status}")).into());
    }
    read_answer(answer, &failed)
}

/// Asks the child and returns all it wrote, or nothing when it did not end in time.
fn converse(
    child: &mut Child,
    limits: &CompileLimits,
    component: &[u8],
) -> Option<io::Result<Vec<u8>>> {
    let (Some(mut input), Some(mut output)) = (child.stdin.take(), child.stdout.take()) else {
        return Some(Err(io::Error::other("no pipes to the worker")));
    };
    let question = question(limits, component);
    let (sender, receiver) = mpsc::channel();
    // Both threads end when the child's ends of the pipes close, at the latest when it is
    // killed. A child that stops reading is judged by its status, not by the broken pipe.
    std::thread::spawn(move || input.write_all(&question).is_ok());
    std::thread::spawn(move || {
        let mut answer = Vec::new();
        // One byte more than allowed, so that an excess shows.
        let most = ANSWER_HEADER_BYTES as u64 + CODE_BYTES_MAX + 1;
        let read = output.by_ref().take(most).read_to_end(&mut answer);
        // The parent may have given up.
        let _ = sender.send(read.map(|_| answer));
    });
    receiver.recv_timeout(limits.wall_max).ok()
}

fn question(limits: &CompileLimits, component: &[u8]) -> Vec<u8> {
    let mut question = Vec::with_capacity(component.len() + 32);
    question.extend_from_slice(&worker::MAGIC);
    for number in [limits.memory_bytes_max, limits.cpu_seconds_max, component.len() as u64] {
        question.extend_from_slice(&number.to_be_bytes());
    }
    question.extend_from_slice(component);
    question
}

/// Waits for a child that has answered, kills one that has not, and reaps it.
fn end(child: &mut Child, has_answered: bool) -> io::Result<ExitStatus> {
    let start = Instant::now();
    while has_answered && start.elapsed() < REAP_TIME_MAX {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        std::thread::sleep(REAP_INTERVAL);
    }
    child.kill()?;
    child.wait()
}

/// The exit code of a Rust program that panicked.
const PANIC_CODE: i32 = 101;

/// Tells which limit ended the child, if one did. The memory limit shows as an abort or a bad
/// access, as does a crash; signals that only others send say nothing about the component.
fn exceeded(status: ExitStatus, limits: &CompileLimits) -> Option<CompileBound> {
    const CRASHES: [Signal; 6] =
        [Signal::ABORT, Signal::SEGV, Signal::BUS, Signal::ILL, Signal::FPE, Signal::TRAP];
    let signal = status.signal();
    let is = |wanted: Signal| signal == Some(wanted.as_raw());
    if is(Signal::XCPU) {
        return Some(CompileBound::Cpu { limit_s: limits.cpu_seconds_max });
    }
    let died = CRASHES.into_iter().any(is) || status.code() == Some(PANIC_CODE);
    died.then_some(CompileBound::Died { memory_limit: limits.memory_bytes_max, signal })
}

/// Bytes before the body of an answer.
const ANSWER_HEADER_BYTES: usize = 17;

fn read_answer(
    mut answer: Vec<u8>,
    failed: &dyn Fn(String) -> SandboxError,
) -> Result<Vec<u8>, LoadError> {
    let malformed = || failed("the worker's answer is malformed".to_owned());
    let header: [u8; ANSWER_HEADER_BYTES] = answer.first_chunk().copied().ok_or_else(malformed)?;
    let (magic, rest) = header.split_at(8);
    let (status, length) = rest.split_at(1);
    let length = length.try_into().map(u64::from_be_bytes).map_err(|_| malformed())?;
    if magic != worker::MAGIC {
        return Err(malformed().into());
    }
    answer.drain(..ANSWER_HEADER_BYTES);
    if answer.len() as u64 != length {
        return Err(malformed().into());
    }
    match status {
        [worker::STATUS_COMPILED] => Ok(answer),
        [worker::STATUS_REFUSED] if answer.len() <= worker::TEXT_BYTES_MAX => {
            let detail = String::from_utf8(answer).map_err(|_| malformed())?;
            Err(Refusal::Invalid { detail }.into())
        }
        _ => Err(malformed().into()),
    }
}
