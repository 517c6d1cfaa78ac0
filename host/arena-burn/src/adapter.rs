//! From adapter files to changes of a transformer's layers.
//!
//! Not here: how a change is computed (`transformer::linear`).

use arena_model::executor::ExecutorError;
use arena_weights::adapter::{Adapter, AdapterLayer};
use burn::module::Param;
use burn::tensor::Device;

use crate::loading::matrix;
use crate::transformer::linear::{LayerAdapter, Lora, Projection};
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
        let (index, projection) = parse(name)
            .filter(|(index, _)| *index < layers.len())
            .ok_or_else(|| refuse("the model has no linear layer of this name".to_string()))?;
        check(&model.layers[index], projection, factors, adapter.rank).map_err(refuse)?;
        let lora = Lora {
            a: Param::from_tensor(matrix(&factors.a, factors.columns, adapter.rank, device)),
            b: Param::from_tensor(matrix(&factors.b, adapter.rank, factors.rows, device)),
            scale: f64::from(adapter.scale),
        };
        layers[index].insert(projection, lora);
    }
    Ok(layers)
}

/// Reads `model.layers.LAYER.PART.weight`.
fn parse(name: &str) -> Option<(usize, Projection)> {
    let (layer, part) = name.strip_prefix("model.layers.")?.split_once('.')?;
    let projection = match part.strip_suffix(".weight")? {
        "self_attn.q_proj" => Projection::Query,
        "self_attn.k_proj" => Projection::Key,
        "self_attn.v_proj" => Projection::Value,
        "self_attn.o_proj" => Projection::Output,
        "mlp.gate_proj" => Projection::Gate,
        "mlp.up_proj" => Projection::Up,
        "mlp.down_proj" => Projection::Down,
        _ => return None,
    };
    Some((layer.parse().ok()?, projection))
}

/// Holds the factors against the layer that they change.
fn check(
    layer: &Layer,
    projection: Projection,
    factors: &AdapterLayer,
    rank: usize,
) -> Result<(), String> {
    let linear = layer
        .linear(projection)
        .ok_or_else(|| "adapters of a mixture of experts are not supported".to_string())?;
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
        assert_eq!(found, Some((12, Projection::Query)));
        for name in ["lm_head.weight", "model.layers.x.mlp.up_proj.weight", "model.layers.1.mlp"] {
            assert_eq!(parse(name), None, "{name}");
        }
    }
}
