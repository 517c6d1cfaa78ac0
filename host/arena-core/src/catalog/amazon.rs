//! The AmazonHistoryPrice folder: JSON text becomes a catalog.
//!
//! Each file is an array of objects whose fields are all strings. With the shown price
//! P = max(`list_price`, `highest_price`), the cost is C = `lowest_price` and the budget a
//! factor times P, as in the dataset's own code (arXiv 2402.15813), here rounded up to the
//! cent so that feasible products stay feasible. At factor 0.8, the 930 published products are
//! 886 with B > C and 44 with B < C.
//!
//! Files are taken in the order of their names, whatever order they come in. Nothing is
//! guessed: a row that cannot be read is an error that names its file, place and field.
//!
//! Not here: reading the folder, and the factor (the tournament file's).

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value;

use crate::catalog::{Budget, Catalog, CatalogEntry, CatalogError, ITEMS_MAX, PRICE_CENTS_MAX};
use crate::price::Price;
use crate::scenario::Item;

/// Most files of a folder.
pub const FILES_MAX: usize = 1_000;
/// Largest file in bytes.
pub const FILE_BYTES_MAX: usize = 16 << 20;
/// Longest file name in bytes, with `.json`.
pub const FILE_NAME_BYTES_MAX: usize = 64;
/// A description of fewer characters is replaced by the features.
pub const DESCRIPTION_CHARS_MIN: usize = 5;

/// Reads the files of a folder: name and text of each.
///
/// An item's id is the file's name without `.json`, a slash, and its place in the file.
/// Control characters in texts become spaces (line ends in descriptions stay), and texts are
/// cut at the limits of [`Item`].
///
/// # Errors
/// A file or one of its rows cannot be read, titles repeat, or there is too much or nothing.
pub fn import(files: &[(String, String)]) -> Result<Catalog, CatalogError> {
    if files.len() > FILES_MAX {
        return Err(CatalogError::TooManyFiles { found: files.len(), max: FILES_MAX });
    }
    let mut by_name = BTreeMap::new();
    for (file, json) in files {
        if by_name.insert(file.as_str(), json.as_str()).is_some() {
            return Err(CatalogError::DuplicateFile { file: file.clone() });
        }
    }
    let mut entries = Vec::new();
    let mut titles = BTreeMap::new();
    for (file, json) in by_name {
        for (index, row) in read_file(file, json)?.into_iter().enumerate() {
            if entries.len() >= ITEMS_MAX as usize {
                return Err(CatalogError::TooManyItems { file: file.to_owned() });
            }
            let fields = Fields { file, index, values: &row.0 };
            let entry = fields.entry()?;
            // The whole title counts: two long ones may be equal up to where they are cut.
            let title = fields.filled("title")?.to_owned();
            if let Some(earlier) = titles.insert(title, entry.item.id.clone()) {
                let detail = format!("is also the title of `{earlier}`");
                return Err(field_error(file, index, "title", detail));
            }
            entries.push(entry);
        }
    }
    if entries.is_empty() {
        return Err(CatalogError::Empty);
    }
    Ok(Catalog { name: "amazon-history-price".to_owned(), entries })
}

fn read_file(file: &str, json: &str) -> Result<Vec<Row>, CatalogError> {
    let named = file.strip_suffix(".json").is_some_and(|stem| {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        !stem.is_empty() && stem.bytes().all(allowed)
    });
    if !named || file.len() > FILE_NAME_BYTES_MAX {
        return Err(CatalogError::FileName { file: file.to_owned() });
    }
    if json.len() > FILE_BYTES_MAX {
        let (bytes, max) = (json.len(), FILE_BYTES_MAX);
        return Err(CatalogError::FileTooLarge { file: file.to_owned(), bytes, max });
    }
    serde_json::from_str(json).map_err(|error| {
        let text = error.to_string();
        let place = format!(" at line {} column {}", error.line(), error.column());
        CatalogError::Json {
            file: file.to_owned(),
            line: error.line(),
            column: error.column(),
            detail: text.strip_suffix(&place).unwrap_or(&text).to_owned(),
        }
    })
}

fn field_error(file: &str, index: usize, field: &str, detail: String) -> CatalogError {
    CatalogError::Field { file: file.to_owned(), index, field: field.to_owned(), detail }
}

/// The fields of one row, and where it stands.
struct Fields<'a> {
    file: &'a str,
    index: usize,
    values: &'a BTreeMap<String, Vec<Value>>,
}

impl Fields<'_> {
    fn entry(&self) -> Result<CatalogEntry, CatalogError> {
        // Every field is checked, also those that are not used: a row that breaks the format
        // somewhere cannot be trusted elsewhere.
        for field in self.values.keys() {
            self.text(field)?;
        }
        let list_price = self.price("list_price")?.max(self.price("highest_price")?);
        let cost = self.price("lowest_price")?;
        if cost > list_price {
            let detail = format!("`{cost}` is above the shown price `{list_price}`");
            return Err(field_error(self.file, self.index, "lowest_price", detail));
        }
        let stem = self.file.trim_end_matches(".json");
        let item = Item {
            id: format!("{stem}/{}", self.index),
            title: clean(self.filled("title")?, Item::TITLE_BYTES_MAX, false),
            category: clean(self.filled("category")?, Item::CATEGORY_BYTES_MAX, false),
            description: clean(self.description()?, Item::DESCRIPTION_BYTES_MAX, true),
            list_price,
        };
        Ok(CatalogEntry { item, cost, budget: Budget::Factor })
    }

    /// Returns the description, or the features where it is too short to say anything.
    fn description(&self) -> Result<&str, CatalogError> {
        let description = self.text("description")?.unwrap_or("");
        if description.chars().count() >= DESCRIPTION_CHARS_MIN {
            return Ok(description);
        }
        Ok(self.text("features")?.unwrap_or(description))
    }

    fn price(&self, field: &str) -> Result<Price, CatalogError> {
        let error = |detail| field_error(self.file, self.index, field, detail);
        let price = Price::parse(self.filled(field)?).map_err(|cause| error(cause.to_string()))?;
        match price.cents() {
            0 => Err(error(format!("`{price}` is not a positive price"))),
            1..=PRICE_CENTS_MAX => Ok(price),
            _ => Err(error(format!("`{price}` is above `{}`", Price(PRICE_CENTS_MAX)))),
        }
    }

    fn filled(&self, field: &str) -> Result<&str, CatalogError> {
        match self.text(field)? {
            None => Err(field_error(self.file, self.index, field, "is missing".to_owned())),
            Some(text) if text.trim().is_empty() => {
                Err(field_error(self.file, self.index, field, "is empty".to_owned()))
            }
            Some(text) => Ok(text),
        }
    }

    fn text(&self, field: &str) -> Result<Option<&str>, CatalogError> {
        let error = |detail: &str| field_error(self.file, self.index, field, detail.to_owned());
        match self.values.get(field).map(Vec::as_slice) {
            None => Ok(None),
            Some([Value::String(text)]) => Ok(Some(text)),
            Some([_]) => Err(error("is not a string")),
            Some(_) => Err(error("is there twice")),
        }
    }
}

/// Returns a text without control characters, cut at a character's border.
fn clean(text: &str, bytes_max: usize, keep_line_ends: bool) -> String {
    let cut = &text[..text.floor_char_boundary(bytes_max)];
    let visible = |character: char| match character {
        '\n' if keep_line_ends => '\n',
        control if control.is_control() => ' ',
        other => other,
    };
    // A control character of two bytes becomes a space of one, so the limit still holds.
    cut.chars().map(visible).collect()
}

/// One object of a file, with every value of every field.
struct Row(BTreeMap<String, Vec<Value>>);

impl<'de> Deserialize<'de> for Row {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Row, D::Error> {
        deserializer.deserialize_map(RowVisitor)
    }
}

struct RowVisitor;

impl<'de> Visitor<'de> for RowVisitor {
    type Value = Row;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Row, A::Error> {
        let mut values: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        while let Some((field, value)) = map.next_entry()? {
            values.entry(field).or_default().push(value);
        }
        Ok(Row(values))
    }
}
