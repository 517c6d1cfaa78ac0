//! Every bit of every authenticated file of a small log that the program made, flipped one at a
//! time.
//!
//! Without `SLOW_TESTS` one bit of each byte is flipped, another one from byte to byte, and of
//! files that are compared or hashed as a whole only of every eighth byte. The library does every
//! bit of a log of its own each time (`host/arena-audit/tests/it/bits.rs`).

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::thread;

use arena_audit::{AuditOptions, Verdict};
use arena_log::policy::Policy;

use crate::logs;
use crate::tampering::honest::tiny;
use crate::tampering::scene::Scene;

/// Copies of the log that are flipped side by side.
const COPIES: usize = 2;

/// A copy of the small log, with the cosigned head of a witness that the policy asks for.
struct Copy {
    scene: Scene,
    policy: Policy,
}

impl Copy {
    fn new() -> Copy {
        let scene = Scene::of(tiny());
        scene.ask_for_witnesses(1);
        let cosigned = scene.cosigned("checkpoint", "first", &[1_796_000_000]);
        scene.put("witness/first", cosigned.as_bytes());
        let policy = std::fs::read(scene.path("policy")).expect("a policy");
        Copy { policy: Policy::parse(&policy).expect("a policy"), scene }
    }

    /// Returns the steps that failed, and whether all others but one were verified.
    fn audit(&self) -> (Vec<&'static str>, bool) {
        let options = AuditOptions { policy: &self.policy, held: &[], authors: &[], catalog: None };
        let audit = arena_audit::audit(&self.scene.log(), &options, &mut |_| {});
        let failed =
            audit.steps.iter().filter(|step| matches!(step.verdict, Verdict::Failed { .. }));
        (failed.map(|step| step.id).collect(), audit.is_verified_without(&["re-execution"]))
    }

    /// Flips bits of a file, all or some; returns how many.
    fn flip(&self, name: &str, all: bool) -> u64 {
        let honest = self.scene.get(name);
        let path = self.scene.log().join(name);
        let file = File::options().write(true).open(path).expect("a file");
        let is_whole = name.starts_with("blob/") || name == "results.json";
        let mut flipped = 0;
        for (at, byte) in honest.iter().enumerate() {
            let bits = match (all, is_whole) {
                (true, _) => 0..8,
                (false, false) => at % 8..at % 8 + 1,
                (false, true) if at % 8 == 0 => at / 8 % 8..at / 8 % 8 + 1,
                (false, true) => 0..0,
            };
            for bit in bits {
                file.write_all_at(&[byte ^ 1 << bit], at as u64).expect("a byte");
                let (failed, is_verified) = self.audit();
                assert!(!failed.is_empty() && !is_verified, "{name}: bit {bit} of byte {at}");
                flipped += 1;
            }
            file.write_all_at(&[*byte], at as u64).expect("a byte");
        }
        flipped
    }
}

#[test]
fn no_bit_of_an_authenticated_file_can_be_flipped_unseen() {
    let all = std::env::var_os("SLOW_TESTS").is_some();
    let copies: Vec<Copy> = (0..COPIES).map(|_| Copy::new()).collect();
    let honest = (vec![], true);
    assert_eq!(copies[0].audit(), honest);
    let files = logs::public_files(&copies[0].scene.log());
    assert!(files.len() >= 20, "{:?}", files.keys());
    let byte_count: usize = files.values().map(Vec::len).sum();
    let flip = |(place, copy): (usize, &Copy)| -> u64 {
        let own = files.keys().skip(place).step_by(COPIES);
        own.map(|name| copy.flip(name.to_str().expect("names are ASCII"), all)).sum()
    };
    let flipped: u64 = thread::scope(|scope| {
        let spawn = |copy| scope.spawn(move || flip(copy));
        let threads: Vec<_> = copies.iter().enumerate().map(spawn).collect();
        threads.into_iter().map(|thread| thread.join().expect("no flip went unseen")).sum()
    });
    let least = if all { byte_count * 8 } else { byte_count / 8 };
    assert!(flipped >= least as u64, "{flipped} flips of {byte_count} bytes");
    eprintln!("flipped {flipped} bits of {byte_count} bytes in {} files", files.len());
    for copy in &copies {
        assert_eq!(copy.audit(), honest, "what was flipped was flipped back");
    }
}
