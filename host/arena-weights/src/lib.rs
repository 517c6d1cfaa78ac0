//! Model files: weights, tokenizer, chat template, manifest.
//!
//! A model file comes from strangers. Everything that it says is checked before memory is
//! taken for it, and what is not understood is an error that names the tensor or the key.
//! Nothing is mapped into memory: bytes are read where they lie, when they are asked for.
//!
//! Not here: arithmetic (`arena-kernels`), running a model (`arena-model`), fetching one
//! (`arena`).

pub mod weights;

pub mod adapter;
pub mod config;
pub mod error;
pub mod gguf;
pub mod manifest;
pub mod safetensors;
pub mod template;
pub mod tensor;
pub mod tokenizer;
pub mod vocabulary;
pub mod write;

mod files;
mod folder;
mod layout;
