//! Reads safetensors files: a header, or all of a small file.
//!
//! Source: huggingface/safetensors, README, "Format": eight bytes of length, a JSON object of
//! dtype, shape and place by name, then the bytes of all tensors.
//!
//! Not here: which tensors a model needs (`folder`), an adapter's (`adapter`).

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use arena_kernels::format::Format;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};

use crate::error::{WeightsError, shown};
use crate::files::ModelFile;
use crate::tensor::Tensor;

/// The longest header.
pub const HEADER_BYTES_MAX: u64 = 16 << 20;
/// The most dimensions of a tensor.
pub const DIMENSIONS_MAX: usize = 8;

/// The key that is no tensor.
const METADATA: &str = "__metadata__";

/// Where a tensor lies. It is inside its file and overlaps no other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub format: Format,
    /// Outermost first.
    pub shape: Vec<usize>,
    /// From the start of the file.
    pub offset: u64,
    pub len: u64,
}

/// Reads all tensors of a file of at most `bytes_max` bytes, by name.
///
/// # Errors
/// [`WeightsError`] names the file, and the tensor or place.
pub fn tensors(path: &Path, bytes_max: u64) -> Result<BTreeMap<String, Tensor>, WeightsError> {
    let file = ModelFile::open(path)?;
    if file.size > bytes_max {
        let (place, value) = ("length in bytes".to_owned(), file.size);
        return Err(WeightsError::Limit { path: path.into(), place, value, most: bytes_max });
    }
    let entries = read(&file)?;
    let mut tensors = BTreeMap::new();
    for (name, Entry { format, shape, offset, len }) in entries {
        let bytes = file.read(offset, len, &format!("tensor `{}`", shown(&name)))?;
        tensors.insert(name.clone(), Tensor { name, format, shape, bytes });
    }
    Ok(tensors)
}

/// Reads and checks the header of a file: its tensors by name.
pub(crate) fn read(file: &ModelFile) -> Result<BTreeMap<String, Entry>, WeightsError> {
    let len = file.read(0, 8, "header")?;
    let len = u64::from_le_bytes(len.try_into().expect("eight bytes were asked for"));
    if len > HEADER_BYTES_MAX {
        let (path, place) = (file.path.clone(), "length of the header".to_string());
        return Err(WeightsError::Limit { path, place, value: len, most: HEADER_BYTES_MAX });
    }
    let header = file.read(8, len, "header")?;
    let header: HeaderJson = serde_json::from_slice(&header)
        .map_err(|error| WeightsError::malformed(&file.path, "header", error.to_string()))?;
    let data = 8 + len;
    let mut entries = BTreeMap::new();
    for (name, tensor) in header.tensors {
        entries.insert(name.clone(), entry(file, data, &name, tensor)?);
    }
    check_overlaps(file, &entries)?;
    Ok(entries)
}

fn entry(
    file: &ModelFile,
    data: u64,
    name: &str,
    tensor: TensorJson,
) -> Result<Entry, WeightsError> {
    let place = format!("tensor `{}`", shown(name));
    let malformed = |detail: String| WeightsError::malformed(&file.path, place.clone(), detail);
    let format = match tensor.dtype.as_str() {
        "F32" => Format::F32,
        "F16" => Format::F16,
        "BF16" => Format::Bf16,
        other => return Err(WeightsError::unsupported(&file.path, place, shown(other))),
    };
    let shape = tensor.shape;
    if shape.is_empty() || shape.len() > DIMENSIONS_MAX || shape.contains(&0) {
        return Err(malformed(format!(
            "has shape {:?}",
            &shape[..shape.len().min(DIMENSIONS_MAX)]
        )));
    }
    let bytes = shape.iter().try_fold(format.block_bytes(), |len, &size| len.checked_mul(size));
    let [begin, end] = tensor.data_offsets;
    let Some(len) = end.checked_sub(begin) else {
        return Err(malformed(format!("ends at {end}, before it begins at {begin}")));
    };
    if bytes.map(|bytes| bytes as u64) != Some(len) {
        return Err(malformed(format!("has {len} bytes for shape {shape:?} of {}", format.name())));
    }
    let left = file.size.saturating_sub(data).saturating_sub(begin);
    if len > left {
        return Err(file.truncated(&format!("{place} at {begin}"), len, left));
    }
    Ok(Entry { format, shape, offset: data + begin, len })
}

fn check_overlaps(file: &ModelFile, entries: &BTreeMap<String, Entry>) -> Result<(), WeightsError> {
    let mut places: Vec<_> = entries
        .iter()
        .map(|(name, entry)| (entry.offset, entry.offset + entry.len, name))
        .collect();
    places.sort_unstable();
    for pair in places.windows(2) {
        if pair[1].0 < pair[0].1 {
            let place = format!("tensor `{}`", shown(pair[1].2));
            let detail = format!("overlaps tensor `{}`", shown(pair[0].2));
            return Err(WeightsError::malformed(&file.path, place, detail));
        }
    }
    Ok(())
}

/// The header as it is written.
struct HeaderJson {
    tensors: BTreeMap<String, TensorJson>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TensorJson {
    dtype: String,
    shape: Vec<usize>,
    data_offsets: [u64; 2],
}

impl<'de> Deserialize<'de> for HeaderJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<HeaderJson, D::Error> {
        struct Tensors;
        impl<'de> Visitor<'de> for Tensors {
            type Value = HeaderJson;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of tensors")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<HeaderJson, M::Error> {
                let mut tensors = BTreeMap::new();
                while let Some(name) = map.next_key::<String>()? {
                    if name == METADATA {
                        map.next_value::<IgnoredAny>()?;
                        continue;
                    }
                    let tensor = map.next_value()?;
                    if tensors.insert(name.clone(), tensor).is_some() {
                        let twice = format!("tensor `{}` is there twice", shown(&name));
                        return Err(serde::de::Error::custom(twice));
                    }
                }
                Ok(HeaderJson { tensors })
            }
        }
        deserializer.deserialize_map(Tensors)
    }
}
