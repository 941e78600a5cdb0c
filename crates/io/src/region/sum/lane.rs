//! Carry-less multiplication modulo the polynomial of CRC32C, after V. Gopal et al., "Fast CRC Computation for Generic
//! Polynomials Using PCLMULQDQ Instruction", Intel 2009: a lane of 128 bits is moved over the bits behind it by multiplying
//! its halves with powers of x.

use std::arch::x86_64::{
    __m128i, _mm_clmulepi64_si128, _mm_crc32_u64, _mm_cvtsi128_si64, _mm_extract_epi64, _mm_set_epi64x,
    _mm_xor_si128,
};

/// The polynomial of CRC32C, its bits reversed as those of all values here.
const POLYNOMIAL: u32 = 0x82F6_3B78;

/// The factors of the lower and of the upper half of a lane that is moved over `bits`.
pub(super) const fn factors(bits: u32) -> [i64; 2] {
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

/// Factors as a lane.
#[inline]
#[target_feature(enable = "sse2")]
pub(super) fn lane([lower, upper]: [i64; 2]) -> __m128i {
    _mm_set_epi64x(upper, lower)
}

/// Moves `sum` by its factors, and adds `bytes`.
#[inline]
#[target_feature(enable = "pclmulqdq")]
pub(super) fn moved(sum: __m128i, factors: [i64; 2], bytes: __m128i) -> __m128i {
    let lower = _mm_clmulepi64_si128::<0x00>(sum, lane(factors));
    let upper = _mm_clmulepi64_si128::<0x11>(sum, lane(factors));
    _mm_xor_si128(bytes, _mm_xor_si128(lower, upper))
}

/// The checksum whose state is the remainder of `sum`. The processor divides.
#[inline]
#[target_feature(enable = "sse4.2")]
pub(super) fn checksum(sum: __m128i) -> u32 {
    let state = _mm_crc32_u64(0, _mm_cvtsi128_si64(sum) as u64);
    !(_mm_crc32_u64(state, _mm_extract_epi64::<1>(sum) as u64) as u32)
}
