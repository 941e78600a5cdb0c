//! With vectors of 256 bits.

use super::lane;
use std::arch::x86_64::{
    __m256i, _mm_cvtsi32_si128, _mm256_broadcastsi128_si256, _mm256_clmulepi64_epi128,
    _mm256_extracti128_si256, _mm256_xor_si256, _mm256_zextsi128_si256,
};

super::pass::one_pass!("avx2", __m256i, 32, ymm_reg, "vmovdqu");

const OVER_LANE: [i64; 2] = lane::factors(128);

/// Adds the state to the first bits.
#[inline]
#[target_feature(enable = "avx2")]
fn starting_with(state: u32, bytes: __m256i) -> __m256i {
    _mm256_xor_si256(bytes, _mm256_zextsi128_si256(_mm_cvtsi32_si128(state as i32)))
}

/// The same factors for each lane.
#[inline]
#[target_feature(enable = "avx2")]
fn in_each_lane(factors: [i64; 2]) -> __m256i {
    _mm256_broadcastsi128_si256(lane::lane(factors))
}

/// Moves each lane of `sum` by its factors, and adds `bytes`.
#[inline]
#[target_feature(enable = "avx2,vpclmulqdq")]
fn moved(sum: __m256i, factors: __m256i, bytes: __m256i) -> __m256i {
    let lower = _mm256_clmulepi64_epi128::<0x00>(sum, factors);
    let upper = _mm256_clmulepi64_epi128::<0x11>(sum, factors);
    _mm256_xor_si256(bytes, _mm256_xor_si256(lower, upper))
}

/// The checksum of two lanes: the first is moved over the one behind it.
#[inline]
#[target_feature(enable = "avx2,pclmulqdq,sse4.2")]
fn finish(sum: __m256i) -> u32 {
    let (first, last) = (_mm256_extracti128_si256::<0>(sum), _mm256_extracti128_si256::<1>(sum));
    lane::checksum(lane::moved(first, OVER_LANE, last))
}
