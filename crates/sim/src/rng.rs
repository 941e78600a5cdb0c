//! Random numbers from a seed.

use rand_xoshiro::{
    SplitMix64,
    rand_core::{Rng as _, SeedableRng},
};

/// `SplitMix64`: the same seed gives the same numbers on every machine.
#[derive(Clone, Debug)]
pub struct Rng(SplitMix64);

impl Rng {
    /// Starts from a seed.
    pub fn new(seed: u64) -> Self {
        Rng(SplitMix64::from_seed((seed ^ 0x6c69_6e65_7261_7465).to_le_bytes()))
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number from `low` to `high`, both included.
    pub fn range(&mut self, low: u64, high: u64) -> u64 {
        debug_assert!(low <= high);
        let span = (high - low).wrapping_add(1);
        if span == 0 { self.next_u64() } else { low + self.next_u64() % span }
    }

    /// True `percent` times out of a hundred.
    pub fn chance(&mut self, percent: u32) -> bool {
        self.range(1, 100) <= u64::from(percent)
    }

    /// Fills `bytes`.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.next_u64().to_le_bytes()[..chunk.len()]);
        }
    }
}
