//! What an engine has done so far.

/// Counts since the engine was started, and how things stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Tokens of the prompts that were taken in.
    pub prompt_tokens: u64,
    /// Tokens of them that were found computed.
    pub reused_tokens: u64,
    /// Tokens that were written.
    pub output_tokens: u64,
    /// Batches that were computed.
    pub steps: u64,
    /// Rows of all batches together.
    pub rows: u64,
    /// Sequences of all batches together: divided by `steps`, how full a batch is.
    pub sequences: u64,
    /// How often a sequence had to give its blocks to an older one.
    pub preemptions: u64,
    /// Sequences that run now.
    pub running: usize,
    /// Requests that wait now.
    pub waiting: usize,
    /// Blocks that running sequences hold now.
    pub blocks_used: usize,
    /// Blocks that there are.
    pub blocks: usize,
}
