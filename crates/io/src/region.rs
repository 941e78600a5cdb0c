//! Page-aligned memory that kernel and threads share: the pages of a memory volume, the pools of I/O buffers.
//!
//! A region behaves like a disk: it is plain bytes, and a read of a range during a write of another thread gets a
//! mixture of old and new bytes. There is never a Rust reference into it, so such a race is not undefined behaviour:
//! every access is a copy of bytes that may change meanwhile ([`copy_racy`]).

mod ahead;
mod attached;
mod copy;
mod huge;
mod sum;

pub use ahead::untouched_bytes;
pub use attached::AttachedRegions;
use copy::{copy_racy, copy_streaming, prefetch};
use huge::Share;
use std::{io, mem::MaybeUninit, ptr::NonNull, sync::Arc};
use sum::crc32c_racy;

/// Bytes that chunked reads copy through the stack at a time.
const CHUNK_BYTES: usize = 4096;
/// Longest range that [`Region::prefetch`] moves.
const PREFETCHED_BYTES_MAX: u64 = 16 << 10;

/// Hint: a value is used soon. Its first bytes begin to move into the processor's caches, without waiting.
pub fn prefetch_value<T>(value: &T) {
    prefetch(std::ptr::from_ref(value).cast(), 1);
}

/// Anonymous, page-aligned, zero-initialised memory of a fixed length. See the module text about races.
///
/// All offsets and lengths are in bytes and must be inside the region. Otherwise the call panics, as slice indexing
/// does.
#[derive(Debug)]
pub struct Region {
    first: NonNull<u8>,
    len: usize,
    /// Its share of the process's huge pages, if it is in huge pages.
    share: Option<Share>,
}

// SAFETY: the memory belongs to the region until it is dropped, and is only accessed by racy copies.
unsafe impl Send for Region {}
// SAFETY: as above; concurrent copies may mix bytes but touch nothing else.
unsafe impl Sync for Region {}

impl Region {
    /// Maps `len_bytes` of zeroed memory. Pages take memory once they are written. Errors: length zero, or not enough
    /// address space.
    pub fn anonymous(len_bytes: u64) -> io::Result<Arc<Self>> {
        Self::map(len_bytes).map(Arc::new)
    }

    /// The same for memory with random access: in huge pages, as far as the host has them, up to a quarter of the
    /// memory that is available when the first one is made. A huge page takes memory as a whole once a byte of it is
    /// written.
    pub fn in_huge_pages(len_bytes: u64) -> io::Result<Arc<Self>> {
        let mut region = Self::map(len_bytes)?;
        if let Some(share) = Share::take(len_bytes) {
            // SAFETY: the mapping just made; advice changes no byte of it.
            let advised =
                unsafe { libc::madvise(region.first.as_ptr().cast(), region.len, libc::MADV_HUGEPAGE) };
            // A kernel without huge pages refuses; then small pages are used.
            region.share = (advised == 0).then_some(share);
        }
        Ok(Arc::new(region))
    }

    /// Makes its pages in the background, so that no I/O waits for the kernel to zero a page. It does nothing for a region
    /// that is not in huge pages: that one may be larger than the memory. See [`untouched_bytes`].
    pub fn touch_ahead(self: &Arc<Self>) {
        if self.has_huge_pages() {
            ahead::touch(Arc::downgrade(self), self.len());
        }
    }

    /// Makes the pages of a range that have none yet; no byte changes. Errors: not enough memory, or the kernel cannot do
    /// it (before Linux 5.14).
    fn populate(&self, offset: u64, len: u64) -> io::Result<()> {
        let start = self.range(offset, len);
        // SAFETY: a range of the mapping, at a multiple of the page size; the call changes no byte of it.
        let result = unsafe { libc::madvise(start.cast(), len as usize, libc::MADV_POPULATE_WRITE) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    fn map(len_bytes: u64) -> io::Result<Self> {
        let len = usize::try_from(len_bytes).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
        // SAFETY: a fresh anonymous mapping at an address of the kernel's choice aliases nothing.
        let memory = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let first = NonNull::new(memory.cast::<u8>()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { first, len, share: None })
    }

    /// Length in bytes.
    pub fn len(&self) -> u64 {
        self.len as u64
    }

    /// Whether it may use huge pages.
    pub fn has_huge_pages(&self) -> bool {
        self.share.is_some()
    }

    /// Never: a region has at least one byte.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Copies out `into.len()` bytes.
    pub fn read(&self, offset: u64, into: &mut [u8]) {
        let from = self.range(offset, into.len() as u64);
        // SAFETY: `range` checked the source; the destination is an exclusive slice outside any region.
        unsafe { copy_racy(from, into.as_mut_ptr(), into.len()) }
    }

    /// The CRC32C of a range, continued from that of earlier bytes. The bytes are read in place.
    pub fn crc32c(&self, earlier: u32, offset: u64, len: u64) -> u32 {
        let from = self.range(offset, len);
        // SAFETY: `range` checked the source.
        unsafe { crc32c_racy(earlier, from, None, len as usize) }
    }

    /// As [`read`](Self::read). Returns the CRC32C of the copied bytes, continued from that of earlier bytes.
    pub fn read_crc32c(&self, earlier: u32, offset: u64, into: &mut [u8]) -> u32 {
        let from = self.range(offset, into.len() as u64);
        // SAFETY: `range` checked the source; the destination is an exclusive slice outside any region.
        unsafe { crc32c_racy(earlier, from, Some(into.as_mut_ptr()), into.len()) }
    }

    /// Copies `len` bytes to another region. Returns the CRC32C of the copied bytes, continued from that of earlier bytes.
    ///
    /// # Panics
    ///
    /// If both are the same region.
    pub fn copy_crc32c(&self, earlier: u32, offset: u64, to: &Region, to_offset: u64, len: u64) -> u32 {
        assert!(!std::ptr::eq(self, to), "ranges of one region may overlap");
        let (from, into) = (self.range(offset, len), to.range(to_offset, len));
        // SAFETY: both ranges were checked, and different regions do not overlap.
        unsafe { crc32c_racy(earlier, from, Some(into), len as usize) }
    }

    /// Copies `bytes` in.
    pub fn write(&self, offset: u64, bytes: &[u8]) {
        let to = self.range(offset, bytes.len() as u64);
        // SAFETY: `range` checked the destination; the source is a slice outside any region.
        unsafe { copy_racy(bytes.as_ptr(), to, bytes.len()) }
    }

    /// Copies `bytes` in, past the processor's caches as far as it can: for bytes that are not used again soon.
    pub fn write_streaming(&self, offset: u64, bytes: &[u8]) {
        let to = self.range(offset, bytes.len() as u64);
        // SAFETY: `range` checked the destination; the source is a slice outside any region.
        unsafe { copy_streaming(bytes.as_ptr(), to, bytes.len()) }
    }

    /// Hint: the range is read soon. A short one begins to move into the processor's caches, without waiting; in a longer
    /// one the processor looks ahead by itself.
    pub fn prefetch(&self, offset: u64, len: u64) {
        if len <= PREFETCHED_BYTES_MAX {
            prefetch(self.range(offset, len), len as usize);
        }
    }

    /// Appends `len` bytes to `into`.
    pub fn append_to(&self, offset: u64, len: usize, into: &mut Vec<u8>) {
        let from = self.range(offset, len as u64);
        into.reserve(len);
        // SAFETY: `range` checked the source; the destination is the vector's own spare memory, all of which is filled.
        unsafe {
            copy_racy(from, into.as_mut_ptr().add(into.len()), len);
            into.set_len(into.len() + len);
        }
    }

    /// Repeats `pattern` over `len` bytes, starting with its first byte; the last repeat may be incomplete.
    pub fn fill(&self, offset: u64, len: u64, pattern: &[u8]) {
        assert!(!pattern.is_empty(), "a fill pattern has at least one byte");
        let mut chunk = [0; CHUNK_BYTES];
        let unit: &[u8] = if pattern.len() > CHUNK_BYTES {
            pattern
        } else {
            let whole = CHUNK_BYTES / pattern.len() * pattern.len();
            for (byte, &from) in chunk.iter_mut().zip(pattern.iter().cycle()) {
                *byte = from;
            }
            &chunk[..whole]
        };
        let mut done = 0;
        while done < len {
            let piece = (len - done).min(unit.len() as u64) as usize;
            self.write(offset + done, &unit[..piece]);
            done += piece as u64;
        }
    }

    /// Copies `len` bytes to another place of the same or another region. Overlapping ranges of one region are copied
    /// as if through a buffer.
    pub fn copy_to(&self, offset: u64, to: &Region, to_offset: u64, len: u64) {
        let (from, into) = (self.range(offset, len), to.range(to_offset, len));
        if !std::ptr::eq(self, to) {
            // SAFETY: both ranges were checked, and different regions do not overlap.
            return unsafe { copy_racy(from, into, len as usize) };
        }
        let backwards = to_offset > offset;
        let mut chunk = [0; CHUNK_BYTES];
        let mut done = 0;
        while done < len {
            let piece = (len - done).min(CHUNK_BYTES as u64) as usize;
            let at = if backwards { len - done - piece as u64 } else { done } as usize;
            // SAFETY: both ranges were checked; each chunk passes through the stack, so overlap is harmless.
            unsafe {
                copy_racy(from.add(at), chunk.as_mut_ptr(), piece);
                copy_racy(chunk.as_ptr(), into.add(at), piece);
            }
            done += piece as u64;
        }
    }

    /// Compares with `bytes`; returns the index of the first byte that differs.
    pub fn compare(&self, offset: u64, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        let mut mismatch = None;
        self.for_each_chunk(offset, bytes.len() as u64, |chunk| {
            if mismatch.is_none() && chunk != &bytes[at..at + chunk.len()] {
                mismatch = chunk.iter().zip(&bytes[at..]).position(|(a, b)| a != b).map(|index| at + index);
            }
            at += chunk.len();
        });
        mismatch
    }

    /// Returns the pages inside the range to the system; the range reads as zeros afterwards.
    pub fn discard(&self, offset: u64, len: u64) {
        let start = self.range(offset, len);
        let page = rustix::param::page_size() as u64;
        let (first, last) = (offset.next_multiple_of(page), (offset + len) / page * page);
        if first >= last {
            return self.fill(offset, len, &[0]);
        }
        self.fill(offset, first - offset, &[0]);
        self.fill(last, offset + len - last, &[0]);
        // SAFETY: whole pages inside the mapping, which was made private and anonymous: they read as zeros afterwards.
        let result = unsafe {
            let pages = start.add((first - offset) as usize);
            libc::madvise(pages.cast(), (last - first) as usize, libc::MADV_DONTNEED)
        };
        if result != 0 {
            self.fill(first, last - first, &[0]);
        }
    }

    /// Passes `len` bytes from `offset` in order, in chunks of at most 4096 bytes that were copied to the stack.
    pub fn for_each_chunk(&self, offset: u64, len: u64, mut visit: impl FnMut(&[u8])) {
        let mut chunk = MaybeUninit::<[u8; CHUNK_BYTES]>::uninit();
        let chunk = chunk.as_mut_ptr().cast::<u8>();
        let mut done = 0;
        while done < len {
            let piece = (len - done).min(CHUNK_BYTES as u64) as usize;
            let from = self.range(offset + done, piece as u64);
            // SAFETY: `range` checked the source; the chunk is local, at least as long as the piece, and filled so far.
            let bytes = unsafe {
                copy_racy(from, chunk, piece);
                std::slice::from_raw_parts(chunk, piece)
            };
            visit(bytes);
            done += piece as u64;
        }
    }

    /// The address of a checked range.
    pub(crate) fn range(&self, offset: u64, len: u64) -> *mut u8 {
        assert!(self.contains(offset, len), "range {offset}+{len} is outside a region of {} bytes", self.len);
        // SAFETY: just checked to be inside the mapping.
        unsafe { self.first.as_ptr().add(offset as usize) }
    }

    /// Whether `len` bytes from `offset` are inside the region.
    pub fn contains(&self, offset: u64, len: u64) -> bool {
        offset.checked_add(len).is_some_and(|end| end <= self.len as u64)
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `anonymous`; no reference to it is left. A failure leaks address space only.
        unsafe { libc::munmap(self.first.as_ptr().cast(), self.len) };
    }
}

#[cfg(test)]
mod tests {
    use super::{Region, untouched_bytes};
    use std::time::{Duration, Instant};

    fn bytes_of(region: &Region, offset: u64, len: usize) -> Vec<u8> {
        let mut bytes = vec![0xEE; len];
        region.read(offset, &mut bytes);
        bytes
    }

    #[test]
    fn copies_of_every_length_and_alignment_are_whole() {
        let region = Region::anonymous(8192).unwrap();
        let bytes: Vec<u8> = (0..300u16).map(|at| (at % 251) as u8).collect();
        for len in 0..bytes.len() {
            for offset in [0, 1, 15, 63, 4096 - 7] {
                region.fill(0, 8192, &[0xAA]);
                region.write(offset, &bytes[..len]);
                assert_eq!(bytes_of(&region, offset, len), bytes[..len], "{len} bytes at {offset}");
                assert_eq!(
                    bytes_of(&region, offset + len as u64, 64),
                    [0xAA; 64],
                    "behind {len} at {offset}"
                );
            }
        }
    }

    #[test]
    fn copies_past_the_caches_are_whole() {
        let region = Region::anonymous(16384).unwrap();
        let bytes: Vec<u8> = (0..9000u16).map(|at| (at % 251) as u8).collect();
        for len in [0, 1, 127, 128, 2047, 2048, 2049, 2175, 2176, 4096, 8999] {
            for offset in [0, 1, 16, 32, 512, 4096 - 32] {
                region.fill(0, 16384, &[0xAA]);
                region.write_streaming(offset, &bytes[..len]);
                assert_eq!(bytes_of(&region, offset, len), bytes[..len], "{len} bytes at {offset}");
                let (before, behind) = (bytes_of(&region, 0, offset as usize), offset + len as u64);
                assert!(before.iter().all(|byte| *byte == 0xAA), "before {len} at {offset}");
                assert_eq!(bytes_of(&region, behind, 64), [0xAA; 64], "behind {len} at {offset}");
            }
        }
    }

    #[test]
    #[should_panic(expected = "outside a region")]
    fn a_hint_outside_the_region_is_refused_like_every_other_use() {
        Region::anonymous(4096).unwrap().prefetch(4096, 512);
    }

    #[test]
    fn reads_back_what_was_written() {
        let region = Region::anonymous(10_000).unwrap();
        assert_eq!(bytes_of(&region, 0, 10_000), vec![0; 10_000]);
        region.write(4090, b"across a page");
        assert_eq!(bytes_of(&region, 4090, 13), b"across a page");
        assert_eq!(region.compare(4090, b"across a page"), None);
        assert_eq!(region.compare(4090, b"across a Page"), Some(9));
        let mut appended = b"goes ".to_vec();
        region.append_to(4090, 13, &mut appended);
        assert_eq!(appended, b"goes across a page");
    }

    #[test]
    fn fill_repeats_patterns_of_any_length() {
        let region = Region::anonymous(20_000).unwrap();
        for pattern_len in [1_usize, 3, 512, 4096, 5000] {
            let pattern: Vec<u8> = (0..pattern_len).map(|i| (i * 7 + 1) as u8).collect();
            region.fill(11, 12_345, &pattern);
            let expected: Vec<u8> = pattern.iter().copied().cycle().take(12_345).collect();
            assert_eq!(bytes_of(&region, 11, 12_345), expected, "pattern of {pattern_len}");
        }
    }

    #[test]
    fn discard_zeroes_exactly_the_range() {
        let region = Region::anonymous(65_536).unwrap();
        for (offset, len) in [(0, 65_536), (100, 50), (100, 9000), (4096, 8192), (4095, 4098)] {
            region.fill(0, 65_536, &[0xAA]);
            region.discard(offset, len);
            let after = bytes_of(&region, 0, 65_536);
            for (at, byte) in after.iter().enumerate() {
                let inside = (offset..offset + len).contains(&(at as u64));
                assert_eq!(*byte, if inside { 0 } else { 0xAA }, "byte {at} after {offset}+{len}");
            }
        }
    }

    #[test]
    fn huge_pages_hold_and_give_back_the_same_bytes() {
        let (len, page) = (5 << 20, 2 << 20);
        let region = Region::in_huge_pages(len).unwrap();
        region.fill(0, len, &[0xAA]);
        region.discard(page - 5000, 10_000);
        for (offset, inside) in
            [(page - 5001, false), (page - 5000, true), (page + 4999, true), (page + 5000, false)]
        {
            assert_eq!(bytes_of(&region, offset, 1), [if inside { 0 } else { 0xAA }], "byte {offset}");
        }
        assert!(!Region::in_huge_pages(4096).unwrap().has_huge_pages(), "a page is no huge page");
    }

    #[test]
    fn memory_touched_ahead_keeps_its_bytes_and_takes_memory() {
        let len = 64 << 20;
        let region = Region::in_huge_pages(len).unwrap();
        region.write(5 << 20, b"written before");
        let resident = || {
            let text = std::fs::read_to_string("/proc/self/statm").unwrap();
            let pages: u64 = text.split_ascii_whitespace().nth(1).unwrap().parse().unwrap();
            pages * rustix::param::page_size() as u64
        };
        let before = resident();
        region.touch_ahead();
        let deadline = Instant::now() + Duration::from_secs(20);
        while untouched_bytes() > 0 && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(untouched_bytes(), 0);
        assert_eq!(region.compare(5 << 20, b"written before"), None);
        assert_eq!(bytes_of(&region, len - 3, 3), [0; 3]);
        // A kernel before 5.14, and a host with little memory, touch nothing.
        if region.has_huge_pages() && region.populate(0, 4096).is_ok() {
            assert!(resident() > before + len / 2, "{before} bytes before, {} after", resident());
        }
        let dropped = Region::in_huge_pages(len).unwrap();
        dropped.touch_ahead();
        drop(dropped);
        while untouched_bytes() > 0 && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(untouched_bytes(), 0, "nothing is left of a region that was dropped");
    }

    #[test]
    fn overlapping_copies_behave_like_memmove() {
        for (from, to) in [(100_u64, 5000_u64), (5000, 100), (100, 101), (101, 100)] {
            let region = Region::anonymous(32_768).unwrap();
            let original: Vec<u8> = (0..32_768_u32).map(|i| (i % 251) as u8).collect();
            region.write(0, &original);
            region.copy_to(from, &region, to, 20_000);
            let mut expected = original.clone();
            expected.copy_within(from as usize..from as usize + 20_000, to as usize);
            assert_eq!(bytes_of(&region, 0, 32_768), expected, "{from} -> {to}");
        }
    }

    #[test]
    #[should_panic(expected = "outside a region")]
    fn a_range_past_the_end_is_refused() {
        let region = Region::anonymous(4096).unwrap();
        region.write(4000, &[0; 100]);
    }

    #[test]
    fn no_region_of_zero_bytes() {
        assert!(Region::anonymous(0).is_err());
    }
}
