//! What `arena-weights` makes of model files, real, written by the test, and hostile.

#![allow(clippy::unwrap_used, reason = "tests")]

mod gguf_file;
mod store;
mod tiny;

mod adapter;
mod folder;
mod gguf;
mod smollm2;
mod template;
mod tokenizer;
mod write;
