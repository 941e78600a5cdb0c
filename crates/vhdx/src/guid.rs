//! GUIDs as MS-VHDX stores them: three little-endian numbers and eight bytes (MS-DTYP 2.3.4.2).

use std::fmt;

/// A GUID, in the order of its bytes in an image.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Guid([u8; 16]);

impl Guid {
    /// From the four groups of its text form; the last two groups of the text are one.
    pub(crate) const fn new(first: u32, second: u16, third: u16, rest: u64) -> Self {
        let (a, b, c, d) =
            (first.to_le_bytes(), second.to_le_bytes(), third.to_le_bytes(), rest.to_be_bytes());
        Self([a[0], a[1], a[2], a[3], b[0], b[1], c[0], c[1], d[0], d[1], d[2], d[3], d[4], d[5], d[6], d[7]])
    }

    /// The 16 bytes at `at` of a structure.
    pub(crate) fn at(bytes: &[u8], at: usize) -> Self {
        let mut guid = [0; 16];
        guid.copy_from_slice(&bytes[at..at + 16]);
        Self(guid)
    }

    /// Its bytes in an image.
    pub const fn bytes(&self) -> &[u8; 16] {
        &self.0
    }

    pub(crate) fn is_zero(self) -> bool {
        self.0 == [0; 16]
    }
}

impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self([a0, a1, a2, a3, b0, b1, c0, c1, rest @ ..]) = *self;
        let (first, second, third) = (
            u32::from_le_bytes([a0, a1, a2, a3]),
            u16::from_le_bytes([b0, b1]),
            u16::from_le_bytes([c0, c1]),
        );
        let last = u64::from_be_bytes(rest);
        write!(f, "{first:08X}-{second:04X}-{third:04X}-{:04X}-{:012X}", last >> 48, last & 0xffff_ffff_ffff)
    }
}

impl fmt::Debug for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Makes new GUIDs (RFC 9562 version 4).
#[derive(Clone, Debug, Default)]
pub struct GuidSource(fastrand::Rng);

impl GuidSource {
    /// GUIDs that differ from run to run.
    pub fn random() -> Self {
        Self::default()
    }

    /// The same GUIDs for the same seed, for tests.
    pub fn from_seed(seed: u64) -> Self {
        Self(fastrand::Rng::with_seed(seed))
    }

    /// The next GUID. It is never zero.
    pub fn draw(&mut self) -> Guid {
        let mut bytes = [0; 16];
        self.0.fill(&mut bytes);
        bytes[7] = bytes[7] & 0x0f | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        Guid(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::{Guid, GuidSource};

    #[test]
    fn a_guid_has_the_bytes_and_the_text_of_the_specification() {
        let guid = Guid::new(0x2DC2_7766, 0xF623, 0x4200, 0x9D64_115E_9BFD_4A08);
        assert_eq!(guid.to_string(), "2DC27766-F623-4200-9D64-115E9BFD4A08");
        assert_eq!(guid.bytes()[..8], [0x66, 0x77, 0xC2, 0x2D, 0x23, 0xF6, 0x00, 0x42]);
        assert_eq!(Guid::at(guid.bytes(), 0), guid);
    }

    #[test]
    fn new_guids_are_of_version_4_and_differ() {
        let mut source = GuidSource::from_seed(1);
        let (one, two) = (source.draw(), source.draw());
        assert_ne!(one, two);
        assert_eq!((&one.to_string()[14..15], one.bytes()[8] >> 6), ("4", 2));
        assert_eq!(GuidSource::from_seed(1).draw(), one);
        assert_ne!(GuidSource::random().draw(), GuidSource::random().draw());
    }
}
