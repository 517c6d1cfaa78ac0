//! Rotary positions, halves rotated against each other (Su et al. 2021, "RoFormer", equation 34;
//! pairs are `(i, i + head_dim / 2)`, as in Hugging Face's models).

use burn::tensor::{Device, Tensor, TensorData};

/// The rotations of a batch's rows.
#[derive(Clone, Debug)]
pub struct Rotation {
    /// `[rows, 1, head_dim]`; the second half repeats the first.
    pub cosine: Tensor<3>,
    /// `[rows, 1, head_dim]`; the second half repeats the first.
    pub sine: Tensor<3>,
}

impl Rotation {
    /// Returns the rotations by `position * theta^(-2 i / head_dim)` for pairs `i` of a head.
    ///
    /// Frequencies and angles are rounded to `f32` where Hugging Face's models round them, so
    /// that far positions agree with theirs; powers, cosines and sines are taken in `f64`.
    pub fn new(positions: &[u32], head_dim: usize, theta: f64, device: &Device) -> Rotation {
        let half = head_dim / 2;
        let frequency = |pair: usize| {
            let exponent = (2 * pair) as f32 / head_dim as f32;
            1.0 / theta.powf(f64::from(exponent)) as f32
        };
        let frequencies: Vec<f32> = (0..half).map(frequency).collect();
        let angles = || {
            positions.iter().flat_map(|&position| {
                let angle = move |frequency: &f32| f64::from(position as f32 * frequency);
                frequencies.iter().chain(&frequencies).map(angle)
            })
        };
        let tensor = |values: Vec<f32>| {
            Tensor::from_data(TensorData::new(values, [positions.len(), 1, head_dim]), device)
        };
        Rotation {
            cosine: tensor(angles().map(|angle| angle.cos() as f32).collect()),
            sine: tensor(angles().map(|angle| angle.sin() as f32).collect()),
        }
    }

    /// Returns `x cos + (-x2, x1) sin`, where `x1` and `x2` are the halves of a head;
    /// `[rows, heads, head_dim]` to the same shape.
    pub fn forward(&self, x: Tensor<3>) -> Tensor<3> {
        let [_, _, head_dim] = x.dims();
        let half = head_dim / 2;
        let first = x.clone().narrow(2, 0, half);
        let second = x.clone().narrow(2, half, half);
        let turned = Tensor::cat(vec![-second, first], 2);
        x * self.cosine.clone() + turned * self.sine.clone()
    }
}
