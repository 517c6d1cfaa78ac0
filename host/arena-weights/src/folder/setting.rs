//! A small JSON value out of a file that may be large.
//!
//! A list in JSON takes two bytes an item, and sixteen times that once it is read. So a setting
//! is read with a budget.

use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// The most values in a setting. The largest that is understood has some twenty.
pub const VALUES_MAX: usize = 1000;

/// A value that has at most [`VALUES_MAX`] values in it; absent is `null`.
#[derive(Debug, Default)]
pub(crate) struct Setting(pub Value);

impl<'de> Deserialize<'de> for Setting {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Setting, D::Error> {
        let mut left = VALUES_MAX;
        Budget { left: &mut left }.deserialize(deserializer).map(Setting)
    }
}

/// How many values may still come.
struct Budget<'a> {
    left: &'a mut usize,
}

impl<'de> DeserializeSeed<'de> for Budget<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        let Some(left) = self.left.checked_sub(1) else {
            return Err(D::Error::custom(format!("a setting of more than {VALUES_MAX} values")));
        };
        *self.left = left;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Budget<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a setting")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut seq: S) -> Result<Value, S::Error> {
        let mut values = Vec::new();
        while let Some(value) = seq.next_element_seed(Budget { left: &mut *self.left })? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Value, M::Error> {
        let mut values = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            values.insert(key, map.next_value_seed(Budget { left: &mut *self.left })?);
        }
        Ok(Value::Object(values))
    }
}
