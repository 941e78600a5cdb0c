//! How large the next I/O is.

use super::rng::{Rng, Weighted};
use crate::spec::{SizeSpec, StreamSpec};

/// A distribution of sizes, ready to draw from.
#[derive(Clone, Debug)]
pub(crate) enum Sizes {
    /// Always the same.
    Fixed(u32),
    /// Sizes by their shares.
    Mix(Weighted<u32>),
    /// `min + k * step` for k below `steps`.
    Steps {
        /// Smallest.
        min: u32,
        /// Between two sizes.
        step: u32,
        /// How many sizes there are.
        steps: u64,
    },
}

impl Sizes {
    /// From a validated specification.
    pub(crate) fn new(spec: &SizeSpec) -> Self {
        match spec {
            SizeSpec::Mix { parts } if parts.len() == 1 => Self::Fixed(parts[0].0),
            SizeSpec::Mix { parts } => {
                let mix = Weighted::new(parts.iter().map(|&(bytes, percent)| (percent, bytes)).collect());
                mix.map_or(Self::Fixed(parts[0].0), Self::Mix)
            }
            SizeSpec::Range { min_bytes, max_bytes, align_bytes } => {
                let min = min_bytes.next_multiple_of(*align_bytes);
                let steps = u64::from((max_bytes - min) / align_bytes) + 1;
                Self::Steps { min, step: *align_bytes, steps }
            }
        }
    }

    /// The next size in bytes.
    pub(crate) fn draw(&self, rng: &mut Rng) -> u32 {
        match self {
            Self::Fixed(bytes) => *bytes,
            Self::Mix(mix) => *mix.draw(rng),
            Self::Steps { min, step, steps } => min + rng.below(*steps) as u32 * step,
        }
    }
}

impl SizeSpec {
    /// Smallest and largest size in bytes.
    pub(crate) fn bounds(&self) -> (u32, u32) {
        match self {
            Self::Mix { parts } => {
                let sizes = parts.iter().map(|part| part.0);
                (sizes.clone().min().unwrap_or(0), sizes.max().unwrap_or(0))
            }
            Self::Range { min_bytes, max_bytes, align_bytes } => {
                (min_bytes.next_multiple_of(*align_bytes), max_bytes / align_bytes * align_bytes)
            }
        }
    }

    /// The largest number that divides every size.
    pub(crate) fn granularity(&self) -> u32 {
        match self {
            Self::Mix { parts } => parts.iter().fold(0, |divisor, part| gcd(divisor, part.0)),
            Self::Range { align_bytes, .. } => *align_bytes,
        }
    }
}

impl StreamSpec {
    /// Largest read or write in bytes.
    pub(crate) fn largest_io_bytes(&self) -> u32 {
        self.all_sizes().map(|sizes| sizes.bounds().1).max().unwrap_or(0)
    }

    /// Grid of places for which an area must have room.
    pub(crate) fn grid_bytes(&self) -> u64 {
        self.align_bytes.unwrap_or_else(|| self.largest_io_bytes().into())
    }

    /// The largest number that divides the size of every read and write.
    pub(crate) fn granularity(&self) -> u32 {
        self.all_sizes().fold(0, |divisor, sizes| gcd(divisor, sizes.granularity()))
    }

    fn all_sizes(&self) -> impl Iterator<Item = &SizeSpec> {
        std::iter::once(&self.sizes).chain(&self.write_sizes)
    }
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::Sizes;
    use crate::{
        spec::SizeSpec,
        stream::rng::{Rng, Use},
    };
    use std::collections::BTreeMap;

    fn draw(spec: &SizeSpec, count: u32) -> BTreeMap<u32, u32> {
        let (sizes, mut rng) = (Sizes::new(spec), Rng::new(5, 1, 1, Use::Shots));
        let mut seen = BTreeMap::new();
        for _ in 0..count {
            *seen.entry(sizes.draw(&mut rng)).or_insert(0) += 1;
        }
        seen
    }

    #[test]
    fn a_mix_keeps_its_percentages() {
        let parts = vec![(4096, 12.5), (8192, 67.25), (65536, 20.25), (512, 0.0)];
        let seen = draw(&SizeSpec::Mix { parts: parts.clone() }, 400_000);
        for (bytes, percent) in parts {
            let share = f64::from(seen.get(&bytes).copied().unwrap_or(0)) / 4000.0;
            assert!((share - percent).abs() < 0.3, "{bytes}: {share} % instead of {percent} %");
        }
    }

    #[test]
    fn a_range_draws_every_multiple_evenly() {
        let seen = draw(&SizeSpec::Range { min_bytes: 1000, max_bytes: 4096, align_bytes: 512 }, 70_000);
        assert_eq!(seen.keys().copied().collect::<Vec<_>>(), [1024, 1536, 2048, 2560, 3072, 3584, 4096]);
        assert!(seen.values().all(|count| (9500..10500).contains(count)), "{seen:?}");
    }

    #[test]
    fn bounds_and_granularity() {
        let mix = SizeSpec::Mix { parts: vec![(12288, 50.0), (8192, 50.0)] };
        assert_eq!((mix.bounds(), mix.granularity()), ((8192, 12288), 4096));
        let range = SizeSpec::Range { min_bytes: 1000, max_bytes: 5000, align_bytes: 512 };
        assert_eq!((range.bounds(), range.granularity()), ((1024, 4608), 512));
    }
}
