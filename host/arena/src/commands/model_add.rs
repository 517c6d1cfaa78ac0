//! `arena model add`: puts a model file or folder into the store.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use arena_weights::manifest::Manifest;

use crate::advance::Advance;
use crate::cli::model::AddArgs;
use crate::error::{CliError, Complaint};
use crate::store::{FOLDER, GGUF, Store};
use crate::{model_files, screen};

/// Bytes that are copied at a time.
const CHUNK_BYTES: u64 = 1 << 20;

/// Opens the model, then copies or links it.
///
/// # Errors
/// The model is wrong, its name is none or taken, or it cannot be copied.
pub fn run(args: &AddArgs) -> Result<(), CliError> {
    let path = fs::canonicalize(&args.path).map_err(|error| {
        let failed = format!("cannot load the model `{}`", args.path.display());
        CliError::Input(Complaint::new(failed, error))
    })?;
    let name = args.name.clone().unwrap_or_else(|| model_files::label(&path).to_lowercase());
    let store = Store::find()?;
    // Before gigabytes are hashed.
    store.check_free(&name)?;
    let (manifest, source) = model_files::examine(&path, path.display().to_string())?;
    let about = source.about.clone();
    let stored = store.put(&name, |staging| {
        let place = staging.join(if path.is_dir() { FOLDER } else { GGUF });
        let put = match args.link {
            true => std::os::unix::fs::symlink(&path, &place),
            false => copy(&path, &manifest, &place),
        };
        put.map_err(|error| {
            let failed = format!("cannot put `{}` into the store", path.display());
            CliError::Infrastructure(Complaint::new(failed, error))
        })?;
        Ok(source)
    })?;
    screen::results(&format!(
        "{name}: {about}, {path}\nnext: arena model show {name}, or arena model chat {name}\n",
        path = stored.path.display(),
    ))
}

/// Copies a model: the file, or those files of the folder that matter.
fn copy(from: &Path, manifest: &Manifest, to: &Path) -> io::Result<()> {
    let total = manifest.files.iter().map(|file| file.size).sum();
    let mut advance = Advance::new("copied", "byte", total);
    let mut done = 0;
    let mut progress = |bytes: u64| {
        done += bytes;
        advance.show(done, total);
    };
    if !from.is_dir() {
        return copy_file(from, to, &mut progress);
    }
    fs::create_dir(to)?;
    for file in &manifest.files {
        copy_file(&from.join(&file.name), &to.join(&file.name), &mut progress)?;
    }
    Ok(())
}

fn copy_file(from: &Path, to: &Path, progress: &mut dyn FnMut(u64)) -> io::Result<()> {
    let mut source = File::open(from)?;
    let mut target = File::options().write(true).create_new(true).open(to)?;
    loop {
        let copied = io::copy(&mut (&mut source).take(CHUNK_BYTES), &mut target)?;
        if copied == 0 {
            return target.sync_all();
        }
        progress(copied);
    }
}
