//! A tensor: its name, shape, format and bytes.
//!
//! Names and shapes are Hugging Face's whatever the file is: shapes are outermost first, so a
//! linear layer is `[out, in]`, and every row is `row_bytes` of the format.
//!
//! Not here: what the bytes of a format mean (`arena_kernels::format`).

use arena_kernels::format::{Format, dequantise};

/// A tensor that a model has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorInfo {
    /// Canonical name, such as `model.layers.0.self_attn.q_proj.weight`.
    pub name: String,
    /// How the weights are stored.
    pub format: Format,
    /// Outermost first.
    pub shape: Vec<usize>,
}

impl TensorInfo {
    /// Returns the number of weights. It was checked not to overflow when the file was read.
    pub fn element_count(&self) -> usize {
        self.shape.iter().product()
    }
}

/// A tensor with its bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// Canonical name.
    pub name: String,
    /// How the weights are stored.
    pub format: Format,
    /// Outermost first.
    pub shape: Vec<usize>,
    /// Rows of the innermost dimension, one after the other.
    pub bytes: Vec<u8>,
}

impl Tensor {
    /// Returns a tensor of f32.
    ///
    /// # Panics
    /// If there are not as many values as the shape has.
    pub fn of_f32(name: &str, shape: &[usize], values: &[f32]) -> Tensor {
        assert!(shape.iter().product::<usize>() == values.len(), "`{name}`: {}", values.len());
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        Tensor { name: name.to_owned(), format: Format::F32, shape: shape.into(), bytes }
    }

    /// Returns the weights in storage order, each as the format says, in f32.
    pub fn to_f32(&self) -> Vec<f32> {
        let mut out = vec![0.0; self.shape.iter().product()];
        dequantise(self.format, &self.bytes, &mut out);
        out
    }
}
