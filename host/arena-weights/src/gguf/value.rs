//! Values of a GGUF file's metadata, kept as small as the file has them.
//!
//! Not here: reading them (`gguf::header`), what they mean (`gguf`).

use crate::error::shown;

/// A value.
#[derive(Debug)]
pub(crate) enum Value {
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Bool(bool),
    Text(String),
    Texts(Texts),
    List {
        element: Element,
        /// Elements as they lie in the file.
        bytes: Vec<u8>,
    },
}

impl Value {
    /// Says what it is, for errors.
    pub fn describe(&self) -> String {
        match self {
            Value::Unsigned(number) => number.to_string(),
            Value::Signed(number) => number.to_string(),
            Value::Float(number) => number.to_string(),
            Value::Bool(flag) => flag.to_string(),
            Value::Text(text) => shown(text),
            Value::Texts(texts) => format!("list of {} texts", texts.len()),
            Value::List { element, bytes } => {
                format!("list of {} numbers", bytes.len() as u64 / element.bytes())
            }
        }
    }

    /// Returns a number that is not negative.
    pub fn unsigned(&self) -> Option<u64> {
        match self {
            Value::Unsigned(number) => Some(*number),
            Value::Signed(number) => u64::try_from(*number).ok(),
            _ => None,
        }
    }

    /// Returns the elements of a list of whole numbers.
    pub fn integers(&self) -> Option<impl Iterator<Item = i64>> {
        let Value::List { element, bytes } = self else { return None };
        if matches!(element, Element::F32 | Element::F64 | Element::Bool) {
            return None;
        }
        let size = usize::try_from(element.bytes()).expect("at most eight");
        Some(bytes.chunks_exact(size).map(|bytes| match element.decode(bytes) {
            Some(Value::Unsigned(number)) => i64::try_from(number).unwrap_or(i64::MAX),
            Some(Value::Signed(number)) => number,
            _ => unreachable!("whole numbers decode as such"),
        }))
    }
}

/// Many texts in one piece of memory.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    text: String,
    /// Where each ends. A header is shorter than `u32::MAX`.
    ends: Vec<u32>,
}

impl Texts {
    pub fn push(&mut self, text: &str) {
        self.text.push_str(text);
        self.ends.push(u32::try_from(self.text.len()).expect("a header is shorter"));
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = &str> {
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let text = &self.text[start..end as usize];
            start = end as usize;
            text
        })
    }
}

/// What a list holds, texts aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Element {
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    F32,
    Bool,
    U64,
    I64,
    F64,
}

impl Element {
    /// Source: gguf.md, `enum gguf_metadata_value_type`.
    pub fn of(kind: u32) -> Option<Element> {
        Some(match kind {
            0 => Element::U8,
            1 => Element::I8,
            2 => Element::U16,
            3 => Element::I16,
            4 => Element::U32,
            5 => Element::I32,
            6 => Element::F32,
            7 => Element::Bool,
            10 => Element::U64,
            11 => Element::I64,
            12 => Element::F64,
            _ => return None,
        })
    }

    pub fn bytes(self) -> u64 {
        match self {
            Element::U8 | Element::I8 | Element::Bool => 1,
            Element::U16 | Element::I16 => 2,
            Element::U32 | Element::I32 | Element::F32 => 4,
            Element::U64 | Element::I64 | Element::F64 => 8,
        }
    }

    /// Decodes one element from its bytes; a boolean may be malformed.
    pub fn decode(self, bytes: &[u8]) -> Option<Value> {
        let mut padded = [0; 8];
        padded[..bytes.len()].copy_from_slice(bytes);
        let number = u64::from_le_bytes(padded);
        let unused = 64 - 8 * bytes.len();
        let signed = (number << unused).cast_signed() >> unused;
        Some(match self {
            Element::U8 | Element::U16 | Element::U32 | Element::U64 => Value::Unsigned(number),
            Element::I8 | Element::I16 | Element::I32 | Element::I64 => Value::Signed(signed),
            Element::F32 => {
                let bits = u32::try_from(number).expect("four bytes");
                Value::Float(f64::from(f32::from_bits(bits)))
            }
            Element::F64 => Value::Float(f64::from_bits(number)),
            Element::Bool if number <= 1 => Value::Bool(number == 1),
            Element::Bool => return None,
        })
    }
}
