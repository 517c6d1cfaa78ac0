//! Bytes in whole cache lines, so that a vector never straddles two.

// A line is bytes, and bytes are what is read and written.
#![allow(unsafe_code)]

/// Bytes of a line.
pub(crate) const LINE: usize = 64;

#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; LINE]);

/// Zeroed bytes, aligned to lines.
pub(crate) struct Lines(Vec<Line>);

impl Lines {
    /// Makes so many bytes, rounded up to whole lines.
    pub(crate) fn new(bytes: usize) -> Lines {
        Lines(vec![Line([0; LINE]); bytes.div_ceil(LINE)])
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: lines are arrays of bytes without padding.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().cast(), self.0.len() * LINE) }
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and borrowed once.
        unsafe { std::slice::from_raw_parts_mut(self.0.as_mut_ptr().cast(), self.0.len() * LINE) }
    }
}
