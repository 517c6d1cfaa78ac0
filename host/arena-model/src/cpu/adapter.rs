//! Low-rank adapters: `y += scale * B (A x)` for the rows that ask for it.
//!
//! Source: Hu et al. 2021 (LoRA, arXiv 2106.09685), equation 3.

use arena_kernels::context::Context;
use arena_kernels::format::Format;
use arena_kernels::matrix::Matrix;
use arena_weights::adapter::{Adapter, AdapterLayer};
use arena_weights::config::ModelConfig;

use crate::executor::{AdapterId, Batch, ExecutorError};

use super::scratch::{AdapterScratch, sized};

/// The linear layers that an adapter may change, in the order of [`AdapterMatrices::layers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Linear {
    Query,
    Key,
    Value,
    Output,
    Gate,
    Up,
    Down,
}

pub(super) const LINEAR_COUNT: usize = 7;
pub(super) const LINEARS: [(Linear, &str); LINEAR_COUNT] = [
    (Linear::Query, "self_attn.q_proj"),
    (Linear::Key, "self_attn.k_proj"),
    (Linear::Value, "self_attn.v_proj"),
    (Linear::Output, "self_attn.o_proj"),
    (Linear::Gate, "mlp.gate_proj"),
    (Linear::Up, "mlp.up_proj"),
    (Linear::Down, "mlp.down_proj"),
];

/// An adapter, ready to be multiplied with.
pub(super) struct AdapterMatrices {
    scale: f32,
    layers: Vec<[Option<Pair>; LINEAR_COUNT]>,
}

struct Pair {
    /// `[rank, columns]`.
    a: Matrix,
    /// `[rows, rank]`.
    b: Matrix,
}

impl AdapterMatrices {
    pub fn new(adapter: &Adapter, config: &ModelConfig) -> Result<AdapterMatrices, ExecutorError> {
        let mut layers: Vec<[Option<Pair>; LINEAR_COUNT]> =
            (0..config.layers).map(|_| std::array::from_fn(|_| None)).collect();
        for (name, layer) in &adapter.layers {
            let fault = |detail: String| ExecutorError::Adapter { tensor: name.clone(), detail };
            let (index, linear) = find_linear(name, config)
                .ok_or_else(|| fault("there is no such layer to adapt".to_owned()))?;
            let expected = shape_of(linear, config);
            if (layer.rows, layer.columns) != expected {
                let (rows, columns) = (layer.rows, layer.columns);
                let detail = format!("it is [{rows}, {columns}], the layer is {expected:?}");
                return Err(fault(detail));
            }
            let pair = Pair::new(layer, adapter.rank).map_err(|e| fault(e.to_string()))?;
            layers[index][linear as usize] = Some(pair);
        }
        Ok(AdapterMatrices { scale: adapter.scale, layers })
    }
}

impl Pair {
    fn new(layer: &AdapterLayer, rank: usize) -> Result<Pair, arena_kernels::error::KernelsError> {
        let a = bytes(&layer.a);
        let b = bytes(&layer.b);
        Ok(Pair {
            a: Matrix::new(&[(Format::F32, rank, &a)], layer.columns)?,
            b: Matrix::new(&[(Format::F32, layer.rows, &b)], rank)?,
        })
    }
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

pub(super) fn find_linear(name: &str, config: &ModelConfig) -> Option<(usize, Linear)> {
    let (index, part) = name.strip_prefix("model.layers.")?.split_once('.')?;
    let part = part.strip_suffix(".weight")?;
    let index = index.parse().ok().filter(|&index: &usize| index < config.layers)?;
    let &(linear, _) = LINEARS.iter().find(|(_, known)| *known == part)?;
    let is_dense = matches!(linear, Linear::Gate | Linear::Up | Linear::Down);
    (config.moe.is_none() || !is_dense).then_some((index, linear))
}

/// Outputs and inputs of a linear layer.
pub(super) fn shape_of(linear: Linear, config: &ModelConfig) -> (usize, usize) {
    let queries = config.heads * config.head_dim;
    let keys = config.kv_heads * config.head_dim;
    match linear {
        Linear::Query => (queries, config.hidden),
        Linear::Key | Linear::Value => (keys, config.hidden),
        Linear::Output => (config.hidden, queries),
        Linear::Gate | Linear::Up => (config.ffn, config.hidden),
        Linear::Down => (config.hidden, config.ffn),
    }
}

/// The rows of a batch that ask for one adapter.
pub(super) struct AdaptedRows {
    pub adapter: AdapterId,
    pub rows: Vec<usize>,
}

/// Groups a batch's rows by their adapter; rows without one are in no group.
pub(super) fn group(batch: &Batch) -> Vec<AdaptedRows> {
    let mut groups: Vec<AdaptedRows> = Vec::new();
    for sequence in &batch.sequences {
        let Some(adapter) = sequence.adapter else { continue };
        let known = groups.iter().position(|group| group.adapter == adapter);
        let place = known.unwrap_or_else(|| {
            groups.push(AdaptedRows { adapter, rows: Vec::new() });
            groups.len() - 1
        });
        groups[place].rows.extend(sequence.rows.clone());
    }
    groups
}

/// Adds what the adapters change in one linear layer. Shapes: `x` is `[m, columns]`; the layer's
/// outputs are `rows` columns of `y` from `offset` on, and `y` has rows of `stride`.
pub(super) struct Change<'a> {
    pub layer: usize,
    pub linear: Linear,
    pub x: &'a [f32],
    pub stride: usize,
    pub offset: usize,
}

impl Change<'_> {
    pub fn add(
        &self,
        context: &Context,
        adapters: &[Option<AdapterMatrices>],
        groups: &[AdaptedRows],
        y: &mut [f32],
        scratch: &mut AdapterScratch,
    ) {
        for group in groups {
            let adapter = adapters[group.adapter.0 as usize]
                .as_ref()
                .expect("sequences ask for adapters that are there");
            let Some(pair) = &adapter.layers[self.layer][self.linear as usize] else { continue };
            let columns = pair.a.columns();
            let x = sized(&mut scratch.x, group.rows.len() * columns);
            for (x, &row) in x.chunks_exact_mut(columns).zip(&group.rows) {
                x.copy_from_slice(&self.x[row * columns..][..columns]);
            }
            let low = sized(&mut scratch.low, group.rows.len() * pair.a.rows());
            pair.a.multiply(context, x, low);
            low.iter_mut().for_each(|low| *low *= adapter.scale);
            let width = pair.b.rows();
            let change = sized(&mut scratch.y, group.rows.len() * width);
            pair.b.multiply(context, low, change);
            for (change, &row) in change.chunks_exact(width).zip(&group.rows) {
                let y = &mut y[row * self.stride + self.offset..][..width];
                for (y, change) in y.iter_mut().zip(change) {
                    *y += change;
                }
            }
        }
    }
}
