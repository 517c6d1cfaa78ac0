//! The arithmetic of language models on the CPU, the same to the bit on every machine.
//!
//! Every sum of products is one chain of fused multiply-adds in an order that is written down:
//! it starts at 0.0 and takes its terms by ascending index. SIMD lanes hold different outputs,
//! never different terms of one. So instruction set, batch size, tiling and number of threads
//! cannot change a bit, and the same tokens come out on any CPU. NaN payloads are not promised.
//!
//! Not here: model files (`arena-weights`), the transformer and its batches (`arena-model`).

// Elsewhere the plain twins do all the work.
#![cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]

pub mod activation;
mod attend;
pub mod attention;
pub mod choice;
pub mod columns;
pub mod context;
pub mod error;
pub mod format;
pub mod gradient;
pub mod isa;
mod lines;
pub mod matrix;
mod multiply;
pub mod norm;
mod pack;
mod product;
pub mod reduction;
pub mod rope;
mod rows;
mod shared;
mod simd;
