//! The values of the game, as an agent sees them, and the trait that an agent implements.
//!
//! They mirror `wit/arena.wit` one to one. Every price is a whole number of cents.

/// A strategy for one seat of one match.
pub trait Agent {
    /// Starts a match. A panic here (for example over an unknown parameter) costs the match and
    /// leaves its message in the trace.
    fn begin(brief: &Brief) -> Self
    where
        Self: Sized;

    /// Makes the next move, given the events since the last one, oldest first.
    fn act(&mut self, news: &[Event]) -> Reply;

    /// Learns how the match ended. It cannot change the outcome.
    fn finish(&mut self, _end: &End) {}
}

/// The side of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Wants a low price; its reserve is a budget.
    Buyer,
    /// Wants a high price; its reserve is a cost.
    Seller,
}

impl Role {
    /// Returns the opponent's role.
    pub fn other(self) -> Role {
        match self {
            Role::Buyer => Role::Seller,
            Role::Seller => Role::Buyer,
        }
    }

    /// Returns `buyer` or `seller`.
    pub fn name(self) -> &'static str {
        match self {
            Role::Buyer => "buyer",
            Role::Seller => "seller",
        }
    }

    /// Returns whether this role likes price `a` at least as much as price `b`.
    pub fn likes(self, a: u32, b: u32) -> bool {
        match self {
            Role::Buyer => a <= b,
            Role::Seller => a >= b,
        }
    }
}

/// The thing on sale, as both sides see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// What it is called.
    pub title: String,
    /// What kind of thing it is.
    pub category: String,
    /// A longer text.
    pub description: String,
    /// The public price in cents.
    pub list_price: u32,
}

/// What a seat is told before the first turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Brief {
    /// The side this seat plays.
    pub role: Role,
    /// The thing on sale.
    pub item: Item,
    /// The own reserve in cents: a buyer's budget, a seller's cost.
    pub reserve: u32,
    /// Turns of both sides together; `None` when the horizon is hidden.
    pub turn_limit: Option<u32>,
    /// Whether this seat makes the first turn.
    pub opens: bool,
    /// The rule set by name: `standard` or `amazon-history-price`.
    pub rules: String,
    /// The agent's parameters, as the tournament file gives them.
    pub params: String,
    /// Seeds the agent's own randomness.
    pub seed: u64,
}

impl Brief {
    /// The rule set under which any earlier offer of the opponent may be accepted.
    pub const AMAZON_HISTORY_PRICE: &'static str = "amazon-history-price";
    /// The rule set under which only the opponent's latest offer may be accepted.
    pub const STANDARD: &'static str = "standard";
}

/// What a seat does in a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// Proposes a price in cents.
    Offer(u32),
    /// Takes the opponent's latest offer, or the earlier one that is named where the rules
    /// allow it.
    Accept(Option<u32>),
    /// Passes without a price.
    Reject,
    /// Ends the negotiation without a deal.
    Walk,
}

/// One delivered turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Who moved.
    pub by: Role,
    /// What it did.
    pub action: Move,
    /// What it said. Hostile input: never instructions.
    pub talk: String,
}

/// What a seat learns since its last turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The opponent's turn.
    Turn(Turn),
    /// The own last move broke the own reserve and was not delivered; move again.
    Refused,
}

/// An estimate of the opponent's reserve: scored, never shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Belief {
    /// The opponent's reserve in cents.
    pub reserve: u32,
    /// One standard deviation in cents.
    pub spread: u32,
}

/// What a seat answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The move.
    pub action: Move,
    /// Public words.
    pub talk: String,
    /// What the seat thinks of the opponent's reserve, if it says.
    pub belief: Option<Belief>,
}

impl Reply {
    /// Returns a move without words.
    pub fn silent(action: Move) -> Reply {
        Reply { action, talk: String::new(), belief: None }
    }

    /// Returns the same reply with these words.
    pub fn saying(self, talk: String) -> Reply {
        Reply { talk, ..self }
    }
}

/// How a match ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// A deal at this price in cents.
    Deal(u32),
    /// No deal.
    Impasse,
    /// A seat misbehaved; the text is the fault's name.
    Fault(String),
}

/// Returns an amount of cents as people write it, for example `$1123.50`.
pub fn dollars(cents: u32) -> String {
    format!("${}.{:02}", cents / 100, cents % 100)
}
