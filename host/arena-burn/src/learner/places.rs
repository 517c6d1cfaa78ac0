//! What is trained: which tensors of a transformer, in which order, and what they are called.
//!
//! Not here: the tape that gradients are computed on (`tape`).

use arena_model::learner::{Parameter, Trained};
use arena_weights::config::ModelConfig;
use burn::module::Param;
use burn::tensor::Tensor;

use crate::transformer::linear::{Linear, Lora, Projection, Which};
use crate::transformer::mlp::Mlp;
use crate::transformer::{FeedForward, Layer};

/// Where a trained tensor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The table of tokens.
    Embedding,
    /// In a layer, by its index.
    Layer(usize, Part),
    /// The gain of the norm before the output head.
    Norm,
    /// The output head.
    Head,
}

/// Where it is in a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The gain of a norm.
    Gain(Norm),
    /// The weight of a linear layer.
    Weight(Which),
    /// The first factor of its adapter, to the bottleneck.
    A(Which),
    /// The second, from there.
    B(Which),
}

/// A norm of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Norm {
    /// Before attention.
    Attention,
    /// Over each head of the queries.
    Queries,
    /// Over each head of the keys.
    Keys,
    /// Before the feed-forward part.
    FeedForward,
}

/// A tensor of a transformer.
pub enum Found<'a> {
    /// `[in, out]`; the parameter is `[out, in]`.
    Matrix(&'a mut Param<Tensor<2>>),
    /// `[columns]`
    Gain(&'a mut Param<Tensor<1>>),
}

/// Returns what is trained, in order, with the parameters that it is to others.
pub fn places(config: &ModelConfig, trained: &Trained) -> Vec<(Place, Parameter)> {
    match *trained {
        Trained::Full => full(config),
        Trained::Adapter { rank, .. } => (0..config.layers)
            .flat_map(|layer| linears(config).into_iter().map(move |linear| (layer, linear)))
            .filter(|(_, linear)| linear.which != Which::Router)
            .flat_map(|(layer, linear)| linear.factors(layer, rank))
            .collect(),
    }
}

fn full(config: &ModelConfig) -> Vec<(Place, Parameter)> {
    let ModelConfig { hidden, vocab, head_dim, .. } = *config;
    let mut places =
        vec![(Place::Embedding, parameter("model.embed_tokens.weight".into(), &[vocab, hidden]))];
    for layer in 0..config.layers {
        let mut gain = |norm, part: &str, columns| {
            let name = format!("model.layers.{layer}.{part}.weight");
            places.push((Place::Layer(layer, Part::Gain(norm)), parameter(name, &[columns])));
        };
        gain(Norm::Attention, "input_layernorm", hidden);
        if config.architecture.has_head_norms() {
            gain(Norm::Queries, "self_attn.q_norm", head_dim);
            gain(Norm::Keys, "self_attn.k_norm", head_dim);
        }
        gain(Norm::FeedForward, "post_attention_layernorm", hidden);
        places.extend(linears(config).into_iter().map(|linear| linear.weight(layer)));
    }
    places.push((Place::Norm, parameter("model.norm.weight".into(), &[hidden])));
    if !config.tied_embeddings {
        places.push((Place::Head, parameter("lm_head.weight".into(), &[vocab, hidden])));
    }
    places
}

/// A linear layer, the same in every layer.
struct Named {
    which: Which,
    /// Such as `self_attn.q_proj`.
    name: String,
    inputs: usize,
    outputs: usize,
}

impl Named {
    fn weight(self, layer: usize) -> (Place, Parameter) {
        let name = format!("model.layers.{layer}.{}.weight", self.name);
        let parameter = parameter(name, &[self.outputs, self.inputs]);
        (Place::Layer(layer, Part::Weight(self.which)), parameter)
    }

    fn factors(self, layer: usize, rank: usize) -> [(Place, Parameter); 2] {
        // PEFT wraps the model, and every layer that it adapts.
        let name = |factor: &str| {
            format!("base_model.model.model.layers.{layer}.{}.lora_{factor}.weight", self.name)
        };
        [
            (Part::A(self.which), parameter(name("A"), &[rank, self.inputs])),
            (Part::B(self.which), parameter(name("B"), &[self.outputs, rank])),
        ]
        .map(|(part, parameter)| (Place::Layer(layer, part), parameter))
    }
}

fn parameter(name: String, shape: &[usize]) -> Parameter {
    Parameter { name, shape: shape.to_vec() }
}

/// Returns the linear layers of a layer. Source of the names: the modules of `transformers`.
fn linears(config: &ModelConfig) -> Vec<Named> {
    let ModelConfig { hidden, heads, kv_heads, head_dim, ffn, .. } = *config;
    let (queries, keys) = (heads * head_dim, kv_heads * head_dim);
    let named = |which, name: &str, inputs, outputs| {
        let name = name.to_string();
        Named { which, name, inputs, outputs }
    };
    let mut linears = vec![
        named(Which::Dense(Projection::Query), "self_attn.q_proj", hidden, queries),
        named(Which::Dense(Projection::Key), "self_attn.k_proj", hidden, keys),
        named(Which::Dense(Projection::Value), "self_attn.v_proj", hidden, keys),
        named(Which::Dense(Projection::Output), "self_attn.o_proj", queries, hidden),
    ];
    let Some(moe) = config.moe else {
        linears.extend([
            named(Which::Dense(Projection::Gate), "mlp.gate_proj", hidden, ffn),
            named(Which::Dense(Projection::Up), "mlp.up_proj", hidden, ffn),
            named(Which::Dense(Projection::Down), "mlp.down_proj", ffn, hidden),
        ]);
        return linears;
    };
    linears.push(named(Which::Router, "mlp.gate", hidden, moe.experts));
    for expert in 0..moe.experts {
        let parts = [
            (Projection::Gate, "gate_proj", hidden, moe.ffn),
            (Projection::Up, "up_proj", hidden, moe.ffn),
            (Projection::Down, "down_proj", moe.ffn, hidden),
        ];
        linears.extend(parts.map(|(projection, part, inputs, outputs)| {
            let name = format!("mlp.experts.{expert}.{part}");
            named(Which::Expert(expert, projection), &name, inputs, outputs)
        }));
    }
    linears
}

impl Part {
    /// Returns the tensor of a layer.
    ///
    /// # Panics
    /// If the layer has none, which is that of another model then.
    pub fn find(self, layer: &mut Layer) -> Found<'_> {
        match self {
            Part::Gain(norm) => norm.find(layer),
            Part::Weight(which) => Found::Matrix(&mut find_linear(layer, which).weight),
            Part::A(which) => Found::Matrix(&mut lora(find_linear(layer, which)).a),
            Part::B(which) => Found::Matrix(&mut lora(find_linear(layer, which)).b),
        }
    }
}

fn lora(linear: &mut Linear) -> &mut Lora {
    linear.lora.as_mut().expect("every adapted layer was given an adapter")
}

impl Norm {
    fn find(self, layer: &mut Layer) -> Found<'_> {
        let norm = match self {
            Norm::Attention => Some(&mut layer.attention_norm),
            Norm::Queries => layer.attention.query_norm.as_mut(),
            Norm::Keys => layer.attention.key_norm.as_mut(),
            Norm::FeedForward => Some(&mut layer.feed_forward_norm),
        };
        Found::Gain(&mut norm.expect("the architecture has this norm").gain)
    }
}

/// Returns a linear layer.
///
/// # Panics
/// If the layer has none, which is that of another model then.
pub fn find_linear(layer: &mut Layer, which: Which) -> &mut Linear {
    let attention = &mut layer.attention;
    match (which, &mut layer.feed_forward) {
        (Which::Dense(Projection::Query), _) => &mut attention.query,
        (Which::Dense(Projection::Key), _) => &mut attention.key,
        (Which::Dense(Projection::Value), _) => &mut attention.value,
        (Which::Dense(Projection::Output), _) => &mut attention.output,
        (Which::Dense(projection), FeedForward::Dense(mlp)) => part(mlp, projection),
        (Which::Router, FeedForward::Experts(moe)) => &mut moe.router,
        (Which::Expert(expert, projection), FeedForward::Experts(moe)) => {
            part(&mut moe.experts[expert], projection)
        }
        (which, _) => panic!("the layer has no {which:?}"),
    }
}

fn part(mlp: &mut Mlp, projection: Projection) -> &mut Linear {
    match projection {
        Projection::Gate => &mut mlp.gate,
        Projection::Up => &mut mlp.up,
        Projection::Down => &mut mlp.down,
        projection => panic!("a feed-forward part has no {projection:?}"),
    }
}
