//! From adapter files to changes of a transformer's layers.
//!
//! Not here: how a change is computed (`transformer::linear`).

use arena_model::executor::ExecutorError;
use arena_weights::adapter::{Adapter, AdapterLayer};
use burn::module::Param;
use burn::tensor::Device;

use crate::loading::matrix;
use crate::transformer::linear::{LayerAdapter, Lora, Projection, Which};
use crate::transformer::{Layer, Transformer};

/// Returns the changes of every layer, in order, checked against the model.
///
/// # Errors
/// [`ExecutorError::Adapter`] names the weight that the model does not have, or has in another
/// shape.
pub fn load(
    adapter: &Adapter,
    model: &Transformer,
    device: &Device,
) -> Result<Vec<LayerAdapter>, ExecutorError> {
    let mut layers = vec![LayerAdapter::new(); model.layers.len()];
    for (name, factors) in &adapter.layers {
        let refuse = |detail: String| ExecutorError::Adapter { tensor: name.clone(), detail };
        let (index, which) = parse(name)
            .filter(|(index, _)| *index < layers.len())
            .ok_or_else(|| refuse("the model has no linear layer of this name".to_string()))?;
        check(&model.layers[index], which, factors, adapter.rank).map_err(refuse)?;
        let lora = Lora {
            a: Param::from_tensor(matrix(&factors.a, factors.columns, adapter.rank, device)),
            b: Param::from_tensor(matrix(&factors.b, adapter.rank, factors.rows, device)),
            scale: f64::from(adapter.scale),
        };
        layers[index].insert(which, lora);
    }
    Ok(layers)
}

/// Reads `model.layers.LAYER.PART.weight`.
fn parse(name: &str) -> Option<(usize, Which)> {
    let (layer, part) = name.strip_prefix("model.layers.")?.split_once('.')?;
    let part = part.strip_suffix(".weight")?;
    let which = match part {
        "self_attn.q_proj" => Which::Dense(Projection::Query),
        "self_attn.k_proj" => Which::Dense(Projection::Key),
        "self_attn.v_proj" => Which::Dense(Projection::Value),
        "self_attn.o_proj" => Which::Dense(Projection::Output),
        "mlp.gate" => Which::Router,
        _ => match part.strip_prefix("mlp.experts.") {
            Some(part) => {
                let (expert, part) = part.split_once('.')?;
                Which::Expert(expert.parse().ok()?, feed_forward(part)?)
            }
            None => Which::Dense(feed_forward(part.strip_prefix("mlp.")?)?),
        },
    };
    Some((layer.parse().ok()?, which))
}

fn feed_forward(name: &str) -> Option<Projection> {
    match name {
        "gate_proj" => Some(Projection::Gate),
        "up_proj" => Some(Projection::Up),
        "down_proj" => Some(Projection::Down),
        _ => None,
    }
}

/// Holds the factors against the layer that they change.
fn check(layer: &Layer, which: Which, factors: &AdapterLayer, rank: usize) -> Result<(), String> {
    if which == Which::Router {
        return Err("adapters of a router are not supported".to_string());
    }
    let linear = layer
        .linear(which)
        .ok_or_else(|| "the model has no linear layer of this name".to_string())?;
    let [inputs, outputs] = linear.weight.dims();
    if [factors.columns, factors.rows] != [inputs, outputs] {
        let (columns, rows) = (factors.columns, factors.rows);
        return Err(format!("it changes [{rows}, {columns}], the weight is [{outputs}, {inputs}]"));
    }
    if [factors.a.len(), factors.b.len()] != [rank * inputs, rank * outputs] {
        return Err(format!("its factors are not of rank {rank}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canonical_names_say_layer_and_projection() {
        let found = parse("model.layers.12.self_attn.q_proj.weight");
        assert_eq!(found, Some((12, Which::Dense(Projection::Query))));
        let found = parse("model.layers.3.mlp.experts.17.down_proj.weight");
        assert_eq!(found, Some((3, Which::Expert(17, Projection::Down))));
        for name in [
            "lm_head.weight",
            "model.layers.x.mlp.up_proj.weight",
            "model.layers.1.mlp",
            "model.layers.1.mlp.experts.up_proj.weight",
            "model.layers.1.mlp.experts.-1.up_proj.weight",
        ] {
            assert_eq!(parse(name), None, "{name}");
        }
    }
}
