//! Draws that nobody could have known, and what stays private until the close.

use std::sync::Mutex;

use arena_core::draws::commit_secret;
use arena_core::entry::{DrawEntry, Entry, Reveal, TournamentId};
use arena_core::schedule::seat_seeds;
use arena_log::hash::Hash;
use arena_log::tile;
use arena_runner::SeatRequest;
use arena_runner::error::RunError;
use tempfile::TempDir;

use crate::stage::{
    CONTRIBUTIONS, Files, ROUND, SECRET, Stage, files, hagglers, items, nobody, public, put,
    signed_sizes,
};

fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder for the test")
}

#[test]
fn committed_draws_are_announced_opened_played_and_revealed_in_this_order() {
    let stage = Stage::committed(2);
    let folder = folder();
    stage.run(folder.path(), 2, &hagglers).expect("hagglers play to the end");
    let items = items(folder.path());
    assert_eq!(items[0].entry, Entry::Announcement(stage.opening.clone()));
    assert_eq!(items[1].entry, Entry::Draw(stage.draw.clone().expect("there is a draw")));
    let reveal = Reveal { tournament: stage.tournament(), secret: Some(SECRET) };
    assert_eq!(items.last().expect("the log has an end").entry, Entry::Reveal(reveal));
    assert_eq!(signed_sizes(folder.path()), [1, 2, 43, 44]);
    let seeds = seat_seeds(stage.root(), 0);
    assert_eq!([items[2].transcript().record.seeds, items[3].transcript().record.seeds], seeds);
}

#[test]
fn whatever_opens_the_draws_changes_them() {
    let stage = Stage::committed(1);
    let mut other = Stage::committed(1);
    let draw = other.draw.as_mut().expect("there is a draw");
    draw.beacon.as_mut().expect("a round is named").signature[0] ^= 1;
    let mut late = Stage::committed(1);
    late.draw.as_mut().expect("there is a draw").contributions[1] = Some(CONTRIBUTIONS[1]);
    let public_seed = Stage::new(1);
    let secret = Stage::secret(1);
    let mut drawn = Vec::new();
    for stage in [stage, other, late, public_seed, secret] {
        let seeds = Mutex::new(Vec::new());
        let seats = |request: SeatRequest| {
            seeds.lock().expect("nobody panics").push(request.seed);
            hagglers(request)
        };
        let folder = folder();
        stage.run(folder.path(), 1, &seats).expect("hagglers play to the end");
        drawn.push(seeds.into_inner().expect("nobody panics"));
    }
    for (place, seeds) in drawn.iter().enumerate() {
        assert!(drawn[..place].iter().all(|other| other[0] != seeds[0]), "{place}");
    }
}

#[test]
fn an_announced_log_goes_on_once_its_draws_are_open() {
    let stage = Stage::committed(1);
    let mut waiting = Stage::committed(1);
    waiting.draw = None;
    let folder = folder();
    for _ in 0..2 {
        let head = waiting.announce(folder.path()).expect("the announcement is signed");
        assert_eq!((head.size, head.origin.as_str()), (1, "arena.example/stage"));
        assert_eq!(signed_sizes(folder.path()), [1]);
    }
    let error = waiting.run(folder.path(), 1, &nobody).expect_err("the draws are not open");
    assert!(matches!(error, RunError::DrawNeeded), "{error:?}");
    assert_eq!(items(folder.path()).len(), 1);
    stage.run(folder.path(), 1, &hagglers).expect("hagglers play to the end");
    assert!(public(folder.path()) == stage.reference());
    let head = waiting.announce(folder.path()).expect("it was announced long ago");
    assert_eq!(head.size, 24, "the newest head is given");
}

/// Opens the draws of a stage otherwise.
type Opening = fn(&mut Stage);

fn draw(stage: &mut Stage) -> &mut DrawEntry {
    stage.draw.as_mut().expect("there is a draw")
}

#[test]
fn draws_that_were_not_announced_are_refused_before_anything_is_written() {
    let otherwise: [(&str, Opening); 9] = [
        ("secret_commitment", |stage| stage.secret = Some([0; 32])),
        ("draw.tournament", |stage| draw(stage).tournament = TournamentId([0; 32])),
        ("draw.contributions", |stage| draw(stage).contributions.truncate(1)),
        ("draw.contributions", |stage| draw(stage).contributions.push(None)),
        ("draw.contributions[0]", |stage| draw(stage).contributions[0] = Some([0; 32])),
        ("draw.contributions[1]", |stage| {
            draw(stage).contributions[1] = Some(CONTRIBUTIONS[0]);
        }),
        ("draw.beacon", |stage| draw(stage).beacon = None),
        ("draw.beacon", |stage| {
            let beacon = draw(stage).beacon.as_mut().expect("a round is named");
            beacon.round = ROUND + 1;
        }),
        ("draw", |stage| {
            let draw = stage.draw.take();
            *stage = Stage::secret(1);
            stage.draw = draw;
        }),
    ];
    for (wanted, open) in otherwise {
        let mut stage = Stage::committed(1);
        open(&mut stage);
        let folder = folder();
        let error = stage.run(folder.path(), 1, &nobody).expect_err(wanted);
        assert!(error.hint().is_some());
        let RunError::NotAnnounced { field, found, wanted: announced } = error else {
            panic!("{error:?}");
        };
        assert_eq!(field, wanted);
        assert_ne!(found, announced);
        assert!(public(folder.path()).is_empty(), "{wanted}: nothing is written");
    }
}

#[test]
fn a_secret_is_needed_where_one_was_announced_and_nowhere_else() {
    let folder = folder();
    let mut stage = Stage::committed(1);
    stage.secret = None;
    let error = stage.run(folder.path(), 1, &nobody).expect_err("the secret is missing");
    assert!(matches!(error, RunError::SecretNeeded), "{error:?}");
    let mut stage = Stage::new(1);
    stage.secret = Some(SECRET);
    let error = stage.run(folder.path(), 1, &nobody).expect_err("the seed is public");
    assert!(matches!(error, RunError::NotAnnounced { .. }), "{error:?}");
}

#[test]
fn a_log_whose_draws_were_opened_otherwise_is_refused_with_what_differs() {
    let stage = Stage::committed(1);
    let left = stage.interrupted(3, &hagglers);
    let otherwise: [(&str, Opening); 2] = [
        ("draw.contributions[1]", |stage| {
            draw(stage).contributions[1] = Some(CONTRIBUTIONS[1]);
        }),
        ("draw.beacon.signature", |stage| {
            draw(stage).beacon.as_mut().expect("a round is named").signature[0] ^= 1;
        }),
    ];
    for (wanted, open) in otherwise {
        let mut other = Stage::committed(1);
        open(&mut other);
        let folder = folder();
        put(folder.path(), &left);
        let error = other.run(folder.path(), 1, &nobody).expect_err("the draws are others");
        let RunError::AnnouncementDiffers { field, .. } = error else { panic!("{error:?}") };
        assert_eq!(field, wanted);
    }
}

/// Returns whether any of the files holds these bytes.
fn hold(files: &Files, bytes: &[u8]) -> bool {
    files.values().any(|file| file.windows(bytes.len()).any(|window| window == bytes))
}

#[test]
fn nothing_private_is_public_before_the_close_and_everything_is_after() {
    let stage = Stage::secret(20);
    let left = stage.interrupted(199, &hagglers);
    let folder = folder();
    put(folder.path(), &left);
    assert_eq!(signed_sizes(folder.path()), [1, 256]);
    let played = items(folder.path());
    let mut before = public(folder.path());
    let announcement = tile::blob(&Hash::of(&stage.announcement.encode()));
    assert!(before.contains_key(&announcement), "the announcement is public");
    assert_eq!(before.keys().filter(|path| path.starts_with("blob/")).count(), 1);
    assert!(!before.keys().any(|path| path.starts_with("attachment/")));
    assert!(hold(&before, &commit_secret(&SECRET)), "the search finds what is there");
    let transcript = played[1].transcript();
    for private in [&SECRET[..], &transcript.nonce, &stage.blobs[0], &transcript.encode()] {
        assert!(!hold(&before, private));
    }
    stage.run(folder.path(), 1, &hagglers).expect("hagglers play to the end");
    let after = public(folder.path());
    for blob in &stage.blobs {
        assert_eq!(after.get(&tile::blob(&Hash::of(blob))), Some(blob));
    }
    assert!(hold(&after, &SECRET) && hold(&after, &transcript.encode()));
    let mut left = files(folder.path());
    left.retain(|path, _| path.starts_with("private/"));
    let left: Vec<&str> = left.keys().map(String::as_str).collect();
    assert_eq!(left, ["private/journal", "private/last-signed", "private/lock"]);
    // What was public stays as it was, but for the newest head.
    before.remove("checkpoint");
    for (path, bytes) in before {
        assert_eq!(after.get(&path), Some(&bytes), "{path}");
    }
}
