//! Gradients back through a layer.
//!
//! With `dx` the gradient of what leaves a layer: both halves add to it what comes through their
//! norm, so in the end it is that of what went in. Shapes are those of the way forth.

use arena_kernels::activation::swiglu;
use arena_kernels::columns::{put_columns, take_columns};
use arena_kernels::gradient::activation::swiglu_gradient;
use arena_kernels::gradient::attention::{Attended, AttentionGradients, attention_gradient};
use arena_kernels::gradient::norm::{WeightGradient, rms_norm_gradient};
use arena_kernels::gradient::outer::{Columns, add_outer_products};
use arena_kernels::matrix::{Matrix, Rows as Place, Sums as Chains};
use arena_kernels::norm::rms_norm;
use arena_kernels::rope::rope_gradient;

use crate::cpu::adapter::{Linear, shape_of};
use crate::cpu::scratch::sized;

use super::forward::table;
use super::model::{Kept, Model, Work};
use super::parameters::{Sums, place_of_a};
use super::rows::Rows;

/// Linear layers whose outputs lie side by side and whose inputs are the same.
struct Stack<'a> {
    layer: usize,
    linears: &'a [Linear],
    across: &'a Matrix,
    /// `[rows, inputs]`.
    x: &'a [f32],
    /// `[rows, outputs of all]`.
    dy: &'a [f32],
}

impl Model {
    /// Makes of the gradient of what left a layer that of what went in, and adds the gradients of
    /// what is trained of it.
    pub fn backward(
        &self,
        index: usize,
        rows: &Rows,
        (input, kept): (&[f32], &Kept),
        dx: &mut [f32],
        sums: &mut Sums<'_>,
        work: &mut Work,
    ) {
        self.feed_forward_back(index, kept, dx, sums, work);
        self.attention_back(index, rows, kept, dx, sums, work);
        let (config, layer) = (&self.config, &self.network.layers[index]);
        let normed = sized(&mut work.normed, dx.len());
        rms_norm(&self.context, input, &layer.attention_norm, config.rms_eps, normed);
        let dnormed = sized(&mut work.dnormed, dx.len());
        let stack = Stack {
            layer: index,
            linears: &[Linear::Query, Linear::Key, Linear::Value],
            across: &self.across.layers[index].queries_keys_values,
            x: normed,
            dy: &work.djoined[..kept.joined.len()],
        };
        self.linear_back(&stack, dnormed, sums, (&mut work.low, &mut work.dlow));
        let place = sums.places().map(|places| places.layers[index].attention_norm);
        let norm = (input, &layer.attention_norm[..]);
        self.norm_back(norm, dnormed, dx, sums, (place, &mut work.scales));
    }

    fn feed_forward_back(
        &self,
        index: usize,
        kept: &Kept,
        dx: &mut [f32],
        sums: &mut Sums<'_>,
        work: &mut Work,
    ) {
        let (context, config, layer) = (&self.context, &self.config, &self.network.layers[index]);
        let gated = sized(&mut work.gated, kept.gate_up.len() / 2);
        swiglu(context, config.ffn, &kept.gate_up, gated);
        let dgated = sized(&mut work.dgated, gated.len());
        let low = (&mut work.low, &mut work.dlow);
        let across = &self.across.layers[index];
        let stack = Stack {
            layer: index,
            linears: &[Linear::Down],
            across: &across.down,
            x: gated,
            dy: dx,
        };
        self.linear_back(&stack, dgated, sums, low);
        let dgate_up = sized(&mut work.dgate_up, kept.gate_up.len());
        swiglu_gradient(context, config.ffn, &kept.gate_up, dgated, dgate_up);
        let normed = sized(&mut work.normed, dx.len());
        rms_norm(context, &kept.middle, &layer.feed_forward_norm, config.rms_eps, normed);
        let dnormed = sized(&mut work.dnormed, dx.len());
        let stack = Stack {
            layer: index,
            linears: &[Linear::Gate, Linear::Up],
            across: &across.gate_up,
            x: normed,
            dy: dgate_up,
        };
        self.linear_back(&stack, dnormed, sums, (&mut work.low, &mut work.dlow));
        let place = sums.places().map(|places| places.layers[index].feed_forward_norm);
        let norm = (&kept.middle[..], &layer.feed_forward_norm[..]);
        self.norm_back(norm, dnormed, dx, sums, (place, &mut work.scales));
    }

    /// Writes the gradient of joined queries, keys and values to `work.djoined`.
    fn attention_back(
        &self,
        index: usize,
        rows: &Rows,
        kept: &Kept,
        dx: &[f32],
        sums: &mut Sums<'_>,
        work: &mut Work,
    ) {
        let config = &self.config;
        let dattended = sized(&mut work.dattended, kept.attended.len());
        let stack = Stack {
            layer: index,
            linears: &[Linear::Output],
            across: &self.across.layers[index].output,
            x: &kept.attended,
            dy: dx,
        };
        self.linear_back(&stack, dattended, sums, (&mut work.low, &mut work.dlow));
        self.rotate(index, rows, &kept.joined, work);
        let (query_len, key_len) =
            (kept.attended.len(), rows.len() * config.kv_heads * config.head_dim);
        let of = Attended {
            shape: self.attention,
            spans: &rows.spans,
            q: &work.queries[..query_len],
            keys: &work.keys[..key_len],
            values: &work.values[..key_len],
            out: &kept.attended,
            dout: &work.dattended[..query_len],
        };
        let gradients = AttentionGradients {
            q: sized(&mut work.dqueries, query_len),
            keys: sized(&mut work.dkeys, key_len),
            values: sized(&mut work.dvalues, key_len),
        };
        attention_gradient(&self.context, &of, gradients);
        let table = table(&mut work.rope, rows, config.head_dim, config.rope_theta);
        rope_gradient(&self.context, table, &mut work.dqueries[..query_len], &rows.positions);
        rope_gradient(&self.context, table, &mut work.dkeys[..key_len], &rows.positions);
        self.head_norms_back(index, rows.len(), kept, sums, work);
        let djoined = sized(&mut work.djoined, kept.joined.len());
        let parts = [&work.dqueries[..query_len], &work.dkeys[..key_len], &work.dvalues[..key_len]];
        let width = kept.joined.len() / rows.len();
        let mut first = 0;
        for part in parts {
            let part_width = part.len() / rows.len();
            put_columns(&self.context, (part, part_width), first, (&mut *djoined, width));
            first += part_width;
        }
    }

    /// Goes back through the norms of queries and keys, where there are any.
    fn head_norms_back(
        &self,
        index: usize,
        count: usize,
        kept: &Kept,
        sums: &mut Sums<'_>,
        work: &mut Work,
    ) {
        let Some(norms) = &self.network.layers[index].head_norms else { return };
        let config = &self.config;
        let width = kept.joined.len() / count;
        let query_width = config.heads * config.head_dim;
        let places = sums.places().and_then(|places| places.layers[index].head_norms);
        let sides = [
            (&norms.queries, 0, query_width, &mut work.dqueries),
            (&norms.keys, query_width, config.kv_heads * config.head_dim, &mut work.dkeys),
        ];
        for (side, (norm, first, part, d)) in sides.into_iter().enumerate() {
            let heads = sized(&mut work.normed_heads, count * part);
            take_columns(&self.context, (&kept.joined, width), first, (&mut *heads, part));
            let dheads = sized(&mut work.dheads, count * part);
            dheads.fill(0.0);
            let place = (places.map(|places| places[side]), &mut work.scales);
            self.norm_back((heads, norm), &d[..count * part], dheads, sums, place);
            d[..count * part].copy_from_slice(dheads);
        }
    }

    /// Adds what comes back through a norm to `dx`, and to the gradient of its weights.
    pub fn norm_back(
        &self,
        (x, weight): (&[f32], &[f32]),
        dy: &[f32],
        dx: &mut [f32],
        sums: &mut Sums<'_>,
        (place, scales): (Option<usize>, &mut Vec<f32>),
    ) {
        let dweight = place.map(|place| WeightGradient {
            sums: &mut sums.gradients[place],
            scales: sized(scales, x.len() / weight.len()),
        });
        let norm = (x, weight, self.config.rms_eps);
        rms_norm_gradient(&self.context, norm, dy, dx, dweight);
    }

    /// Writes the gradient of the inputs of linear layers to `dx`, and adds those of their weights
    /// or of their adapter.
    fn linear_back(
        &self,
        stack: &Stack<'_>,
        dx: &mut [f32],
        sums: &mut Sums<'_>,
        (low, dlow): (&mut Vec<f32>, &mut Vec<f32>),
    ) {
        let (context, count) = (&self.context, dx.len() / stack.across.rows());
        stack.across.multiply(context, stack.dy, dx);
        if let Some(places) = sums.places() {
            let places: Vec<usize> = stack
                .linears
                .iter()
                .map(|linear| places.layers[stack.layer].linears[*linear as usize])
                .collect();
            let left = Columns::all(stack.dy, stack.across.columns());
            let right = Columns::all(stack.x, stack.across.rows());
            let mut outs = sums.several(&places);
            add_outer_products(context, count, &left, &right, &mut outs);
        }
        let Some(factors) = &self.factors else { return };
        let mut first = 0;
        for linear in stack.linears {
            let pair = &factors.layers[stack.layer][*linear as usize];
            let (rank, outputs) = (pair.a.rows(), shape_of(*linear, &self.config).0);
            let place = place_of_a(stack.layer, *linear);
            let low = sized(low, count * rank);
            pair.a.multiply(context, stack.x, low);
            low.iter_mut().for_each(|low| *low *= factors.scale);
            let stride = stack.across.columns();
            let left = Columns { values: stack.dy, stride, columns: first..first + outputs };
            let right = Columns::all(low, rank);
            add_outer_products(
                context,
                count,
                &left,
                &right,
                &mut [&mut sums.gradients[place + 1]],
            );
            let dlow = sized(dlow, count * rank);
            let from = (stack.dy, Place { first, stride });
            let to = (&mut *dlow, Place::dense(rank));
            pair.b_across.multiply_rows(context, count, from, to, Chains::Fresh);
            dlow.iter_mut().for_each(|dlow| *dlow *= factors.scale);
            let (left, right) = (Columns::all(dlow, rank), Columns::all(stack.x, pair.a.columns()));
            add_outer_products(context, count, &left, &right, &mut [&mut sums.gradients[place]]);
            let (from, to) = ((&*dlow, Place::dense(rank)), Place::dense(pair.a.columns()));
            let to = (&mut *dx, to);
            pair.a_across.multiply_rows(context, count, from, to, Chains::Continued);
            first += outputs;
        }
    }
}
