//! Amounts for people to read.

/// A size with three figures and the unit that suits it: `1.50 GiB`, `512 bytes`.
pub fn size_text(bytes: u64) -> String {
    const UNITS: [(&str, u32); 4] = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
    let Some((unit, shift)) = UNITS.iter().find(|(_, shift)| bytes >> shift > 0) else {
        return format!("{bytes} bytes");
    };
    let amount = bytes as f64 / (1_u64 << shift) as f64;
    let digits = usize::from(amount < 99.95);
    let text = format!("{amount:.digits$}");
    format!("{} {unit}", text.strip_suffix(".0").unwrap_or(&text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_the_unit_that_suits_them() {
        let sizes = [0, 512, 4096, 12_884_901_888, 12_650_020_864, 5 << 40, 1023 << 20, 1_572_864];
        let texts = sizes.map(size_text);
        let expected =
            ["0 bytes", "512 bytes", "4 KiB", "12 GiB", "11.8 GiB", "5 TiB", "1023 MiB", "1.5 MiB"];
        assert_eq!(texts, expected);
    }
}
