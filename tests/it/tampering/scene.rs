//! A copy of an honest log that may be spoilt, and the questions that are asked of it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use arena_log::checkpoint::Head;
use arena_log::cosignature::cosign;
use arena_log::key::SigningKey;
use arena_log::note::{Note, Vkey};

use crate::kit::ARENA;
use crate::logs;
use crate::tampering::honest::Honest;
use crate::tampering::rewrite::Rewrite;

/// A folder with a copy of the published files in `log`, and beside it what an auditor has from
/// elsewhere: the key in `key.vkey`, and in `held` the newest head that the honest log had.
pub struct Scene {
    folder: tempfile::TempDir,
    pub honest: &'static Honest,
}

/// What is asked of a log.
pub enum Asked {
    /// The program, with a command line.
    Arena { args: Vec<String>, has_steps: bool },
    /// The library that the program is made of, which has answered.
    Library(Result<(), String>),
}

impl Asked {
    /// Asks for the audit of the log with the honest log's key, and more.
    pub fn audit(more: &[&str]) -> Asked {
        Asked::auditing(&[&["--key", "key.vkey"], more].concat())
    }

    /// Asks for the audit of the log by the policy in a file.
    pub fn audit_by_policy() -> Asked {
        Asked::auditing(&["--policy", "policy"])
    }

    /// Asks for the audit of the log with nothing but these words.
    fn auditing(words: &[&str]) -> Asked {
        Asked::Arena { args: owned(&[&["audit", "log"], words].concat()), has_steps: true }
    }

    /// Asks the program something else.
    pub fn arena(args: &[&str]) -> Asked {
        Asked::Arena { args: owned(args), has_steps: false }
    }
}

fn owned(args: &[&str]) -> Vec<String> {
    args.iter().map(|arg| (*arg).to_owned()).collect()
}

/// The names of the witnesses that the policy lists.
pub const WITNESSES: [&str; 2] = ["first", "second"];

impl Scene {
    pub fn of(honest: &'static Honest) -> Scene {
        let scene = Scene { folder: tempfile::tempdir().expect("a temporary folder"), honest };
        scene.show(&honest.log());
        scene.write("key.vkey", &scene.get("log.vkey"));
        scene.write("held", &scene.get("checkpoint"));
        scene
    }

    /// Puts the published files of a log in place of what is there.
    pub fn show(&self, log: &Path) {
        if self.log().exists() {
            std::fs::remove_dir_all(self.log()).expect("the copy goes");
        }
        for (name, bytes) in logs::public_files(log) {
            self.put(name.to_str().expect("names are ASCII"), &bytes);
        }
    }

    pub fn log(&self) -> PathBuf {
        self.path("log")
    }

    /// Returns a path beside the log.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file beside the log.
    pub fn write(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.path(name), bytes).expect("a file");
    }

    /// Returns a file of the log.
    pub fn get(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.log().join(name)).expect(name)
    }

    /// Returns a file of the log that is text.
    pub fn text(&self, name: &str) -> String {
        String::from_utf8(self.get(name)).expect("text")
    }

    /// Writes a file of the log.
    pub fn put(&self, name: &str, bytes: &[u8]) {
        let path = self.log().join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, bytes).expect(name);
    }

    pub fn remove(&self, name: &str) {
        std::fs::remove_file(self.log().join(name)).expect(name);
    }

    /// Flips a bit in the middle of a file of the log.
    pub fn flip(&self, name: &str) {
        self.flip_at(name, self.get(name).len() / 2);
    }

    /// Flips a bit of this byte of a file of the log.
    pub fn flip_at(&self, name: &str, at: usize) {
        let mut bytes = self.get(name);
        bytes[at] ^= 1;
        self.put(name, &bytes);
    }

    /// Changes the newest head in both of its places.
    pub fn change_head(&self, change: impl Fn(&str) -> String) {
        let honest = self.text("checkpoint");
        let changed = change(&honest);
        assert_ne!(changed, honest, "nothing was changed");
        self.put("checkpoint", changed.as_bytes());
        let size = Head::parse(Note::parse(honest.as_bytes()).expect("a note").text());
        let size = size.expect("a head").size;
        self.put(&format!("checkpoints/{size}"), changed.as_bytes());
    }

    /// Takes the log back to how it stood at an earlier signed size: every file is a true one.
    pub fn cut(&self, size: u64) {
        let names: Vec<String> = logs::public_files(&self.log())
            .into_keys()
            .map(|name| name.to_str().expect("names are ASCII").to_owned())
            .collect();
        let was_closed = size > self.rewrite().close_at() as u64;
        for name in names {
            let is_later = name.rsplit('/').next().and_then(|last| last.parse::<u64>().ok());
            let is_later = is_later.is_some_and(|of| of > size);
            let is_hidden = name.starts_with("attachment/") || name.starts_with("blob/");
            if is_later || name == "results.json" || (is_hidden && !was_closed) {
                self.remove(&name);
            }
        }
        self.put("checkpoint", &self.get(&format!("checkpoints/{size}")));
        if !was_closed {
            std::fs::remove_dir_all(self.log().join("attachment")).expect("a folder");
            let announcement = self.rewrite().announcement.encode();
            let path = arena_log::tile::blob(&arena_log::hash::Hash::of(&announcement));
            self.put(&path, &announcement);
        }
    }

    /// Takes the honest log apart, to be changed and signed anew.
    pub fn rewrite(&self) -> Rewrite {
        Rewrite::of(&self.honest.log())
    }

    /// Puts a log that was signed anew in place of what is there.
    pub fn publish(&self, rewrite: &Rewrite) {
        self.publish_raw(rewrite, &|_, entry| entry.encode());
    }

    /// The same, with each entry's bytes made from its index and the entry.
    pub fn publish_raw(
        &self,
        rewrite: &Rewrite,
        encode: &dyn Fn(usize, &arena_core::entry::Entry) -> Vec<u8>,
    ) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        rewrite.write(folder.path(), encode);
        self.show(folder.path());
    }

    /// Takes the honest log apart, lets it be changed, and puts it, signed anew, in place of the
    /// honest one.
    pub fn forge(&self, change: impl FnOnce(&mut Rewrite)) {
        let mut rewrite = self.rewrite();
        change(&mut rewrite);
        self.publish(&rewrite);
    }

    /// Writes a policy by which so many of the witnesses must have cosigned.
    pub fn ask_for_witnesses(&self, count: usize) {
        let mut policy = format!("log {}", self.text("log.vkey"));
        for name in WITNESSES {
            policy.push_str(&format!("witness {name} {}\n", witness(name).1));
        }
        policy.push_str(&format!("group all {count} {}\nquorum all\n", WITNESSES.join(" ")));
        self.write("policy", policy.as_bytes());
    }

    /// Lets a witness cosign a head at some times; returns the note.
    pub fn cosigned(&self, head: &str, name: &str, times: &[u64]) -> String {
        let note = Note::parse(&self.get(head)).expect("a note");
        let head = Head::parse(note.text()).expect("a head");
        let key = witness(name).0;
        let sign = |time: &u64| cosign(&key, name, &head, *time).expect("a name");
        let signatures: Vec<_> = times.iter().map(sign).collect();
        note.with_signatures(&signatures).expect("a note").to_string()
    }

    /// Runs the program beside the log.
    pub fn run(&self, args: &[&str]) -> Output {
        self.arena(&owned(args))
    }

    /// Asks for text.
    pub fn ask(&self, asked: &Asked) -> Output {
        match asked {
            Asked::Arena { args, .. } => self.arena(args),
            Asked::Library(said) => panic!("the library has answered: {said:?}"),
        }
    }

    /// Asks for the steps of an audit as JSON.
    pub fn ask_for_steps(&self, asked: &Asked) -> Output {
        match asked {
            Asked::Arena { args, has_steps: true } => {
                self.arena(&[&args[..], &["--json".to_owned()]].concat())
            }
            _ => panic!("this is no audit"),
        }
    }

    fn arena(&self, args: &[String]) -> Output {
        Command::new(ARENA)
            .current_dir(self.folder.path())
            .env("NO_COLOR", "1")
            .args(args)
            .stdin(Stdio::null())
            .output()
            .expect("the program runs")
    }
}

fn witness(name: &str) -> (SigningKey, Vkey) {
    let key = SigningKey::from_seed([name.len() as u8; 32]);
    let vkey = key.cosigner_vkey(name).expect("a name");
    (key, vkey)
}
