//! Binary values in text (RFC 7143 section 6.1): `0x` hexadecimal and `0b` base64.

use base64::{Engine, engine::general_purpose::STANDARD};
use std::fmt::Write;

/// Longest binary value in bytes (RFC 7143 section 12.1.3 on `CHAP_C` and `CHAP_R`).
pub const BINARY_BYTES_MAX: usize = 1024;

/// Decodes a binary value of 1 to [`BINARY_BYTES_MAX`] bytes.
pub fn decode(value: &str) -> Result<Vec<u8>, BinaryError> {
    let (prefix, digits) = value.split_at_checked(2).ok_or(BinaryError::Prefix)?;
    let bytes = match prefix {
        "0x" | "0X" => decode_hex(digits)?,
        "0b" | "0B" => decode_base64(digits)?,
        _ => return Err(BinaryError::Prefix),
    };
    if bytes.is_empty() { Err(BinaryError::Empty) } else { Ok(bytes) }
}

fn decode_hex(digits: &str) -> Result<Vec<u8>, BinaryError> {
    if digits.len() > 2 * BINARY_BYTES_MAX {
        return Err(BinaryError::TooLong);
    }
    if !digits.len().is_multiple_of(2) {
        return Err(BinaryError::OddHex);
    }
    let nibble = |byte: u8| char::from(byte).to_digit(16).ok_or(BinaryError::Digit);
    digits
        .as_bytes()
        .chunks_exact(2)
        .map(|pair| Ok((nibble(pair[0])? << 4 | nibble(pair[1])?) as u8))
        .collect()
}

fn decode_base64(digits: &str) -> Result<Vec<u8>, BinaryError> {
    if digits.len() > BINARY_BYTES_MAX.div_ceil(3) * 4 {
        return Err(BinaryError::TooLong);
    }
    let bytes = STANDARD.decode(digits).map_err(|_| BinaryError::Digit)?;
    if bytes.len() > BINARY_BYTES_MAX { Err(BinaryError::TooLong) } else { Ok(bytes) }
}

/// Writes `0x` and hexadecimal digits: the form that every implementation reads.
pub fn encode_hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 + 2 * bytes.len());
    text.push_str("0x");
    for byte in bytes {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Writes `0b` and base64 digits.
pub fn encode_base64(bytes: &[u8]) -> String {
    format!("0b{}", STANDARD.encode(bytes))
}

/// The peer's value is not a binary value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BinaryError {
    /// It does not begin with `0x` or `0b`.
    #[error("a binary value begins with 0x or 0b")]
    Prefix,
    /// No digits.
    #[error("the binary value is empty")]
    Empty,
    /// Hexadecimal with an odd number of digits.
    #[error("the hexadecimal value has an odd number of digits")]
    OddHex,
    /// A character that is not a digit, or broken padding.
    #[error("the binary value has a wrong digit or padding")]
    Digit,
    /// More than 1024 bytes.
    #[error("the binary value is longer than 1024 bytes")]
    TooLong,
}
