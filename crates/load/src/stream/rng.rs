//! Seeded random numbers: one xoshiro256++ generator per stream and volume, so that a sequence depends on nothing else.

use rand_xoshiro::{
    Xoshiro256PlusPlus,
    rand_core::{Rng as _, SeedableRng},
};

/// The use of a generator: different uses of one stream and volume draw from different sequences.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Use {
    /// Sizes, operations, places.
    Shots,
    /// Times between arrivals.
    Arrivals,
    /// Bytes to write.
    Payload,
    /// Maps of used and of changed clusters.
    Backup,
    /// The volumes of I/Os whose queue several volumes share.
    Queue,
}

/// A generator.
#[derive(Clone, Debug)]
pub(crate) struct Rng(Xoshiro256PlusPlus);

impl Rng {
    /// The generator of a stream on a volume.
    pub(crate) fn new(seed: u64, stream: u32, volume: u32, purpose: Use) -> Self {
        let mut bytes = [0; 32];
        let words =
            [seed, u64::from(stream) << 32 | u64::from(volume), purpose as u64, 0x6C69_6E65_7261_7465];
        let mut state = 0;
        for (chunk, word) in bytes.chunks_exact_mut(8).zip(words) {
            state = mix(state ^ word);
            chunk.copy_from_slice(&state.to_le_bytes());
        }
        Self(Xoshiro256PlusPlus::from_seed(bytes))
    }

    /// 64 even bits.
    pub(crate) fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Evenly below `n` (which is not zero), by multiplying: the bias is below n / 2^64.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(n)) >> 64) as u64
    }

    /// Evenly in [0, 1).
    pub(crate) fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }
}

/// The finaliser of splitmix64: every input bit changes every output bit.
pub(crate) fn mix(input: u64) -> u64 {
    let mut z = input.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// A random outcome with a probability in percent. 0 and 100 percent draw no number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chance {
    /// 0 percent.
    Never,
    /// Below this of 2^64.
    Below(u64),
    /// 100 percent.
    Always,
}

impl Chance {
    /// From percent.
    pub(crate) fn percent(percent: f64) -> Self {
        if percent <= 0.0 {
            Self::Never
        } else if percent >= 100.0 {
            Self::Always
        } else {
            Self::Below((percent / 100.0 * 2_f64.powi(64)) as u64)
        }
    }

    /// Draws.
    pub(crate) fn roll(self, rng: &mut Rng) -> bool {
        match self {
            Self::Never => false,
            Self::Below(limit) => rng.bits() < limit,
            Self::Always => true,
        }
    }
}

/// Choices with weights: each with the upper end of its part of the 64-bit line.
#[derive(Clone, Debug)]
pub(crate) struct Weighted<T>(Box<[(u64, T)]>);

impl<T> Weighted<T> {
    /// Of the parts with a weight above 0; `None` without any.
    pub(crate) fn new(parts: Vec<(f64, T)>) -> Option<Self> {
        let total: f64 = parts.iter().map(|part| part.0).sum();
        let mut sum = 0.0;
        let mut line: Vec<(u64, T)> = parts
            .into_iter()
            .filter(|part| part.0 > 0.0)
            .map(|(weight, choice)| {
                sum += weight;
                ((sum / total * 2_f64.powi(64)) as u64, choice)
            })
            .collect();
        line.last_mut()?.0 = u64::MAX;
        Some(Self(line.into()))
    }

    /// Draws.
    pub(crate) fn draw(&self, rng: &mut Rng) -> &T {
        let at = rng.bits();
        let nth = self.0.iter().position(|part| at <= part.0).unwrap_or(self.0.len() - 1);
        &self.0[nth].1
    }
}

#[cfg(test)]
mod tests {
    use super::{Chance, Rng, Use, Weighted};

    #[test]
    fn choices_come_by_their_weights() {
        let choices = Weighted::new(vec![(0.0, 'a'), (1.0, 'b'), (3.0, 'c'), (0.0, 'd')]).unwrap();
        let mut rng = Rng::new(4, 0, 0, Use::Shots);
        let drawn: String = (0..40_000).map(|_| choices.draw(&mut rng)).collect();
        let share = drawn.chars().filter(|choice| *choice == 'b').count() as f64 / 400.0;
        assert!((share - 25.0).abs() < 1.0 && !drawn.contains(['a', 'd']), "{share} %");
        assert!(Weighted::<char>::new(vec![(0.0, 'a')]).is_none());
    }

    #[test]
    fn generators_differ_by_every_part_of_their_name() {
        let first = |seed, stream, volume, purpose| Rng::new(seed, stream, volume, purpose).bits();
        let base = first(1, 2, 3, Use::Shots);
        assert_eq!(base, first(1, 2, 3, Use::Shots));
        for other in [first(2, 2, 3, Use::Shots), first(1, 3, 3, Use::Shots), first(1, 2, 4, Use::Shots)] {
            assert_ne!(base, other);
        }
        assert_ne!(base, first(1, 2, 3, Use::Arrivals));
        assert_ne!(first(1, 2, 3, Use::Payload), first(1, 3, 2, Use::Payload));
    }

    #[test]
    fn chances_come_true_as_often_as_they_say() {
        let mut rng = Rng::new(7, 0, 0, Use::Shots);
        for percent in [0.0, 0.5, 33.0, 67.0, 99.5, 100.0] {
            let chance = Chance::percent(percent);
            let hits = (0..200_000).filter(|_| chance.roll(&mut rng)).count();
            assert!((hits as f64 / 2000.0 - percent).abs() < 0.5, "{percent} % came {hits} times of 200000");
        }
    }

    #[test]
    fn below_is_even() {
        let mut rng = Rng::new(3, 0, 0, Use::Shots);
        let mut counts = [0_u32; 7];
        for _ in 0..70_000 {
            counts[rng.below(7) as usize] += 1;
        }
        assert!(counts.iter().all(|count| (9500..10500).contains(count)), "{counts:?}");
    }
}
