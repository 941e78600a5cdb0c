//! With vectors of 512 bits.

use super::lane::{self, factors};
use std::arch::{
    asm,
    x86_64::{
        __m512i, _mm_cvtsi32_si128, _mm512_broadcast_i32x4, _mm512_clmulepi64_epi128,
        _mm512_extracti32x4_epi32, _mm512_ternarylogic_epi64, _mm512_xor_si512, _mm512_zextsi128_si512,
    },
};

/// Bytes of one vector, and of one round of the loop.
const VECTOR_BYTES: usize = 64;
pub(super) const ROUND_BYTES: usize = 4 * VECTOR_BYTES;
/// The truth table of a XOR b XOR c.
const XOR_OF_THREE: i32 = 0x96;

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
fn in_each_lane(factors: [i64; 2]) -> __m512i {
    _mm512_broadcast_i32x4(lane::lane(factors))
}

/// Moves each lane of `sum` by its factors, and adds `bytes`.
#[inline]
#[target_feature(enable = "avx512f,vpclmulqdq")]
fn moved(sum: __m512i, factors: __m512i, bytes: __m512i) -> __m512i {
    let lower = _mm512_clmulepi64_epi128::<0x00>(sum, factors);
    let upper = _mm512_clmulepi64_epi128::<0x11>(sum, factors);
    _mm512_ternarylogic_epi64::<XOR_OF_THREE>(lower, upper, bytes)
}

/// The checksum of four lanes: the first three are moved over those behind them.
#[inline]
#[target_feature(enable = "avx512f,pclmulqdq,sse4.2")]
fn finish(sum: __m512i) -> u32 {
    let mut last = _mm512_extracti32x4_epi32::<3>(sum);
    last = lane::moved(_mm512_extracti32x4_epi32::<0>(sum), OVER_LANES[0], last);
    last = lane::moved(_mm512_extracti32x4_epi32::<1>(sum), OVER_LANES[1], last);
    last = lane::moved(_mm512_extracti32x4_epi32::<2>(sum), OVER_LANES[2], last);
    lane::checksum(last)
}
