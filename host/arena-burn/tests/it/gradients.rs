//! Gradients of the dense forward, against differences of its results.

use arena_burn::device::BurnDevice;
use arena_burn::transformer::linear::Lora;
use arena_burn::transformer::{FeedForward, Transformer};
use arena_weights::config::Architecture;
use burn::module::Param;
use burn::tensor::{Device, Int, Tensor, TensorData};

use crate::tiny::{self, ARCHITECTURES, Random};

/// How far a weight is moved, along a direction of random numbers: so little that no row of a
/// mixture changes its experts, where the loss jumps.
const STEP: f32 = 3.0e-4;

/// Returns a number that depends on every logit of two sequences.
fn loss(model: &Transformer, device: &Device) -> Tensor<1> {
    let tokens: Vec<i32> = Random(11).tokens(18).iter().map(|&token| token as i32).collect();
    let tokens: Tensor<2, Int> = Tensor::from_data(TensorData::new(tokens, [2, 9]), device);
    let logits = model.forward(tokens);
    let weights = TensorData::new(Random(12).floats(2 * 9 * 91), [2, 9, 91]);
    (logits * Tensor::from_data(weights, device)).mean()
}

fn number(tensor: Tensor<1>) -> f32 {
    tensor.into_data().as_slice::<f32>().expect("losses are f32")[0]
}

/// Finds a matrix of a model.
type Find = fn(&mut Transformer) -> &mut Param<Tensor<2>>;

fn matrices(architecture: Architecture) -> Vec<(&'static str, Find)> {
    let mut found: Vec<(&'static str, Find)> = vec![
        ("embedding", |model| &mut model.embedding.weight),
        ("query", |model| &mut model.layers[0].attention.query.weight),
        ("key", |model| &mut model.layers[1].attention.key.weight),
        ("value", |model| &mut model.layers[0].attention.value.weight),
        ("output", |model| &mut model.layers[1].attention.output.weight),
        ("a", |model| &mut lora(model).a),
        ("b", |model| &mut lora(model).b),
    ];
    if architecture == Architecture::Qwen3Moe {
        found.push(("router", |model| match &mut model.layers[0].feed_forward {
            FeedForward::Experts(moe) => &mut moe.router.weight,
            FeedForward::Dense(_) => unreachable!("it is a mixture"),
        }));
        found.push(("down of an expert", |model| match &mut model.layers[1].feed_forward {
            FeedForward::Experts(moe) => &mut moe.experts[3].down.weight,
            FeedForward::Dense(_) => unreachable!("it is a mixture"),
        }));
    } else {
        found.push(("gate", |model| match &mut model.layers[0].feed_forward {
            FeedForward::Dense(mlp) => &mut mlp.gate.weight,
            FeedForward::Experts(_) => unreachable!("it is dense"),
        }));
    }
    found
}

fn lora(model: &mut Transformer) -> &mut Lora {
    model.layers[0].attention.query.lora.as_mut().expect("it was added")
}

fn model(architecture: Architecture, device: &Device) -> Transformer {
    let mut model = tiny::model(architecture, device);
    let matrix = |rows: usize, columns: usize| {
        let values = TensorData::new(Random(13).floats(rows * columns), [rows, columns]);
        Param::from_tensor(Tensor::from_data(values, device))
    };
    let lora = Lora { a: matrix(36, 3), b: matrix(3, 60), scale: 0.5 };
    model.layers[0].attention.query.lora = Some(lora);
    model
}

#[test]
fn gradients_say_how_the_loss_changes_with_each_kind_of_weight() {
    let plain = BurnDevice::Flex.open().expect("it is there");
    let tracked = plain.clone().autodiff();
    for architecture in ARCHITECTURES {
        let mut model_on_tape = model(architecture, &tracked);
        let gradients = loss(&model_on_tape, &tracked).backward();
        for (name, find) in matrices(architecture) {
            let weight = find(&mut model_on_tape).val();
            let [rows, columns] = weight.dims();
            let direction = TensorData::new(Random(14).floats(rows * columns), [rows, columns]);
            let direction: Tensor<2> = Tensor::from_data(direction, &plain);
            let gradient = weight.grad(&gradients).expect("every weight has a gradient");
            let expected = number((gradient * direction.clone()).sum());

            let moved = |step: f32| {
                let mut model = model(architecture, &plain);
                let weight = find(&mut model);
                *weight = Param::from_tensor(weight.val() + direction.clone() * step);
                number(loss(&model, &plain))
            };
            let found = (moved(STEP) - moved(-STEP)) / (2.0 * STEP);
            let error = (found - expected).abs();
            assert!(
                error <= 0.03 * expected.abs() + 2.0e-4,
                "{architecture:?}, {name}: {found} by difference, {expected} by gradient"
            );
            assert!(expected != 0.0, "{architecture:?}, {name}");
        }
    }
}
