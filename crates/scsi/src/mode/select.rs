//! MODE SELECT (6) and (10) (SPC-4 6.9, 6.10).

use super::Medium;
use linerate_scsi_proto::{
    mode::{BlockDescriptor, ModeForm, ModeList, ModeValues, PAGES, changeable, page_codes},
    sense::{Sense, code},
};

const LENGTH_ERROR: Sense = Sense::illegal(code::PARAMETER_LIST_LENGTH);

/// Checks a whole parameter list and returns its values. The caller applies them only if the whole list is valid.
pub(crate) fn select(
    list: &[u8],
    form: ModeForm,
    current: ModeValues,
    medium: &Medium,
) -> Result<ModeValues, Sense> {
    if list.is_empty() {
        return Ok(current);
    }
    let parsed = ModeList::parse(list, form)?;
    check_descriptor(parsed.descriptor, form.header_bytes(), medium)?;
    let mut at = list.len() - parsed.pages.len();
    let mut values = current;
    while at < list.len() {
        at += apply_page(&list[at..], at, current, &mut values)?;
    }
    Ok(values)
}

/// A block descriptor may only repeat the current values: neither capacity nor block size can be changed.
fn check_descriptor(descriptor: BlockDescriptor, at: usize, medium: &Medium) -> Result<(), Sense> {
    let (blocks, all, block_bytes) = match descriptor {
        BlockDescriptor::None => return Ok(()),
        BlockDescriptor::Short { blocks, block_bytes } => {
            (u64::from(blocks), u64::from(u32::MAX), block_bytes)
        }
        BlockDescriptor::Long { blocks, block_bytes } => (blocks, u64::MAX, block_bytes),
    };
    if blocks != 0 && blocks != all && blocks != medium.capacity_blocks {
        return Err(Sense::parameter(at as u16));
    }
    if block_bytes != medium.block_bytes {
        return Err(Sense::parameter(at as u16 + 4));
    }
    Ok(())
}

/// Checks the first page of `rest` and takes its changeable bits; returns its length.
fn apply_page(rest: &[u8], at: usize, current: ModeValues, values: &mut ModeValues) -> Result<usize, Sense> {
    const SPF: u8 = 0x40;
    let codes = page_codes(rest).ok_or(LENGTH_ERROR)?;
    let has_subpage = rest[0] & SPF != 0;
    if !PAGES.contains(&codes) || has_subpage != (codes.1 != 0) {
        return Err(Sense::parameter(at as u16));
    }
    let (now, mask) = (current.page(codes), changeable(codes));
    let wanted = rest.get(..now.len()).ok_or(LENGTH_ERROR)?;
    // Byte 0 has PS, which is reserved here. Every other bit that cannot change must have its current value.
    for index in 1..now.len() {
        if (wanted[index] ^ now[index]) & !mask[index] != 0 {
            return Err(Sense::parameter((at + index) as u16));
        }
    }
    values.read_page(codes, wanted);
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
        let mut caching = OFF.page((0x08, 0));
        caching[2] |= 0x04;
        let values = select(&list_of(&caching), ModeForm::Six, OFF, &MEDIUM).unwrap();
        assert_eq!(values, ModeValues { write_cache: true, ..OFF });
        caching[2] |= 0x01;
        assert_eq!(select(&list_of(&caching), ModeForm::Six, OFF, &MEDIUM), Err(Sense::parameter(6)));
    }

    #[test]
    fn a_bad_second_page_leaves_the_first_unapplied() {
        let mut pages = OFF.page((0x08, 0));
        pages[2] |= 0x04;
        pages.extend_from_slice(&[0x05, 2, 0, 0]);
        assert_eq!(select(&list_of(&pages), ModeForm::Six, OFF, &MEDIUM), Err(Sense::parameter(24)));
    }

    #[test]
    fn truncated_lists_are_length_errors() {
        let list = list_of(&OFF.page((0x0A, 0)));
        for len in (1..4).chain(5..list.len()) {
            assert_eq!(select(&list[..len], ModeForm::Six, OFF, &MEDIUM), Err(LENGTH_ERROR), "{len}");
        }
    }

    #[test]
    fn block_descriptors_must_repeat_the_values_in_force() {
        let same = [0, 0, 0, 8, 0, 0, 3, 0xE8, 0, 0, 2, 0];
        assert_eq!(select(&same, ModeForm::Six, OFF, &MEDIUM), Ok(OFF));
        let resized = [0, 0, 0, 8, 0, 0, 3, 0xE7, 0, 0, 2, 0];
        assert_eq!(select(&resized, ModeForm::Six, OFF, &MEDIUM), Err(Sense::parameter(4)));
        let reformatted = [0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 16, 0];
        assert_eq!(select(&reformatted, ModeForm::Six, OFF, &MEDIUM), Err(Sense::parameter(8)));
    }

    proptest! {
        #[test]
        fn no_list_panics(list in proptest::collection::vec(any::<u8>(), 0..80), ten in any::<bool>()) {
            let form = if ten { ModeForm::Ten } else { ModeForm::Six };
            let _ = select(&list, form, OFF, &MEDIUM);
        }
    }
}
