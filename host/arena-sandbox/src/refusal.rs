//! Why a component does not become a seat, and why the sandbox itself fails.
//!
//! A [`Refusal`] is the component's own: the author can act on it. A [`SandboxError`] is the
//! host's: the operator can.

use std::fmt;
use std::path::PathBuf;

use arena_core::fault::Fault;

/// Why a component was not loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadError {
    /// The component breaks a rule. The same bytes are refused everywhere.
    Refused(Refusal),
    /// The host failed; nothing is said about the component.
    Host(SandboxError),
}

/// A rule that a component breaks, with the value found and the limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The bytes are no WebAssembly component in binary form.
    NotAComponent {
        /// What they seem to be.
        found: &'static str,
    },
    /// The bytes begin like a component and then cannot be read.
    Malformed {
        /// Where, in bytes from the start.
        offset: u64,
        /// What the reader says.
        detail: String,
    },
    /// More of something than a component may have.
    TooMuch {
        /// What is counted.
        what: &'static str,
        /// How much was found; counting stops at the first excess.
        value: u64,
        /// How much is allowed.
        limit: u64,
    },
    /// Imports that the sandbox does not offer.
    ForeignImports {
        /// Their names, the first [`crate::precheck::NAMED_IMPORTS_MAX`] of them.
        names: Vec<String>,
        /// How many there are.
        count: usize,
    },
    /// The export that makes a component an agent is missing.
    MissingExport {
        /// Its name.
        name: &'static str,
    },
    /// An import or export has another type than the contract gives it.
    Interface {
        /// What the linker says.
        detail: String,
    },
    /// The component is not valid, or uses WebAssembly beyond the permitted set.
    Invalid {
        /// What the validator says.
        detail: String,
    },
    /// Compiling it took more than is allowed, or brought the compiler down.
    CompileExceeded {
        /// What was exceeded.
        bound: CompileBound,
    },
    /// It makes more instances, memories or tables of its modules than a seat has room for.
    Instances {
        /// What the engine counts.
        detail: String,
    },
    /// It fails before the first call, whatever it plays.
    Start {
        /// How.
        fault: Fault,
    },
}

/// What compiling a component may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompileBound {
    /// Elapsed time.
    Wall {
        /// Milliseconds allowed.
        limit_ms: u64,
    },
    /// Processor time.
    Cpu {
        /// Seconds allowed.
        limit_s: u64,
    },
    /// Address space, or whatever else ended the compiler: the two look alike from outside.
    Died {
        /// Bytes of address space allowed.
        memory_limit: u64,
        /// The signal that ended the process, if one did.
        signal: Option<i32>,
    },
    /// Bytes of machine code.
    Code {
        /// Bytes produced.
        bytes: u64,
        /// Bytes allowed.
        limit: u64,
    },
}

/// A failure of the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SandboxError {
    /// The engine cannot be set up on this machine.
    Engine {
        /// What it says.
        detail: String,
    },
    /// The cache folder cannot be used safely.
    CacheFolder {
        /// The folder.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// A file of the cache cannot be read or written.
    CacheFile {
        /// The file.
        path: PathBuf,
        /// What the system says.
        detail: String,
    },
    /// The compile worker cannot be run or does not answer as one.
    Worker {
        /// The program.
        program: PathBuf,
        /// What went wrong.
        detail: String,
    },
    /// Code that our own worker compiled does not load.
    Artefact {
        /// What the engine says.
        detail: String,
    },
    /// A trial instance failed for a reason that is not the component's.
    Trial {
        /// What happened.
        detail: String,
    },
}

impl Refusal {
    /// Returns the rule's name: lower-case words joined by `-`, stable across versions.
    pub fn rule(&self) -> &'static str {
        match self {
            Refusal::NotAComponent { .. } => "not-a-component",
            Refusal::Malformed { .. } => "malformed",
            Refusal::TooMuch { .. } => "too-much",
            Refusal::ForeignImports { .. } => "foreign-import",
            Refusal::MissingExport { .. } => "missing-export",
            Refusal::Interface { .. } => "interface",
            Refusal::Invalid { .. } => "invalid",
            Refusal::CompileExceeded { .. } => "compile-exceeded",
            Refusal::Instances { .. } => "instances",
            Refusal::Start { .. } => "start",
        }
    }

    /// Returns what the author can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Refusal::NotAComponent { .. } => {
                "build it for `wasm32-wasip2`, which gives a component"
            }
            Refusal::Malformed { .. } => "the file may be cut short; build or copy it again",
            Refusal::TooMuch { .. } => {
                "build it for size: `opt-level = \"s\"`, `lto = true`, `strip = true`"
            }
            Refusal::ForeignImports { .. } => {
                "an agent reaches nothing outside; drop files, network and threads, or build \
                 with stubbed WASI"
            }
            Refusal::MissingExport { .. } => "export the world `agent` of `arena.wit`",
            Refusal::Interface { .. } => "build it against the `arena.wit` of this version",
            Refusal::Invalid { .. } => {
                "leave threads, SIMD, exceptions, tail calls, garbage collection and 64-bit \
                 memories off"
            }
            Refusal::CompileExceeded { .. } => "split very large functions",
            Refusal::Instances { .. } => "instantiate each module once",
            Refusal::Start { .. } => "do less before `begin`, and nothing that can fail",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::NotAComponent { found } => write!(f, "is {found}, not a component"),
            Refusal::Malformed { offset, detail } => {
                write!(f, "cannot be read at byte {offset}: {}", detail.escape_debug())
            }
            Refusal::TooMuch { what, value, limit } => {
                write!(f, "has {value} {what}, at most {limit} are allowed")
            }
            Refusal::ForeignImports { names, count } => {
                let shown: Vec<String> =
                    names.iter().map(|name| format!("`{}`", name.escape_debug())).collect();
                write!(f, "imports {}", shown.join(", "))?;
                match count.saturating_sub(names.len()) {
                    0 => write!(f, ", which the sandbox does not offer"),
                    more => write!(f, " and {more} more, which the sandbox does not offer"),
                }
            }
            Refusal::MissingExport { name } => write!(f, "does not export `{name}`"),
            Refusal::Interface { detail } => {
                write!(f, "does not fit the contract: {}", detail.escape_debug())
            }
            Refusal::Invalid { detail } => write!(f, "is not valid: {}", detail.escape_debug()),
            Refusal::CompileExceeded { bound } => write!(f, "{bound}"),
            Refusal::Instances { detail } => {
                write!(f, "has more instances than a seat holds: {}", detail.escape_debug())
            }
            Refusal::Start { fault } => write!(f, "fails at start-up with fault `{fault}`"),
        }
    }
}

impl fmt::Display for CompileBound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CompileBound::Wall { limit_ms } => {
                write!(f, "takes more than {limit_ms} ms to compile")
            }
            CompileBound::Cpu { limit_s } => {
                write!(f, "takes more than {limit_s} s of processor time to compile")
            }
            CompileBound::Died { memory_limit, signal: Some(signal) } => write!(
                f,
                "brings the compiler down (signal {signal}, memory limit {memory_limit} bytes)"
            ),
            CompileBound::Died { memory_limit, signal: None } => {
                write!(f, "brings the compiler down (memory limit {memory_limit} bytes)")
            }
            CompileBound::Code { bytes, limit } => {
                write!(f, "compiles to {bytes} bytes of code, at most {limit} are allowed")
            }
        }
    }
}

impl fmt::Display for SandboxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SandboxError::Engine { detail } => write!(f, "cannot set up the engine: {detail}"),
            SandboxError::CacheFolder { path, reason } => {
                write!(f, "cannot use the cache folder `{}`: {reason}", path.display())
            }
            SandboxError::CacheFile { path, detail } => {
                write!(f, "cannot use the cache file `{}`: {detail}", path.display())
            }
            SandboxError::Worker { program, detail } => {
                write!(f, "cannot compile with `{}`: {detail}", program.display())
            }
            SandboxError::Artefact { detail } => {
                write!(f, "cannot load compiled code: {detail}")
            }
            SandboxError::Trial { detail } => write!(f, "cannot try the component: {detail}"),
        }
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::Refused(refusal) => write!(f, "component {refusal}"),
            LoadError::Host(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Refusal {}
impl std::error::Error for SandboxError {}
impl std::error::Error for LoadError {}

impl From<Refusal> for LoadError {
    fn from(refusal: Refusal) -> LoadError {
        LoadError::Refused(refusal)
    }
}

impl From<SandboxError> for LoadError {
    fn from(error: SandboxError) -> LoadError {
        LoadError::Host(error)
    }
}
