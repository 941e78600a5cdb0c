//! The logical block provisioning log page (SBC-3 6.4): how full the space behind a thin unit is.

use crate::wire::field;

/// Code of the logical block provisioning log page.
pub const PROVISIONING: u8 = 0x0C;

const HEADER_BYTES: usize = 4;
const AVAILABLE: u16 = 0x0001;
const USED: u16 = 0x0002;
const SCOPE: u8 = 0x03;

/// The space behind a unit, both counts in the array's own unit and for the same space: that of the unit alone, or
/// that of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpaceUse {
    /// USED LBA MAPPING RESOURCE COUNT.
    pub used: u32,
    /// AVAILABLE LBA MAPPING RESOURCE COUNT.
    pub available: u32,
}

impl SpaceUse {
    /// Reads a LOG SENSE reply. None if a count is missing, or if the two do not say that they are about the same space.
    pub fn parse(reply: &[u8]) -> Option<Self> {
        let &[code, _, high, low, ref rest @ ..] = reply else { return None };
        if code & 0x3F != PROVISIONING {
            return None;
        }
        let len = usize::from(u16::from_be_bytes([high, low]));
        let mut rest = &rest[..len.min(rest.len())];
        let (mut available, mut used) = (None, None);
        while let Some([high, low, _, len]) = field(rest, 0) {
            let value = rest[HEADER_BYTES..].get(..usize::from(len))?;
            let counted = || Some((u32::from_be_bytes(field(value, 0)?), value.get(4)? & SCOPE));
            match u16::from_be_bytes([high, low]) {
                AVAILABLE => available = counted(),
                USED => used = counted(),
                _ => {}
            }
            rest = &rest[HEADER_BYTES + value.len()..];
        }
        let ((available, of_available), (used, of_used)) = (available?, used?);
        (of_available == of_used && of_used != 0).then_some(Self { used, available })
    }

    /// The used share, rounded up; None if there is no space at all.
    pub fn used_percent(self) -> Option<u8> {
        let all = u64::from(self.used) + u64::from(self.available);
        (all > 0).then(|| (100 * u64::from(self.used)).div_ceil(all) as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(used_scope: u8) -> Vec<u8> {
        let mut page = vec![PROVISIONING, 0, 0, 24];
        page.extend([0, 1, 3, 8, 0, 0, 0, 20, 2, 0, 0, 0]);
        page.extend([0, 2, 3, 8, 0, 0, 0, 61, used_scope, 0, 0, 0]);
        page
    }

    #[test]
    fn the_used_share_is_rounded_up() {
        let space = SpaceUse::parse(&page(2)).unwrap();
        assert_eq!(space, SpaceUse { used: 61, available: 20 });
        assert_eq!(space.used_percent(), Some(76));
        assert_eq!(SpaceUse { used: 0, available: 0 }.used_percent(), None);
        assert_eq!(SpaceUse { used: u32::MAX, available: 0 }.used_percent(), Some(100));
    }

    #[test]
    fn counts_of_different_spaces_have_no_share() {
        assert_eq!(SpaceUse::parse(&page(1)), None);
        assert_eq!(SpaceUse::parse(&page(0)), None);
    }

    #[test]
    fn a_cut_page_tells_nothing() {
        let whole = page(2);
        for len in 0..whole.len() - 3 {
            assert_eq!(SpaceUse::parse(&whole[..len]), None, "{len} bytes");
        }
    }
}
