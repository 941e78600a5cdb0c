//! Text on the wire: UTF-16, little-endian, without an end mark.

/// The wire form of a text.
pub fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

/// The text of a wire form; what is no UTF-16 becomes replacement characters.
pub fn text(bytes: &[u8]) -> String {
    let units = bytes.chunks_exact(2).map(|two| u16::from_le_bytes([two[0], two[1]]));
    char::decode_utf16(units).map(|one| one.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}

/// The same of a text in capital letters, as NTLM hashes user names. Letters whose capital form has several characters
/// stay as they are.
pub fn utf16_capital(text: &str) -> Vec<u8> {
    let capital = |letter: char| {
        let mut all = letter.to_uppercase();
        match (all.next(), all.next()) {
            (Some(one), None) => one,
            _ => letter,
        }
    };
    utf16(&text.chars().map(capital).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_two_bytes_per_unit_and_capitals_keep_the_length() {
        assert_eq!(utf16("aB"), b"a\0B\0");
        assert_eq!(utf16("\u{1F600}").len(), 4);
        assert_eq!(text(&utf16("a\u{1F600}")), "a\u{1F600}");
        assert_eq!(text(&[0x00, 0xD8, 0x41, 0x00, 0x42]), "\u{FFFD}A");
        assert_eq!(utf16_capital("user\u{e4}\u{df}"), utf16("USER\u{c4}\u{df}"));
    }
}
