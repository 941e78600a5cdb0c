//! Receive memory that a driver owns while the kernel writes into it.

use std::{
    alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error},
    fmt,
    ptr::NonNull,
};

/// Alignment of a buffer's first byte: one cache line, so that two buffers never share one.
const ALIGN_BYTES: usize = 64;

/// An owned, zero-initialised run of bytes. It is passed to [`crate::Driver::recv`] and returned with its completion.
///
/// It is not a `Box<[u8]>` because the kernel writes through a raw pointer while the buffer is moved around inside the
/// driver; a box would claim exclusive access at every move.
pub struct Buffer {
    first: NonNull<u8>,
    len: usize,
}

// SAFETY: a buffer is the only owner of its memory; sending it moves the ownership.
unsafe impl Send for Buffer {}
// SAFETY: shared access only reads.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// Allocates `len` zeroed bytes. Large buffers take memory only where they are used.
    pub fn new(len: usize) -> Self {
        if len == 0 {
            return Self::default();
        }
        let layout = Self::layout(len);
        // SAFETY: the layout has a non-zero size.
        let memory = unsafe { alloc_zeroed(layout) };
        let Some(first) = NonNull::new(memory) else { handle_alloc_error(layout) };
        Self { first, len }
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the buffer holds no bytes (the placeholder that `Buffer::default` makes).
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All bytes.
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: `first` points to `len` initialised bytes (or is dangling with length 0) owned by `self`.
        unsafe { std::slice::from_raw_parts(self.first.as_ptr(), self.len) }
    }

    /// All bytes, writable.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: as in `as_slice`, and `&mut self` makes the access exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.first.as_ptr(), self.len) }
    }

    /// The address for the kernel.
    pub(crate) fn as_mut_ptr(&mut self) -> *mut u8 {
        self.first.as_ptr()
    }

    fn layout(len: usize) -> Layout {
        Layout::from_size_align(len, ALIGN_BYTES).expect("a buffer is smaller than the address space")
    }
}

impl Default for Buffer {
    fn default() -> Self {
        Self { first: NonNull::dangling(), len: 0 }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if self.len > 0 {
            // SAFETY: allocated in `new` with this layout, freed once.
            unsafe { dealloc(self.first.as_ptr(), Self::layout(self.len)) }
        }
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({} bytes)", self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::Buffer;

    #[test]
    fn starts_zeroed_and_keeps_what_is_written() {
        let mut buffer = Buffer::new(4097);
        assert!(buffer.as_slice().iter().all(|&byte| byte == 0));
        buffer.as_mut_slice()[4096] = 7;
        let moved = buffer;
        assert_eq!((moved.len(), moved.as_slice()[4096]), (4097, 7));
    }

    #[test]
    fn the_default_buffer_is_an_empty_placeholder() {
        assert!(Buffer::default().is_empty());
        assert_eq!(Buffer::new(0).as_slice(), &[] as &[u8]);
    }
}
