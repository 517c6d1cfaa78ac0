//! Every game of up to five turns over three prices, compared with a second, naive
//! implementation of the rules and with what must hold in any game.

use arena_core::fault::Fault;
use arena_core::price::Price;
use arena_core::record::{Outcome, TurnRecord};
use arena_core::rules::{Rules, replay};
use arena_core::scenario::{Horizon, Regulation, Role, RuleSet, Scenario};
use arena_core::turn::{Event, Move, Reply};

use crate::notation::{default_rules, default_scenario, record_of};
use crate::tape::{Answer, Session, play_tape};

const PRICES: [Price; 3] = [Price(5_000), Price(8_000), Price(11_000)];
/// Budget and cost: the middle price suits both; no price suits both.
const RESERVES: [[Price; 2]; 2] = [[Price(10_000), Price(6_000)], [Price(6_000), Price(10_000)]];
/// Turn limits and retries. Each retry multiplies the sequences, so games with more are shorter.
const LENGTHS: [(u32, u32); 3] = [(5, 0), (4, 1), (2, 2)];
const REGULATIONS: [Regulation; 3] = [Regulation::Refuse, Regulation::Penalise, Regulation::Allow];

fn moves() -> Vec<Move> {
    let offers = PRICES.map(Move::Offer);
    let named = PRICES.map(|price| Move::Accept(Some(price)));
    let plain = [Move::Accept(None), Move::Reject, Move::Walk];
    [&offers[..], &named, &plain].concat()
}

fn games() -> Vec<(Rules, Scenario)> {
    let settings = [
        (RuleSet::Standard, Role::Buyer),
        (RuleSet::Standard, Role::Seller),
        (RuleSet::AmazonHistoryPrice, Role::Buyer),
    ];
    let regulations = REGULATIONS.map(|buyer| REGULATIONS.map(|seller| [buyer, seller])).concat();
    let mut games = Vec::new();
    for (set, opener) in settings {
        for &regulation in &regulations {
            for [budget, cost] in RESERVES {
                for (turn_limit, retries) in LENGTHS {
                    let rules = Rules { regulation, retries, ..default_rules(set) };
                    let horizon = Horizon { turn_limit, hidden: false };
                    let base = default_scenario();
                    games.push((rules, Scenario { budget, cost, opener, horizon, ..base }));
                }
            }
        }
    }
    games
}

#[test]
fn every_small_game_ends_once_and_as_the_naive_rules_say() {
    let moves = moves();
    let mut ended = 0_u32;
    let games = games();
    assert_eq!(games.len(), 3 * 9 * 2 * 3);
    for (rules, scenario) in &games {
        // Tries every move at the end of every sequence that has not ended the match.
        let mut open: Vec<Vec<Move>> = vec![vec![]];
        while let Some(attempts) = open.pop() {
            let session = play_tape(rules, scenario, attempts.iter().map(answer).collect());
            let expected = naive(rules, scenario, &attempts);
            match &session.played {
                Ok(played) => {
                    ended += 1;
                    let found = played.clone();
                    let found = (found.turns, found.unfinished, found.outcome);
                    assert_eq!(Some(found), expected, "{rules:?} {scenario:?} {attempts:?}");
                    assert_sound(rules, scenario, &session);
                }
                Err(_) => {
                    assert_eq!(None, expected, "{rules:?} {scenario:?} {attempts:?}");
                    open.extend(moves.iter().map(|&next| [&attempts[..], &[next]].concat()));
                }
            }
        }
    }
    assert_eq!(ended, 541_434, "the number of games is a fact of the rules");
}

fn answer(&action: &Move) -> Answer {
    Ok(Reply { action, talk: String::new(), belief: None })
}

/// What must hold in any game that has ended, whatever the rules in detail.
fn assert_sound(rules: &Rules, scenario: &Scenario, session: &Session) {
    let Ok(played) = &session.played else { panic!("the match was voided") };
    assert_eq!(session.left_over, 0, "a seat was asked after the end");
    assert!(played.turns.len() <= scenario.horizon.turn_limit as usize);
    for (index, turn) in played.turns.iter().enumerate() {
        let opener_moves = index % 2 == 0;
        assert_eq!(turn.by == scenario.opener, opener_moves, "turns alternate");
        assert!(turn.refused.len() <= rules.attempts_max());
        let ends = matches!(turn.action, Move::Accept(_) | Move::Walk);
        assert!(!ends || index + 1 == played.turns.len(), "an accept or a walk is the last turn");
    }
    if let Outcome::Deal { price } = played.outcome {
        assert_deal(rules, scenario, &played.turns, price);
    }
    for role in Role::BOTH {
        assert_heard_only_delivered_moves(role, &played.turns, session);
        let faulted = matches!(played.outcome, Outcome::Faulted { by, .. } if by == role);
        assert_eq!(session.ends[role.index()].len(), usize::from(!faulted));
    }
    assert_eq!(replay(rules, &record_of(scenario, played)), Ok(()));
}

fn assert_deal(rules: &Rules, scenario: &Scenario, turns: &[TurnRecord], price: Price) {
    let last = turns.last().expect("a deal has turns");
    assert!(matches!(last.action, Move::Accept(_)), "someone accepted");
    let offered =
        |turn: &TurnRecord| turn.by == last.by.other() && turn.action == Move::Offer(price);
    assert!(turns.iter().any(offered), "the other side offered the price");
    for role in Role::BOTH {
        let surplus = match role {
            Role::Buyer => scenario.budget.minus(price),
            Role::Seller => price.minus(scenario.cost),
        };
        let allowed = rules.regulation[role.index()] == Regulation::Allow;
        assert!(allowed || surplus >= 0, "regulation keeps {role} from a loss");
    }
}

fn assert_heard_only_delivered_moves(role: Role, turns: &[TurnRecord], session: &Session) {
    let heard = session.heard[role.index()].iter().filter_map(|event| match event {
        Event::Turn(turn) => Some((turn.by, turn.action)),
        Event::Refused => None,
    });
    let delivered = turns.iter().filter(|turn| turn.by != role).map(|turn| (turn.by, turn.action));
    let heard: Vec<_> = heard.collect();
    let delivered: Vec<_> = delivered.collect();
    // The turn that ends a match reaches the other side as the end.
    let missing = delivered.len() - heard.len();
    assert!(missing <= 1 && delivered.starts_with(&heard), "{role} heard {heard:?}");
}

/// The rules a second time, from the whole history at each step; `None` while the game goes on.
fn naive(
    rules: &Rules,
    scenario: &Scenario,
    attempts: &[Move],
) -> Option<(Vec<TurnRecord>, Vec<Move>, Outcome)> {
    let mut turns: Vec<TurnRecord> = Vec::new();
    let mut refused: Vec<Move> = Vec::new();
    for &action in attempts {
        let by =
            if turns.len().is_multiple_of(2) { scenario.opener } else { scenario.opener.other() };
        let offers: Vec<Price> = turns
            .iter()
            .filter(|turn| turn.by != by)
            .filter_map(|turn| match turn.action {
                Move::Offer(price) => Some(price),
                _ => None,
            })
            .collect();
        let takes = match action {
            Move::Accept(None) => offers.last().copied(),
            Move::Accept(Some(price)) if rules.set == RuleSet::Standard => {
                offers.last().copied().filter(|latest| *latest == price)
            }
            Move::Accept(Some(price)) => offers.iter().copied().find(|offer| *offer == price),
            _ => None,
        };
        let bad_opening = rules.set == RuleSet::AmazonHistoryPrice
            && turns.is_empty()
            && !matches!(action, Move::Offer(_) | Move::Reject);
        if bad_opening || (matches!(action, Move::Accept(_)) && takes.is_none()) {
            refused.push(action);
            return Some((turns, refused, Outcome::Faulted { by, fault: Fault::IllegalMove }));
        }
        let price = if let Move::Offer(price) = action { Some(price) } else { takes };
        let loss = price.is_some_and(|price| match by {
            Role::Buyer => price.cents() > scenario.budget.cents(),
            Role::Seller => price.cents() < scenario.cost.cents(),
        });
        let regulation = rules.regulation[by.index()];
        if loss && regulation == Regulation::Penalise {
            return Some((turns, refused, Outcome::Violated { by, action }));
        }
        let stopped = loss && regulation == Regulation::Refuse;
        if stopped {
            refused.push(action);
            if refused.len() as u32 <= rules.retries {
                continue;
            }
        }
        let action = if stopped { Move::Reject } else { action };
        let (refused, talk) = (std::mem::take(&mut refused), String::new());
        turns.push(TurnRecord { by, refused, action, talk, belief: None });
        match (action, takes) {
            (Move::Accept(_), Some(price)) => {
                return Some((turns, Vec::new(), Outcome::Deal { price }));
            }
            (Move::Walk, _) => return Some((turns, Vec::new(), Outcome::Walked { by })),
            _ if turns.len() as u32 == scenario.horizon.turn_limit => {
                return Some((turns, Vec::new(), Outcome::TimedOut));
            }
            _ => (),
        }
    }
    None
}
