//! Tournaments in which candidates take one role only, and repetitions share scenarios.

use arena_audit::sample::Sample;
use arena_core::schedule::Schedule;

use crate::honest::{Tournament, assert_fails, shown};

#[test]
fn one_sided_tournaments_are_verified_and_their_tables_made_again() {
    for roles in ["candidates-buy", "candidates-sell"] {
        let audit = Tournament::play_one_sided(roles).write().audit();
        let wanted = "re-execution not checked: it was not asked for\n";
        assert_eq!(shown(&audit), wanted, "{roles}");
        let report = audit.report.expect("there are tables");
        assert_eq!((report.header.pairs_played, report.header.matches_played), (64, 64));
        assert_eq!(audit.voids[0].pair_count, 32);
    }
}

#[test]
fn who_may_lead_is_looked_for_among_candidates() {
    let audit = Tournament::play_one_sided("candidates-buy").write().audit();
    let report = audit.report.expect("there are tables");
    let Sample::Agents(chosen) = Sample::top(&report) else {
        panic!("intervals are known");
    };
    assert!(chosen.contains(&report.rows[0].agent));
    assert!(chosen.iter().all(|agent| agent % 2 == 0), "alpha and gamma buy: {chosen:?}");
}

#[test]
fn swapped_seats_are_found() {
    let mut tournament = Tournament::play_one_sided("candidates-buy");
    let place = tournament.match_at(5, 0);
    tournament.forge(place, |transcript| transcript.record.agents.swap(0, 1));
    let says = "the agents of leg 0 of pair 5: found";
    assert_fails("swapped", &tournament.write().audit(), &["schedule"], says);
}

#[test]
fn a_second_leg_is_none_that_is_scheduled() {
    let mut tournament = Tournament::play_one_sided("candidates-sell");
    let place = tournament.match_at(5, 0);
    tournament.records.insert(place + 1, tournament.records[place].clone());
    tournament.forge(place + 1, |transcript| {
        transcript.record.leg = 1;
        transcript.record.agents.swap(0, 1);
    });
    let says = "the match: found leg 1 of pair 5, expected leg 0 of pair 6";
    let audit = tournament.write().audit();
    assert_fails("a second leg", &audit, &["schedule"], says);
}

#[test]
fn the_scenario_of_another_repetition_of_the_group_is_the_same_and_of_another_group_is_not() {
    let honest = Tournament::play_one_sided("candidates-buy");
    // Pairs count pairings first, then items: 4 pairings over 4 items are 16 pairs a repetition.
    let of = |pair_index| honest.match_at(pair_index, 0);
    let record = |place: usize| {
        let attachment = &honest.records[place].attachment;
        arena_core::transcript::Transcript::decode(attachment).expect("a match").record
    };
    let scenario = |pair_index| {
        let record = record(of(pair_index));
        (record.budget, record.cost, record.opener, record.horizon)
    };
    let later = |pair_index: u64| scenario(pair_index + 32);
    assert!((0..16).all(|pair| scenario(pair) == scenario(pair + 16)), "a group shares it");
    let other = (0..16).find(|pair| scenario(*pair) != later(*pair)).expect("groups differ");
    let mut tournament = honest.clone();
    let (opener, horizon) = (later(other).2, later(other).3);
    tournament.forge(of(other + 16), |transcript| {
        transcript.record.opener = opener;
        transcript.record.horizon = horizon;
    });
    let audit = tournament.write().audit();
    let scenarios = audit.step("scenarios").expect("the step is there");
    assert!(scenarios.verdict.is_failed(), "{}", shown(&audit));
}

#[test]
fn samples_are_of_matches_that_are_scheduled() {
    let tournament = Tournament::play_one_sided("candidates-buy");
    let schedule = Schedule::new(&tournament.config, 4).expect("sound");
    let sample = Sample::of(&schedule, 63, [9; 32]);
    let chosen = (0..64).filter(|pair| sample.contains(*pair, 0, [0, 0])).count();
    assert_eq!(chosen, 63);
    assert!((0..64).all(|pair| !sample.contains(pair, 1, [0, 0])), "there is no second leg");
    assert_eq!(Sample::of(&schedule, 64, [9; 32]), Sample::All);
}
