//! The folder of the witnesses: what lies there counts, and what is on its way there does not.

use arena_audit::{Audit, AuditOptions};
use arena_log::checkpoint::Head;
use arena_log::cosignature;
use arena_log::key::SigningKey;
use arena_log::note::{Note, NoteSignature, SIGNATURES_MAX};
use arena_log::policy::Policy;
use arena_log::policy_text::WITNESSES_MAX;

use crate::honest::{Drawn, Log, Tournament, assert_fails, shown};

fn audit(log: &Log, policy: &Policy) -> Audit {
    let options = AuditOptions { policy, held: &[], authors: &[], catalog: None };
    arena_audit::audit(log.path(), &options, &mut |_| {})
}

#[test]
fn what_a_killed_witness_leaves_is_no_finding_and_no_cosignature() {
    let log = Tournament::play(Drawn::Publicly, 1).write();
    let key = SigningKey::from_seed([1; 32]);
    let vkey = key.cosigner_vkey("w.example").expect("a name");
    let text = format!("log {}\nwitness w {vkey}\nquorum w\n", log.vkey);
    let policy = Policy::parse(text.as_bytes()).expect("a policy");
    let note = Note::parse(&log.get("checkpoint")).expect("a note");
    let head = Head::parse(note.text()).expect("a head");
    let line = cosignature::cosign(&key, "w.example", &head, 1_796_000_000).expect("cosigned");
    let cosigned = note.with_signatures(&[line]).expect("a note").to_string();
    log.put("witness/.w.example.new", cosigned.as_bytes());
    let says = "the quorum of witnesses is not met: 0 cosigned";
    assert_fails("a head that was not given out", &audit(&log, &policy), &["checkpoint"], says);
    log.put("witness/w.example", cosigned.as_bytes());
    for left in [&cosigned.as_bytes()[..40], b"", b"\xff", cosigned.as_bytes()] {
        log.put("witness/.w.example.new", left);
        let audit = audit(&log, &policy);
        assert!(audit.is_verified_without(&["re-execution"]), "{}", shown(&audit));
    }
    // Under any other name, half a head is one that was tampered with.
    log.put("witness/w.example.new", &cosigned.as_bytes()[..40]);
    let says = "held-heads failed: `witness/w.example.new`: found";
    assert_fails("half a head", &audit(&log, &policy), &["held-heads"], says);
}

#[test]
fn the_largest_quorum_is_met_by_files_that_strangers_have_filled() {
    let log = Tournament::play(Drawn::Publicly, 1).write();
    let note = Note::parse(&log.get("checkpoint")).expect("a note");
    let head = Head::parse(note.text()).expect("a head");
    let strangers = (0..SIGNATURES_MAX - 2).map(|number| {
        let name = format!("stranger-{number}");
        NoteSignature { name, key_id: [9; 4], signature: vec![7; 72] }
    });
    let full = note.with_signatures(&strangers.collect::<Vec<_>>()).expect("one line is left");
    let (mut lines, mut members) = (String::new(), String::new());
    let mut cosigned = Vec::new();
    for number in 0..WITNESSES_MAX {
        let key = SigningKey::from_seed([u8::try_from(number).expect("few witnesses") + 100; 32]);
        let name = format!("w{number}.example");
        lines += &format!("witness w{number} {}\n", key.cosigner_vkey(&name).expect("a name"));
        members += &format!(" w{number}");
        let line = cosignature::cosign(&key, &name, &head, 1_796_000_000).expect("cosigned");
        let note = full.clone().with_signatures(&[line]).expect("a full note");
        cosigned.push((format!("witness/{name}"), note.to_string()));
    }
    let text = format!("log {}\n{lines}group all all{members}\nquorum all\n", log.vkey);
    let policy = Policy::parse(text.as_bytes()).expect("a policy");
    let (last, others) = cosigned.split_last().expect("many");
    for (path, note) in others {
        log.put(path, note.as_bytes());
    }
    let says = "62 cosigned, missing are `w62.example`";
    assert_fails("one is absent", &audit(&log, &policy), &["checkpoint"], says);
    log.put(&last.0, last.1.as_bytes());
    let audit = audit(&log, &policy);
    assert!(audit.is_verified_without(&["re-execution"]), "{}", shown(&audit));
    assert_eq!(audit.opened.expect("a head").cosigned.len(), WITNESSES_MAX);
}
