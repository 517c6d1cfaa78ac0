//! What a learner begins with: which parameters there are, and their first values.
//!
//! They are those of the learner on the CPU, number by number.
//!
//! Not here: where parameters are in a model (`places`).

use arena_core::seed::Stream;
use arena_model::cpu::learner::Start;
use arena_model::executor::ExecutorError;
use arena_model::learner::{Parameter, Trained};
use arena_weights::adapter::{Adapter, RANK_MAX};

use crate::error::BurnError;
use crate::learner::places::{Part, Place};

/// Returns what is trained, and the scale of the adapter, 1 where there is none.
///
/// # Errors
/// There is no such adapter.
pub fn trained(start: &Start<'_>) -> Result<(Trained, f32), BurnError> {
    let (rank, alpha, scale) = match *start {
        Start::Full => return Ok((Trained::Full, 1.0)),
        // Rounded as where an adapter's files are read.
        Start::Drawn { rank, alpha, .. } => (rank, alpha, (f64::from(alpha) / rank as f64) as f32),
        Start::Adapter { adapter, .. } => {
            (adapter.rank, adapter.scale * adapter.rank as f32, adapter.scale)
        }
    };
    if !(1..=RANK_MAX).contains(&rank) || !scale.is_finite() {
        return Err(BurnError::Adapter { rank, alpha });
    }
    Ok((Trained::Adapter { rank, alpha }, scale))
}

/// Returns the first values of an adapter's parameters; those of a model are its own.
///
/// # Errors
/// The adapter changes a layer that is not trained.
pub fn first_values(
    start: Start<'_>,
    places: &[Place],
    parameters: &[Parameter],
) -> Result<Option<Vec<Vec<f32>>>, ExecutorError> {
    match start {
        Start::Full => Ok(None),
        Start::Drawn { mut stream, .. } => Ok(Some(drawn(places, parameters, &mut stream))),
        Start::Adapter { adapter, mut stream } => {
            let mut values = drawn(places, parameters, &mut stream);
            take(adapter, parameters, &mut values)?;
            Ok(Some(values))
        }
    }
}

/// Draws A evenly from `-1 / sqrt(inputs)` to `1 / sqrt(inputs)`, and makes B zero. Source: PEFT,
/// `LoraLayer.reset_lora_parameters`.
fn drawn(places: &[Place], parameters: &[Parameter], stream: &mut Stream) -> Vec<Vec<f32>> {
    let mut draw = |bound: f64| {
        let unit = (stream.bits() >> 11) as f64 / (1_u64 << 53) as f64;
        ((2.0 * unit - 1.0) * bound) as f32
    };
    let values = places.iter().zip(parameters).map(|(place, Parameter { shape, .. })| {
        let count: usize = shape.iter().product();
        match place {
            Place::Layer(_, Part::A(_)) => {
                let bound = 1.0 / (shape[1] as f64).sqrt();
                (0..count).map(|_| draw(bound)).collect()
            }
            _ => vec![0.0; count],
        }
    });
    values.collect()
}

/// Puts an adapter's factors in place of values.
fn take(
    adapter: &Adapter,
    parameters: &[Parameter],
    values: &mut [Vec<f32>],
) -> Result<(), ExecutorError> {
    for (weight, layer) in &adapter.layers {
        let refuse = |detail: String| ExecutorError::Adapter { tensor: weight.clone(), detail };
        let module = weight.trim_end_matches(".weight");
        for (factor, given) in [("A", &layer.a), ("B", &layer.b)] {
            let name = format!("base_model.model.{module}.lora_{factor}.weight");
            let at = parameters.iter().position(|parameter| parameter.name == name);
            let at = at.ok_or_else(|| refuse("there is no such layer to adapt".to_string()))?;
            if values[at].len() != given.len() {
                let (found, expected) = (given.len(), values[at].len());
                return Err(refuse(format!("factor {factor} has {found} values, not {expected}")));
            }
            values[at].clone_from(given);
        }
    }
    Ok(())
}
