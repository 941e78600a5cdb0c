//! The random numbers of `java.util.Random`, whose algorithm Java's documentation fixes: with vdbench's fixed seed the
//! files of a structure get the sizes that vdbench gives them.

/// A generator of 48 bits.
#[derive(Debug)]
pub(super) struct JavaRandom(u64);

const MULTIPLIER: u64 = 0x5_DEEC_E66D;
const MASK: u64 = (1 << 48) - 1;

impl JavaRandom {
    /// The sequence of a seed.
    pub(super) fn new(seed: u64) -> Self {
        Self((seed ^ MULTIPLIER) & MASK)
    }

    fn bits(&mut self, count: u32) -> u32 {
        self.0 = self.0.wrapping_mul(MULTIPLIER).wrapping_add(0xB) & MASK;
        (self.0 >> (48 - count)) as u32
    }

    /// `nextInt(bound)`: evenly below `bound`, which is 1 to 2^31 - 1.
    pub(super) fn below(&mut self, bound: u32) -> u32 {
        if bound.is_power_of_two() {
            return ((u64::from(bound) * u64::from(self.bits(31))) >> 31) as u32;
        }
        loop {
            let bits = self.bits(31);
            let value = bits % bound;
            if u64::from(bits - value) + u64::from(bound - 1) < 1 << 31 {
                return value;
            }
        }
    }

    /// `nextDouble()`: evenly in [0, 1).
    pub(super) fn unit(&mut self) -> f64 {
        let high = u64::from(self.bits(26)) << 27;
        (high + u64::from(self.bits(27))) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::JavaRandom;

    #[test]
    fn the_numbers_are_those_of_java() {
        // new Random(0).nextInt(100) five times, new Random(42).nextInt(10), new Random(0).nextDouble().
        let mut random = JavaRandom::new(0);
        assert_eq!([0; 5].map(|_| random.below(100)), [60, 48, 29, 47, 15]);
        assert_eq!(JavaRandom::new(42).below(10), 0);
        assert!((JavaRandom::new(0).unit() - 0.730_967_787_376_657).abs() < 1e-15);
    }
}
