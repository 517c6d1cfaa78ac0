//! GGUF files as tests need them: read without any check, changed, and written as they are.
//!
//! Independent of the crate's own reader and writer.

use std::fs::File;
use std::io::Write;
use std::path::Path;

/// A key, the kind of its value, and the value's bytes.
pub struct Key {
    pub name: Vec<u8>,
    pub kind: u32,
    pub value: Vec<u8>,
}

/// What a header says of a tensor.
#[derive(Clone)]
pub struct Tensor {
    pub name: Vec<u8>,
    /// Innermost first, as in the file.
    pub dimensions: Vec<u64>,
    pub kind: u32,
    pub offset: u64,
}

/// A file. Everything in it may be a lie.
pub struct GgufFile {
    pub magic: [u8; 4],
    pub version: u32,
    pub keys: Vec<Key>,
    pub tensors: Vec<Tensor>,
    /// What the header counts, if that is not what it has.
    pub tensor_count: Option<u64>,
    pub key_count: Option<u64>,
    pub data: Vec<u8>,
}

impl GgufFile {
    pub fn new() -> GgufFile {
        GgufFile {
            magic: *b"GGUF",
            version: 3,
            keys: Vec::new(),
            tensors: Vec::new(),
            tensor_count: None,
            key_count: None,
            data: Vec::new(),
        }
    }

    /// Sets a key, in place if it is there.
    pub fn set(&mut self, name: &str, kind: u32, value: Vec<u8>) {
        let key = Key { name: name.into(), kind, value };
        match self.keys.iter_mut().find(|key| key.name == name.as_bytes()) {
            Some(there) => *there = key,
            None => self.keys.push(key),
        }
    }

    pub fn set_number(&mut self, name: &str, number: u32) {
        self.set(name, 4, number.to_le_bytes().into());
    }

    pub fn set_float(&mut self, name: &str, number: f32) {
        self.set(name, 6, number.to_le_bytes().into());
    }

    pub fn set_flag(&mut self, name: &str, flag: bool) {
        self.set(name, 7, vec![flag.into()]);
    }

    pub fn set_text(&mut self, name: &str, text: &str) {
        self.set(name, 8, text_bytes(text.as_bytes()));
    }

    pub fn set_texts(&mut self, name: &str, texts: &[String]) {
        let items = texts.iter().flat_map(|text| text_bytes(text.as_bytes())).collect();
        self.set(name, 9, list_bytes(8, texts.len() as u64, items));
    }

    pub fn set_integers(&mut self, name: &str, integers: &[i32]) {
        let items = integers.iter().flat_map(|integer| integer.to_le_bytes()).collect();
        self.set(name, 9, list_bytes(5, integers.len() as u64, items));
    }

    pub fn remove(&mut self, name: &str) {
        self.keys.retain(|key| key.name != name.as_bytes());
    }

    /// Adds a tensor of f32 behind the others.
    pub fn push_f32(&mut self, name: &str, dimensions: &[u64], weights: &[f32]) {
        self.data.resize(self.data.len().next_multiple_of(32), 0);
        let offset = self.data.len() as u64;
        let (name, dimensions) = (name.into(), dimensions.into());
        self.tensors.push(Tensor { name, dimensions, kind: 0, offset });
        self.data.extend(weights.iter().flat_map(|weight| weight.to_le_bytes()));
    }

    pub fn tensor(&mut self, name: &str) -> &mut Tensor {
        let named = |tensor: &&mut Tensor| tensor.name == name.as_bytes();
        self.tensors.iter_mut().find(named).expect("the tensor is there")
    }

    /// Returns everything before the data.
    pub fn header(&self) -> Vec<u8> {
        let mut header = self.magic.to_vec();
        header.extend(self.version.to_le_bytes());
        header.extend(self.tensor_count.unwrap_or(self.tensors.len() as u64).to_le_bytes());
        header.extend(self.key_count.unwrap_or(self.keys.len() as u64).to_le_bytes());
        for key in &self.keys {
            header.extend(text_bytes(&key.name));
            header.extend(key.kind.to_le_bytes());
            header.extend(&key.value);
        }
        for tensor in &self.tensors {
            header.extend(text_bytes(&tensor.name));
            header.extend((tensor.dimensions.len() as u32).to_le_bytes());
            header.extend(tensor.dimensions.iter().flat_map(|size| size.to_le_bytes()));
            header.extend(tensor.kind.to_le_bytes());
            header.extend(tensor.offset.to_le_bytes());
        }
        header.resize(header.len().next_multiple_of(32), 0);
        header
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.header();
        bytes.extend(&self.data);
        bytes
    }

    /// Writes the header and a hole as long as the data of `original`, which has as many tensors.
    pub fn write_hollow(&self, path: &Path, data_len: u64) {
        let header = self.header();
        let mut file = File::create(path).unwrap();
        file.write_all(&header).unwrap();
        file.set_len(header.len() as u64 + data_len).unwrap();
    }

    /// Reads a sound file's header. Returns the length of its data, too.
    pub fn read(path: &Path) -> (GgufFile, u64) {
        let bytes = std::fs::read(path).unwrap();
        let mut at = Walk { bytes: &bytes, at: 8 };
        let (tensor_count, key_count) = (at.number(8), at.number(8));
        let mut file = GgufFile::new();
        for _ in 0..key_count {
            let name = at.text().to_vec();
            let kind = at.number(4) as u32;
            let start = at.at;
            at.skip(kind);
            file.keys.push(Key { name, kind, value: bytes[start..at.at].into() });
        }
        for _ in 0..tensor_count {
            let name = at.text().to_vec();
            let count = at.number(4);
            let dimensions = (0..count).map(|_| at.number(8)).collect();
            let kind = at.number(4) as u32;
            file.tensors.push(Tensor { name, dimensions, kind, offset: at.number(8) });
        }
        let data = at.at.next_multiple_of(32);
        (file, (bytes.len() - data) as u64)
    }
}

pub fn text_bytes(text: &[u8]) -> Vec<u8> {
    let mut bytes = (text.len() as u64).to_le_bytes().to_vec();
    bytes.extend(text);
    bytes
}

pub fn list_bytes(element: u32, count: u64, items: Vec<u8>) -> Vec<u8> {
    let mut bytes = element.to_le_bytes().to_vec();
    bytes.extend(count.to_le_bytes());
    bytes.extend(items);
    bytes
}

struct Walk<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Walk<'a> {
    fn number(&mut self, len: usize) -> u64 {
        let mut padded = [0; 8];
        padded[..len].copy_from_slice(&self.bytes[self.at..self.at + len]);
        self.at += len;
        u64::from_le_bytes(padded)
    }

    fn text(&mut self) -> &'a [u8] {
        let len = self.number(8) as usize;
        self.at += len;
        &self.bytes[self.at - len..self.at]
    }

    fn skip(&mut self, kind: u32) {
        match kind {
            8 => {
                self.text();
            }
            9 => {
                let (element, count) = (self.number(4) as u32, self.number(8));
                (0..count).for_each(|_| self.skip(element));
            }
            0 | 1 | 7 => self.at += 1,
            2 | 3 => self.at += 2,
            4..=6 => self.at += 4,
            _ => self.at += 8,
        }
    }
}
