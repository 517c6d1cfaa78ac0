//! A tournament of native seats that play all of their turns without thinking.

use std::hint::black_box;

use arena_core::announcement::{AgentEntry, Announcement};
use arena_core::catalog::{self, Catalog, uniform};
use arena_core::config::TournamentConfig;
use arena_core::draws::Draws;
use arena_core::entry::AnnouncementEntry;
use arena_core::fault::SeatError;
use arena_core::price::Price;
use arena_core::record::MatchRecord;
use arena_core::referee;
use arena_core::rules::Rules;
use arena_core::scenario::{Brief, Role};
use arena_core::schedule::{self, Schedule};
use arena_core::seat::{Seat, Usage};
use arena_core::seed::Root;
use arena_core::turn::{End, Event, Move, Reply};
use arena_log::hash::Hash;
use arena_log::key::SigningKey;

/// Items, each of which is one pair of matches.
const ITEMS: u32 = 20_000;
/// Turns of every match.
const TURNS: u32 = 20;
/// The public seed.
const SEED: u64 = 1;
/// What everything is drawn from.
pub const ROOT: Root = Root::Seed(SEED);
/// Where the log is, in name.
pub const ORIGIN: &str = "arena.example/bench";

/// Offers a little more each turn and never accepts, so that every match has all its turns.
pub struct Walker {
    role: Role,
    reserve: u32,
    acts: u32,
    usage: Usage,
}

impl Seat for Walker {
    fn begin(&mut self, brief: &Brief) -> Result<(), SeatError> {
        self.reserve = brief.reserve.cents();
        Ok(())
    }

    fn act(&mut self, news: &[Event]) -> Result<Reply, SeatError> {
        black_box(news);
        self.acts += 1;
        self.usage.fuel_per_act.push(12_345);
        let distance = 20 - self.acts;
        let price = match self.role {
            Role::Buyer => self.reserve - distance,
            Role::Seller => self.reserve + distance,
        };
        let talk = "I can do a little better.".to_owned();
        Ok(Reply { action: Move::Offer(Price(price)), talk, belief: None })
    }

    fn finish(&mut self, _end: &End) {}

    fn take_usage(&mut self) -> Usage {
        std::mem::take(&mut self.usage)
    }
}

/// Seats a walker.
pub fn walker(role: Role) -> Walker {
    Walker { role, reserve: 0, acts: 0, usage: Usage::default() }
}

/// Everything that a run needs but for its seats.
pub struct Tournament {
    pub config: TournamentConfig,
    pub catalog: Catalog,
    pub rules: Rules,
    pub schedule: Schedule,
    pub announcement: Announcement,
    pub opening: AnnouncementEntry,
    pub key: SigningKey,
}

impl Tournament {
    pub fn new(checkpoint_every: u32) -> Tournament {
        let text = format!(
            "name = \"bench\"\nseed = {SEED}\nrules.horizon.turns = {TURNS}\n\
             catalog = {{ kind = \"uniform\", items = {ITEMS}, low = \"10\", high = \"110\" }}\n\
             [[agents]]\nname = \"a\"\ncomponent = \"a.wasm\"\n\
             [[agents]]\nname = \"b\"\ncomponent = \"b.wasm\"\n"
        );
        let config = TournamentConfig::parse(&text).expect("the file is well formed");
        let catalog = uniform::generate(ITEMS, Price(1_000), Price(11_000), ROOT);
        let schedule = Schedule::new(&config, ITEMS).expect("there are pairs");
        let agent = |name: &str| AgentEntry {
            name: name.to_owned(),
            component_sha256: [0; 32],
            params: String::new(),
            submission: None,
        };
        let announcement = Announcement {
            name: config.name.clone(),
            config_toml: text,
            draws: Draws::PublicSeed(SEED),
            engine: String::new(),
            models: Vec::new(),
            agents: vec![agent("a"), agent("b")],
            catalog_sha256: catalog.sha256(),
            item_count: ITEMS,
            pair_count: schedule.pair_count(),
            checkpoint_every,
        };
        let key = SigningKey::from_seed([1; 32]);
        let opening = AnnouncementEntry {
            origin: ORIGIN.to_owned(),
            log_key: key.public().to_bytes(),
            announcement_sha256: Hash::of(&announcement.encode()).0,
        };
        let rules = Rules::new(&config.rules, &config.limits);
        Tournament { config, catalog, rules, schedule, announcement, opening, key }
    }

    /// Plays the first pairs of the schedule and returns the records of both legs of each.
    pub fn records(&self, pair_count: u64) -> Vec<MatchRecord> {
        let legs = (0..pair_count).flat_map(|index| [(index, 0), (index, 1)]);
        legs.map(|(index, leg)| self.record(index, leg)).collect()
    }

    fn record(&self, pair_index: u64, leg: u8) -> MatchRecord {
        let plan = self.schedule.pair(pair_index);
        let (item, repetition) = (plan.item_index, plan.repetition);
        let scenario = catalog::draw_scenario(&self.config, &self.catalog, ROOT, item, repetition);
        let seeds = schedule::seat_seeds(ROOT, pair_index)[usize::from(leg)];
        let mut seats = Role::BOTH.map(walker);
        let [buyer, seller] = &mut seats;
        let played = referee::play(&self.rules, &scenario, ["", ""], seeds, [buyer, seller]);
        let played = played.expect("native seats need no host");
        assert_eq!(played.turns.len(), TURNS as usize, "every turn is played");
        played.into_record(&plan, leg, &scenario, seeds)
    }
}
