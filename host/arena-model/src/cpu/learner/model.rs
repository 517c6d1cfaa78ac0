//! Weights as both directions need them, and buffers.

use std::collections::BTreeMap;

use arena_kernels::attention::{AttentionShape, KvBlocks};
use arena_kernels::context::Context;
use arena_kernels::error::KernelsError;
use arena_kernels::format::Format;
use arena_kernels::matrix::Matrix;
use arena_kernels::rope::RopeTable;
use arena_weights::config::ModelConfig;
use arena_weights::weights::Weights;

use crate::cpu::adapter::{LINEARS, Linear, shape_of};
use crate::cpu::layer::{Dense, FeedForward, Layer};
use crate::cpu::network::Network;
use crate::error::EngineError;
use crate::executor::ExecutorError;

use super::parameters::{Places, Values, place_of_a};

/// A model that can be gone through in both directions.
pub(super) struct Model {
    pub config: ModelConfig,
    pub context: Context,
    /// Ids from here on have no meaning, and no probability.
    pub token_count: usize,
    pub attention: AttentionShape,
    pub network: Network,
    pub across: Across,
    pub factors: Option<Factors>,
}

/// Transposes of the weights, in f32.
pub(super) struct Across {
    pub head: Matrix,
    pub layers: Vec<LayerAcross>,
}

pub(super) struct LayerAcross {
    pub queries_keys_values: Matrix,
    pub output: Matrix,
    pub gate_up: Matrix,
    pub down: Matrix,
}

/// An adapter, ready to be multiplied with.
pub(super) struct Factors {
    pub scale: f32,
    /// Of each layer, in the order of [`LINEARS`].
    pub layers: Vec<Vec<Pair>>,
}

/// The factors of one linear layer, and their transposes.
pub(super) struct Pair {
    /// `[rank, columns]`.
    pub a: Matrix,
    /// `[rows, rank]`.
    pub b: Matrix,
    pub a_across: Matrix,
    pub b_across: Matrix,
}

/// What the way back needs of a layer. Rows are those of the batch.
#[derive(Default)]
pub(super) struct Kept {
    /// Queries, keys and values as they were projected.
    pub joined: Vec<f32>,
    pub attended: Vec<f32>,
    /// What the feed-forward half was given.
    pub middle: Vec<f32>,
    pub gate_up: Vec<f32>,
}

/// What is kept of all layers.
#[derive(Default)]
pub(super) struct Trace {
    inputs: Vec<Vec<f32>>,
    /// Of every layer, or of one at a time.
    kept: Vec<Kept>,
}

impl Trace {
    /// Makes room for so many layers; where things are computed again, for one.
    pub fn resize(&mut self, layers: usize, recompute: bool) {
        self.inputs.resize_with(layers, Vec::new);
        self.kept.resize_with(if recompute { 1 } else { layers }, Kept::default);
    }

    /// Returns what went into a layer, and what is kept of it.
    pub fn of(&mut self, layer: usize) -> (&mut Vec<f32>, &mut Kept) {
        let place = if self.kept.len() == 1 { 0 } else { layer };
        (&mut self.inputs[layer], &mut self.kept[place])
    }
}

/// Buffers that are kept from one batch to the next.
#[derive(Default)]
pub(super) struct Work {
    pub residual: Vec<f32>,
    pub dx: Vec<f32>,
    pub trace: Trace,
    /// Of one layer, where nothing is to be gone back through.
    pub kept: Kept,
    pub rope: Option<RopeTable>,
    pub cache: Option<KvBlocks>,
    pub normed: Vec<f32>,
    pub queries: Vec<f32>,
    pub keys: Vec<f32>,
    pub values: Vec<f32>,
    pub normed_heads: Vec<f32>,
    pub gated: Vec<f32>,
    pub out: Vec<f32>,
    pub low: Vec<f32>,
    pub dlow: Vec<f32>,
    pub dnormed: Vec<f32>,
    pub djoined: Vec<f32>,
    pub dattended: Vec<f32>,
    pub dqueries: Vec<f32>,
    pub dkeys: Vec<f32>,
    pub dvalues: Vec<f32>,
    pub dheads: Vec<f32>,
    pub dgated: Vec<f32>,
    pub dgate_up: Vec<f32>,
    pub scales: Vec<f32>,
    pub logits: Vec<f32>,
    pub wanted: Vec<f32>,
}

impl Model {
    pub fn new(
        config: ModelConfig,
        context: Context,
        token_count: usize,
        weights: &Weights,
        values: &Values,
    ) -> Result<Model, EngineError> {
        let mut network = Network::read(&config, &mut |name: &str| weights.tensor(name))?;
        if let Values::Full { all, places } = values {
            take_weights(&mut network, &config, all, places)?;
        }
        let across = Across::new(&network)?;
        let factors = Factors::of(&config, values)?;
        let attention = AttentionShape {
            heads: config.heads,
            kv_heads: config.kv_heads,
            head_dim: config.head_dim,
        };
        Ok(Model { config, context, token_count, attention, network, across, factors })
    }

    /// Returns the scale of the adapter, if there is one.
    pub fn scale(&self) -> Option<f32> {
        self.factors.as_ref().map(|factors| factors.scale)
    }

    pub fn formats(&self) -> String {
        self.network.formats()
    }

    /// Takes other values of what is trained.
    pub fn take(&mut self, values: &Values) -> Result<(), ExecutorError> {
        if let Values::Full { all, places } = values {
            take_weights(&mut self.network, &self.config, all, places).map_err(unpacked)?;
            self.across = Across::new(&self.network).map_err(unpacked)?;
        }
        self.factors = Factors::of(&self.config, values).map_err(unpacked)?;
        Ok(())
    }
}

fn unpacked(error: KernelsError) -> ExecutorError {
    ExecutorError::Device(error.to_string())
}

/// Packs other weights, all of them f32.
fn take_weights(
    network: &mut Network,
    config: &ModelConfig,
    all: &[Vec<f32>],
    places: &Places,
) -> Result<(), KernelsError> {
    network.formats = BTreeMap::from([(Format::F32.name(), all.len())]);
    network.embedding = Matrix::of_f32(&[&all[places.embedding]], config.hidden)?;
    if network.untied_head.is_some() {
        network.untied_head = Some(Matrix::of_f32(&[&all[places.head]], config.hidden)?);
    }
    network.final_norm.clone_from(&all[places.final_norm]);
    for (layer, places) in network.layers.iter_mut().zip(&places.layers) {
        let stacked = |linears: &[Linear]| {
            let parts: Vec<&[f32]> =
                linears.iter().map(|linear| &all[places.linears[*linear as usize]][..]).collect();
            Matrix::of_f32(&parts, shape_of(linears[0], config).1)
        };
        layer.attention_norm.clone_from(&all[places.attention_norm]);
        layer.queries_keys_values = stacked(&[Linear::Query, Linear::Key, Linear::Value])?;
        if let (Some(norms), Some([queries, keys])) = (&mut layer.head_norms, places.head_norms) {
            norms.queries.clone_from(&all[queries]);
            norms.keys.clone_from(&all[keys]);
        }
        layer.output = stacked(&[Linear::Output])?;
        layer.feed_forward_norm.clone_from(&all[places.feed_forward_norm]);
        let (gate_up, down) = (stacked(&[Linear::Gate, Linear::Up])?, stacked(&[Linear::Down])?);
        layer.feed_forward = FeedForward::Dense(Dense { gate_up, down });
    }
    Ok(())
}

/// Returns the feed-forward half of a layer.
pub(super) fn dense(layer: &Layer) -> &Dense {
    match &layer.feed_forward {
        FeedForward::Dense(dense) => dense,
        FeedForward::Experts(_) => unreachable!("mixtures are refused when a model is loaded"),
    }
}

impl Across {
    fn new(network: &Network) -> Result<Across, KernelsError> {
        let layer = |layer: &Layer| {
            Ok(LayerAcross {
                queries_keys_values: layer.queries_keys_values.transposed()?,
                output: layer.output.transposed()?,
                gate_up: dense(layer).gate_up.transposed()?,
                down: dense(layer).down.transposed()?,
            })
        };
        Ok(Across {
            head: network.head().transposed()?,
            layers: network.layers.iter().map(layer).collect::<Result<_, KernelsError>>()?,
        })
    }
}

impl Factors {
    /// Packs an adapter, if one is trained.
    fn of(config: &ModelConfig, values: &Values) -> Result<Option<Factors>, KernelsError> {
        let Values::Adapter { all, rank, scale } = values else { return Ok(None) };
        let pair = |layer: usize, linear: Linear| {
            let place = place_of_a(layer, linear);
            let a = Matrix::of_f32(&[&all[place]], shape_of(linear, config).1)?;
            let b = Matrix::of_f32(&[&all[place + 1]], *rank)?;
            let (a_across, b_across) = (a.transposed()?, b.transposed()?);
            Ok(Pair { a, b, a_across, b_across })
        };
        let layer = |index: usize| {
            let pairs = LINEARS.iter().map(|(linear, _)| pair(index, *linear));
            pairs.collect::<Result<Vec<Pair>, KernelsError>>()
        };
        let layers = (0..config.layers).map(layer).collect::<Result<_, KernelsError>>()?;
        Ok(Some(Factors { scale: *scale, layers }))
    }
}
