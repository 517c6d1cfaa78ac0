//! The rows of a batch: one for each token, sequence after sequence, and nothing between them.
//!
//! Sequences that follow each other and begin alike share the rows of their beginning, as the
//! samples of one prompt do: what is computed of a row depends on the tokens up to it alone. Whole
//! blocks of keys and values are shared, so that what comes after them is where it would be.

use std::ops::Range;

use arena_kernels::attention::AttentionRow;
use arena_kernels::gradient::attention::Span;

use crate::executor::{BLOCK_TOKENS, ExecutorError};
use crate::learner::Sequence;

/// A batch, row by row.
#[derive(Default)]
pub(super) struct Rows {
    pub tokens: Vec<u32>,
    /// The position of every row in its sequence.
    pub positions: Vec<u32>,
    /// Beginnings that are shared, and the rest of each sequence.
    pub spans: Vec<Span>,
    /// How many blocks there are.
    pub block_count: usize,
    /// The blocks of all spans' sequences.
    blocks: Vec<u32>,
    /// Which of them each span's are, those of what it shares among them.
    block_ranges: Vec<Range<usize>>,
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
        let mut rows = Rows::default();
        let mut start = 0;
        while start < batch.len() {
            let (count, shared) = beginning(&batch[start..]);
            let group = start..start + count;
            let tokens = &batch[start].tokens[..shared];
            let common = rows.push_span(0..0, 0..0, tokens, 0);
            for index in group.clone() {
                let sequence = &batch[index];
                let before = common.clone().unwrap_or((0..0, 0..0));
                let (own, _) = rows
                    .push_span(before.0.clone(), before.1, &sequence.tokens[shared..], shared)
                    .expect("a sequence has a token of its own");
                let row_of = |position: usize| match position.checked_sub(shared) {
                    Some(later) => own.start + later,
                    None => before.0.start + position,
                };
                for &place in &sequence.scored {
                    let token = sequence.tokens[place as usize];
                    if token as usize >= token_count {
                        let detail = format!(
                            "token {token} is never sampled: it is none of the {token_count} of \
                             the tokenizer"
                        );
                        return Err(ExecutorError::Sequence { index: first + index, detail });
                    }
                    rows.scored.push(ScoredRow {
                        row: row_of(place as usize - 1),
                        token,
                        temperature: sequence.temperature,
                        sequence: first + index,
                    });
                }
            }
            start = group.end;
        }
        Ok(rows)
    }

    /// Appends rows, and returns which they are and which their blocks are; nothing for none.
    fn push_span(
        &mut self,
        shared: Range<usize>,
        shared_blocks: Range<usize>,
        tokens: &[u32],
        position: usize,
    ) -> Option<(Range<usize>, Range<usize>)> {
        if tokens.is_empty() {
            return None;
        }
        let rows = self.tokens.len()..self.tokens.len() + tokens.len();
        self.tokens.extend_from_slice(tokens);
        let positions = position..position + tokens.len();
        let small = |number: usize| u32::try_from(number).expect("batches are checked");
        self.positions.extend(positions.map(small));
        let first = self.blocks.len();
        self.blocks.extend_from_within(shared_blocks);
        let count = tokens.len().div_ceil(BLOCK_TOKENS);
        self.blocks.extend((self.block_count..self.block_count + count).map(small));
        self.block_count += count;
        let blocks = first..self.blocks.len();
        self.block_ranges.push(blocks.clone());
        self.spans.push(Span { shared, rows: rows.clone() });
        Some((rows, blocks))
    }

    /// Returns how many rows there are.
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Returns what every row sees.
    pub fn seen(&self) -> Vec<AttentionRow<'_>> {
        let spans = self.spans.iter().zip(&self.block_ranges);
        let rows = spans.flat_map(|(span, blocks)| {
            let positions = self.positions[span.rows.clone()].iter();
            let blocks = &self.blocks[blocks.clone()];
            positions.map(move |&position| {
                let context_tokens = position as usize + 1;
                AttentionRow { blocks, context_tokens }
            })
        });
        rows.collect()
    }
}

/// Returns how many sequences from the first on share a beginning, and how many tokens it has: as
/// many sequences as it takes for another one not to save rows any more.
fn beginning(batch: &[Sequence]) -> (usize, usize) {
    let first = &batch[0].tokens;
    let (mut count, mut shared) = (1, first.len() - 1);
    for sequence in &batch[1..] {
        let alike = first.iter().zip(&sequence.tokens).take_while(|(a, b)| a == b).count();
        let common = alike.min(shared).min(sequence.tokens.len() - 1) / BLOCK_TOKENS * BLOCK_TOKENS;
        // One more sequence, of which `common` rows are saved; but of the others, too, only these.
        if common == 0 || count * common < (count - 1) * shared {
            break;
        }
        (count, shared) = (count + 1, common);
    }
    if count == 1 { (1, 0) } else { (count, shared) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sequence(prefix: usize, own: &[u32]) -> Sequence {
        let tokens: Vec<u32> = (0..prefix as u32).chain(own.iter().copied()).collect();
        let last = tokens.len() as u32 - 1;
        Sequence { tokens, scored: vec![last], temperature: 1.0, experts: None }
    }

    fn spans(batch: &[Sequence]) -> Vec<(Range<usize>, Range<usize>)> {
        let rows = Rows::new(batch, 0, 1_000).expect("sound");
        rows.spans.into_iter().map(|span| (span.shared, span.rows)).collect()
    }

    #[test]
    fn sequences_that_begin_alike_share_whole_blocks() {
        let batch = [sequence(40, &[7]), sequence(40, &[8, 9]), sequence(3, &[500])];
        let expected = [(0..0, 0..32), (0..32, 32..41), (0..32, 41..51), (0..0, 51..55)];
        assert_eq!(spans(&batch), expected);
        let rows = Rows::new(&batch, 0, 1_000).expect("sound");
        assert_eq!(rows.block_count, 2 + 1 + 1 + 1);
        let seen = rows.seen();
        assert_eq!((seen[32].blocks, seen[32].context_tokens), (&[0, 1, 2][..], 33));
        assert_eq!((seen[50].blocks, seen[50].context_tokens), (&[0, 1, 3][..], 42));
        let scored: Vec<usize> = rows.scored.iter().map(|scored| scored.row).collect();
        assert_eq!(scored, [39, 49, 53]);
    }

    #[test]
    fn a_sequence_keeps_a_row_of_its_own() {
        // The second is the beginning of the first.
        let batch = [sequence(48, &[]), sequence(32, &[])];
        assert_eq!(spans(&batch), [(0..0, 0..16), (0..16, 16..48), (0..16, 48..64)]);
    }

    #[test]
    fn a_beginning_is_not_shortened_for_one_that_saves_less() {
        let batch = [sequence(160, &[7]), sequence(160, &[8]), sequence(16, &[9])];
        assert_eq!(spans(&batch)[0], (0..0, 0..160));
        assert_eq!(spans(&batch).last(), Some(&(0..0, 162..179)));
    }
}
