//! The rows of a batch: one for each token, sequence after sequence, and nothing between them.

use std::ops::Range;

use arena_kernels::attention::AttentionRow;

use crate::executor::{BLOCK_TOKENS, ExecutorError};
use crate::learner::Sequence;

/// A batch, row by row.
pub(super) struct Rows {
    pub tokens: Vec<u32>,
    /// The position of every row in its sequence.
    pub positions: Vec<u32>,
    /// The rows of each sequence.
    pub sequences: Vec<Range<usize>>,
    /// The blocks of all sequences: their own numbers, so that slices of them can be lent.
    pub blocks: Vec<u32>,
    pub scored: Vec<ScoredRow>,
}

/// A row whose next token is scored.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScoredRow {
    pub row: usize,
    pub token: u32,
    pub temperature: f32,
    /// Which sequence of the batch it is of.
    pub sequence: usize,
}

impl Rows {
    /// Lays out sequences that were checked. `first` is the first one's index in its batch.
    pub fn new(
        batch: &[Sequence],
        first: usize,
        token_count: usize,
    ) -> Result<Rows, ExecutorError> {
        let mut rows = Rows {
            tokens: Vec::new(),
            positions: Vec::new(),
            sequences: Vec::new(),
            blocks: Vec::new(),
            scored: Vec::new(),
        };
        for (index, sequence) in batch.iter().enumerate() {
            let start = rows.tokens.len();
            rows.tokens.extend_from_slice(&sequence.tokens);
            let count = u32::try_from(sequence.tokens.len()).expect("batches are checked");
            rows.positions.extend(0..count);
            rows.sequences.push(start..rows.tokens.len());
            for &place in &sequence.scored {
                let token = sequence.tokens[place as usize];
                if token as usize >= token_count {
                    let detail = format!(
                        "token {token} is never sampled: it is none of the \
                                          {token_count} of the tokenizer"
                    );
                    return Err(ExecutorError::Sequence { index: first + index, detail });
                }
                rows.scored.push(ScoredRow {
                    row: start + place as usize - 1,
                    token,
                    temperature: sequence.temperature,
                    sequence: first + index,
                });
            }
        }
        let blocks = rows.sequences.iter().map(|rows| rows.len().div_ceil(BLOCK_TOKENS));
        let count = u32::try_from(blocks.sum::<usize>()).expect("batches are checked");
        rows.blocks = (0..count).collect();
        Ok(rows)
    }

    /// Returns how many rows there are.
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Returns what every row sees.
    pub fn seen(&self) -> Vec<AttentionRow<'_>> {
        let mut seen = Vec::with_capacity(self.len());
        let mut first = 0;
        for rows in &self.sequences {
            let blocks = &self.blocks[first..first + rows.len().div_ceil(BLOCK_TOKENS)];
            first += blocks.len();
            seen.extend(
                (1..=rows.len()).map(|context_tokens| AttentionRow { blocks, context_tokens }),
            );
        }
        seen
    }
}
