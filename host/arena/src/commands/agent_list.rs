//! `arena agent list`: the built-in agents.

use arena_core::hexadecimal::hex;
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::cli::ListArgs;
use crate::error::CliError;
use crate::escape::excerpt;
use crate::render::table::{Align, Cell, Table};
use crate::render::transcript::{count, thousands};
use crate::screen::{self, Paint, Tone};

/// How much of an agent's description the table shows.
const ABOUT_CHARS: usize = 78;

/// Prints the list.
///
/// # Errors
/// Standard output cannot be written.
pub fn run(args: &ListArgs) -> Result<(), CliError> {
    let builtins = arena_agents::BUILTINS;
    if args.json {
        let agents = builtins.iter().map(|builtin| {
            json!({
                "name": format!("builtin:{}", builtin.name),
                "about": builtin.about,
                "component_bytes": builtin.component.len(),
                "component_sha256": hex(&Sha256::digest(builtin.component)),
            })
        });
        return screen::json(&json!({ "agents": agents.collect::<Vec<_>>() }));
    }
    let mut table = Table::new(&[
        ("agent", Align::Left),
        ("strategy", Align::Left),
        ("KiB", Align::Right),
        ("sha-256", Align::Left),
    ]);
    for builtin in builtins {
        let digest = hex(&Sha256::digest(builtin.component));
        table.row(vec![
            Cell::from(builtin.name),
            excerpt(builtin.about, ABOUT_CHARS).into(),
            thousands(builtin.component.len().div_ceil(1024) as u64).into(),
            Cell::toned(&digest[..8], Tone::Dim),
        ]);
    }
    let paint = Paint::of_stdout();
    screen::results(&format!(
        "{}\n{}\nuse them as `builtin:NAME`; next: arena match builtin:{} builtin:{}\n",
        count(builtins.len() as u64, "built-in agent"),
        table.render(paint),
        builtins.first().map_or("NAME", |builtin| builtin.name),
        builtins.last().map_or("NAME", |builtin| builtin.name),
    ))
}
