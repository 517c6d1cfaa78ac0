//! Tensors between the device, where they are `[in, out]`, the tape that gradients are computed
//! on, and callers, for whom they are `[out, in]`.
//!
//! A model lies on the plain device. What is trained of it is lifted onto a tape when gradients
//! are wanted; everything else stays a constant, for which no gradient is ever computed.
//!
//! Not here: which tensors are trained (`places`).

use arena_model::executor::ExecutorError;
use burn::module::Param;
use burn::tensor::{Device, Gradients, Tensor, TensorData};

use crate::learner::places::Found;
use crate::loading::{matrix, transpose};

/// A trained tensor on a tape.
pub struct Leaf {
    /// Which of the trained tensors.
    index: usize,
    tensor: LeafTensor,
}

enum LeafTensor {
    Matrix(Tensor<2>),
    Gain(Tensor<1>),
}

impl Found<'_> {
    /// Puts the tensor on a tape, as the trained one of this index.
    pub fn lift(self, index: usize) -> Leaf {
        let tensor = match self {
            Found::Matrix(place) => LeafTensor::Matrix(lift(place)),
            Found::Gain(place) => LeafTensor::Gain(lift(place)),
        };
        Leaf { index, tensor }
    }

    /// Returns the values, as callers know them.
    ///
    /// # Errors
    /// The device failed.
    pub fn values(self) -> Result<Vec<f32>, ExecutorError> {
        match self {
            Found::Matrix(place) => matrix_values(place.val()),
            Found::Gain(place) => read(place.val()),
        }
    }

    /// Takes other values, as callers know them and as many as there are.
    pub fn set_values(self, values: &[f32], device: &Device) {
        match self {
            Found::Matrix(place) => {
                let [inputs, outputs] = place.val().dims();
                *place = Param::from_tensor(matrix(values, inputs, outputs, device));
            }
            Found::Gain(place) => {
                let data = TensorData::new(values.to_vec(), [values.len()]);
                *place = Param::from_tensor(Tensor::from_data(data, device));
            }
        }
    }
}

fn lift<const D: usize>(place: &mut Param<Tensor<D>>) -> Tensor<D> {
    // A new parameter asks for its gradient.
    *place = Param::from_tensor(place.val().autodiff());
    place.val()
}

impl Leaf {
    /// Adds the leaf's gradient, if the result depended on it, to that of its index.
    ///
    /// # Errors
    /// The device failed.
    pub fn add(&self, of: &mut Gradients, to: &mut [Vec<f32>]) -> Result<(), ExecutorError> {
        let gradient = match &self.tensor {
            LeafTensor::Matrix(tensor) => tensor.grad_remove(of).map(matrix_values),
            LeafTensor::Gain(tensor) => tensor.grad_remove(of).map(read),
        };
        let Some(gradient) = gradient.transpose()? else { return Ok(()) };
        let sum = &mut to[self.index];
        assert_eq!(sum.len(), gradient.len(), "gradients are laid out as values");
        for (sum, gradient) in sum.iter_mut().zip(gradient) {
            *sum += gradient;
        }
        Ok(())
    }
}

/// Returns `[in, out]` on the device as row-major `[out, in]`.
fn matrix_values(tensor: Tensor<2>) -> Result<Vec<f32>, ExecutorError> {
    let [inputs, outputs] = tensor.dims();
    Ok(transpose(&read(tensor)?, outputs, inputs))
}

/// Returns a tensor's elements, row-major.
///
/// # Errors
/// The device failed.
pub fn read<const D: usize>(tensor: Tensor<D>) -> Result<Vec<f32>, ExecutorError> {
    let data = tensor.try_into_data().map_err(|error| ExecutorError::Device(error.to_string()))?;
    let values = data.try_to_vec::<f32>();
    values.map_err(|error| ExecutorError::Device(format!("it returned no f32: {error:?}")))
}
