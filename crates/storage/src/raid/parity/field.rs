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

/// The inverse of `value`, which is not 0: `value` to the power of 254.
pub(super) const fn inverse(value: u8) -> u8 {
    let (mut product, mut left) = (1, 254);
    while left > 0 {
        product = slow_product(product, value);
        left -= 1;
    }
    product
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inverses_and_powers_are_what_they_should_be() {
        assert!((1..=255).all(|value| slow_product(value, inverse(value)) == 1));
        let powers: std::collections::BTreeSet<u8> = (0..255).map(power_of_two).collect();
        assert_eq!(powers.len(), 255);
    }
}
