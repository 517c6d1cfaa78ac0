//! The compile child: reads a component from standard input, writes machine code to standard
//! output.
//!
//! A compiler cannot be cancelled, may need any amount of memory and may crash; this process
//! takes all of that on itself. It limits its own memory and processor time before it reads
//! the first byte of the component. It opens no file and never runs what it compiles.
//!
//! Question, all numbers u64 big-endian: `ARENACW1`, bytes of address space, seconds of
//! processor time, bytes of the component, the component. Answer: `ARENACW1`, one status byte
//! (0 compiled, 1 refused), bytes of the body, the body: code, or UTF-8 text that says why.
//!
//! Not here: starting, watching and killing the child (`compile`).

use std::io::{self, Read, Write};
use std::process::ExitCode;

use rustix::process::{Resource, Rlimit, setrlimit};

use crate::engine;
use crate::precheck::COMPONENT_BYTES_MAX;

/// First bytes of question and answer.
pub(crate) const MAGIC: [u8; 8] = *b"ARENACW1";
/// The body is machine code.
pub(crate) const STATUS_COMPILED: u8 = 0;
/// The body is text.
pub(crate) const STATUS_REFUSED: u8 = 1;
/// Longest text of a refusal in bytes.
pub(crate) const TEXT_BYTES_MAX: usize = 4_096;

/// Compiles the component on standard input. The program that a [`crate::CompileWorker`]
/// names must do nothing but this.
///
/// The exit code is 0 when an answer was written, whatever it says.
pub fn serve() -> ExitCode {
    match answer(&mut io::stdin().lock(), &mut io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        // Nobody reads this child's diagnostics; the parent sees the code and an empty answer.
        Err(_) => ExitCode::from(2),
    }
}

fn answer(input: &mut impl Read, output: &mut impl Write) -> io::Result<()> {
    if read_array(input)? != MAGIC {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let memory_bytes = read_number(input)?;
    let cpu_seconds = read_number(input)?;
    restrict(memory_bytes, cpu_seconds)?;
    let length = read_number(input)?;
    if length > COMPONENT_BYTES_MAX {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut component = Vec::new();
    input.take(length).read_to_end(&mut component)?;
    if component.len() as u64 != length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let engine = engine::for_compiling().map_err(io::Error::other)?;
    let (status, body) = match engine.precompile_component(&component) {
        Ok(code) => (STATUS_COMPILED, code),
        Err(error) => (STATUS_REFUSED, shorten(format!("{error:#}")).into_bytes()),
    };
    output.write_all(&MAGIC)?;
    output.write_all(&[status])?;
    output.write_all(&(body.len() as u64).to_be_bytes())?;
    output.write_all(&body)?;
    output.flush()
}

/// Gives up what this process does not need. None of it can be taken back.
fn restrict(memory_bytes: u64, cpu_seconds: u64) -> io::Result<()> {
    let limits = [
        (Resource::As, memory_bytes, memory_bytes),
        // The first limit ends the process by a signal of its own, which the parent knows; at
        // the second one the kernel kills.
        (Resource::Cpu, cpu_seconds, cpu_seconds.saturating_add(1)),
        (Resource::Core, 0, 0),
        (Resource::Fsize, 0, 0),
    ];
    for (resource, soft, hard) in limits {
        setrlimit(resource, Rlimit { current: Some(soft), maximum: Some(hard) })?;
    }
    rustix::thread::set_no_new_privs(true)?;
    // A parent that is killed must not leave a compiler running.
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    Ok(())
}

fn read_array(input: &mut impl Read) -> io::Result<[u8; 8]> {
    let mut bytes = [0; 8];
    input.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn read_number(input: &mut impl Read) -> io::Result<u64> {
    read_array(input).map(u64::from_be_bytes)
}

fn shorten(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
    text
}
