//! Rows through a layer, as the executor does it (`cpu::forward`), and what is kept of it.
//!
//! Not here: formulas and shapes, which are the executor's.

use arena_kernels::activation::{add, swiglu};
use arena_kernels::attention::{AttentionShape, KvBlocks, attention};
use arena_kernels::columns::take_columns;
use arena_kernels::matrix::{Rows as Place, Sums};
use arena_kernels::norm::rms_norm;
use arena_kernels::rope::{RopeTable, rope};

use crate::cpu::adapter::{Linear, shape_of};
use crate::cpu::scratch::sized;
use crate::executor::BLOCK_TOKENS;

use super::model::{Kept, Model, Work, dense};
use super::rows::Rows;

impl Model {
    /// Writes the embeddings of all rows to `x`, `[rows, hidden]`.
    pub fn embed(&self, rows: &Rows, x: &mut Vec<f32>) {
        let hidden = self.config.hidden;
        x.resize(rows.len() * hidden, 0.0);
        for (x, &token) in x.chunks_exact_mut(hidden).zip(&rows.tokens) {
            self.network.embedding.row(token as usize, x);
        }
    }

    /// Takes rows through a layer, in place. Shape: `x` is `[rows, hidden]`.
    pub fn forward(
        &self,
        index: usize,
        rows: &Rows,
        x: &mut [f32],
        kept: &mut Kept,
        work: &mut Work,
    ) {
        let (context, config, layer) = (&self.context, &self.config, &self.network.layers[index]);
        let count = rows.len();
        let width = config.heads * config.head_dim;
        let normed = sized(&mut work.normed, x.len());
        rms_norm(context, x, &layer.attention_norm, config.rms_eps, normed);
        kept.joined.resize(count * layer.queries_keys_values.rows(), 0.0);
        layer.queries_keys_values.multiply(context, normed, &mut kept.joined);
        let linears = [Linear::Query, Linear::Key, Linear::Value];
        self.adapt(index, &linears, normed, &mut kept.joined, &mut work.low);
        self.rotate(index, rows, &kept.joined, work);
        kept.attended.resize(count * width, 0.0);
        self.attend(rows, &mut kept.attended, work);
        let out = sized(&mut work.out, x.len());
        layer.output.multiply(context, &kept.attended, out);
        self.adapt(index, &[Linear::Output], &kept.attended, out, &mut work.low);
        add(context, x, out);
        kept.middle.clear();
        kept.middle.extend_from_slice(x);
        let normed = sized(&mut work.normed, x.len());
        rms_norm(context, x, &layer.feed_forward_norm, config.rms_eps, normed);
        kept.gate_up.resize(count * 2 * config.ffn, 0.0);
        dense(layer).gate_up.multiply(context, normed, &mut kept.gate_up);
        let linears = [Linear::Gate, Linear::Up];
        self.adapt(index, &linears, normed, &mut kept.gate_up, &mut work.low);
        let gated = sized(&mut work.gated, count * config.ffn);
        swiglu(context, config.ffn, &kept.gate_up, gated);
        let out = sized(&mut work.out, x.len());
        dense(layer).down.multiply(context, gated, out);
        self.adapt(index, &[Linear::Down], gated, out, &mut work.low);
        add(context, x, out);
    }

    /// Adds what the adapter changes in linear layers whose outputs lie side by side in `y`, and
    /// whose inputs are all `x`.
    fn adapt(
        &self,
        layer: usize,
        linears: &[Linear],
        x: &[f32],
        y: &mut [f32],
        low: &mut Vec<f32>,
    ) {
        let Some(factors) = &self.factors else { return };
        let stride = linears.iter().map(|linear| shape_of(*linear, &self.config).0).sum();
        let mut first = 0;
        for linear in linears {
            let pair = &factors.layers[layer][*linear as usize];
            let count = x.len() / pair.a.columns();
            let low = sized(low, count * pair.a.rows());
            pair.a.multiply(&self.context, x, low);
            low.iter_mut().for_each(|low| *low *= factors.scale);
            let (from, to) = (Place::dense(pair.b.columns()), Place { first, stride });
            pair.b.multiply_rows(&self.context, count, (low, from), (&mut *y, to), Sums::Added);
            first += pair.b.rows();
        }
    }

    /// Takes queries, keys and values apart, normalises and rotates them.
    pub fn rotate(&self, index: usize, rows: &Rows, joined: &[f32], work: &mut Work) {
        let (config, layer) = (&self.config, &self.network.layers[index]);
        let (query_width, key_width) =
            (config.heads * config.head_dim, config.kv_heads * config.head_dim);
        let width = query_width + 2 * key_width;
        let queries = sized(&mut work.queries, rows.len() * query_width);
        let keys = sized(&mut work.keys, rows.len() * key_width);
        let values = sized(&mut work.values, rows.len() * key_width);
        let (context, joined) = (&self.context, (joined, width));
        take_columns(context, joined, 0, (&mut *queries, query_width));
        take_columns(context, joined, query_width, (&mut *keys, key_width));
        take_columns(context, joined, query_width + key_width, (values, key_width));
        if let Some(norms) = &layer.head_norms {
            for (heads, norm) in [(&mut *queries, &norms.queries), (&mut *keys, &norms.keys)] {
                let normed = sized(&mut work.normed_heads, heads.len());
                rms_norm(context, heads, norm, config.rms_eps, normed);
                heads.copy_from_slice(normed);
            }
        }
        let table = table(&mut work.rope, rows, config.head_dim, config.rope_theta);
        rope(context, table, queries, &rows.positions);
        rope(context, table, keys, &rows.positions);
    }

    /// Lets every row attend to the rows of its sequence up to its own.
    fn attend(&self, rows: &Rows, attended: &mut [f32], work: &mut Work) {
        let AttentionShape { kv_heads, head_dim, .. } = self.attention;
        let width = kv_heads * head_dim;
        let blocks = rows.block_count;
        if work.cache.as_ref().is_none_or(|cache| cache.blocks() < blocks) {
            work.cache = Some(KvBlocks::new(blocks, kv_heads, head_dim));
        }
        let cache = work.cache.as_mut().expect("it was made above if it was not there");
        let seen = rows.seen();
        for (row, (seen, &position)) in seen.iter().zip(&rows.positions).enumerate() {
            let block = seen.blocks[position as usize / BLOCK_TOKENS];
            let (key, value) = (&work.keys[row * width..], &work.values[row * width..]);
            cache.store(block, position as usize % BLOCK_TOKENS, &key[..width], &value[..width]);
        }
        let queries = &work.queries[..attended.len()];
        attention(&self.context, &self.attention, queries, &seen, cache, attended);
    }
}

/// Returns a table with all positions of the rows.
pub(super) fn table<'a>(
    table: &'a mut Option<RopeTable>,
    rows: &Rows,
    head_dim: usize,
    theta: f32,
) -> &'a RopeTable {
    let needed = rows.positions.iter().max().map_or(0, |&last| last as usize + 1);
    if table.as_ref().is_none_or(|table| table.positions() < needed) {
        *table = Some(RopeTable::new(head_dim, f64::from(theta), needed));
    }
    table.as_ref().expect("it was made above if it was not there")
}
