//! Model files: weights, tokenizer, chat template, manifest.
