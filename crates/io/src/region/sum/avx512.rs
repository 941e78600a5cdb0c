//! With vectors of 512 bits.

use super::lane;
use std::arch::x86_64::{
    __m512i, _mm_cvtsi32_si128, _mm512_broadcast_i32x4, _mm512_clmulepi64_epi128, _mm512_extracti32x4_epi32,
    _mm512_ternarylogic_epi64, _mm512_xor_si512, _mm512_zextsi128_si512,
};

super::pass::one_pass!("avx512f", __m512i, 64, zmm_reg, "vmovdqu64");

/// The truth table of a XOR b XOR c.
const XOR_OF_THREE: i32 = 0x96;
const OVER_LANES: [[i64; 2]; 3] = [lane::factors(384), lane::factors(256), lane::factors(128)];

/// Adds the state to the first bits.
#[inline]
#[target_feature(enable = "avx512f")]
fn starting_with(state: u32, bytes: __m512i) -> __m512i {
    _mm512_xor_si512(bytes, _mm512_zextsi128_si512(_mm_cvtsi32_si128(state as i32)))
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
