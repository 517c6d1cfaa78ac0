//! The weights of a whole model, packed to be multiplied with.

use std::collections::BTreeMap;

use arena_kernels::format::Format;
use arena_kernels::matrix::Matrix;
use arena_weights::config::ModelConfig;
use arena_weights::error::WeightsError;
use arena_weights::tensor::Tensor;

use crate::error::EngineError;
use crate::executor::ExecutorError;

use super::layer::Layer;

/// A model's weights, in the formats that they are stored in.
pub(super) struct Network {
    /// How many tensors have each format.
    pub formats: BTreeMap<&'static str, usize>,
    pub embedding: Matrix,
    /// The output head, unless it is the embedding.
    pub untied_head: Option<Matrix>,
    pub final_norm: Vec<f32>,
    pub layers: Vec<Layer>,
}

impl Network {
    /// Reads a model of tensors that `read` returns by their canonical names.
    pub fn read(
        config: &ModelConfig,
        read: &mut dyn FnMut(&str) -> Result<Tensor, WeightsError>,
    ) -> Result<Network, EngineError> {
        let mut source = Source { read, formats: BTreeMap::new() };
        let named = |name: &str, rows: usize| [(name.to_owned(), rows)];
        let hidden = config.hidden;
        let embedding = source.matrix(&named("model.embed_tokens.weight", config.vocab), hidden)?;
        let untied_head = match config.tied_embeddings {
            true => None,
            false => Some(source.matrix(&named("lm_head.weight", config.vocab), hidden)?),
        };
        let final_norm = source.vector("model.norm.weight", hidden)?;
        let mut layers = Vec::new();
        for index in 0..config.layers {
            layers.push(Layer::read(&mut source, config, index)?);
        }
        Ok(Network { formats: source.formats, embedding, untied_head, final_norm, layers })
    }

    /// Returns the output head.
    pub fn head(&self) -> &Matrix {
        self.untied_head.as_ref().unwrap_or(&self.embedding)
    }

    /// Returns the formats of the stored tensors, and how many have each.
    pub fn formats(&self) -> String {
        let counted = |(name, count): (&&str, &usize)| format!("{name}:{count}");
        let formats: Vec<String> = self.formats.iter().map(counted).collect();
        formats.join(",")
    }
}

/// Reads tensors by name, and counts their formats.
pub(super) struct Source<'a> {
    read: &'a mut dyn FnMut(&str) -> Result<Tensor, WeightsError>,
    formats: BTreeMap<&'static str, usize>,
}

impl Source<'_> {
    pub fn tensor(&mut self, name: &str) -> Result<Tensor, EngineError> {
        let tensor = (self.read)(name)?;
        *self.formats.entry(tensor.format.name()).or_default() += 1;
        Ok(tensor)
    }

    pub fn vector(&mut self, name: &str, width: usize) -> Result<Vec<f32>, EngineError> {
        let values = self.tensor(name)?.to_f32();
        if values.len() == width {
            return Ok(values);
        }
        let detail = format!("has {} weights, the model's numbers make it {width}", values.len());
        Err(ExecutorError::Tensor { tensor: name.to_owned(), detail }.into())
    }

    /// Reads matrices `[rows, columns]` and puts them one below the other.
    pub fn matrix(
        &mut self,
        parts: &[(String, usize)],
        columns: usize,
    ) -> Result<Matrix, EngineError> {
        let mut tensors = Vec::new();
        for (name, _) in parts {
            tensors.push(self.tensor(name)?);
        }
        let parts: Vec<(Format, usize, &[u8])> = tensors
            .iter()
            .zip(parts)
            .map(|(tensor, &(_, rows))| (tensor.format, rows, &tensor.bytes[..]))
            .collect();
        let named = |error: arena_kernels::error::KernelsError| ExecutorError::Tensor {
            tensor: tensors[0].name.clone(),
            detail: error.to_string(),
        };
        Ok(Matrix::new(&parts, columns).map_err(named)?)
    }
}
