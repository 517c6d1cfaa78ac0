//! Buffers that are kept from one step to the next.

use super::experts::ExpertScratch;

/// What one step needs besides weights and cache. Rows are those of the batch.
#[derive(Default)]
pub(super) struct Scratch {
    pub positions: Vec<u32>,
    /// The blocks of all sequences, one sequence behind the other.
    pub blocks: Vec<u32>,
    pub residual: Vec<f32>,
    pub normed: Vec<f32>,
    pub joined: Vec<f32>,
    pub queries: Vec<f32>,
    pub keys: Vec<f32>,
    pub values: Vec<f32>,
    pub normed_heads: Vec<f32>,
    pub attended: Vec<f32>,
    pub gate_up: Vec<f32>,
    pub gated: Vec<f32>,
    pub out: Vec<f32>,
    pub experts: ExpertScratch,
    pub adapter: AdapterScratch,
}

/// What applying an adapter needs.
#[derive(Default)]
pub(super) struct AdapterScratch {
    pub x: Vec<f32>,
    pub low: Vec<f32>,
    pub y: Vec<f32>,
}

/// Returns the buffer at this length; what is in it is left over.
pub(super) fn sized(buffer: &mut Vec<f32>, len: usize) -> &mut [f32] {
    if buffer.len() < len {
        buffer.resize(len, 0.0);
    }
    &mut buffer[..len]
}
