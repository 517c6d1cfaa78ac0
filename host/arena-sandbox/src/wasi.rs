//! The inert part of WASI 0.2 that compilers' runtimes link, written by hand.
//!
//! There is no environment and no argument, input is closed, output is thrown away, the clocks
//! stand still, waiting ends at once, and random bytes come from the seat's seed. Nothing here
//! blocks, reads the machine or keeps anything. Every function of the interfaces that
//! `precheck` allows is defined, so an import that does not link has another type than WASI's.
//!
//! Not here: files, sockets, HTTP, time zones. No component that imports them gets this far.

use arena_core::fault::Fault;
use wasmtime::StoreContextMut;
use wasmtime::component::{
    ComponentType, Lift, Linker, LinkerInstance, Lower, Resource, ResourceType, WasmList,
};

use crate::state::{SeatState, Stop, charge_bytes, enter};

/// The version that is defined; the linker serves it to every 0.2.x.
const VERSION: &str = "0.2.12";

/// What an output stream says it can take at once, in bytes.
const WRITE_BYTES: u64 = 64 << 10;

/// Most random bytes of one call.
const RANDOM_BYTES_MAX: u64 = 64 << 10;

/// What both clocks say they resolve to, in nanoseconds: they never advance.
const RESOLUTION_NANOS: u64 = 1_000_000_000;

struct InputStream;
struct OutputStream;
struct Pollable;
struct IoError;
struct TerminalInput;
struct TerminalOutput;

type Context<'a> = StoreContextMut<'a, SeatState>;
type StreamResult<T> = Result<T, StreamError>;

#[derive(ComponentType, Lift, Lower)]
#[component(variant)]
enum StreamError {
    #[component(name = "last-operation-failed")]
    #[allow(dead_code, reason = "part of the interface's type; nothing here ever fails so")]
    LastOperationFailed(Resource<IoError>),
    #[component(name = "closed")]
    Closed,
}

#[derive(ComponentType, Lift, Lower)]
#[component(record)]
struct Datetime {
    seconds: u64,
    nanoseconds: u32,
}

/// Defines every function of the permitted WASI interfaces.
pub(crate) fn link(linker: &mut Linker<SeatState>) -> wasmtime::Result<()> {
    link_errors_and_polls(linker)?;
    link_input(&mut instance(linker, "io/streams")?)?;
    link_output(&mut instance(linker, "io/streams")?)?;
    link_cli(linker)?;
    link_terminals(linker)?;
    link_random(linker)?;
    link_clocks(linker)
}

fn instance<'a>(
    linker: &'a mut Linker<SeatState>,
    name: &str,
) -> wasmtime::Result<LinkerInstance<'a, SeatState>> {
    linker.instance(&format!("wasi:{name}@{VERSION}"))
}

/// Defines a resource whose handles stand for nothing, so that dropping one does nothing.
fn resource<T: 'static>(
    instance: &mut LinkerInstance<'_, SeatState>,
    name: &str,
) -> wasmtime::Result<()> {
    instance.resource(name, ResourceType::host::<T>(), |_, _| Ok(()))
}

/// Returns a handle that stands for nothing.
fn handle<T: 'static>() -> Resource<T> {
    Resource::new_own(0)
}

fn link_errors_and_polls(linker: &mut Linker<SeatState>) -> wasmtime::Result<()> {
    let mut errors = instance(linker, "io/error")?;
    resource::<IoError>(&mut errors, "error")?;
    errors.func_wrap(
        "[method]error.to-debug-string",
        |mut ctx: Context<'_>, (_,): (Resource<IoError>,)| {
            enter(&mut ctx, 0)?;
            Ok((String::new(),))
        },
    )?;
    let mut poll = instance(linker, "io/poll")?;
    resource::<Pollable>(&mut poll, "pollable")?;
    poll.func_wrap(
        "[method]pollable.ready",
        |mut ctx: Context<'_>, (_,): (Resource<Pollable>,)| {
            enter(&mut ctx, 0)?;
            Ok((true,))
        },
    )?;
    poll.func_wrap(
        "[method]pollable.block",
        |mut ctx: Context<'_>, (_,): (Resource<Pollable>,)| enter(&mut ctx, 0),
    )?;
    poll.func_wrap("poll", |mut ctx: Context<'_>, (list,): (Vec<Resource<Pollable>>,)| {
        enter(&mut ctx, list.len().saturating_mul(8))?;
        // WASI: polling nothing traps.
        if list.is_empty() {
            return Err(Stop::fault(Fault::Trap));
        }
        let count = u32::try_from(list.len()).unwrap_or(u32::MAX);
        Ok(((0..count).collect::<Vec<u32>>(),))
    })
}

fn link_input(streams: &mut LinkerInstance<'_, SeatState>) -> wasmtime::Result<()> {
    resource::<InputStream>(streams, "input-stream")?;
    for name in ["[method]input-stream.read", "[method]input-stream.blocking-read"] {
        streams.func_wrap(name, |mut ctx: Context<'_>, (_, _): (Resource<InputStream>, u64)| {
            enter(&mut ctx, 0)?;
            Ok((StreamResult::<Vec<u8>>::Err(StreamError::Closed),))
        })?;
    }
    for name in ["[method]input-stream.skip", "[method]input-stream.blocking-skip"] {
        streams.func_wrap(name, |mut ctx: Context<'_>, (_, _): (Resource<InputStream>, u64)| {
            enter(&mut ctx, 0)?;
            Ok((StreamResult::<u64>::Err(StreamError::Closed),))
        })?;
    }
    streams.func_wrap(
        "[method]input-stream.subscribe",
        |mut ctx: Context<'_>, (_,): (Resource<InputStream>,)| {
            enter(&mut ctx, 0)?;
            Ok((handle::<Pollable>(),))
        },
    )
}

/// Output is charged by the byte and kept nowhere, so it needs no cap of its own.
fn link_output(streams: &mut LinkerInstance<'_, SeatState>) -> wasmtime::Result<()> {
    resource::<OutputStream>(streams, "output-stream")?;
    streams.func_wrap(
        "[method]output-stream.check-write",
        |mut ctx: Context<'_>, (_,): (Resource<OutputStream>,)| {
            enter(&mut ctx, 0)?;
            Ok((StreamResult::Ok(WRITE_BYTES),))
        },
    )?;
    for name in ["[method]output-stream.write", "[method]output-stream.blocking-write-and-flush"] {
        streams.func_wrap(
            name,
            |mut ctx: Context<'_>, (_, bytes): (Resource<OutputStream>, WasmList<u8>)| {
                enter(&mut ctx, bytes.len())?;
                Ok((StreamResult::Ok(()),))
            },
        )?;
    }
    for name in ["[method]output-stream.flush", "[method]output-stream.blocking-flush"] {
        streams.func_wrap(name, |mut ctx: Context<'_>, (_,): (Resource<OutputStream>,)| {
            enter(&mut ctx, 0)?;
            Ok((StreamResult::Ok(()),))
        })?;
    }
    for name in [
        "[method]output-stream.write-zeroes",
        "[method]output-stream.blocking-write-zeroes-and-flush",
    ] {
        streams.func_wrap(
            name,
            |mut ctx: Context<'_>, (_, count): (Resource<OutputStream>, u64)| {
                enter(&mut ctx, 0)?;
                charge_bytes(&mut ctx, count)?;
                Ok((StreamResult::Ok(()),))
            },
        )?;
    }
    for name in ["[method]output-stream.splice", "[method]output-stream.blocking-splice"] {
        streams.func_wrap(
            name,
            |mut ctx: Context<'_>,
             (_, _, _): (Resource<OutputStream>, Resource<InputStream>, u64)| {
                enter(&mut ctx, 0)?;
                Ok((StreamResult::<u64>::Err(StreamError::Closed),))
            },
        )?;
    }
    streams.func_wrap(
        "[method]output-stream.subscribe",
        |mut ctx: Context<'_>, (_,): (Resource<OutputStream>,)| {
            enter(&mut ctx, 0)?;
            Ok((handle::<Pollable>(),))
        },
    )
}

fn link_cli(linker: &mut Linker<SeatState>) -> wasmtime::Result<()> {
    let mut environment = instance(linker, "cli/environment")?;
    environment.func_wrap("get-environment", |mut ctx: Context<'_>, ()| {
        enter(&mut ctx, 0)?;
        Ok((Vec::<(String, String)>::new(),))
    })?;
    environment.func_wrap("get-arguments", |mut ctx: Context<'_>, ()| {
        enter(&mut ctx, 0)?;
        Ok((Vec::<String>::new(),))
    })?;
    environment.func_wrap("initial-cwd", |mut ctx: Context<'_>, ()| {
        enter(&mut ctx, 0)?;
        Ok((Option::<String>::None,))
    })?;
    // Leaving is not a move, with whatever status.
    let mut exit = instance(linker, "cli/exit")?;
    exit.func_wrap("exit", |_: Context<'_>, (_,): (Result<(), ()>,)| -> wasmtime::Result<()> {
        Err(Stop::fault(Fault::Trap))
    })?;
    exit.func_wrap("exit-with-code", |_: Context<'_>, (_,): (u8,)| -> wasmtime::Result<()> {
        Err(Stop::fault(Fault::Trap))
    })?;
    instance(linker, "cli/stdin")?.func_wrap("get-stdin", |mut ctx: Context<'_>, ()| {
        enter(&mut ctx, 0)?;
        Ok((handle::<InputStream>(),))
    })?;
    for (name, function) in [("cli/stdout", "get-stdout"), ("cli/stderr", "get-stderr")] {
        instance(linker, name)?.func_wrap(function, |mut ctx: Context<'_>, ()| {
            enter(&mut ctx, 0)?;
            Ok((handle::<OutputStream>(),))
        })?;
    }
    Ok(())
}

fn link_terminals(linker: &mut Linker<SeatState>) -> wasmtime::Result<()> {
    resource::<TerminalInput>(&mut instance(linker, "cli/terminal-input")?, "terminal-input")?;
    resource::<TerminalOutput>(&mut instance(linker, "cli/terminal-output")?, "terminal-output")?;
    let mut stdin = instance(linker, "cli/terminal-stdin")?;
    stdin.func_wrap("get-terminal-stdin", |mut ctx: Context<'_>, ()| {
        enter(&mut ctx, 0)?;
        Ok((Option::<Resource<TerminalInput>>::None,))
    })?;
    for (name, function) in [
        ("cli/terminal-stdout", "get-terminal-stdout"),
        ("cli/terminal-stderr", "get-terminal-stderr"),
    ] {
        instance(linker, name)?.func_wrap(function, |mut ctx: Context<'_>, ()| {
            enter(&mut ctx, 0)?;
            Ok((Option::<Resource<TerminalOutput>>::None,))
        })?;
    }
    Ok(())
}

fn link_random(linker: &mut Linker<SeatState>) -> wasmtime::Result<()> {
    for (name, bytes, number) in [
        ("random/random", "get-random-bytes", "get-random-u64"),
        ("random/insecure", "get-insecure-random-bytes", "get-insecure-random-u64"),
    ] {
        let mut random = instance(linker, name)?;
        random.func_wrap(bytes, |mut ctx: Context<'_>, (count,): (u64,)| {
            if count > RANDOM_BYTES_MAX {
                return Err(Stop::fault(Fault::Protocol));
            }
            enter(&mut ctx, usize::try_from(count).unwrap_or(usize::MAX))?;
            Ok((draw_bytes(ctx.data_mut(), count),))
        })?;
        random.func_wrap(number, |mut ctx: Context<'_>, ()| {
            enter(&mut ctx, 0)?;
            Ok((ctx.data_mut().random().bits(),))
        })?;
    }
    let mut seed = instance(linker, "random/insecure-seed")?;
    seed.func_wrap("insecure-seed", |mut ctx: Context<'_>, ()| {
        enter(&mut ctx, 0)?;
        let random = ctx.data_mut().random();
        Ok(((random.bits(), random.bits()),))
    })
}

fn draw_bytes(state: &mut SeatState, count: u64) -> Vec<u8> {
    let random = state.random();
    let words = (0..count.div_ceil(8)).map(|_| random.bits().to_le_bytes());
    let mut bytes: Vec<u8> = words.flatten().collect();
    bytes.truncate(usize::try_from(count).unwrap_or(usize::MAX));
    bytes
}

fn link_clocks(linker: &mut Linker<SeatState>) -> wasmtime::Result<()> {
    let mut monotonic = instance(linker, "clocks/monotonic-clock")?;
    for (name, value) in [("now", 0), ("resolution", RESOLUTION_NANOS)] {
        monotonic.func_wrap(name, move |mut ctx: Context<'_>, ()| {
            enter(&mut ctx, 0)?;
            Ok((value,))
        })?;
    }
    for name in ["subscribe-instant", "subscribe-duration"] {
        // Whatever is waited for has come: no guest can hold a thread.
        monotonic.func_wrap(name, |mut ctx: Context<'_>, (_,): (u64,)| {
            enter(&mut ctx, 0)?;
            Ok((handle::<Pollable>(),))
        })?;
    }
    let mut wall = instance(linker, "clocks/wall-clock")?;
    for (name, seconds) in [("now", 0), ("resolution", 1)] {
        wall.func_wrap(name, move |mut ctx: Context<'_>, ()| {
            enter(&mut ctx, 0)?;
            Ok((Datetime { seconds, nanoseconds: 0 },))
        })?;
    }
    Ok(())
}
