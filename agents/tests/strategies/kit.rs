//! A small table to play at: scripted opponents and a referee for two strategies.

use std::panic::{AssertUnwindSafe, catch_unwind};

use arena_guest::{Agent, Brief, Event, Item, Move, Reply, Role, Turn};

/// Starts a strategy.
pub type Start = fn(&Brief) -> Box<dyn Agent>;

/// Starts a strategy of that type.
pub fn start<A: Agent + 'static>(brief: &Brief) -> Box<dyn Agent> {
    Box::new(A::begin(brief))
}

/// Every built-in strategy, sorted by name.
pub const ALL: [(&str, Start); 24] = [
    ("bayesian", start::<bayesian::Bayesian>),
    ("begging", start::<begging::Begging>),
    ("boulware", start::<boulware::Boulware>),
    ("chatterjee-samuelson", start::<chatterjee_samuelson::ChatterjeeSamuelson>),
    ("compact-buyer", start::<compact_buyer::CompactBuyer>),
    ("conceder", start::<conceder::Conceder>),
    ("fixed-ladder", start::<fixed_ladder::FixedLadder>),
    ("hardliner", start::<hardliner::Hardliner>),
    ("injector", start::<injector::Injector>),
    ("insulting", start::<insulting::Insulting>),
    ("linear", start::<linear::Linear>),
    ("llm-buyer", start::<llm_buyer::LlmBuyer>),
    ("llm-guarded", start::<llm_guarded::LlmGuarded>),
    ("llm-seller", start::<llm_seller::LlmSeller>),
    ("micro", start::<micro::Micro>),
    ("nice-tit-for-tat", start::<nice_tit_for_tat::NiceTitForTat>),
    ("og-narrator", start::<og_narrator::OgNarrator>),
    ("parametric-seller", start::<parametric_seller::ParametricSeller>),
    ("regulated-seller", start::<regulated_seller::RegulatedSeller>),
    ("split-the-difference", start::<split_the_difference::SplitTheDifference>),
    ("take-it-or-leave-it", start::<take_it_or_leave_it::TakeItOrLeaveIt>),
    ("tit-for-tat", start::<tit_for_tat::TitForTat>),
    ("unyielding", start::<unyielding::Unyielding>),
    ("zero-intelligence", start::<zero_intelligence::ZeroIntelligence>),
];

/// A buyer with a budget of $80 or a seller with a cost of $40, for an item listed at $100. It
/// answers: the other side opens.
pub fn brief(role: Role, turn_limit: u32, params: &str) -> Brief {
    Brief {
        role,
        item: Item {
            title: "Kettle".to_owned(),
            category: "kitchen".to_owned(),
            description: String::new(),
            list_price: 10_000,
        },
        reserve: if role == Role::Buyer { 8_000 } else { 4_000 },
        turn_limit: Some(turn_limit),
        opens: false,
        rules: Brief::STANDARD.to_owned(),
        params: params.to_owned(),
        seed: 7,
    }
}

/// The opponent's turn.
pub fn heard(brief: &Brief, action: Move, talk: &str) -> Event {
    Event::Turn(Turn { by: brief.role.other(), action, talk: talk.to_owned() })
}

/// Plays a strategy against these offers, one before each of its turns, and returns its replies.
/// The opponent's last offer stands on when there are fewer offers than turns.
pub fn replies(start: Start, brief: &Brief, offers: &[u32]) -> Vec<Reply> {
    let mut agent = start(brief);
    let turns = brief.turn_limit.unwrap_or(20) / 2;
    let mut replies: Vec<Reply> = Vec::new();
    for turn in 0..turns as usize {
        let offer = offers[turn.min(offers.len() - 1)];
        replies.push(agent.act(&[heard(brief, Move::Offer(offer), "")]));
        if !matches!(replies[turn].action, Move::Offer(_) | Move::Reject) {
            break;
        }
    }
    replies
}

/// Plays a strategy against these offers and compares its moves, written as `250`, `accept`,
/// `accept 250`, `reject`, `walk`.
pub fn check(start: Start, brief: &Brief, offers: &[u32], expected: &str) {
    let moves = replies(start, brief, offers).into_iter().map(|reply| written(reply.action));
    let moves: Vec<String> = moves.collect();
    assert_eq!(moves.join(", "), expected, "{brief:?} against {offers:?}");
}

fn written(action: Move) -> String {
    match action {
        Move::Offer(cents) => cents.to_string(),
        Move::Accept(None) => "accept".to_owned(),
        Move::Accept(Some(cents)) => format!("accept {cents}"),
        Move::Reject => "reject".to_owned(),
        Move::Walk => "walk".to_owned(),
    }
}

/// Returns whether `act` panics.
pub fn panics(act: impl FnOnce()) -> bool {
    catch_unwind(AssertUnwindSafe(act)).is_err()
}
