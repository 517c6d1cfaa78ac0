//! Loads what a tournament needs: the file, its catalog, its agents.
//!
//! Everything is loaded and checked before anything is written.
//!
//! Not here: models (`engines`), and what the files mean (`arena_core::config`,
//! `arena_core::catalog`).

use std::path::{Path, PathBuf};

use arena_core::catalog::{self, Catalog, CatalogError};
use arena_core::config::{
    AgentConfig, CatalogKind, ComponentSource, ConfigError, TournamentConfig,
};
use arena_core::seed::Root;

use crate::error::{CliError, Complaint};
use crate::files;

/// A tournament file that parsed, and where it lies.
#[derive(Debug)]
pub struct TournamentFile {
    /// What it says.
    pub config: TournamentConfig,
    /// How it says it.
    pub text: String,
    folder: PathBuf,
}

impl TournamentFile {
    /// Reads a tournament file.
    ///
    /// # Errors
    /// It is missing, or something in it is wrong.
    pub fn read(path: &Path) -> Result<TournamentFile, CliError> {
        let text = files::read_text(path, files::TEXT_BYTES_MAX).map_err(CliError::Config)?;
        let config = TournamentConfig::parse(&text)
            .map_err(|error| CliError::Config(explain(path, error)))?;
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        Ok(TournamentFile { config, text, folder })
    }

    /// Takes a text that parsed, whose paths are resolved against a folder.
    pub fn of(config: TournamentConfig, text: String, folder: &Path) -> TournamentFile {
        TournamentFile { config, text, folder: folder.to_owned() }
    }

    /// Resolves a path that the file gives: against the file's folder.
    pub fn resolve(&self, path: &str) -> PathBuf {
        self.folder.join(path)
    }

    /// Loads the catalog that the file names, or the folder given in its place, and selects
    /// the part that is played. What is drawn for that comes from `root`.
    ///
    /// # Errors
    /// The folder is missing or wrong, or the file has no use for one.
    pub fn catalog(&self, folder: Option<&Path>, root: Root) -> Result<Catalog, CliError> {
        let config = &self.config;
        let whole = match (&config.catalog.kind, folder) {
            (CatalogKind::AmazonHistoryPrice { .. }, Some(folder)) => amazon(folder)?,
            (CatalogKind::AmazonHistoryPrice { folder, .. }, None) => {
                amazon(&self.resolve(folder))?
            }
            (_, Some(_)) => {
                let fact = "the tournament file generates its catalog and reads no folder";
                let complaint = Complaint::new("cannot use `--catalog`", fact)
                    .hint("drop `--catalog`, or set `kind = \"amazon-history-price\"` in the file");
                return Err(CliError::Config(complaint));
            }
            (kind, None) => generate(kind, root),
        };
        let chosen = whole.select(config.catalog.split, config.catalog.sample, root);
        chosen.map_err(|error| {
            CliError::Config(Complaint::new("cannot choose the items to play", error))
        })
    }

    /// Reads the bytes of an agent's component.
    ///
    /// # Errors
    /// There is no such built-in agent or no such file.
    pub fn component(&self, agent: &AgentConfig) -> Result<Vec<u8>, Complaint> {
        match &agent.component {
            ComponentSource::Builtin(name) => builtin(name),
            ComponentSource::File(path) => component_file(&self.resolve(path)),
        }
    }
}

/// Names the file, line and column, so that an editor can open it, and the key.
pub fn explain(path: &Path, error: ConfigError) -> Complaint {
    let ConfigError { line, column, key, message, hint } = error;
    let key = if key.is_empty() { key } else { format!("`{key}`: ") };
    let shown = path.display();
    let fact = format!("{shown}:{line}:{column}: {key}{message}");
    Complaint { failed: format!("cannot load `{shown}`"), facts: vec![fact], hint }
}

/// Generates a catalog.
///
/// # Panics
/// If the kind is not one that is generated.
pub fn generate(kind: &CatalogKind, root: Root) -> Catalog {
    match kind {
        CatalogKind::Synthetic { items, infeasible_milli } => {
            catalog::synthetic::generate(*items, *infeasible_milli, root)
        }
        CatalogKind::Uniform { items, low, high } => {
            catalog::uniform::generate(*items, *low, *high, root)
        }
        CatalogKind::AmazonHistoryPrice { .. } => panic!("a folder is imported, not generated"),
    }
}

/// Imports an AmazonHistoryPrice folder.
///
/// # Errors
/// The folder is missing, or something in it is wrong.
pub fn amazon(folder: &Path) -> Result<Catalog, CliError> {
    let advise = |complaint: Complaint| {
        CliError::Input(complaint.hint(
            "put a copy of AmazonHistoryPrice there (github.com/TianXiaSJTU/AmazonPriceHistory), \
             or name its folder with `--catalog DIR`",
        ))
    };
    let texts = files::read_json_folder(folder).map_err(advise)?;
    catalog::amazon::import(&texts).map_err(|error| {
        let failed = format!("cannot import the catalog in `{}`", folder.display());
        CliError::Input(Complaint::new(failed, locate(folder, &error)))
    })
}

/// Names the file with its folder, line and column, so that an editor can open it.
fn locate(folder: &Path, error: &CatalogError) -> String {
    match error {
        CatalogError::Json { file, line, column, detail } => {
            format!("{}:{line}:{column}: {detail}", folder.join(file).display())
        }
        CatalogError::Field { file, index, field, detail } => {
            let path = folder.join(file);
            format!("{}: item {index}, field `{field}`: {detail}", path.display())
        }
        _ => error.to_string(),
    }
}

/// Reads the component that the command line names: `builtin:NAME`, a path, or the bare name of a
/// built-in agent.
///
/// # Errors
/// There is no such built-in agent or no such file, or there are both.
pub fn component(named: &str) -> Result<Vec<u8>, Complaint> {
    if let Some(name) = named.strip_prefix("builtin:") {
        return builtin(name);
    }
    let path = Path::new(named);
    if arena_agents::find(named).is_none() {
        return component_file(path);
    }
    if path.exists() {
        let fact = format!("there is a file `{named}` and a built-in agent of that name");
        let complaint = Complaint::new(format!("cannot tell which `{named}` is meant"), fact);
        return Err(complaint.hint(format!("write `./{named}` or `builtin:{named}`")));
    }
    builtin(named)
}

fn component_file(path: &Path) -> Result<Vec<u8>, Complaint> {
    files::read(path, files::COMPONENT_BYTES_MAX)
}

fn builtin(name: &str) -> Result<Vec<u8>, Complaint> {
    arena_agents::find(name).map(|builtin| builtin.component.to_vec()).ok_or_else(|| {
        let fact = format!("no built-in agent is called `{}`", name.escape_debug());
        Complaint::new(format!("cannot load `builtin:{}`", name.escape_debug()), fact)
            .hint("`arena agent list` names them all")
    })
}
