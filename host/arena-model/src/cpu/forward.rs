//! One batch through the model.
//!
//! Per layer, with `n` an RMS norm: `x += output(attention(n(x)))`, then
//! `x += feed_forward(n(x))`; at the end `logits = head(n(x))`. Queries and keys are normalised per
//! head where the architecture has such norms, then rotated. Shapes: `x` is `[m, hidden]`,
//! queries `[m, heads * head_dim]`, keys and values `[m, kv_heads * head_dim]`.

use arena_kernels::activation::{add, swiglu};
use arena_kernels::attention::{AttentionRow, attention};
use arena_kernels::columns::take_columns;
use arena_kernels::norm::rms_norm;
use arena_kernels::rope::rope;

use crate::executor::{BATCH_ROWS_MAX, BLOCK_TOKENS, Batch};

use super::CpuExecutor;
use super::adapter::{AdaptedRows, Change, Linear, group};
use super::layer::FeedForward;
use super::scratch::sized;

impl CpuExecutor {
    pub(super) fn compute(&mut self, batch: &Batch, logits: &mut Vec<f32>) {
        let row_count = batch.tokens.len();
        assert!(row_count <= BATCH_ROWS_MAX, "{row_count} rows of at most {BATCH_ROWS_MAX}");
        let hidden = self.config.hidden;
        let groups = group(batch);
        self.note_places(batch);
        let mut residual = std::mem::take(&mut self.scratch.residual);
        let x = sized(&mut residual, row_count * hidden);
        for (x, &token) in x.chunks_exact_mut(hidden).zip(&batch.tokens) {
            self.network.embedding.row(token as usize, x);
        }
        for layer in 0..self.network.layers.len() {
            self.attend(batch, &groups, layer, x);
            self.feed_forward(&groups, layer, x);
        }
        self.write_logits(batch, x, logits);
        self.scratch.residual = residual;
    }

    /// Writes down the position of every row, and the blocks of every sequence.
    fn note_places(&mut self, batch: &Batch) {
        self.scratch.positions.clear();
        self.scratch.blocks.clear();
        for sequence in &batch.sequences {
            let count = u32::try_from(sequence.rows.len()).expect("batches are small");
            let positions = sequence.start_position..sequence.start_position + count;
            self.scratch.positions.extend(positions);
            self.scratch.blocks.extend(sequence.blocks.iter().map(|block| block.0));
        }
    }

    fn attend(&mut self, batch: &Batch, groups: &[AdaptedRows], index: usize, x: &mut [f32]) {
        self.project(groups, index, x);
        self.store(batch, index);
        let (context, scratch) = (&*self.context, &mut self.scratch);
        let (layer, row_count) = (&self.network.layers[index], batch.tokens.len());
        let mut first_block = 0;
        let mut rows = Vec::with_capacity(row_count);
        for sequence in &batch.sequences {
            let blocks = &scratch.blocks[first_block..first_block + sequence.blocks.len()];
            first_block += blocks.len();
            let positions = &scratch.positions[sequence.rows.clone()];
            rows.extend(positions.iter().map(|&position| {
                let context_tokens = position as usize + 1;
                AttentionRow { blocks, context_tokens }
            }));
        }
        let width = self.config.heads * self.config.head_dim;
        let queries = &scratch.queries[..row_count * width];
        let attended = sized(&mut scratch.attended, row_count * width);
        attention(context, &self.attention, queries, &rows, &self.cache[index], attended);
        let out = sized(&mut scratch.out, x.len());
        layer.output.multiply(context, attended, out);
        let (linear, stride) = (Linear::Output, self.config.hidden);
        let change = Change { layer: index, linear, x: attended, stride, offset: 0 };
        change.add(context, &self.adapters, groups, out, &mut scratch.adapter);
        add(context, x, out);
    }

    /// Computes queries, keys and values of a layer, normalised and rotated.
    fn project(&mut self, groups: &[AdaptedRows], index: usize, x: &[f32]) {
        let (context, config, scratch) = (&*self.context, &self.config, &mut self.scratch);
        let (layer, row_count) = (&self.network.layers[index], x.len() / config.hidden);
        let (query_width, key_width) =
            (config.heads * config.head_dim, config.kv_heads * config.head_dim);
        let width = query_width + 2 * key_width;
        let normed = sized(&mut scratch.normed, x.len());
        rms_norm(context, x, &layer.attention_norm, config.rms_eps, normed);
        let joined = sized(&mut scratch.joined, row_count * width);
        layer.queries_keys_values.multiply(context, normed, joined);
        let parts = [
            (Linear::Query, 0),
            (Linear::Key, query_width),
            (Linear::Value, query_width + key_width),
        ];
        for (linear, offset) in parts {
            let change = Change { layer: index, linear, x: normed, stride: width, offset };
            change.add(context, &self.adapters, groups, joined, &mut scratch.adapter);
        }
        let queries = sized(&mut scratch.queries, row_count * query_width);
        let keys = sized(&mut scratch.keys, row_count * key_width);
        let values = sized(&mut scratch.values, row_count * key_width);
        let joined = (&*joined, width);
        take_columns(context, joined, 0, (&mut *queries, query_width));
        take_columns(context, joined, query_width, (&mut *keys, key_width));
        take_columns(context, joined, query_width + key_width, (values, key_width));
        if let Some(norms) = &layer.head_norms {
            for (heads, norm) in [(&mut *queries, &norms.queries), (&mut *keys, &norms.keys)] {
                let normed = sized(&mut scratch.normed_heads, heads.len());
                rms_norm(context, heads, norm, config.rms_eps, normed);
                heads.copy_from_slice(normed);
            }
        }
        rope(context, &self.rope, queries, &scratch.positions);
        rope(context, &self.rope, keys, &scratch.positions);
    }

    /// Writes the keys and values of all rows into their blocks.
    fn store(&mut self, batch: &Batch, index: usize) {
        let (scratch, cache) = (&self.scratch, &mut self.cache[index]);
        let width = self.config.kv_heads * self.config.head_dim;
        for sequence in &batch.sequences {
            for row in sequence.rows.clone() {
                let position = scratch.positions[row] as usize;
                cache.store(
                    sequence.blocks[position / BLOCK_TOKENS].0,
                    position % BLOCK_TOKENS,
                    &scratch.keys[row * width..][..width],
                    &scratch.values[row * width..][..width],
                );
            }
        }
    }

    fn feed_forward(&mut self, groups: &[AdaptedRows], index: usize, x: &mut [f32]) {
        let (context, config, scratch) = (&*self.context, &self.config, &mut self.scratch);
        let layer = &self.network.layers[index];
        let normed = sized(&mut scratch.normed, x.len());
        rms_norm(context, x, &layer.feed_forward_norm, config.rms_eps, normed);
        let out = sized(&mut scratch.out, x.len());
        match &layer.feed_forward {
            FeedForward::Experts(experts) => {
                experts.forward(context, normed, out, &mut scratch.experts);
            }
            FeedForward::Dense(dense) => {
                let (width, row_count) = (config.ffn, x.len() / config.hidden);
                let gate_up = sized(&mut scratch.gate_up, row_count * 2 * width);
                dense.gate_up.multiply(context, normed, gate_up);
                for (linear, offset) in [(Linear::Gate, 0), (Linear::Up, width)] {
                    let change =
                        Change { layer: index, linear, x: normed, stride: 2 * width, offset };
                    change.add(context, &self.adapters, groups, gate_up, &mut scratch.adapter);
                }
                let gated = sized(&mut scratch.gated, row_count * width);
                swiglu(context, width, gate_up, gated);
                dense.down.multiply(context, gated, out);
                let (linear, stride) = (Linear::Down, config.hidden);
                let change = Change { layer: index, linear, x: gated, stride, offset: 0 };
                change.add(context, &self.adapters, groups, out, &mut scratch.adapter);
            }
        }
        add(context, x, out);
    }

    fn write_logits(&mut self, batch: &Batch, x: &[f32], logits: &mut Vec<f32>) {
        let hidden = self.config.hidden;
        let count = batch.logits_of.len();
        let wanted = sized(&mut self.scratch.out, count * hidden);
        for (wanted, &row) in wanted.chunks_exact_mut(hidden).zip(&batch.logits_of) {
            wanted.copy_from_slice(&x[row * hidden..][..hidden]);
        }
        let normed = sized(&mut self.scratch.normed, count * hidden);
        rms_norm(&self.context, wanted, &self.network.final_norm, self.config.rms_eps, normed);
        logits.resize(count * self.config.vocab, 0.0);
        if count > 0 {
            self.network.head().multiply(&self.context, normed, logits);
        }
    }
}
