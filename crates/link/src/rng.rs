//! Chance from a seed.

/// `SplitMix64`: the same seed gives the same numbers on every machine.
#[derive(Clone, Debug)]
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// True with this probability. Draws nothing when the answer is certain.
    pub(crate) fn chance(&mut self, probability: f64) -> bool {
        // 53 bits: every multiple of 2^-53 below 1 is equally likely.
        probability > 0.0 && (self.next() >> 11) as f64 * (-53_f64).exp2() < probability
    }

    /// Evenly distributed from 0 to `most`. Draws nothing when the answer is certain.
    pub(crate) fn up_to(&mut self, most: u64) -> u64 {
        if most == 0 { 0 } else { self.next() % (most + 1) }
    }
}
