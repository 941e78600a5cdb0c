//! CRC32C of bytes that other threads or the kernel may change meanwhile, and copies of them, in one pass. Each byte is
//! loaded once, so the checksum is that of the bytes that were copied.
//!
//! A library takes a slice, which such bytes cannot be: they would have to be copied to the stack first. Time of 4 KiB in
//! the second cache, with a copy, and by way of the stack: vectors of 512 bits 0.08 and 0.19 us (EPYC of the fourth
//! generation), of 256 bits 0.23 and 0.58 us (of the third; docs/benchmarks.md).

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod lane;
#[cfg(target_arch = "x86_64")]
mod pass;

use super::copy::copy_racy;

/// Bytes that pass through the stack at a time.
const PIECE_BYTES: usize = 4096;

/// Copies `len` bytes to `to`, if it is given. Returns their CRC32C, continued from that of earlier bytes.
///
/// # Safety
/// As [`copy_racy`]; without `to`, only `from` is used.
pub(super) unsafe fn crc32c_racy(earlier: u32, from: *const u8, to: Option<*mut u8>, len: usize) -> u32 {
    // SAFETY: the caller guarantees the ranges, of which these are two parts.
    unsafe {
        let (sum, done) = whole_rounds(earlier, from, to, len);
        by_the_stack(sum, from.add(done), to.map(|to| to.add(done)), len - done)
    }
}

/// Does the front part that the processor can do in one pass. Returns its checksum and its length.
///
/// # Safety
/// As [`crc32c_racy`].
#[cfg(target_arch = "x86_64")]
unsafe fn whole_rounds(earlier: u32, from: *const u8, to: Option<*mut u8>, len: usize) -> (u32, usize) {
    if avx512::is_available() {
        let whole = len / avx512::ROUND_BYTES * avx512::ROUND_BYTES;
        if whole > 0 {
            // SAFETY: the caller guarantees the ranges, of which these are the first part; the processor was just asked.
            return (unsafe { avx512::crc32c(earlier, from, to, whole) }, whole);
        }
    } else if avx2::is_available() {
        let whole = len / avx2::ROUND_BYTES * avx2::ROUND_BYTES;
        if whole > 0 {
            // SAFETY: as above.
            return (unsafe { avx2::crc32c(earlier, from, to, whole) }, whole);
        }
    }
    (earlier, 0)
}

/// Other processors have no such instructions.
///
/// # Safety
/// Nothing is read.
#[cfg(not(target_arch = "x86_64"))]
unsafe fn whole_rounds(earlier: u32, _: *const u8, _: Option<*mut u8>, _: usize) -> (u32, usize) {
    (earlier, 0)
}

/// Copies pieces to the stack, and the library computes their checksum there.
///
/// # Safety
/// As [`crc32c_racy`].
unsafe fn by_the_stack(earlier: u32, from: *const u8, to: Option<*mut u8>, len: usize) -> u32 {
    let mut piece = std::mem::MaybeUninit::<[u8; PIECE_BYTES]>::uninit();
    let piece = piece.as_mut_ptr().cast::<u8>();
    let (mut sum, mut done) = (earlier, 0);
    while done < len {
        let now = (len - done).min(PIECE_BYTES);
        // SAFETY: the caller guarantees the ranges; the piece is local, long enough, and filled before it is read.
        unsafe {
            copy_racy(from.add(done), piece, now);
            sum = linerate_crc32c::crc32c_append(sum, std::slice::from_raw_parts(piece, now));
            if let Some(to) = to {
                copy_racy(piece, to.add(done), now);
            }
        }
        done += now;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_crc32c::crc32c_append;
    use proptest::prelude::*;

    type Way = unsafe fn(u32, *const u8, Option<*mut u8>, usize) -> u32;

    /// Every way that this processor has, with the length whose multiples it takes.
    fn ways() -> Vec<(Way, usize)> {
        let mut ways: Vec<(Way, usize)> = vec![(crc32c_racy, 1), (by_the_stack, 1)];
        #[cfg(target_arch = "x86_64")]
        if avx2::is_available() {
            ways.push((avx2::crc32c, avx2::ROUND_BYTES));
        }
        #[cfg(target_arch = "x86_64")]
        if avx512::is_available() {
            ways.push((avx512::crc32c, avx512::ROUND_BYTES));
        }
        ways
    }

    proptest! {
        #[test]
        fn every_way_agrees_with_the_library_and_copies_every_byte(
            bytes in proptest::collection::vec(any::<u8>(), 0..6000),
            at in 0_usize..70,
            earlier in any::<u32>(),
        ) {
            let bytes = &bytes[at.min(bytes.len())..];
            for (way, multiple) in ways() {
                let bytes = &bytes[..bytes.len() / multiple * multiple];
                if bytes.is_empty() && multiple > 1 {
                    continue;
                }
                let expected = crc32c_append(earlier, bytes);
                let mut copy = vec![0xEE; bytes.len() + 2];
                // SAFETY: both are slices of at least this length, and the copy is apart.
                unsafe {
                    prop_assert_eq!(way(earlier, bytes.as_ptr(), None, bytes.len()), expected);
                    let to = Some(copy.as_mut_ptr().add(1));
                    prop_assert_eq!(way(earlier, bytes.as_ptr(), to, bytes.len()), expected);
                }
                prop_assert_eq!(&copy[1..=bytes.len()], bytes);
                prop_assert_eq!((copy[0], copy[bytes.len() + 1]), (0xEE, 0xEE));
            }
        }
    }
}
