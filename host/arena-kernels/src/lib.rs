//! The arithmetic of language models on the CPU, the same to the bit on every machine.
