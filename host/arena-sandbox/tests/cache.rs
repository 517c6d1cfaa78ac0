//! Compiled code that is kept between runs.

#![allow(clippy::unwrap_used, reason = "tests")]

mod harness;
mod kit;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use arena_core::config::Limits;
use arena_sandbox::{Grants, Sandbox, SandboxError, SandboxSettings};
use harness::{play, settings};
use kit::Guest;

fn caching(folder: &Path) -> SandboxSettings {
    let mut settings = settings(Limits::default());
    settings.cache_dir = Some(folder.to_owned());
    settings
}

fn files(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn a_second_run_needs_no_compiler_and_plays_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("deep/cache");
    let component = Guest::default().component();
    let first = Sandbox::new(&caching(&cache)).unwrap();
    let agent = first.load(&component).unwrap();
    assert_eq!(files(&cache).len(), 1);
    let mut settings = caching(&cache);
    settings.compile_worker.program = "/no/such/program".into();
    let second = Sandbox::new(&settings).unwrap();
    let cached = second.load(&component).unwrap();
    assert_eq!(
        play(&first, &agent, &Grants::default(), 3),
        play(&second, &cached, &Grants::default(), 3)
    );
}

#[test]
fn a_torn_or_altered_file_is_compiled_again() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    let component = Guest::default().component();
    let sandbox = Sandbox::new(&caching(&cache)).unwrap();
    sandbox.load(&component).unwrap();
    let file = files(&cache).remove(0);
    let whole = fs::read(&file).unwrap();
    let mut altered = whole.clone();
    *altered.last_mut().unwrap() ^= 1;
    for damaged in [&whole[..whole.len() / 2], &whole[..10], b"", &altered] {
        fs::write(&file, damaged).unwrap();
        sandbox.load(&component).unwrap();
        assert_eq!(fs::read(&file).unwrap(), whole, "compiling is deterministic");
    }
    assert_eq!(files(&cache).len(), 1, "no temporary file stays");
}

#[test]
fn a_folder_that_others_can_enter_or_that_is_no_folder_is_not_used() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |path: &Path| match Sandbox::new(&caching(path)).err() {
        Some(SandboxError::CacheFolder { path: found, reason }) => {
            assert_eq!(found, path);
            reason
        }
        other => panic!("{other:?}"),
    };
    let open = folder.path().join("open");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(refused(&open), "its mode is 755; hint: run `chmod 700` on it");

    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    assert_eq!(refused(&file), "it is not a folder");

    let closed = folder.path().join("closed");
    fs::create_dir(&closed).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
    let link = folder.path().join("link");
    symlink(&closed, &link).unwrap();
    assert_eq!(refused(&link), "it is not a folder");
    assert!(Sandbox::new(&caching(&closed)).is_ok());
}

#[test]
fn a_link_in_the_place_of_a_file_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    let component = Guest::default().component();
    let sandbox = Sandbox::new(&caching(&cache)).unwrap();
    sandbox.load(&component).unwrap();
    let file = files(&cache).remove(0);
    let elsewhere = folder.path().join("elsewhere");
    fs::rename(&file, &elsewhere).unwrap();
    symlink(&elsewhere, &file).unwrap();
    let error = sandbox.load(&component).err().unwrap().to_string();
    assert!(error.starts_with("cannot use the cache file"), "{error}");
}

#[test]
fn sandboxes_that_load_the_same_component_at_once_do_not_disturb_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    let component = Guest::default().component();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let sandbox = Sandbox::new(&caching(&cache)).unwrap();
                for _ in 0..3 {
                    let agent = sandbox.load(&component).unwrap();
                    assert_eq!(play(&sandbox, &agent, &Grants::default(), 1).error, None);
                }
            });
        }
    });
    assert_eq!(files(&cache).len(), 1);
}

#[test]
fn a_pipe_in_the_place_of_a_file_is_an_error_and_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    let component = Guest::default().component();
    let sandbox = Sandbox::new(&caching(&cache)).unwrap();
    sandbox.load(&component).unwrap();
    let file = files(&cache).remove(0);
    fs::remove_file(&file).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&file).status().unwrap().success());
    let Err(error) = sandbox.load(&component) else { panic!("loaded from a pipe") };
    assert!(error.to_string().contains("not a file of this user"), "{error}");
}
