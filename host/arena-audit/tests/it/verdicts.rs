//! What an audit says of logs that nobody tampered with.

use arena_audit::diff::{Relation, View, diff};
use arena_audit::{AgentVoids, Audit, AuditOptions, Verdict};
use arena_core::catalog::amazon;
use arena_core::config::{Split, TournamentConfig};
use arena_core::entry::Entry;
use arena_core::hexadecimal::hex;
use arena_core::report::Report;
use arena_core::seed::Root;

use crate::honest::{Drawn, Tournament, assert_fails, author_key, shown};

fn assert_verified(audit: &Audit) {
    assert_eq!(shown(audit), "re-execution not checked: it was not asked for\n");
    assert!(audit.is_verified_without(&["re-execution"]));
    assert!(!audit.is_verified_without(&[]));
}

#[test]
fn an_honest_log_is_verified_in_every_step() {
    for drawn in [Drawn::Publicly, Drawn::InCommon] {
        let tournament = Tournament::play(drawn, 50);
        let log = tournament.write();
        let audit = log.audit();
        assert_verified(&audit);
        assert_eq!(audit.tournament, Some(tournament.id));
        let report = audit.report.as_ref().map(|report: &Report| report.document(true));
        assert_eq!(report, tournament.results);
    }
}

#[test]
fn the_details_say_what_was_checked() {
    let audit = Tournament::play(Drawn::InCommon, 5).write().audit();
    let detail = |id: &str| match &audit.step(id).expect(id).verdict {
        Verdict::Verified { detail } => detail.clone(),
        verdict => panic!("{id}: {verdict:?}"),
    };
    for (id, says) in [
        ("submissions", "2 of 3 agents have one"),
        ("draws", "2 of 2 contributions were opened; round 123 of quicknet"),
        (
            "counts",
            "30 matches, 1 void; the highest rate is that of `beta`, voided in 1 of 10 pairs",
        ),
        ("catalog", "they follow from the organiser's secret alone, who could try several"),
        ("schedule", "each of 30 matches, once"),
        ("held-heads", "4 published heads, 0 held ones"),
    ] {
        assert!(detail(id).contains(says), "{id}: {}", detail(id));
    }
}

#[test]
fn the_rate_of_voids_is_told_of_each_agent() {
    let of = |agent: &str, pair_count, voided_count| AgentVoids {
        agent: agent.to_owned(),
        pair_count,
        voided_count,
    };
    let tournament = Tournament::play(Drawn::Publicly, 5);
    let voids = tournament.write().audit().voids;
    assert_eq!(voids, [of("alpha", 10, 1), of("beta", 10, 1), of("gamma", 10, 0)]);
    // Closed behind a void, the pair of which was begun: no rate is above one.
    let mut short = tournament;
    let void = short.records.iter().position(|one| matches!(one.entry, Entry::Void(_)));
    let close = short.close_at();
    short.records.drain(void.expect("a void") + 1..close);
    let voids = short.write().audit().voids;
    assert_eq!(voids, [of("alpha", 2, 1), of("beta", 2, 1), of("gamma", 2, 0)]);
    assert_eq!(voids[1].rate(), Some(0.5));
}

#[test]
fn a_contribution_that_was_left_out_is_told_as_a_choice() {
    let mut tournament = Tournament::play(Drawn::InCommon, 1);
    let Entry::Draw(draw) = &mut tournament.records[1].entry else { panic!("a draw") };
    draw.contributions[1] = None;
    let audit = tournament.write().audit();
    let detail = format!("{:?}", audit.step("draws"));
    let says = "1 of 2 contributions were opened; leaving 1 out was a choice among 2^1 draws";
    assert!(detail.contains(says), "{detail}");
}

#[test]
fn a_running_log_is_verified_in_structure_and_no_further() {
    for drawn in [Drawn::Publicly, Drawn::InCommon] {
        let mut tournament = Tournament::play(drawn, 100);
        tournament.records.truncate(400);
        tournament.results = None;
        let log = tournament.write();
        let audit = log.audit();
        assert!(!audit.steps.iter().any(|step| step.verdict.is_failed()), "{}", shown(&audit));
        let structure =
            ["checkpoint", "tree", "held-heads", "files", "entries", "announcement", "submissions"];
        for id in structure {
            assert!(audit.step(id).expect(id).verdict.is_verified(), "{}", shown(&audit));
        }
        for id in ["transcripts", "rules", "usage", "scenarios", "results", "components"] {
            let verdict = &audit.step(id).expect(id).verdict;
            let withheld = "withheld until the close";
            let is_withheld = matches!(
                verdict, Verdict::NotChecked { reason } if reason.contains(withheld)
            );
            assert!(is_withheld, "{id}: {verdict:?}");
        }
        assert!(shown(&audit).contains("schedule not checked: the log is not closed"));
        assert!(audit.report.is_none());
    }
}

#[test]
fn a_log_without_published_tables_says_so() {
    let mut tournament = Tournament::play(Drawn::Publicly, 5);
    tournament.results = None;
    let audit = tournament.write().audit();
    assert_eq!(
        shown(&audit),
        "results not checked: there is no `results.json` to compare the recomputed tables with\n\
         re-execution not checked: it was not asked for\n"
    );
    assert!(audit.report.is_some());
}

#[test]
fn a_closed_log_that_reveals_nothing_is_not_verified() {
    let mut tournament = Tournament::play(Drawn::InCommon, 5);
    let reveal = tournament.records.pop().expect("the last entry");
    assert!(matches!(reveal.entry, Entry::Reveal(_)));
    tournament.results = None;
    let audit = tournament.write().audit();
    let shown = shown(&audit);
    assert!(shown.contains("draws not checked: the secret is withheld"), "{shown}");
    assert!(shown.contains("counts not checked: the log is closed, but nothing was revealed"));
    assert!(!shown.contains("failed"), "{shown}");
}

#[test]
fn known_authors_are_named() {
    let log = Tournament::play(Drawn::Publicly, 5).write();
    let author = author_key().vkey("alpha").expect("a name");
    let policy = log.policy();
    let authors = [("alpha".to_owned(), author)];
    let options = AuditOptions { policy: &policy, held: &[], authors: &authors, catalog: None };
    let audit = arena_audit::audit(log.path(), &options, &mut |_| {});
    assert_verified(&audit);
    let detail = format!("{:?}", audit.step("submissions"));
    assert!(detail.contains("1 of 3 agents have one, 1 of them by known authors"), "{detail}");
}

#[test]
fn progress_ends_at_the_last_entry() {
    let log = Tournament::play(Drawn::Publicly, 5).write();
    let policy = log.policy();
    let options = AuditOptions { policy: &policy, held: &[], authors: &[], catalog: None };
    let mut told = Vec::new();
    arena_audit::audit(log.path(), &options, &mut |progress| told.push(progress));
    let last = told.last().expect("something is told");
    assert_eq!((last.entries_done, last.entry_count), (34, 34));
}

#[test]
fn two_views_of_an_honest_log_continue_each_other() {
    let log = Tournament::play(Drawn::Publicly, 50).write();
    let policy = log.policy();
    let (newest, early) = (log.get("checkpoint"), log.get("checkpoints/256"));
    let whole = View { checkpoint: &newest, folder: Some(log.path()) };
    let kept = View { checkpoint: &early, folder: None };
    let relation = |first, second| diff(first, second, &policy).expect("trusted heads").relation;
    assert_eq!(relation(whole, whole), Relation::Same);
    assert_eq!(relation(whole, kept), Relation::Continued);
    assert_eq!(relation(kept, whole), Relation::Continued);
    let bare = View { checkpoint: &newest, folder: None };
    assert!(matches!(relation(bare, kept), Relation::Unknown { .. }));
}

#[test]
fn items_that_are_not_generated_are_checked_where_the_auditor_has_their_source() {
    let product = |title: &str, low: &str| {
        format!(
            "{{ \"title\": \"{title}\", \"category\": \"home\", \"list_price\": \"$50.00\", \
             \"highest_price\": \"$60.95\", \"lowest_price\": \"{low}\", \
             \"description\": \"A lamp that shines.\" }}"
        )
    };
    let import = |low: &str| {
        let rows = [product("Lamp", low), product("Lantern", "$20"), product("Torch", "$30")];
        let files = [("home.json".to_owned(), format!("[{}]", rows.join(",")))];
        amazon::import(&files).expect("products")
    };
    let source = import("$29.99");
    let mut tournament = Tournament::play(Drawn::Publicly, 3);
    let toml = &mut tournament.announcement.config_toml;
    let generated = "kind = \"uniform\"\nitems = 3\nlow = \"10\"\nhigh = \"200\"\n";
    let imported = "kind = \"amazon-history-price\"\nfolder = \"data\"\nsample = 2\n\
                    budget_factor = [0.4, 1.0]\n";
    *toml = toml.replacen(generated, imported, 1);
    tournament.config = TournamentConfig::parse(toml).expect("the file is sound");
    tournament.catalog = source.select(Split::All, Some(2), Root::Seed(7)).expect("two items");
    tournament.announcement.catalog_sha256 = tournament.catalog.sha256();
    tournament.announcement.item_count = 2;
    tournament.announcement.pair_count = 6;
    *tournament.blobs.last_mut().expect("the catalog") = tournament.catalog.encode();
    tournament.announce();
    let log = tournament.write();
    let policy = log.policy();
    let audit = |catalog| {
        let options = AuditOptions { policy: &policy, held: &[], authors: &[], catalog };
        arena_audit::audit(log.path(), &options, &mut |_| {})
    };
    assert_verified(&audit(Some(&source)));
    let without = audit(None);
    assert!(without.is_verified_without(&["re-execution", "catalog"]), "{}", shown(&without));
    let says = "catalog not checked: its source, AmazonHistoryPrice (folder `data`), was not given";
    assert!(shown(&without).contains(says), "{}", shown(&without));
    let changed = import("$29.98");
    let other = audit(Some(&changed));
    assert_fails("another source", &other, &["catalog"], "the announced hash of the catalog");
    let hash = hex(&tournament.announcement.catalog_sha256);
    let path = format!("blob/{}/{hash}", &hash[..2]);
    std::fs::remove_file(log.file(&path)).expect("it was there");
    let says = format!("`{path}`: the catalog: found none, expected one");
    for source in [None, Some(&source)] {
        assert_fails("no catalog", &audit(source), &["catalog"], &says);
    }
}
