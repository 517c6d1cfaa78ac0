use arena_core::fault::Fault;
use arena_core::price::Price;
use arena_core::record::{MatchRecord, Outcome, TurnRecord};
use arena_core::scenario::Role;
use arena_core::score::{measure, reward};
use arena_core::turn::{Belief, Move};
use proptest::prelude::*;

use crate::notation::record;

fn any_price() -> impl Strategy<Value = Price> {
    prop_oneof![Just(0), Just(u32::MAX), 0..20_000_u32, any::<u32>()].prop_map(Price)
}

fn any_move() -> impl Strategy<Value = Move> {
    prop_oneof![
        any_price().prop_map(Move::Offer),
        proptest::option::of(any_price()).prop_map(Move::Accept),
        Just(Move::Reject),
        Just(Move::Walk),
    ]
}

fn any_role() -> impl Strategy<Value = Role> {
    prop_oneof![Just(Role::Buyer), Just(Role::Seller)]
}

fn any_fault() -> impl Strategy<Value = Fault> {
    prop_oneof![Just(Fault::Memory), Just(Fault::IllegalMove)]
}

fn any_outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        any_price().prop_map(|price| Outcome::Deal { price }),
        any_role().prop_map(|by| Outcome::Walked { by }),
        Just(Outcome::TimedOut),
        (any_role(), any_move()).prop_map(|(by, action)| Outcome::Violated { by, action }),
        (any_role(), any_fault()).prop_map(|(by, fault)| Outcome::Faulted { by, fault }),
    ]
}

fn any_turn() -> impl Strategy<Value = TurnRecord> {
    let belief =
        (any_price(), any_price()).prop_map(|(reserve, spread)| Belief { reserve, spread });
    let moves = proptest::collection::vec(any_move(), 0..3);
    let talk = prop_oneof![".*", "[0-9.,'$%k ]*"];
    (any_role(), moves, any_move(), talk, proptest::option::of(belief)).prop_map(
        |(by, refused, action, talk, belief)| TurnRecord { by, refused, action, talk, belief },
    )
}

fn any_record() -> impl Strategy<Value = MatchRecord> {
    let turns = proptest::collection::vec(any_turn(), 0..8);
    let unfinished = proptest::collection::vec(any_move(), 0..3);
    (any_price(), any_price(), any_price(), turns, any_outcome(), unfinished).prop_map(
        |(list_price, budget, cost, turns, outcome, unfinished)| {
            let mut made = record("1", "1", &[], outcome);
            (made.list_price, made.budget, made.cost, made.turns) =
                (list_price, budget, cost, turns);
            made.unfinished = unfinished;
            made
        },
    )
}

proptest! {
    #[test]
    fn no_record_however_odd_has_a_measure_out_of_range(played in any_record()) {
        for seat in measure(&played) {
            let shown = format!("{seat:?}");
            prop_assert!(!shown.contains("NaN") && !shown.contains("inf"), "{shown}");
            prop_assert!((-1.0..=1.0).contains(&seat.reward), "{shown}");
            prop_assert!(seat.surplus_share.is_none_or(|share| (-1.0..=2.0).contains(&share)));
            prop_assert!(seat.concession_rate.is_none_or(|rate| rate >= 0.0));
            let belief = seat.belief.is_none_or(|belief| belief.last >= 0.0 && belief.crps >= 0.0);
            prop_assert!(belief, "{shown}");
        }
    }

    #[test]
    fn the_shares_of_a_feasible_deal_add_up_to_one(
        cost in 0..1_000_000_u32,
        room in 1..1_000_000_u32,
        price in 0..3_000_000_u32,
    ) {
        let mut played = record("1", "1", &[], Outcome::Deal { price: Price(price) });
        (played.cost, played.budget) = (Price(cost), Price(cost + room));
        let [buyer, seller] = measure(&played).map(|seat| seat.surplus_share);
        let sum = buyer.expect("feasible") + seller.expect("feasible");
        prop_assert!((sum - 1.0).abs() < 1e-9, "{buyer:?} {seller:?}");
    }

    #[test]
    fn swapping_the_table_swaps_the_rewards(
        cost in 0..100_000_u32,
        budget in 0..100_000_u32,
        price in 0..100_000_u32,
    ) {
        let mut played = record("1", "1", &[], Outcome::Deal { price: Price(price) });
        (played.cost, played.budget) = (Price(cost), Price(budget));
        let mut mirrored = played.clone();
        let mirror = |cents: u32| Price(100_000 - cents);
        (mirrored.budget, mirrored.cost) = (mirror(cost), mirror(budget));
        mirrored.outcome = Outcome::Deal { price: mirror(price) };
        prop_assert_eq!(reward(&played, Role::Buyer), reward(&mirrored, Role::Seller));
        prop_assert_eq!(reward(&played, Role::Seller), reward(&mirrored, Role::Buyer));
    }
}
