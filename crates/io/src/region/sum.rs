//! CRC32C of bytes that other threads or the kernel may change meanwhile, and copies of them, in one pass. Each byte is
//! loaded once, so the checksum is that of the bytes that were copied.
//!
//! A library takes a slice, which such bytes cannot be: they would have to be copied to the stack first. Time of 4 KiB in
//! the second cache: 0.08 us with a copy, and 0.19 us by way of the stack (docs/benchmarks.md).

use super::copy::copy_racy;

/// Bytes that pass through the stack at a time.
const PIECE_BYTES: usize = 4096;

/// Copies `len` bytes to `to`, if it is given. Returns their CRC32C, continued from that of earlier bytes.
///
/// # Safety
/// As [`copy_racy`]; without `to`, only `from` is used.
pub(super) unsafe fn crc32c_racy(earlier: u32, from: *const u8, to: Option<*mut u8>, len: usize) -> u32 {
    #[cfg(target_arch = "x86_64")]
    let whole = if wide::is_available() { len / wide::ROUND_BYTES * wide::ROUND_BYTES } else { 0 };
    #[cfg(not(target_arch = "x86_64"))]
    let whole = 0;
    let mut sum = earlier;
    #[cfg(target_arch = "x86_64")]
    if whole > 0 {
        // SAFETY: the caller guarantees the ranges, of which these are the first part; the processor was just asked.
        sum = unsafe { wide::crc32c(sum, from, to, whole) };
    }
    let mut piece = std::mem::MaybeUninit::<[u8; PIECE_BYTES]>::uninit();
    let piece = piece.as_mut_ptr().cast::<u8>();
    let mut done = whole;
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

/// By carry-less multiplication of vectors of 512 bits, after V. Gopal et al., "Fast CRC Computation for Generic
/// Polynomials Using PCLMULQDQ Instruction", Intel 2009: a lane of 128 bits is moved over the bits behind it by
/// multiplying its halves with powers of x, modulo the polynomial.
#[cfg(target_arch = "x86_64")]
mod wide {
    use std::arch::{
        asm,
        x86_64::{
            __m128i, __m512i, _mm_clmulepi64_si128, _mm_crc32_u64, _mm_cvtsi32_si128, _mm_cvtsi128_si64,
            _mm_extract_epi64, _mm_set_epi64x, _mm_xor_si128, _mm512_broadcast_i32x4,
            _mm512_clmulepi64_epi128, _mm512_extracti32x4_epi32, _mm512_ternarylogic_epi64, _mm512_xor_si512,
            _mm512_zextsi128_si512,
        },
    };

    /// Bytes of one vector, and of one round of the loop.
    const VECTOR_BYTES: usize = 64;
    pub(super) const ROUND_BYTES: usize = 4 * VECTOR_BYTES;
    /// The truth table of a XOR b XOR c.
    const XOR_OF_THREE: i32 = 0x96;

    /// The polynomial of CRC32C, its bits reversed as those of all values here.
    const POLYNOMIAL: u32 = 0x82F6_3B78;

    /// The factors of the lower and of the upper half of a lane that is moved over `bits`.
    const fn factors(bits: u32) -> [i64; 2] {
        [power(bits + 32), power(bits - 32)]
    }

    /// x to the power of `exponent` modulo the polynomial, as a factor of 33 bits.
    const fn power(exponent: u32) -> i64 {
        let (mut value, mut at) = (0x8000_0000_u32, 0);
        while at < exponent {
            value = (value >> 1) ^ if value & 1 == 1 { POLYNOMIAL } else { 0 };
            at += 1;
        }
        (value as i64) << 1
    }

    const OVER_ROUND: [i64; 2] = factors(2048);
    const OVER_VECTORS: [[i64; 2]; 3] = [factors(1536), factors(1024), factors(512)];
    const OVER_LANES: [[i64; 2]; 3] = [factors(384), factors(256), factors(128)];

    /// Whether the processor has what [`crc32c`] needs. The answer is cached.
    pub(super) fn is_available() -> bool {
        std::arch::is_x86_feature_detected!("vpclmulqdq")
            && std::arch::is_x86_feature_detected!("avx512f")
            && std::arch::is_x86_feature_detected!("sse4.2")
    }

    /// See [`super::crc32c_racy`].
    ///
    /// # Safety
    /// As there; `len` is a multiple of [`ROUND_BYTES`] and not zero; the processor [`is_available`].
    #[target_feature(enable = "avx512f,vpclmulqdq,pclmulqdq,sse4.2")]
    pub(super) unsafe fn crc32c(earlier: u32, from: *const u8, to: Option<*mut u8>, len: usize) -> u32 {
        // SAFETY: as the caller guarantees.
        unsafe {
            match to {
                None => fold::<false>(earlier, from, std::ptr::null_mut(), len),
                Some(to) => fold::<true>(earlier, from, to, len),
            }
        }
    }

    /// # Safety
    /// As [`crc32c`]; `to` is used if `COPIES`.
    #[target_feature(enable = "avx512f,vpclmulqdq,pclmulqdq,sse4.2")]
    unsafe fn fold<const COPIES: bool>(earlier: u32, from: *const u8, to: *mut u8, len: usize) -> u32 {
        // A checksum is the complement of the state, which is added to the first bits.
        let state = _mm512_zextsi128_si512(_mm_cvtsi32_si128(!earlier as i32));
        // SAFETY: the caller guarantees `len` bytes, which are whole rounds, and each vector is one of them.
        unsafe {
            let mut a = _mm512_xor_si512(next::<COPIES>(from, to, 0), state);
            let mut b = next::<COPIES>(from, to, VECTOR_BYTES);
            let mut c = next::<COPIES>(from, to, 2 * VECTOR_BYTES);
            let mut d = next::<COPIES>(from, to, 3 * VECTOR_BYTES);
            let (factors, mut at) = (in_each_lane(OVER_ROUND), ROUND_BYTES);
            while at < len {
                a = moved(a, factors, next::<COPIES>(from, to, at));
                b = moved(b, factors, next::<COPIES>(from, to, at + VECTOR_BYTES));
                c = moved(c, factors, next::<COPIES>(from, to, at + 2 * VECTOR_BYTES));
                d = moved(d, factors, next::<COPIES>(from, to, at + 3 * VECTOR_BYTES));
                at += ROUND_BYTES;
            }
            d = moved(a, in_each_lane(OVER_VECTORS[0]), d);
            d = moved(b, in_each_lane(OVER_VECTORS[1]), d);
            finish(moved(c, in_each_lane(OVER_VECTORS[2]), d))
        }
    }

    /// Reads the vector at `at`, and copies it if `COPIES`. The compiler cannot see into the load: it does not repeat it.
    ///
    /// # Safety
    /// `from`, and `to` if `COPIES`, have a vector at `at`.
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn next<const COPIES: bool>(from: *const u8, to: *mut u8, at: usize) -> __m512i {
        let vector: __m512i;
        // SAFETY: as the caller guarantees.
        unsafe {
            asm!(
                "vmovdqu64 {vector}, [{from} + {at}]",
                vector = out(zmm_reg) vector,
                from = in(reg) from,
                at = in(reg) at,
                options(nostack, preserves_flags, readonly)
            );
            if COPIES {
                asm!(
                    "vmovdqu64 [{to} + {at}], {vector}",
                    vector = in(zmm_reg) vector,
                    to = in(reg) to,
                    at = in(reg) at,
                    options(nostack, preserves_flags)
                );
            }
        }
        vector
    }

    /// The same factors for each lane.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn in_each_lane([lower, upper]: [i64; 2]) -> __m512i {
        _mm512_broadcast_i32x4(_mm_set_epi64x(upper, lower))
    }

    /// Moves each lane of `sum` by its factors, and adds `bytes`.
    #[inline]
    #[target_feature(enable = "avx512f,vpclmulqdq")]
    fn moved(sum: __m512i, factors: __m512i, bytes: __m512i) -> __m512i {
        let lower = _mm512_clmulepi64_epi128::<0x00>(sum, factors);
        let upper = _mm512_clmulepi64_epi128::<0x11>(sum, factors);
        _mm512_ternarylogic_epi64::<XOR_OF_THREE>(lower, upper, bytes)
    }

    /// The checksum of four lanes: the first three are moved over those behind them, and the processor divides the last.
    #[inline]
    #[target_feature(enable = "avx512f,pclmulqdq,sse4.2")]
    fn finish(sum: __m512i) -> u32 {
        let mut last = _mm512_extracti32x4_epi32::<3>(sum);
        last = moved_lane(_mm512_extracti32x4_epi32::<0>(sum), OVER_LANES[0], last);
        last = moved_lane(_mm512_extracti32x4_epi32::<1>(sum), OVER_LANES[1], last);
        last = moved_lane(_mm512_extracti32x4_epi32::<2>(sum), OVER_LANES[2], last);
        let state = _mm_crc32_u64(0, _mm_cvtsi128_si64(last) as u64);
        !(_mm_crc32_u64(state, _mm_extract_epi64::<1>(last) as u64) as u32)
    }

    /// As [`moved`], for one lane.
    #[inline]
    #[target_feature(enable = "pclmulqdq")]
    fn moved_lane(sum: __m128i, [lower, upper]: [i64; 2], bytes: __m128i) -> __m128i {
        let factors = _mm_set_epi64x(upper, lower);
        let lower = _mm_clmulepi64_si128::<0x00>(sum, factors);
        let upper = _mm_clmulepi64_si128::<0x11>(sum, factors);
        _mm_xor_si128(bytes, _mm_xor_si128(lower, upper))
    }
}

#[cfg(test)]
mod tests {
    use super::crc32c_racy;
    use linerate_crc32c::crc32c_append;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_agrees_with_the_library_and_copies_every_byte(
            bytes in proptest::collection::vec(any::<u8>(), 0..6000),
            at in 0_usize..70,
            earlier in any::<u32>(),
        ) {
            let bytes = &bytes[at.min(bytes.len())..];
            let expected = crc32c_append(earlier, bytes);
            let mut copy = vec![0xEE; bytes.len() + 2];
            // SAFETY: both are slices of at least this length, and the copy is apart.
            unsafe {
                prop_assert_eq!(crc32c_racy(earlier, bytes.as_ptr(), None, bytes.len()), expected);
                let to = Some(copy.as_mut_ptr().add(1));
                prop_assert_eq!(crc32c_racy(earlier, bytes.as_ptr(), to, bytes.len()), expected);
            }
            prop_assert_eq!(&copy[1..=bytes.len()], bytes);
            prop_assert_eq!((copy[0], copy[bytes.len() + 1]), (0xEE, 0xEE));
        }
    }
}
