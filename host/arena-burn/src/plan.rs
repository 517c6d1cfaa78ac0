//! How a batch lies in the cache, and which of its rows attend together.
//!
//! Pure: numbers in, numbers out. Sequences of one row each (those that are being continued) share
//! one product, filled up to the longest context among them; a longer sequence (a prompt) stands
//! alone. Either is cut where its scores or its context would take more than
//! [`GROUP_ELEMENTS_MAX`].
//!
//! Not here: tensors (`cache`).

use std::ops::Range;

use arena_model::executor::BLOCK_TOKENS;

use crate::transformer::attention::MASKED;

/// The most elements of one group's scores, and of its keys: 64 MiB of `f32`. A group of one row
/// may be larger.
pub const GROUP_ELEMENTS_MAX: usize = 1 << 24;

/// The rows of a batch that belong to one sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SequencePlan {
    /// In the batch.
    pub rows: Range<usize>,
    /// Position of the first of them.
    pub start: usize,
    /// Where each position lies in the cache: `slots[p]` for every position up to the last row's.
    pub slots: Vec<usize>,
}

/// Rows that attend together: the same number of each of some sequences.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Rows of the batch, those of one sequence after those of another.
    pub rows: Vec<usize>,
    /// How many sequences.
    pub sequences: usize,
    /// Positions that are looked at, the same number for each sequence.
    pub context: usize,
    /// Where they lie in the cache, `[sequences, context]`.
    pub slots: Vec<usize>,
    /// What is added to the scores, `[sequences, rows of one, context]`.
    pub bias: Vec<f32>,
}

/// The widths that decide how large a group may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Widths {
    /// Heads of queries.
    pub heads: usize,
    /// `kv_heads * head_dim`.
    pub kv_width: usize,
}

impl SequencePlan {
    /// Returns where positions lie, given the blocks of a sequence and the position of the first of
    /// `rows`.
    ///
    /// # Panics
    /// If the blocks do not reach to the last row.
    pub fn new(rows: Range<usize>, start: usize, blocks: &[usize]) -> SequencePlan {
        let end = start + rows.len();
        assert!(
            end <= blocks.len() * BLOCK_TOKENS,
            "{} blocks reach to position {end}",
            blocks.len()
        );
        let slot =
            |position| blocks[position / BLOCK_TOKENS] * BLOCK_TOKENS + position % BLOCK_TOKENS;
        SequencePlan { rows, start, slots: (0..end).map(slot).collect() }
    }
}

/// Returns which rows attend together; every row is in one group.
pub fn groups(sequences: &[SequencePlan], widths: Widths) -> Vec<Group> {
    let mut groups = Vec::new();
    let mut singles: Vec<&SequencePlan> = Vec::new();
    for sequence in sequences {
        if sequence.rows.len() != 1 {
            groups.extend(cut_rows(sequence, widths));
            continue;
        }
        let longest =
            singles.iter().map(|single| single.slots.len()).fold(sequence.slots.len(), usize::max);
        if elements(singles.len() + 1, 1, longest, widths) > GROUP_ELEMENTS_MAX {
            groups.extend(join(&singles));
            singles.clear();
        }
        singles.push(sequence);
    }
    groups.extend(join(&singles));
    groups
}

/// Returns the elements of the larger of scores and keys.
fn elements(sequences: usize, rows: usize, context: usize, widths: Widths) -> usize {
    sequences * context * usize::max(widths.heads * rows, widths.kv_width)
}

/// Returns one group of sequences that have one row each, or none of none.
fn join(singles: &[&SequencePlan]) -> Option<Group> {
    let context = singles.iter().map(|single| single.slots.len()).max()?;
    let mut group = Group {
        rows: singles.iter().map(|single| single.rows.start).collect(),
        sequences: singles.len(),
        context,
        slots: Vec::with_capacity(singles.len() * context),
        bias: Vec::with_capacity(singles.len() * context),
    };
    for single in singles {
        let masked = context - single.slots.len();
        group.slots.extend(&single.slots);
        // Filled up with the sequence's own first slot: what another one left in the cache, be it
        // not even a number, must not reach this one.
        group.slots.extend(std::iter::repeat_n(single.slots[0], masked));
        group.bias.extend(std::iter::repeat_n(0.0, single.slots.len()));
        group.bias.extend(std::iter::repeat_n(MASKED, masked));
    }
    Some(group)
}

/// Returns the groups of one sequence, each with as many rows as may be.
fn cut_rows(sequence: &SequencePlan, widths: Widths) -> Vec<Group> {
    let mut groups = Vec::new();
    let mut done = 0;
    while done < sequence.rows.len() {
        let seen = sequence.start + done;
        let fits = |&rows: &usize| elements(1, rows, seen + rows, widths) <= GROUP_ELEMENTS_MAX;
        let left = sequence.rows.len() - done;
        let rows = (1..=left).rev().find(fits).unwrap_or(1);
        let context = seen + rows;
        let bias = (seen..context).flat_map(|row| {
            (0..context).map(move |position| if position <= row { 0.0 } else { MASKED })
        });
        let first = sequence.rows.start + done;
        groups.push(Group {
            rows: (first..first + rows).collect(),
            sequences: 1,
            context,
            slots: sequence.slots[..context].to_vec(),
            bias: bias.collect(),
        });
        done += rows;
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIDTHS: Widths = Widths { heads: 4, kv_width: 16 };

    fn lies(groups: &[Group]) -> Vec<(Vec<usize>, usize, usize)> {
        groups.iter().map(|g| (g.rows.clone(), g.sequences, g.context)).collect()
    }

    #[test]
    fn positions_lie_in_the_blocks_in_order() {
        let plan = SequencePlan::new(3..5, 15, &[7, 2]);
        assert_eq!(plan.slots[0], 7 * 16);
        assert_eq!(plan.slots[14..], [7 * 16 + 14, 7 * 16 + 15, 2 * 16]);
    }

    #[test]
    #[should_panic(expected = "1 blocks reach to position 17")]
    fn a_row_outside_the_blocks_is_no_plan() {
        SequencePlan::new(0..1, 16, &[7]);
    }

    #[test]
    fn continued_sequences_attend_together_and_prompts_alone() {
        let sequences = [
            SequencePlan::new(0..1, 4, &[0]),
            SequencePlan::new(1..4, 0, &[1]),
            SequencePlan::new(4..5, 1, &[2]),
        ];
        let groups = groups(&sequences, WIDTHS);
        assert_eq!(lies(&groups), [(vec![1, 2, 3], 1, 3), (vec![0, 4], 2, 5)]);
        assert_eq!(groups[1].slots, [0, 1, 2, 3, 4, 32, 33, 32, 32, 32]);
        assert_eq!(groups[1].bias[5..], [0.0, 0.0, MASKED, MASKED, MASKED]);
    }

    #[test]
    fn a_row_of_a_prompt_does_not_see_later_ones() {
        let groups = groups(&[SequencePlan::new(0..2, 1, &[0])], WIDTHS);
        assert_eq!(groups[0].bias, [0.0, 0.0, MASKED, 0.0, 0.0, 0.0]);
    }

    #[test]
    fn groups_are_cut_where_they_would_be_too_large() {
        let widths = Widths { heads: 1, kv_width: GROUP_ELEMENTS_MAX / 8 };
        let sequences = [
            SequencePlan::new(0..1, 3, &[0]),
            SequencePlan::new(1..2, 3, &[1]),
            SequencePlan::new(2..3, 0, &[2]),
        ];
        assert_eq!(lies(&groups(&sequences, widths)), [(vec![0, 1], 2, 4), (vec![2], 1, 1)]);
        let widths = Widths { heads: GROUP_ELEMENTS_MAX / 8, kv_width: 1 };
        let prompt = [SequencePlan::new(0..4, 0, &[0])];
        let cut = [(vec![0, 1], 1, 2), (vec![2, 3], 1, 4)];
        assert_eq!(lies(&groups(&prompt, widths)), cut);
    }
}
