//! MODE SELECT (6) and (10) (SPC-4 6.9, 6.10).

use super::{D_SENSE, ModeValues, PAGES, SWP, WCE, changeable, page, sense::Medium};
use crate::{
    sense::{Sense, code},
    wire::{be16, be32, be64},
};

/// Header layout: 4 bytes for MODE SELECT (6), 8 for (10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SelectLayout {
    Six,
    Ten,
}

const LENGTH_ERROR: Sense = Sense::illegal(code::PARAMETER_LIST_LENGTH);

/// Checks a whole parameter list and returns the values it asks for. Nothing is applied unless all of it is
/// right.
pub(crate) fn parse(
    list: &[u8],
    layout: SelectLayout,
    current: ModeValues,
    medium: &Medium,
) -> Result<ModeValues, Sense> {
    if list.is_empty() {
        return Ok(current);
    }
    let (header_len, descriptor_len) = match layout {
        SelectLayout::Six => (4, usize::from(*list.get(3).ok_or(LENGTH_ERROR)?)),
        SelectLayout::Ten if list.len() < 8 => return Err(LENGTH_ERROR),
        SelectLayout::Ten => (8, usize::from(be16(list, 6))),
    };
    let descriptor = list.get(header_len..header_len + descriptor_len).ok_or(LENGTH_ERROR)?;
    let long_lba = layout == SelectLayout::Ten && list[4] & 1 != 0;
    check_descriptor(descriptor, long_lba, header_len, medium)?;
    let mut at = header_len + descriptor_len;
    let mut values = current;
    while at < list.len() {
        at += apply_page(&list[at..], at, current, &mut values)?;
    }
    Ok(values)
}

/// A block descriptor may only repeat what is so: neither capacity nor block size can be changed.
fn check_descriptor(descriptor: &[u8], long_lba: bool, at: usize, medium: &Medium) -> Result<(), Sense> {
    let (blocks, block_bytes, all) = match (descriptor.len(), long_lba) {
        (0, _) => return Ok(()),
        (8, false) => {
            (u64::from(be32(descriptor, 0)), be32(descriptor, 4) & 0x00FF_FFFF, u64::from(u32::MAX))
        }
        (16, true) => (be64(descriptor, 0), be32(descriptor, 12), u64::MAX),
        _ => return Err(Sense::parameter(at as u16 - 1)),
    };
    if blocks != 0 && blocks != all && blocks != medium.capacity_blocks {
        return Err(Sense::parameter(at as u16));
    }
    if block_bytes != medium.block_bytes {
        return Err(Sense::parameter(at as u16 + 4));
    }
    Ok(())
}

/// Checks the page at the head of `rest` and takes its changeable bits; returns its length.
fn apply_page(rest: &[u8], at: usize, current: ModeValues, values: &mut ModeValues) -> Result<usize, Sense> {
    let has_subpage = rest[0] & 0x40 != 0;
    let (code, subpage) = (rest[0] & 0x3F, if has_subpage { *rest.get(1).ok_or(LENGTH_ERROR)? } else { 0 });
    let known = PAGES.contains(&(code, subpage)) && has_subpage == (subpage != 0);
    if !known {
        return Err(Sense::parameter(at as u16));
    }
    let (now, mask) = (page(code, subpage, current), changeable(code, subpage));
    let wanted = rest.get(..now.len()).ok_or(LENGTH_ERROR)?;
    // Byte 0 holds PS, which is reserved here; the rest must be as it is wherever it cannot change.
    for index in 1..now.len() {
        if (wanted[index] ^ now[index]) & !mask[index] != 0 {
            return Err(Sense::parameter((at + index) as u16));
        }
    }
    match (code, subpage) {
        (0x08, 0) => values.write_cache = wanted[2] & WCE != 0,
        (0x0A, 0) => {
            values.descriptor_sense = wanted[2] & D_SENSE != 0;
            values.write_protect = wanted[4] & SWP != 0;
        }
        _ => {}
    }
    Ok(now.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MEDIUM: Medium = Medium { capacity_blocks: 1000, block_bytes: 512, write_protected: false };
    const OFF: ModeValues = ModeValues { write_cache: false, descriptor_sense: false, write_protect: false };

    fn list_of(pages: &[u8]) -> Vec<u8> {
        [&[0, 0, 0, 0], pages].concat()
    }

    #[test]
    fn changeable_bits_are_taken_and_others_refused_at_their_byte() {
        let mut caching = page(0x08, 0, OFF);
        caching[2] |= WCE;
        let values = parse(&list_of(&caching), SelectLayout::Six, OFF, &MEDIUM).unwrap();
        assert_eq!(values, ModeValues { write_cache: true, ..OFF });
        caching[2] |= 0x01;
        assert_eq!(parse(&list_of(&caching), SelectLayout::Six, OFF, &MEDIUM), Err(Sense::parameter(6)));
    }

    #[test]
    fn a_bad_second_page_leaves_the_first_unapplied() {
        let mut pages = page(0x08, 0, OFF);
        pages[2] |= WCE;
        pages.extend_from_slice(&[0x05, 2, 0, 0]);
        assert_eq!(parse(&list_of(&pages), SelectLayout::Six, OFF, &MEDIUM), Err(Sense::parameter(24)));
    }

    #[test]
    fn truncated_lists_are_length_errors() {
        let list = list_of(&page(0x0A, 0, OFF));
        for len in (1..4).chain(5..list.len()) {
            assert_eq!(parse(&list[..len], SelectLayout::Six, OFF, &MEDIUM), Err(LENGTH_ERROR), "{len}");
        }
    }

    #[test]
    fn block_descriptors_must_say_what_is() {
        let same = [0, 0, 0, 8, 0, 0, 3, 0xE8, 0, 0, 2, 0];
        assert_eq!(parse(&same, SelectLayout::Six, OFF, &MEDIUM), Ok(OFF));
        let resized = [0, 0, 0, 8, 0, 0, 3, 0xE7, 0, 0, 2, 0];
        assert_eq!(parse(&resized, SelectLayout::Six, OFF, &MEDIUM), Err(Sense::parameter(4)));
        let reformatted = [0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 16, 0];
        assert_eq!(parse(&reformatted, SelectLayout::Six, OFF, &MEDIUM), Err(Sense::parameter(8)));
    }

    proptest! {
        #[test]
        fn no_list_panics(list in proptest::collection::vec(any::<u8>(), 0..80), ten in any::<bool>()) {
            let layout = if ten { SelectLayout::Ten } else { SelectLayout::Six };
            let _ = parse(&list, layout, OFF, &MEDIUM);
        }
    }
}
