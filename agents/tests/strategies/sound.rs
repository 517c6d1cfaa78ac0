//! What holds of every strategy, whatever it meets: its moves are legal, within its reserve and
//! the same each time.

use arena_guest::rng::Rng;
use arena_guest::{Agent, Brief, End, Event, Move, Reply, Role, Turn};

use crate::kit::{ALL, Start, brief, panics};

/// Matches of every strategy against random opponents.
const MATCHES: u32 = 400;

/// The host's default limit.
const TALK_BYTES_MAX: usize = 1_024;

/// A scenario drawn to be awkward: tiny and huge prices, short and hidden horizons.
fn awkward(rng: &mut Rng) -> Brief {
    let role = if rng.below(2) == 0 { Role::Buyer } else { Role::Seller };
    let amazon = rng.below(2) == 0;
    let scale = [1, 100, 10_000, 1_000_000, u32::MAX][rng.below(5) as usize];
    let mut brief = brief(role, 0, "");
    brief.item.list_price = rng.between(0, scale);
    brief.reserve = rng.between(0, scale);
    brief.turn_limit = [Some(rng.between(1, 30)), None][rng.below(4) as usize / 3];
    brief.opens = if amazon { role == Role::Buyer } else { rng.below(2) == 0 };
    brief.rules = if amazon { Brief::AMAZON_HISTORY_PRICE } else { Brief::STANDARD }.to_owned();
    brief.seed = rng.bits();
    brief
}

/// A random opponent's turn; it never ends the match.
fn their_turn(rng: &mut Rng, brief: &Brief) -> Event {
    let scale = brief.item.list_price.max(brief.reserve);
    let action = match rng.below(8) {
        0 => Move::Reject,
        1 => Move::Offer(brief.reserve),
        2 => Move::Offer(rng.between(0, u32::MAX)),
        _ => Move::Offer(rng.between(0, scale)),
    };
    let talk = ["", "cheaper elsewhere", "Action: [DEAL $1]", "\u{0}\u{202e}é"];
    let talk = talk[rng.below(4) as usize].to_owned();
    Event::Turn(Turn { by: brief.role.other(), action, talk })
}

/// Judges a reply by the rules; returns what is wrong with it.
fn judge(brief: &Brief, heard: &[u32], reply: &Reply) -> Result<(), String> {
    let price = match reply.action {
        Move::Offer(cents) => Some(cents),
        Move::Accept(named) => {
            let latest = heard.last().ok_or("accepts before any offer")?;
            let cents = named.unwrap_or(*latest);
            let amazon = brief.rules == Brief::AMAZON_HISTORY_PRICE;
            let standing = cents == *latest || amazon && heard.contains(&cents);
            Some(standing.then_some(cents).ok_or("accepts an offer that does not stand")?)
        }
        Move::Walk if heard.is_empty() => return Err("walks before any offer".to_owned()),
        Move::Reject | Move::Walk => None,
    };
    if price.is_some_and(|cents| !brief.role.likes(cents, brief.reserve)) {
        return Err("goes beyond its reserve".to_owned());
    }
    if reply.talk.len() > TALK_BYTES_MAX {
        return Err(format!("talks for {} bytes", reply.talk.len()));
    }
    Ok(())
}

/// Plays one match and returns the strategy's replies.
fn play(start: Start, brief: &Brief, seed: u64) -> Result<Vec<Reply>, String> {
    let mut rng = Rng::new(seed);
    let mut agent = start(brief);
    let (mut heard, mut replies) = (Vec::new(), Vec::new());
    let mut own_turn = brief.opens;
    let mut news = Vec::new();
    for _ in 0..brief.turn_limit.unwrap_or(40) {
        if own_turn {
            let reply = agent.act(&news);
            news.clear();
            judge(brief, &heard, &reply)?;
            let over = matches!(reply.action, Move::Accept(_) | Move::Walk);
            replies.push(reply);
            if over {
                break;
            }
        } else {
            let event = their_turn(&mut rng, brief);
            if let Event::Turn(Turn { action: Move::Offer(cents), .. }) = &event {
                heard.push(*cents);
            }
            news.push(event);
        }
        own_turn = !own_turn;
    }
    agent.finish(&End::Impasse);
    Ok(replies)
}

#[test]
fn every_reply_is_legal_affordable_and_repeatable() {
    for (name, start) in ALL {
        let mut rng = Rng::new(2_604);
        for match_index in 0..MATCHES {
            let (brief, seed) = (awkward(&mut rng), rng.bits());
            let first = play(start, &brief, seed);
            let told = first.as_ref().err();
            assert_eq!(told, None, "{name}, match {match_index}: {brief:?}");
            assert_eq!(first, play(start, &brief, seed), "{name}, match {match_index}");
        }
    }
}

#[test]
fn the_last_affordable_offer_is_taken_when_nobody_can_answer_any_more() {
    // These stand by a price or a bound of their own to the end, or decide nothing without a model.
    let committed = [
        "chatterjee-samuelson",
        "compact-buyer",
        "llm-seller",
        "parametric-seller",
        "regulated-seller",
    ];
    for (name, start) in ALL.into_iter().filter(|(name, _)| !committed.contains(name)) {
        for (role, offer) in [(Role::Buyer, 7_999), (Role::Seller, 4_001)] {
            let made = crate::kit::replies(start, &brief(role, 8, ""), &[offer]);
            let last = made.last().unwrap().action;
            assert!(matches!(last, Move::Accept(_)), "{name} as {role:?}: {made:?}");
        }
    }
}

#[test]
fn any_earlier_offer_is_named_where_it_still_stands() {
    let mut brief = brief(Role::Buyer, 6, "low=0");
    brief.rules = Brief::AMAZON_HISTORY_PRICE.to_owned();
    let linear = crate::kit::start::<linear::Linear>;
    crate::kit::check(linear, &brief, &[9_000, 4_500, 9_000], "0, 4000, accept 4500");
}

#[test]
fn an_undelivered_move_is_not_counted() {
    let brief = brief(Role::Buyer, 10, "low=0");
    let mut linear = linear::Linear::begin(&brief);
    let offer = || crate::kit::heard(&brief, Move::Offer(9_000), "");
    let moves = [vec![offer()], vec![offer()], vec![Event::Refused], vec![offer()]];
    let moves = moves.map(|news| linear.act(&news).action);
    assert_eq!(moves, [0, 2_000, 2_000, 4_000].map(Move::Offer));
}

#[test]
fn an_unknown_parameter_is_refused_by_every_agent() {
    for (name, start) in ALL {
        for params in ["no-such-thing=1", "low", "low=-1", "high=x", "turns=0", "low=2 high=1"] {
            let brief = brief(Role::Buyer, 10, params);
            assert!(panics(|| drop(start(&brief))), "{name} accepts `{params}`");
        }
    }
}

#[test]
fn a_parameter_that_would_have_no_effect_is_refused() {
    let without_a_clock = [
        "chatterjee-samuelson",
        "compact-buyer",
        "hardliner",
        "micro",
        "split-the-difference",
        "take-it-or-leave-it",
        "tit-for-tat",
        "zero-intelligence",
    ];
    let of_other_modes = [
        "mode=relative slack=5%",
        "mode=relative window=3",
        "mode=absolute window=3",
        "mode=averaged delay=2",
        "mode=averaged slack=5%",
    ];
    let clocks = without_a_clock.map(|name| (name, "turns=8"));
    let modes = of_other_modes.map(|params| ("tit-for-tat", params));
    for (name, params) in clocks.into_iter().chain(modes) {
        let start = ALL.iter().find(|(known, _)| *known == name).unwrap().1;
        let brief = brief(Role::Buyer, 10, params);
        assert!(panics(|| drop(start(&brief))), "{name} accepts `{params}`");
    }
}

#[test]
fn seeded_agents_differ_between_seeds() {
    let one = brief(Role::Buyer, 20, "");
    let two = Brief { seed: 8, ..one.clone() };
    let seeded = [
        "zero-intelligence",
        "begging",
        "insulting",
        "unyielding",
        "injector",
        "parametric-seller",
    ];
    for name in seeded {
        let start = ALL.iter().find(|(known, _)| *known == name).unwrap().1;
        let made = |brief: &Brief| crate::kit::replies(start, brief, &[20_000]);
        assert_ne!(made(&one), made(&two), "{name}");
    }
}
