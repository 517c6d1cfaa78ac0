//! The compile child as a program of its own, for tests and for hosts without the `arena`
//! binary.

fn main() -> std::process::ExitCode {
    arena_sandbox::worker::serve()
}
