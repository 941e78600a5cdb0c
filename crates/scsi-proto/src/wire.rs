//! Big-endian fields of CDBs and parameter data.

/// Two bytes at `at`. Panics if they are missing: the caller checks lengths first.
pub fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// Three bytes at `at`. Panics if they are missing.
pub fn be24(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([0, bytes[at], bytes[at + 1], bytes[at + 2]])
}

/// Four bytes at `at`. Panics if they are missing.
pub fn be32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Eight bytes at `at`. Panics if they are missing.
pub fn be64(bytes: &[u8], at: usize) -> u64 {
    u64::from(be32(bytes, at)) << 32 | u64::from(be32(bytes, at + 4))
}

/// `N` bytes at `at`, if they exist.
pub(crate) fn field<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

/// ASCII left-aligned in a field, padded with spaces, other bytes replaced by question marks (SPC-4 4.3.1).
pub fn padded(text: &str, len: usize) -> Vec<u8> {
    let printable = |byte: u8| if (0x20..0x7F).contains(&byte) { byte } else { b'?' };
    let mut out: Vec<u8> = text.bytes().take(len).map(printable).collect();
    out.resize(len, b' ');
    out
}

/// The text of an ASCII field: other bytes are replaced by spaces, spaces at both ends are removed.
pub fn text(bytes: &[u8]) -> String {
    let printable = |byte: &u8| if (0x20..0x7F).contains(byte) { char::from(*byte) } else { ' ' };
    let text: String = bytes.iter().map(printable).collect();
    text.trim().to_owned()
}
