//! The built-in agents as components, built from the folders beside this crate and embedded.
//!
//! Names are unique and sorted. The bytes depend on the sources and the toolchain alone.
//!
//! Not here: running them (`arena-sandbox`).

/// One built-in agent.
#[derive(Clone, Copy, Debug)]
pub struct Builtin {
    /// Its name, as in `builtin:NAME`.
    pub name: &'static str,
    /// The strategy and its source, in one line.
    pub about: &'static str,
    /// The component.
    pub component: &'static [u8],
}

/// Every built-in agent, sorted by name.
pub const BUILTINS: &[Builtin] = include!(concat!(env!("OUT_DIR"), "/builtins.rs"));

/// Returns the built-in agent of that name.
pub fn find(name: &str) -> Option<&'static Builtin> {
    BUILTINS.binary_search_by(|builtin| builtin.name.cmp(name)).ok().map(|place| &BUILTINS[place])
}
