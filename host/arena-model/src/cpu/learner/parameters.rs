//! What is trained: names, values, and where each gradient belongs.

use arena_core::seed::Stream;
use arena_weights::adapter::Adapter;
use arena_weights::config::ModelConfig;
use arena_weights::weights::Weights;

use crate::error::EngineError;
use crate::executor::ExecutorError;
use crate::learner::Parameter;

use super::rows::Rows;
use super::{LEARNED_RANK_MAX, Start};
use crate::cpu::adapter::{LINEAR_COUNT, LINEARS, Linear, find_linear, shape_of};

/// Values of all parameters, in their order.
pub(super) enum Values {
    /// Every weight.
    Full { all: Vec<Vec<f32>>, places: Places },
    /// The factors of every linear layer: A and B, layer by layer.
    Adapter { all: Vec<Vec<f32>>, rank: usize, scale: f32 },
}

/// The places of weights among the parameters.
pub(super) struct Places {
    pub embedding: usize,
    /// The embedding's where they are one.
    pub head: usize,
    pub final_norm: usize,
    pub layers: Vec<LayerPlaces>,
}

pub(super) struct LayerPlaces {
    pub attention_norm: usize,
    pub feed_forward_norm: usize,
    /// Of queries and of keys.
    pub head_norms: Option<[usize; 2]>,
    pub linears: [usize; LINEAR_COUNT],
}

/// Where gradients are added up.
pub(super) struct Sums<'a> {
    pub values: &'a Values,
    pub gradients: &'a mut [Vec<f32>],
}

/// Returns the place of A of a linear layer; B is behind it.
pub(super) fn place_of_a(layer: usize, linear: Linear) -> usize {
    2 * (layer * LINEAR_COUNT + linear as usize)
}

/// Names what is trained, and returns its first values.
pub(super) fn begin(
    weights: &Weights,
    start: Start<'_>,
) -> Result<(Vec<Parameter>, Values), EngineError> {
    let config = weights.config();
    match start {
        Start::Full => full(weights),
        Start::Drawn { rank, alpha, mut stream } => {
            let scale = (f64::from(alpha) / rank as f64) as f32;
            let all = drawn(config, checked(rank, scale)?, &mut stream);
            Ok((factors(config, rank), Values::Adapter { all, rank, scale }))
        }
        Start::Adapter { adapter, mut stream } => {
            let (rank, scale) = (adapter.rank, adapter.scale);
            let mut all = drawn(config, checked(rank, scale)?, &mut stream);
            take_adapter(config, adapter, &mut all)?;
            Ok((factors(config, rank), Values::Adapter { all, rank, scale }))
        }
    }
}

fn checked(rank: usize, scale: f32) -> Result<usize, ExecutorError> {
    let detail = if !(1..=LEARNED_RANK_MAX).contains(&rank) {
        format!("rank {rank} is not 1 to {LEARNED_RANK_MAX}")
    } else if !scale.is_finite() {
        format!("scale {scale} is no number")
    } else {
        return Ok(rank);
    };
    Err(ExecutorError::Adapter { tensor: "all".to_owned(), detail })
}

/// Names the factors as PEFT does.
fn factors(config: &ModelConfig, rank: usize) -> Vec<Parameter> {
    let mut parameters = Vec::new();
    for layer in 0..config.layers {
        for (linear, part) in LINEARS {
            let (rows, columns) = shape_of(linear, config);
            let name = |factor: &str| {
                format!("base_model.model.model.layers.{layer}.{part}.lora_{factor}.weight")
            };
            parameters.push(Parameter { name: name("A"), shape: vec![rank, columns] });
            parameters.push(Parameter { name: name("B"), shape: vec![rows, rank] });
        }
    }
    parameters
}

/// Draws new factors. Source: PEFT, `LoraLayer.reset_lora_parameters`: `kaiming_uniform_` with
/// `a = sqrt(5)`, whose bound is `sqrt(6 / (1 + a^2)) / sqrt(inputs)`.
fn drawn(config: &ModelConfig, rank: usize, stream: &mut Stream) -> Vec<Vec<f32>> {
    let mut all = Vec::new();
    for _ in 0..config.layers {
        for (linear, _) in LINEARS {
            let (rows, columns) = shape_of(linear, config);
            let bound = 1.0 / (columns as f64).sqrt();
            let mut draw = || {
                let unit = (stream.bits() >> 11) as f64 / (1_u64 << 53) as f64;
                ((2.0 * unit - 1.0) * bound) as f32
            };
            all.push((0..rank * columns).map(|_| draw()).collect());
            all.push(vec![0.0; rows * rank]);
        }
    }
    all
}

fn take_adapter(
    config: &ModelConfig,
    adapter: &Adapter,
    all: &mut [Vec<f32>],
) -> Result<(), ExecutorError> {
    for (name, layer) in &adapter.layers {
        let fault = |detail: String| ExecutorError::Adapter { tensor: name.clone(), detail };
        let (index, linear) = find_linear(name, config)
            .ok_or_else(|| fault("there is no such layer to adapt".to_owned()))?;
        let place = place_of_a(index, linear);
        if (layer.a.len(), layer.b.len()) != (all[place].len(), all[place + 1].len()) {
            let (expected, found) = (shape_of(linear, config), (layer.rows, layer.columns));
            return Err(fault(format!("it is {found:?}, the layer is {expected:?}")));
        }
        all[place].clone_from(&layer.a);
        all[place + 1].clone_from(&layer.b);
    }
    Ok(())
}

fn full(weights: &Weights) -> Result<(Vec<Parameter>, Values), EngineError> {
    let config = weights.config();
    let mut parameters = Vec::new();
    let mut all = Vec::new();
    for info in weights.tensors() {
        parameters.push(Parameter { name: info.name.clone(), shape: info.shape.clone() });
        all.push(weights.tensor(&info.name)?.to_f32());
    }
    let place = |name: &str| {
        let found = parameters.iter().position(|parameter| parameter.name == name);
        found.expect("opened weights have every tensor of their architecture")
    };
    let layer = |index: usize| {
        let place = |part: &str| place(&format!("model.layers.{index}.{part}.weight"));
        let head_norms = config.architecture.has_head_norms();
        LayerPlaces {
            attention_norm: place("input_layernorm"),
            feed_forward_norm: place("post_attention_layernorm"),
            head_norms: head_norms.then(|| [place("self_attn.q_norm"), place("self_attn.k_norm")]),
            linears: LINEARS.map(|(_, part)| place(part)),
        }
    };
    let embedding = place("model.embed_tokens.weight");
    let places = Places {
        embedding,
        head: if config.tied_embeddings { embedding } else { place("lm_head.weight") },
        final_norm: place("model.norm.weight"),
        layers: (0..config.layers).map(layer).collect(),
    };
    Ok((parameters, Values::Full { all, places }))
}

impl Values {
    pub fn all(&self) -> &[Vec<f32>] {
        match self {
            Values::Full { all, .. } | Values::Adapter { all, .. } => all,
        }
    }

    /// Takes other values.
    pub fn set(
        &mut self,
        parameters: &[Parameter],
        values: &[Vec<f32>],
    ) -> Result<(), ExecutorError> {
        check_sizes(parameters, values)?;
        let (Values::Full { all, .. } | Values::Adapter { all, .. }) = self;
        for (mine, value) in all.iter_mut().zip(values) {
            mine.copy_from_slice(value);
        }
        Ok(())
    }
}

/// Checks that there is a number for every element of every parameter.
pub(super) fn check_sizes(
    parameters: &[Parameter],
    values: &[Vec<f32>],
) -> Result<(), ExecutorError> {
    if parameters.len() != values.len() {
        let (found, expected) = (values.len(), parameters.len());
        let detail = format!("values of {found} parameters are given, there are {expected}");
        return Err(ExecutorError::Tensor { tensor: "all".to_owned(), detail });
    }
    for (parameter, values) in parameters.iter().zip(values) {
        let expected: usize = parameter.shape.iter().product();
        if values.len() != expected {
            let detail = format!("{} values are given, it has {expected}", values.len());
            return Err(ExecutorError::Tensor { tensor: parameter.name.clone(), detail });
        }
    }
    Ok(())
}

impl Sums<'_> {
    /// Returns the places of weights, if these are trained.
    pub fn places(&self) -> Option<&Places> {
        match self.values {
            Values::Full { places, .. } => Some(places),
            Values::Adapter { .. } => None,
        }
    }

    /// Returns the gradients at some places, in their order.
    pub fn several(&mut self, places: &[usize]) -> Vec<&mut [f32]> {
        let mut found: Vec<Option<&mut [f32]>> = places.iter().map(|_| None).collect();
        for (index, sums) in self.gradients.iter_mut().enumerate() {
            if let Some(at) = places.iter().position(|place| *place == index) {
                found[at] = Some(sums);
            }
        }
        found.into_iter().map(|sums| sums.expect("places are parameters, all different")).collect()
    }

    /// Adds the gradient of the embedding: that of every row to its token's, rows ascending.
    pub fn add_embedding(&mut self, rows: &Rows, dx: &[f32], hidden: usize) {
        let Values::Full { places, .. } = self.values else { return };
        let sums = &mut self.gradients[places.embedding];
        for (dx, &token) in dx.chunks_exact(hidden).zip(&rows.tokens) {
            let sums = &mut sums[token as usize * hidden..][..hidden];
            for (sum, dx) in sums.iter_mut().zip(dx) {
                *sum += dx;
            }
        }
    }
}
