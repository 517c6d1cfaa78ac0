//! What can be negotiated over: items with the private values of both sides.
//!
//! A catalog comes from a generator or from an importer of text that was read elsewhere. Its
//! identity is the SHA-256 of its borsh bytes, so everything in it is an integer or text.
//!
//! Not here: opening files and folders, and the order in which items are played (`schedule`).

pub mod amazon;
pub mod synthetic;
pub mod uniform;

use std::fmt;

use borsh::{BorshDeserialize, BorshSerialize};
use sha2::{Digest, Sha256};

use crate::config::{CatalogKind, HorizonConfig, OpenerConfig, Split, TournamentConfig};
use crate::price::Price;
use crate::scenario::{Horizon, Item, Role, Scenario};
use crate::seed::{Root, Stream};

/// Most items of one catalog.
pub const ITEMS_MAX: u32 = 100_000;
/// Highest price in a catalog, in cents: twice as much still is a [`Price`].
pub const PRICE_CENTS_MAX: u32 = 1_000_000_000;
/// The share of items in the test part, as a numerator and a denominator.
pub const TEST_SHARE: [u64; 2] = [128, 930];

/// Items with private values, in a fixed order.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Catalog {
    /// Where the items come from, for example `synthetic`.
    pub name: String,
    /// The items. Records refer to them by their place.
    pub entries: Vec<CatalogEntry>,
}

/// One item with what its buyer and its seller privately know.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct CatalogEntry {
    /// What both sides see.
    pub item: Item,
    /// The seller's reserve (C).
    pub cost: Price,
    /// The buyer's reserve (B), or how it is made.
    pub budget: Budget,
}

/// The buyer's reserve of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Budget {
    /// This amount.
    Fixed(Price),
    /// A share of the item's list price that the tournament file gives, or that is drawn per
    /// scenario.
    Factor,
}

impl CatalogEntry {
    /// Returns whether prices and texts are within what a catalog may hold.
    fn is_bounded(&self) -> bool {
        let Item { id, title, category, description, list_price } = &self.item;
        let budget = match self.budget {
            Budget::Fixed(budget) => budget,
            Budget::Factor => Price(0),
        };
        let cheap = |price: &Price| price.cents() <= PRICE_CENTS_MAX;
        id.len() <= Item::ID_BYTES_MAX
            && title.len() <= Item::TITLE_BYTES_MAX
            && category.len() <= Item::CATEGORY_BYTES_MAX
            && description.len() <= Item::DESCRIPTION_BYTES_MAX
            && [*list_price, self.cost, budget].iter().all(cheap)
    }
}

impl Budget {
    /// Returns the budget at a factor in thousandths, rounded up to the cent.
    ///
    /// Rounding up keeps what is feasible feasible: the budget in cents is above a cost in cents
    /// exactly when factor times price is.
    ///
    /// # Panics
    /// If the budget is more than a [`Price`] holds, which factors of up to 2 rule out for
    /// prices of up to [`PRICE_CENTS_MAX`].
    pub fn at_factor(self, list_price: Price, factor_milli: u32) -> Price {
        match self {
            Budget::Fixed(budget) => budget,
            Budget::Factor => {
                let milli_cents = u64::from(list_price.cents()) * u64::from(factor_milli);
                let cents = u32::try_from(milli_cents.div_ceil(1_000));
                Price(cents.expect("catalog prices and factors are bounded"))
            }
        }
    }
}

/// A catalog that cannot be read or selected from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CatalogError {
    /// More files than a folder may have.
    TooManyFiles {
        /// How many were given.
        found: usize,
        /// The limit.
        max: usize,
    },
    /// A file's name cannot be the first part of an item's id.
    FileName {
        /// The name.
        file: String,
    },
    /// A file was given twice.
    DuplicateFile {
        /// The name.
        file: String,
    },
    /// A file is too large to be read.
    FileTooLarge {
        /// The file.
        file: String,
        /// Its size in bytes.
        bytes: usize,
        /// The limit in bytes.
        max: usize,
    },
    /// A file is not a JSON array of objects.
    Json {
        /// The file.
        file: String,
        /// Where, from 1.
        line: usize,
        /// Where, from 1.
        column: usize,
        /// What the JSON reader says.
        detail: String,
    },
    /// A field of an item is missing or wrong.
    Field {
        /// The file.
        file: String,
        /// The item's place in the file, from 0.
        index: usize,
        /// The field.
        field: String,
        /// What is wrong.
        detail: String,
    },
    /// More items than [`ITEMS_MAX`].
    TooManyItems {
        /// The file with which there are too many.
        file: String,
    },
    /// Bytes that are not a catalog.
    Encoding {
        /// What is wrong with them.
        detail: String,
    },
    /// There is no item, at all or in the chosen part.
    Empty,
    /// A sample is larger than what it is drawn from.
    SampleTooLarge {
        /// The sample's size.
        sample: u32,
        /// How many items there are.
        available: usize,
    },
}

impl fmt::Display for CatalogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CatalogError::TooManyFiles { found, max } => {
                write!(f, "`{found}` files, a catalog has at most `{max}`")
            }
            CatalogError::FileName { file } => write!(
                f,
                "`{}` cannot name items: a catalog file is letters, digits, `-`, `_` and `.json`",
                file.escape_debug()
            ),
            CatalogError::DuplicateFile { file } => write!(f, "`{file}` is there twice"),
            CatalogError::FileTooLarge { file, bytes, max } => {
                write!(f, "`{file}` has `{bytes}` bytes, at most `{max}` are read")
            }
            CatalogError::Json { file, line, column, detail } => {
                write!(f, "`{file}`, line {line}, column {column}: {detail}")
            }
            CatalogError::Field { file, index, field, detail } => {
                write!(f, "`{file}`, item {index}, field `{}`: {detail}", field.escape_debug())
            }
            CatalogError::TooManyItems { file } => {
                write!(f, "`{file}` brings the catalog to more than `{ITEMS_MAX}` items")
            }
            CatalogError::Encoding { detail } => write!(f, "not a catalog: {detail}"),
            CatalogError::Empty => write!(f, "there is no item to play"),
            CatalogError::SampleTooLarge { sample, available } => {
                write!(f, "a sample of `{sample}` items cannot be drawn from `{available}`")
            }
        }
    }
}

impl std::error::Error for CatalogError {}

impl Catalog {
    /// Returns the catalog's identity: SHA-256 of its borsh bytes.
    pub fn sha256(&self) -> [u8; 32] {
        let mut hash = HashWriter(Sha256::new());
        self.serialize(&mut hash).expect("hashing cannot fail");
        hash.0.finalize().into()
    }

    /// Returns the catalog's canonical bytes, whose SHA-256 is its identity.
    pub fn encode(&self) -> Vec<u8> {
        borsh::to_vec(self).expect("writing to memory cannot fail")
    }

    /// Reads a catalog's canonical bytes.
    ///
    /// # Errors
    /// Bytes that are no catalog, or one with a value beyond its bound.
    pub fn decode(bytes: &[u8]) -> Result<Catalog, CatalogError> {
        let undecodable = |detail: String| CatalogError::Encoding { detail };
        // Before any is read: small items take several times their bytes in memory.
        let counted = count_items(bytes).map_err(|error| undecodable(error.to_string()))?;
        if counted > ITEMS_MAX {
            return Err(undecodable(format!("more than `{ITEMS_MAX}` items")));
        }
        let catalog =
            Catalog::try_from_slice(bytes).map_err(|error| undecodable(error.to_string()))?;
        if catalog.encode() != bytes {
            return Err(undecodable("not in canonical form".to_owned()));
        }
        match catalog.entries.iter().position(|entry| !entry.is_bounded()) {
            Some(place) => Err(undecodable(format!("item {place} is beyond the bounds of items"))),
            None => Ok(catalog),
        }
    }

    /// Returns the part of the catalog that is played, in the catalog's order.
    ///
    /// An item is of the test part if the first eight bytes of SHA-256 of `arena/split/v1`, a
    /// zero byte and its id, as a big-endian number, are below 2^64 x 128/930; else it is of
    /// the training part. A sample is [`Stream::sample`] of the stream `sample` at no address.
    ///
    /// # Errors
    /// Nothing is left, or the sample is larger than what is left.
    pub fn select(
        &self,
        split: Split,
        sample: Option<u32>,
        root: Root,
    ) -> Result<Catalog, CatalogError> {
        let mut entries: Vec<&CatalogEntry> =
            self.entries.iter().filter(|entry| split_has(split, &entry.item.id)).collect();
        if let Some(sample) = sample {
            let available = entries.len();
            let bound = u32::try_from(available).expect("catalogs are bounded");
            if sample > bound {
                return Err(CatalogError::SampleTooLarge { sample, available });
            }
            let drawn = Stream::derive(root, "sample", &[]).sample(bound, sample);
            entries = drawn.into_iter().map(|place| entries[place as usize]).collect();
        }
        if entries.is_empty() {
            return Err(CatalogError::Empty);
        }
        let entries = entries.into_iter().cloned().collect();
        Ok(Catalog { name: self.name.clone(), entries })
    }
}

/// Returns whether an item is of the test part. See [`Catalog::select`].
pub fn is_test_item(id: &str) -> bool {
    let mut hash = Sha256::new();
    hash.update(b"arena/split/v1\0");
    hash.update(id.as_bytes());
    let digest: [u8; 32] = hash.finalize().into();
    let (head, _) = digest.split_first_chunk::<8>().expect("a digest has 32 bytes");
    let threshold = (u128::from(TEST_SHARE[0]) << 64) / u128::from(TEST_SHARE[1]);
    u128::from(u64::from_be_bytes(*head)) < threshold
}

fn split_has(split: Split, id: &str) -> bool {
    match split {
        Split::All => true,
        Split::Train => !is_test_item(id),
        Split::Test => is_test_item(id),
    }
}

/// Draws what is negotiated in one repetition on one item. All pairings of it share the
/// scenario, and so do all repetitions of a group.
///
/// The draws come from the stream `scenario` at the item's index and the group's number, which is
/// the repetition without `scenario_group`, and only what the file leaves open is drawn, in this
/// order: the budget factor, uniformly in thousandths; the opener, buyer if `below(2)` is 0; the
/// hidden horizon, one `below(mean_turns)` after each turn, which ends the match if it is 0.
///
/// # Panics
/// If the catalog has no such item, or it needs a budget factor that the file does not give.
pub fn draw_scenario(
    config: &TournamentConfig,
    catalog: &Catalog,
    root: Root,
    item_index: u32,
    repetition: u32,
) -> Scenario {
    let entry = &catalog.entries[item_index as usize];
    let address = [u64::from(item_index), u64::from(repetition / config.scenario_group)];
    let mut stream = Stream::derive(root, "scenario", &address);
    let budget = match entry.budget {
        Budget::Fixed(budget) => budget,
        Budget::Factor => {
            let factor_milli = draw_factor(&config.catalog.kind, &mut stream);
            entry.budget.at_factor(entry.item.list_price, factor_milli)
        }
    };
    let opener = match config.rules.opener {
        OpenerConfig::Buyer => Role::Buyer,
        OpenerConfig::Seller => Role::Seller,
        OpenerConfig::Drawn => Role::BOTH[usize::from(stream.below(2) == 1)],
    };
    let horizon = draw_horizon(config.rules.horizon, &mut stream);
    Scenario { item: entry.item.clone(), budget, cost: entry.cost, opener, horizon }
}

fn draw_factor(kind: &CatalogKind, stream: &mut Stream) -> u32 {
    let CatalogKind::AmazonHistoryPrice { budget_factor_milli: [low, high], .. } = kind else {
        panic!("a catalog with budget factors comes with a file that gives them");
    };
    if low == high {
        return *low;
    }
    let drawn = stream.between(u64::from(*low), u64::from(*high));
    u32::try_from(drawn).expect("between two numbers of 32 bits")
}

fn draw_horizon(config: HorizonConfig, stream: &mut Stream) -> Horizon {
    match config {
        HorizonConfig::Fixed { turns } => Horizon { turn_limit: turns, hidden: false },
        HorizonConfig::Geometric { mean_turns, max_turns } => {
            let ends = |_: &u32| stream.below(u64::from(mean_turns)) == 0;
            let turn_limit = (1..max_turns).find(ends).unwrap_or(max_turns);
            Horizon { turn_limit, hidden: true }
        }
    }
}

/// Returns how many items a catalog's bytes say that they hold.
fn count_items(mut bytes: &[u8]) -> borsh::io::Result<u32> {
    String::deserialize(&mut bytes)?;
    u32::deserialize(&mut bytes)
}

/// Hashes what is written to it.
struct HashWriter(Sha256);

impl borsh::io::Write for HashWriter {
    fn write(&mut self, bytes: &[u8]) -> borsh::io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> borsh::io::Result<()> {
        Ok(())
    }
}
