//! Random numbers from a seed.

use rand_xoshiro::{
    SplitMix64,
    rand_core::{Rng as _, SeedableRng},
};

/// `SplitMix64`: the same seed gives the same numbers on every machine.
#[derive(Clone, Debug)]
pub(crate) struct LinkRng(SplitMix64);

impl LinkRng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(SplitMix64::from_seed(seed.to_le_bytes()))
    }

    /// True with this probability. Draws no number when the answer is certain.
    pub(crate) fn chance(&mut self, probability: f64) -> bool {
        // 53 bits: every multiple of 2^-53 below 1 is equally likely.
        probability > 0.0 && (self.0.next_u64() >> 11) as f64 * (-53_f64).exp2() < probability
    }

    /// Evenly distributed from 0 to `most`. Draws no number when the answer is certain.
    pub(crate) fn up_to(&mut self, most: u64) -> u64 {
        if most == 0 { 0 } else { self.0.next_u64() % (most + 1) }
    }
}

#[cfg(test)]
mod tests {
    use super::LinkRng;

    #[test]
    fn a_seed_gives_the_published_sequence_of_splitmix64() {
        let mut rng = LinkRng::new(0);
        let drawn = [rng.up_to(u64::MAX - 1), rng.up_to(u64::MAX - 1)];
        assert_eq!(drawn, [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4]);
    }
}
