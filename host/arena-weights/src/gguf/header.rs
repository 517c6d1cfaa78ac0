//! Reads the header of a GGUF file: version 3, little-endian.
//!
//! Source: ggml, `docs/gguf.md`. Every count and length is checked against a named maximum and
//! against the bytes that are left before anything is allocated for it, so a header takes no
//! more memory than a small multiple of its bytes, which are at most [`HEADER_BYTES_MAX`].
//!
//! Not here: what keys and tensors mean (`gguf`).

use std::collections::BTreeMap;

use arena_kernels::format::Format;

use crate::error::{WeightsError, shown};
use crate::files::ModelFile;
use crate::gguf::value::{Element, Texts, Value};

/// The most bytes before the tensors' data. Large vocabularies take some ten mebibytes.
pub const HEADER_BYTES_MAX: u64 = 64 << 20;
/// The most keys.
pub const KEYS_MAX: u64 = 4096;
/// The most tensors.
pub const TENSORS_MAX: u64 = 65_536;
/// The longest key, as the format says.
pub const KEY_BYTES_MAX: u64 = 65_535;
/// The longest text, such as a chat template.
pub const TEXT_BYTES_MAX: u64 = 1 << 20;
/// The longest name of a tensor, as the format says.
pub const NAME_BYTES_MAX: u64 = 64;
/// The most dimensions of a tensor, as the format says.
pub const DIMENSIONS_MAX: u32 = 4;
/// The largest alignment of tensors.
pub const ALIGNMENT_MAX: u64 = 1 << 20;

/// Alignment where `general.alignment` does not say another.
const ALIGNMENT: u64 = 32;
/// Bytes that are read from the file at a time.
const CHUNK_BYTES: u64 = 64 << 10;
/// The one version that is read.
const VERSION: u32 = 3;

/// A header. Tensors are inside the file, whole blocks, and do not overlap.
#[derive(Debug)]
pub(crate) struct Header {
    pub metadata: BTreeMap<String, Value>,
    pub tensors: BTreeMap<String, StoredTensor>,
}

/// Where a tensor lies.
#[derive(Clone, Debug)]
pub(crate) struct StoredTensor {
    pub format: Format,
    /// Outermost first, the other way round than in the file.
    pub shape: Vec<usize>,
    /// From the start of the file.
    pub offset: u64,
    pub len: u64,
}

/// Reads and checks the header of a file.
pub(crate) fn read(file: &ModelFile) -> Result<Header, WeightsError> {
    let mut cursor = Cursor::new(file);
    let (tensor_count, key_count) = cursor.preamble()?;
    let mut metadata = BTreeMap::new();
    for index in 0..key_count {
        cursor.place = format!("key {index}");
        let key = cursor.text(KEY_BYTES_MAX)?;
        cursor.place = format!("key `{}`", shown(&key));
        let value = cursor.value()?;
        if metadata.insert(key, value).is_some() {
            return Err(cursor.malformed("is there twice"));
        }
    }
    let alignment = alignment(&metadata, file)?;
    let mut announced = Vec::new();
    for index in 0..tensor_count {
        cursor.place = format!("tensor {index}");
        announced.push(cursor.tensor()?);
    }
    let data = cursor.at.next_multiple_of(alignment);
    let tensors = place(file, announced, data, alignment)?;
    Ok(Header { metadata, tensors })
}

/// What the header says of a tensor.
struct Announced {
    name: String,
    format: Format,
    shape: Vec<usize>,
    /// From the start of the data.
    offset: u64,
    len: u64,
}

fn alignment(metadata: &BTreeMap<String, Value>, file: &ModelFile) -> Result<u64, WeightsError> {
    let alignment = match metadata.get("general.alignment") {
        None => ALIGNMENT,
        Some(Value::Unsigned(alignment)) => *alignment,
        Some(_) => 0,
    };
    if !alignment.is_power_of_two() || alignment > ALIGNMENT_MAX {
        let detail = format!("is not a power of two from 1 to {ALIGNMENT_MAX}");
        return Err(WeightsError::malformed(&file.path, "key `general.alignment`", detail));
    }
    Ok(alignment)
}

/// Checks where the tensors lie.
fn place(
    file: &ModelFile,
    mut announced: Vec<Announced>,
    data: u64,
    alignment: u64,
) -> Result<BTreeMap<String, StoredTensor>, WeightsError> {
    announced.sort_by_key(|tensor| tensor.offset);
    let mut tensors = BTreeMap::new();
    let mut before: Option<(u64, String)> = None;
    for Announced { name, format, shape, offset, len } in announced {
        let malformed =
            |detail| WeightsError::malformed(&file.path, format!("tensor `{name}`"), detail);
        if !offset.is_multiple_of(alignment) {
            return Err(malformed(format!("offset {offset} is not a multiple of {alignment}")));
        }
        let left = file.size.saturating_sub(data).saturating_sub(offset);
        if len > left {
            return Err(file.truncated(&format!("tensor `{name}` at {offset}"), len, left));
        }
        if let Some((end, other)) = &before
            && offset < *end
        {
            return Err(malformed(format!("overlaps tensor `{other}`")));
        }
        before = Some((offset + len, name.clone()));
        let offset = data + offset;
        let stored = StoredTensor { format, shape, offset, len };
        if tensors.insert(name.clone(), stored).is_some() {
            let detail = "is there twice";
            return Err(WeightsError::malformed(&file.path, format!("tensor `{name}`"), detail));
        }
    }
    Ok(tensors)
}

/// Reads on from a place in the file, no further than a header may reach.
struct Cursor<'a> {
    file: &'a ModelFile,
    /// Bytes of the file from `start`.
    chunk: Vec<u8>,
    start: u64,
    at: u64,
    limit: u64,
    /// What is being read, for errors.
    place: String,
}

impl Cursor<'_> {
    fn new(file: &ModelFile) -> Cursor<'_> {
        let limit = file.size.min(HEADER_BYTES_MAX);
        Cursor { file, chunk: Vec::new(), start: 0, at: 0, limit, place: "header".into() }
    }

    /// Reads magic, version and counts: `(tensors, keys)`.
    fn preamble(&mut self) -> Result<(u64, u64), WeightsError> {
        let path = &self.file.path;
        if self.array()? != *b"GGUF" {
            return Err(WeightsError::malformed(path, "header", "does not start with `GGUF`"));
        }
        let version = u32::from_le_bytes(self.array()?);
        if version != VERSION {
            let swapped = version.swap_bytes();
            let value = match swapped {
                1..=VERSION => format!("version {swapped}, big-endian"),
                _ => format!("version {version}"),
            };
            return Err(WeightsError::unsupported(path, "GGUF", value));
        }
        let tensors = self.count("number of tensors", TENSORS_MAX)?;
        let keys = self.count("number of keys", KEYS_MAX)?;
        Ok((tensors, keys))
    }

    fn tensor(&mut self) -> Result<Announced, WeightsError> {
        let name = self.text(NAME_BYTES_MAX)?;
        self.place = format!("tensor `{}`", shown(&name));
        let dimensions = u32::from_le_bytes(self.array()?);
        if dimensions == 0 || dimensions > DIMENSIONS_MAX {
            return Err(self.malformed(format!("has {dimensions} dimensions")));
        }
        let mut shape = Vec::new();
        for _ in 0..dimensions {
            let size = u64::from_le_bytes(self.array()?);
            let size = usize::try_from(size).ok().filter(|&size| size > 0);
            shape.insert(0, size.ok_or_else(|| self.malformed("has a dimension out of range"))?);
        }
        let format = self.format()?;
        let offset = u64::from_le_bytes(self.array()?);
        let len = self.byte_count(format, &shape)?;
        Ok(Announced { name, format, shape, offset, len })
    }

    fn byte_count(&self, format: Format, shape: &[usize]) -> Result<u64, WeightsError> {
        let (columns, outer) = shape.split_last().expect("a tensor has a dimension");
        if !columns.is_multiple_of(format.block_len()) {
            let detail = format!("rows of {columns} are no whole {} blocks", format.name());
            return Err(self.malformed(detail));
        }
        let row = format.row_bytes(*columns);
        let len = outer.iter().try_fold(row, |len, &size| Some(len?.checked_mul(size)));
        let len = len.flatten();
        // No tensor is longer than its file, so its weights can be counted, too.
        let elements = shape.iter().try_fold(1usize, |count, &size| count.checked_mul(size));
        match (len, elements) {
            (Some(len), Some(_)) => Ok(len as u64),
            _ => Err(self.malformed(format!("shape {shape:?} is larger than any file"))),
        }
    }

    /// Source: ggml.h, `enum ggml_type`.
    fn format(&mut self) -> Result<Format, WeightsError> {
        let value = match u32::from_le_bytes(self.array()?) {
            0 => return Ok(Format::F32),
            1 => return Ok(Format::F16),
            2 => return Ok(Format::Q4_0),
            3 => return Ok(Format::Q4_1),
            8 => return Ok(Format::Q8_0),
            12 => return Ok(Format::Q4K),
            14 => return Ok(Format::Q6K),
            30 => return Ok(Format::Bf16),
            6 => "Q5_0".into(),
            7 => "Q5_1".into(),
            9 => "Q8_1".into(),
            10 => "Q2_K".into(),
            11 => "Q3_K".into(),
            13 => "Q5_K".into(),
            15 => "Q8_K".into(),
            28 => "F64".into(),
            39 => "MXFP4".into(),
            other => format!("type {other}"),
        };
        Err(WeightsError::unsupported(&self.file.path, self.place.clone(), value))
    }

    fn value(&mut self) -> Result<Value, WeightsError> {
        let kind = u32::from_le_bytes(self.array()?);
        match kind {
            8 => Ok(Value::Text(self.text(TEXT_BYTES_MAX)?)),
            9 => self.list(),
            _ => {
                let element = self.element(kind)?;
                let bytes = self.take(element.bytes())?;
                let value = element.decode(bytes);
                value.ok_or_else(|| self.malformed("is neither true nor false"))
            }
        }
    }

    fn list(&mut self) -> Result<Value, WeightsError> {
        let kind = u32::from_le_bytes(self.array()?);
        let count = u64::from_le_bytes(self.array()?);
        let left = self.limit - self.at;
        if kind == 8 {
            // Every text has a length of eight bytes before it.
            self.affordable(count, 8, left)?;
            let mut texts = Texts::default();
            for _ in 0..count {
                let text = self.text(TEXT_BYTES_MAX)?;
                texts.push(&text);
            }
            return Ok(Value::Texts(texts));
        }
        let element = self.element(kind)?;
        let len = self.affordable(count, element.bytes(), left)?;
        let bytes = self.take(len)?.to_vec();
        Ok(Value::List { element, bytes })
    }

    /// Returns the bytes that so many items take at least, if they are there.
    fn affordable(&self, count: u64, each: u64, left: u64) -> Result<u64, WeightsError> {
        let needed = count.saturating_mul(each);
        if needed > left {
            return Err(self.out_of_bytes(needed, left));
        }
        Ok(needed)
    }

    fn element(&self, kind: u32) -> Result<Element, WeightsError> {
        Element::of(kind).ok_or_else(|| {
            let value = if kind == 9 { "list of lists".into() } else { format!("type {kind}") };
            WeightsError::unsupported(&self.file.path, self.place.clone(), value)
        })
    }

    fn count(&mut self, what: &str, most: u64) -> Result<u64, WeightsError> {
        let value = u64::from_le_bytes(self.array()?);
        self.within(what, value, most)
    }

    fn within(&self, what: &str, value: u64, most: u64) -> Result<u64, WeightsError> {
        if value > most {
            let (path, place) = (self.file.path.clone(), format!("{}: {what}", self.place));
            return Err(WeightsError::Limit { path, place, value, most });
        }
        Ok(value)
    }

    fn text(&mut self, most: u64) -> Result<String, WeightsError> {
        let len = self.count("length of a text", most)?;
        let bytes = self.take(len)?;
        match str::from_utf8(bytes) {
            Ok(text) => Ok(text.into()),
            Err(_) => Err(self.malformed("is not UTF-8")),
        }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], WeightsError> {
        let bytes = self.take(N as u64)?;
        Ok(bytes.try_into().expect("as many bytes as were asked for"))
    }

    /// Returns the next bytes.
    fn take(&mut self, len: u64) -> Result<&[u8], WeightsError> {
        let left = self.limit - self.at;
        if len > left {
            return Err(self.out_of_bytes(len, left));
        }
        if self.at + len > self.start + self.chunk.len() as u64 {
            let size = len.max(CHUNK_BYTES).min(left);
            self.chunk = self.file.read(self.at, size, &self.place)?;
            self.start = self.at;
        }
        let from = usize::try_from(self.at - self.start).expect("inside the chunk");
        self.at += len;
        Ok(&self.chunk[from..from + usize::try_from(len).expect("inside the chunk")])
    }

    fn out_of_bytes(&self, needed: u64, left: u64) -> WeightsError {
        if self.limit < self.file.size {
            let (path, value) = (self.file.path.clone(), self.at.saturating_add(needed));
            let place = format!("{}: end in the header", self.place);
            return WeightsError::Limit { path, place, value, most: HEADER_BYTES_MAX };
        }
        self.file.truncated(&self.place, needed, left)
    }

    fn malformed(&self, detail: impl Into<String>) -> WeightsError {
        WeightsError::malformed(&self.file.path, self.place.clone(), detail)
    }
}
