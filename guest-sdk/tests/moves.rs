//! A move that was decided elsewhere is made only where it is legal and within the reserve.

use arena_guest::params::Params;
use arena_guest::view::{Unsound, View};
use arena_guest::{Brief, Event, Item, Move, Role, Turn};

/// A view after these offers of the opponent; the reserve is $50.00.
fn view(role: Role, rules: &str, offers: &[u32]) -> View {
    let item = Item {
        title: "Kettle".to_owned(),
        category: "kitchen".to_owned(),
        description: String::new(),
        list_price: 10_000,
    };
    let brief = Brief {
        role,
        item,
        reserve: 5_000,
        turn_limit: Some(12),
        opens: role == Role::Buyer,
        rules: rules.to_owned(),
        params: String::new(),
        seed: 7,
    };
    let mut params = Params::parse("").expect("no parameters are well formed");
    let mut view = View::new(&brief, &mut params).expect("no parameter is wrong");
    for offer in offers {
        let talk = String::new();
        let turn = Turn { by: role.other(), action: Move::Offer(*offer), talk };
        view.hear(&[Event::Turn(turn)]);
    }
    view
}

#[test]
fn moves_are_judged_by_rule_set_reserve_and_what_was_offered() {
    const ANY: &str = Brief::AMAZON_HISTORY_PRICE;
    const LATEST: &str = Brief::STANDARD;
    type Case = (Role, &'static str, &'static [u32], Move, Result<(), Unsound>);
    let (buyer, seller) = (Role::Buyer, Role::Seller);
    let cases: [Case; 18] = [
        (buyer, LATEST, &[], Move::Offer(5_000), Ok(())),
        (buyer, LATEST, &[], Move::Offer(5_001), Err(Unsound::BeyondReserve)),
        (seller, LATEST, &[], Move::Offer(4_999), Err(Unsound::BeyondReserve)),
        (seller, LATEST, &[], Move::Offer(u32::MAX), Ok(())),
        (buyer, LATEST, &[], Move::Reject, Ok(())),
        (buyer, ANY, &[], Move::Walk, Err(Unsound::TooEarly)),
        (buyer, ANY, &[9_000], Move::Walk, Ok(())),
        (buyer, ANY, &[], Move::Accept(None), Err(Unsound::NothingOffered)),
        (buyer, ANY, &[], Move::Accept(Some(1)), Err(Unsound::NothingOffered)),
        (buyer, LATEST, &[4_000], Move::Accept(None), Ok(())),
        (buyer, LATEST, &[4_000], Move::Accept(Some(4_000)), Ok(())),
        (buyer, LATEST, &[4_000, 4_500], Move::Accept(Some(4_000)), Err(Unsound::NotOnOffer)),
        (buyer, ANY, &[4_000, 4_500], Move::Accept(Some(4_000)), Ok(())),
        (buyer, ANY, &[4_000, 4_500], Move::Accept(Some(4_001)), Err(Unsound::NotOnOffer)),
        (buyer, ANY, &[6_000, 4_500], Move::Accept(Some(6_000)), Err(Unsound::BeyondReserve)),
        (buyer, LATEST, &[6_000], Move::Accept(None), Err(Unsound::BeyondReserve)),
        (seller, LATEST, &[4_000], Move::Accept(None), Err(Unsound::BeyondReserve)),
        (seller, LATEST, &[5_000], Move::Accept(None), Ok(())),
    ];
    for (role, rules, offers, action, expected) in cases {
        let mut view = view(role, rules, offers);
        let made = view.attempt(action);
        let place = format!("{role:?}, {rules}, {offers:?}, {action:?}");
        assert_eq!(made.clone().map(|reply| assert_eq!(reply.action, action)), expected, "{place}");
        assert_eq!(view.turn_index, u32::from(made.is_ok()), "{place}");
        let offered = made.is_ok() && matches!(action, Move::Offer(_));
        assert_eq!(view.own.len(), usize::from(offered), "{place}");
    }
}

#[test]
fn an_undelivered_attempt_is_taken_back() {
    let mut view = view(Role::Buyer, Brief::STANDARD, &[9_000]);
    view.attempt(Move::Offer(1_000)).expect("a sound move");
    view.hear(&[Event::Refused]);
    assert_eq!((view.turn_index, view.own.len()), (0, 0));
}
