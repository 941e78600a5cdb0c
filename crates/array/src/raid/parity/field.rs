//! Arithmetic in GF(2^8) with the polynomial x^8 + x^4 + x^3 + x^2 + 1, in which 2 generates all 255 other elements.

/// 2 to the power of `exponent`.
pub(super) const fn power_of_two(exponent: usize) -> u8 {
    let (mut value, mut left) = (1_u8, exponent % 255);
    while left > 0 {
        value = doubled(value);
        left -= 1;
    }
    value
}

const fn doubled(value: u8) -> u8 {
    (value << 1) ^ (if value & 0x80 == 0 { 0 } else { 0x1d })
}

/// The product, bit by bit.
pub(super) const fn slow_product(a: u8, b: u8) -> u8 {
    let (mut product, mut factor, mut left) = (0, a, b);
    while left > 0 {
        if left & 1 == 1 {
            product ^= factor;
        }
        factor = doubled(factor);
        left >>= 1;
    }
    product
}

/// The element that makes 1 of `value`, which is not 0: `value` to the power of 254.
pub(super) const fn inverse(value: u8) -> u8 {
    let (mut product, mut left) = (1, 254);
    while left > 0 {
        product = slow_product(product, value);
        left -= 1;
    }
    product
}

/// Multiplies by one constant, through two tables of the products of its half bytes.
pub(super) struct Multiplier {
    low: [u8; 16],
    high: [u8; 16],
}

impl Multiplier {
    pub(super) const fn new(constant: u8) -> Self {
        let (mut low, mut high, mut half) = ([0; 16], [0; 16], 0);
        while half < 16 {
            low[half as usize] = slow_product(constant, half);
            high[half as usize] = slow_product(constant, half << 4);
            half += 1;
        }
        Self { low, high }
    }

    pub(super) fn times(&self, value: u8) -> u8 {
        self.low[usize::from(value & 15)] ^ self.high[usize::from(value >> 4)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inverses_and_tables_agree_with_slow_products() {
        for value in 1..=255 {
            assert_eq!(slow_product(value, inverse(value)), 1, "{value}");
            let multiplier = Multiplier::new(value);
            assert!((0..=255).all(|other| multiplier.times(other) == slow_product(value, other)), "{value}");
        }
        let powers: std::collections::BTreeSet<u8> = (0..255).map(power_of_two).collect();
        assert_eq!(powers.len(), 255);
    }
}
