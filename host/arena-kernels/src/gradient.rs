//! Gradients of what the other modules compute, with the same promise: fixed orders of summation.
//!
//! A gradient of weights is one chain over all rows in order, and goes on from what is there. So
//! neither threads nor the size of a batch that rows are computed in can change a bit of it.
//! Gradients of inputs are rows of their own, as their inputs are.
//!
//! Not here: which of them make up a model's (`arena-model`).

pub mod activation;
pub mod attention;
pub mod logits;
pub mod norm;
pub mod outer;
