//! Sequences of different lengths as the rows of one batch.
//!
//! Tokens of all sequences follow each other and are never filled up: only attention needs
//! sequences of one length, so only for it are those of similar lengths filled up and put
//! together.
//!
//! Not here: the model (`transformer`), what becomes of scored rows (`head`).

use std::cmp::Reverse;
use std::ops::Range;

use arena_model::learner::Sequence;
use arena_weights::config::ModelConfig;
use burn::tensor::{Device, Int, Tensor, TensorData};

use crate::cache::indices;
use crate::plan::GROUP_ELEMENTS_MAX;
use crate::transformer::attention::{Heads, causal_bias};
use crate::transformer::rotation::Rotation;

/// Sequences attend together if none is shorter than this share of the longest: about half of
/// their scores are for nothing at most.
const LENGTH_RATIO: (usize, usize) = (7, 10);

/// A batch's rows, on the device.
pub struct Rows {
    /// `[rows]`
    pub tokens: Tensor<1, Int>,
    rotation: Rotation,
    groups: Vec<Group>,
    /// Where each row is among those of all groups, one after the other, `[rows]`.
    order: Tensor<1, Int>,
    /// What is scored.
    pub scored: Scored,
    /// For every layer the experts that are replayed, `[rows, experts_per_token]`.
    experts: Option<Vec<Vec<u16>>>,
}

/// The scored tokens of a batch, in order.
pub struct Scored {
    /// The row that each is predicted from.
    pub rows: Vec<usize>,
    /// The tokens.
    pub tokens: Vec<usize>,
    /// What divides the logits that each is drawn from.
    pub temperatures: Vec<f32>,
}

/// Sequences that attend together, on the device.
struct Group {
    sequences: usize,
    /// Their rows, and where one is shorter than the longest its last row again and again,
    /// `[sequences * longest]`.
    rows: Tensor<1, Int>,
    /// `[1, longest, longest]`
    bias: Tensor<3>,
}

impl Rows {
    /// Returns the rows of sequences that were checked. Either all have experts, or none.
    pub fn new(batch: &[Sequence], config: &ModelConfig, device: &Device) -> Rows {
        let lengths: Vec<usize> = batch.iter().map(|sequence| sequence.tokens.len()).collect();
        let planned = plan(&lengths, config.heads);
        let tokens = batch.iter().flat_map(|sequence| &sequence.tokens);
        let positions: Vec<u32> = lengths.iter().flat_map(|&length| 0..length as u32).collect();
        let theta = f64::from(config.rope_theta);
        Rows {
            tokens: indices(tokens.map(|&token| token as usize), device),
            rotation: Rotation::new(&positions, config.head_dim, theta, device),
            groups: groups(&planned, &lengths, device),
            order: indices(order(&planned, &lengths).into_iter(), device),
            scored: Scored::new(batch),
            experts: experts(batch, config),
        }
    }

    /// Returns the rotations of the rows.
    pub fn rotation(&self) -> &Rotation {
        &self.rotation
    }

    /// Returns the experts of a layer that are replayed, `[rows, experts_per_token]`.
    pub fn experts(&self, layer: usize) -> Option<&[u16]> {
        self.experts.as_ref().map(|layers| layers[layer].as_slice())
    }

    /// Lets each row attend to those before it in its sequence; the result is
    /// `[rows, heads * head_dim]`.
    pub fn attend(&self, heads: &Heads) -> Tensor<2> {
        let attended = self.groups.iter().map(|group| {
            let cut = |all: &Tensor<3>| all.clone().select(0, group.rows.clone());
            let (queries, keys) = (cut(&heads.queries), cut(&heads.keys));
            let of_group = Heads { queries, keys, values: cut(&heads.values) };
            of_group.dense(group.sequences, group.bias.clone())
        });
        Tensor::cat(attended.collect(), 0).select(0, self.order.clone())
    }
}

impl Scored {
    fn new(batch: &[Sequence]) -> Scored {
        let mut scored = Scored { rows: Vec::new(), tokens: Vec::new(), temperatures: Vec::new() };
        let mut first = 0;
        for sequence in batch {
            for &place in &sequence.scored {
                let place = place as usize;
                scored.rows.push(first + place - 1);
                scored.tokens.push(sequence.tokens[place] as usize);
                scored.temperatures.push(sequence.temperature);
            }
            first += sequence.tokens.len();
        }
        scored
    }

    /// Returns the numbers of scored tokens in chunks of at most `most`.
    pub fn chunks(&self, most: usize) -> impl Iterator<Item = Range<usize>> {
        let count = self.rows.len();
        (0..count).step_by(most).map(move |start| start..usize::min(start + most, count))
    }

    /// Returns the tokens of a chunk, `[count, 1]`.
    pub fn tokens_of(&self, chunk: Range<usize>, device: &Device) -> Tensor<2, Int> {
        let count = chunk.len();
        indices(self.tokens[chunk].iter().copied(), device).reshape([count, 1])
    }

    /// Returns the temperatures of a chunk, `[count, 1]`.
    pub fn temperatures_of(&self, chunk: Range<usize>, device: &Device) -> Tensor<2> {
        let count = chunk.len();
        let data = TensorData::new(self.temperatures[chunk].to_vec(), [count, 1]);
        Tensor::from_data(data, device)
    }
}

fn groups(planned: &[Vec<usize>], lengths: &[usize], device: &Device) -> Vec<Group> {
    let mut next = 0;
    let mut first_of = Vec::with_capacity(lengths.len());
    for length in lengths {
        first_of.push(next);
        next += length;
    }
    let group = |group: &Vec<usize>| {
        let longest = lengths[group[0]];
        let rows_of = |&sequence: &usize| {
            let (first, last) = (first_of[sequence], lengths[sequence] - 1);
            (0..longest).map(move |at| first + usize::min(at, last))
        };
        Group {
            sequences: group.len(),
            rows: indices(group.iter().flat_map(rows_of), device),
            bias: causal_bias(longest, device),
        }
    };
    planned.iter().map(group).collect()
}

/// Returns the sequences that attend together, the longest of each group first.
///
/// A group's scores have at most [`GROUP_ELEMENTS_MAX`] elements, if it is not of one sequence.
fn plan(lengths: &[usize], heads: usize) -> Vec<Vec<usize>> {
    let mut sequences: Vec<usize> = (0..lengths.len()).collect();
    // A stable sort, so that the same batch is always cut the same way.
    sequences.sort_by_key(|&sequence| Reverse(lengths[sequence]));
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for sequence in sequences {
        let fits = |group: &&mut Vec<usize>| {
            let longest = lengths[group[0]];
            let elements = heads * longest * longest * (group.len() + 1);
            let (least, of) = LENGTH_RATIO;
            lengths[sequence] * of >= longest * least && elements <= GROUP_ELEMENTS_MAX
        };
        match groups.last_mut().filter(fits) {
            Some(group) => group.push(sequence),
            None => groups.push(vec![sequence]),
        }
    }
    groups
}

/// Returns where each row is among the filled up rows of all groups.
fn order(groups: &[Vec<usize>], lengths: &[usize]) -> Vec<usize> {
    let mut start_of = vec![0; lengths.len()];
    let mut next = 0;
    for group in groups {
        for &sequence in group {
            start_of[sequence] = next;
            next += lengths[group[0]];
        }
    }
    let rows = start_of.iter().zip(lengths);
    rows.flat_map(|(&start, &length)| start..start + length).collect()
}

/// Returns for every layer the experts of all rows, from `[tokens, layers, experts_per_token]` of
/// every sequence.
fn experts(batch: &[Sequence], config: &ModelConfig) -> Option<Vec<Vec<u16>>> {
    let each = config.moe?.experts_per_token;
    let given: Vec<&Vec<u16>> =
        batch.iter().map(|sequence| sequence.experts.as_ref()).collect::<Option<_>>()?;
    let layer = |layer: usize| {
        let of_tokens = given.iter().flat_map(|of| of.chunks_exact(config.layers * each));
        of_tokens.flat_map(|of| &of[layer * each..(layer + 1) * each]).copied().collect()
    };
    Some((0..config.layers).map(layer).collect())
}

/// Returns `[tokens, layers, experts_per_token]` of every sequence, from those of all rows for
/// every layer.
pub fn experts_of(batch: &[Sequence], layers: &[Vec<u16>], each: usize) -> Vec<Vec<u16>> {
    let mut first = 0;
    let mut of_sequence = |sequence: &Sequence| {
        let rows = first..first + sequence.tokens.len();
        first = rows.end;
        let of_row =
            |row: usize| layers.iter().flat_map(move |of| &of[row * each..(row + 1) * each]);
        rows.flat_map(of_row).copied().collect()
    };
    batch.iter().map(&mut of_sequence).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_of_similar_lengths_attend_together() {
        assert_eq!(plan(&[3, 10, 7, 6, 10], 2), [vec![1, 4, 2], vec![3], vec![0]]);
        assert_eq!(plan(&[], 2), Vec::<Vec<usize>>::new());
    }

    #[test]
    fn no_group_but_one_of_a_single_sequence_has_more_scores_than_fit() {
        let root = 1 << 11;
        assert_eq!(plan(&[root; 9], 1), [vec![0, 1, 2, 3], vec![4, 5, 6, 7], vec![8]]);
        assert_eq!(plan(&[2 * root; 2], 2), [vec![0], vec![1]]);
    }

    #[test]
    fn rows_are_found_again_among_the_filled_up() {
        // Filled up: 1 and 0 of length 3, the last row of 0 twice; then 2.
        assert_eq!(order(&[vec![1, 0], vec![2]], &[2, 3, 1]), [3, 4, 0, 1, 2, 6]);
    }

    #[test]
    fn experts_of_sequences_are_those_of_layers_and_back() {
        let given = [vec![1, 2, 3, 4, 5, 6, 7, 8], vec![9, 10, 11, 12]];
        let sequence = |experts: &Vec<u16>| Sequence {
            tokens: vec![0; experts.len() / 4],
            scored: Vec::new(),
            temperature: 1.0,
            experts: Some(experts.clone()),
        };
        let batch: Vec<Sequence> = given.iter().map(sequence).collect();
        let layers = [vec![1, 2, 5, 6, 9, 10], vec![3, 4, 7, 8, 11, 12]];
        assert_eq!(experts_of(&batch, &layers, 2), given);
    }
}
