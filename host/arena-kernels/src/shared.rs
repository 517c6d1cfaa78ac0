//! A slice whose elements are written by several threads, each its own.

// That threads write different elements is the promise of whoever makes the pointers.
#![allow(unsafe_code)]

/// A mutable slice, shared.
#[derive(Clone, Copy)]
pub(crate) struct SharedMut {
    start: *mut f32,
    len: usize,
}

// SAFETY: the pointer is followed in `unsafe` functions alone, whose callers promise that no two
// threads have the same elements.
unsafe impl Sync for SharedMut {}
// SAFETY: as above.
unsafe impl Send for SharedMut {}

impl SharedMut {
    /// Shares a slice.
    pub(crate) fn new(slice: &mut [f32]) -> SharedMut {
        SharedMut { start: slice.as_mut_ptr(), len: slice.len() }
    }

    /// Returns a pointer to an element.
    pub(crate) fn at(&self, index: usize) -> *mut f32 {
        assert!(index <= self.len, "element {index} of {}", self.len);
        self.start.wrapping_add(index)
    }

    /// Returns some elements.
    ///
    /// # Safety
    /// The slice lives, and nobody else has these elements meanwhile.
    pub(crate) unsafe fn elements<'a>(&self, from: usize, count: usize) -> &'a mut [f32] {
        assert!(from <= self.len && count <= self.len - from, "{from} + {count} of {}", self.len);
        // SAFETY: inside the slice; the rest is the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(from), count) }
    }
}
