//! CRC32C, the header and data digest of iSCSI (RFC 7143 section 13.1).

/// A CRC32C of the pieces of a segment, computed step by step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crc32c(u32);

impl Crc32c {
    /// The checksum of no bytes.
    pub const EMPTY: Crc32c = Crc32c(0);

    /// Continues from the checksum of earlier bytes, as other implementations report it.
    pub fn from_value(value: u32) -> Self {
        Crc32c(value)
    }

    /// The checksum so far.
    pub fn value(self) -> u32 {
        self.0
    }

    /// The checksum after `bytes` too.
    #[must_use]
    pub fn update(self, bytes: &[u8]) -> Self {
        Crc32c(linerate_crc32c::crc32c_append(self.0, bytes))
    }

    /// The same of bytes that cannot be a slice: `append` continues a CRC32C over them.
    #[must_use]
    pub fn update_by(self, append: impl FnOnce(u32) -> u32) -> Self {
        Crc32c(append(self.0))
    }

    /// The four bytes that follow the segment on the wire: least significant byte first.
    pub fn to_wire(self) -> [u8; 4] {
        self.0.to_le_bytes()
    }
}

/// The digest of one contiguous segment, as sent.
pub fn digest(bytes: &[u8]) -> [u8; 4] {
    Crc32c::EMPTY.update(bytes).to_wire()
}
