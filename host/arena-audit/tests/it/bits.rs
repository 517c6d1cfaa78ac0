//! Every bit of everything that is published, flipped one at a time.

use std::fs;
use std::path::Path;
use std::thread;

use arena_audit::AuditOptions;

use crate::honest::{Drawn, Log, Tournament, shown};

/// Copies of the log that are flipped side by side.
const COPIES: usize = 2;

/// Lists the files under a folder that are published.
fn published(root: &Path, folder: &str, files: &mut Vec<String>) {
    let mut items: Vec<_> = fs::read_dir(root.join(folder)).expect(folder).flatten().collect();
    items.sort_by_key(|item| item.file_name());
    for item in items {
        let name = item.file_name().to_str().expect("names are ASCII").to_owned();
        let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
        match item.path().is_dir() {
            true if path == "private" => {}
            true => published(root, &path, files),
            false => files.push(path),
        }
    }
}

/// Flips each bit of each file, or one bit of each byte where the file is compared as a whole.
fn flip_all(log: &Log, files: &[String]) -> u64 {
    let policy = log.policy();
    let options = AuditOptions { policy: &policy, held: &[], authors: &[], catalog: None };
    let mut flipped = 0;
    for path in files {
        let honest = log.get(path);
        for at in 0..honest.len() {
            let bits = if path == "results.json" { at % 8..at % 8 + 1 } else { 0..8 };
            for bit in bits {
                let mut bytes = honest.clone();
                bytes[at] ^= 1 << bit;
                fs::write(log.file(path), &bytes).expect(path);
                let audit = arena_audit::audit(log.path(), &options, &mut |_| {});
                let failed = audit.steps.iter().any(|step| step.verdict.is_failed());
                assert!(failed, "{path}, bit {bit} of byte {at}:\n{}", shown(&audit));
                flipped += 1;
            }
        }
        fs::write(log.file(path), &honest).expect(path);
    }
    flipped
}

#[test]
fn no_bit_of_a_published_file_can_be_flipped_unnoticed() {
    let tournament = Tournament::play_among(&["alpha", "beta"], Drawn::Publicly, 1);
    let logs: Vec<Log> = (0..COPIES).map(|_| tournament.write()).collect();
    let mut files = Vec::new();
    published(logs[0].path(), "", &mut files);
    assert!(files.len() >= 19, "{files:?}");
    let flipped: u64 = thread::scope(|scope| {
        let spawn = |(place, log)| {
            let own: Vec<String> = files.iter().skip(place).step_by(COPIES).cloned().collect();
            scope.spawn(move || flip_all(log, &own))
        };
        let threads: Vec<_> = logs.iter().enumerate().map(spawn).collect();
        threads.into_iter().map(|thread| thread.join().expect("no flip went unnoticed")).sum()
    });
    assert!(flipped > 30_000, "{flipped}");
    for log in &logs {
        assert!(log.audit().is_verified_without(&["re-execution"]), "{}", shown(&log.audit()));
    }
}
