//! Each side reads what the other builds, and no bytes make a parser panic.

use linerate_scsi_proto::{
    alua::{self, AccessState, ChangeStatus, GroupsFormat, PortGroup},
    capacity::Capacity,
    cdb::{self, Transfer},
    inquiry::StandardInquiry,
    log_page::SpaceUse,
    lun,
    mode::{self, BlockDescriptor, ModeForm, ModeList, ModeValues, PAGES, page_codes},
    sense::{FieldPointer, Sense, SenseKey, code},
    status::Status,
    unmap,
    vpd::{self, Association, BlockLimits, CodeSet, Designator, Provisioning},
};
use proptest::{collection::vec, option, prelude::*, sample::select};

fn sense() -> impl Strategy<Value = Sense> {
    let field =
        prop_oneof![any::<u16>().prop_map(FieldPointer::Cdb), any::<u16>().prop_map(FieldPointer::Parameter)];
    (0_u8..16, any::<u16>(), option::of(any::<u64>()), option::of(field)).prop_map(
        |(key, code, information, field)| {
            let key = SenseKey::from_nibble(key);
            // Only an ILLEGAL REQUEST has a field pointer.
            let field = field.filter(|_| key == SenseKey::IllegalRequest);
            Sense { information, field, ..Sense::new(key, code) }
        },
    )
}

fn port_group() -> impl Strategy<Value = PortGroup> {
    let state = select(AccessState::ALL.to_vec());
    let status = select(vec![ChangeStatus::None, ChangeStatus::Explicit, ChangeStatus::Implicit]);
    (any::<u16>(), state, status, vec(any::<u16>(), 0..5)).prop_map(|(tag, state, status, ports)| PortGroup {
        tag,
        state,
        status,
        ports,
    })
}

fn text(max: usize) -> impl Strategy<Value = String> {
    proptest::string::string_regex(&format!("([A-Za-z0-9.-]([ A-Za-z0-9.-]{{0,{}}}[A-Za-z0-9])?)?", max - 2))
        .expect("a regular expression")
}

fn inquiry() -> impl Strategy<Value = StandardInquiry> {
    (any::<u8>(), 0_u8..4, any::<bool>(), any::<bool>(), text(8), text(16), text(4)).prop_map(
        |(peripheral, tpgs, third_party_copy, multi_port, vendor, product, revision)| StandardInquiry {
            peripheral,
            tpgs,
            third_party_copy,
            multi_port,
            vendor,
            product,
            revision,
        },
    )
}

fn capacity() -> impl Strategy<Value = Capacity> {
    (1..=u64::MAX, 9_u32..13, 0_u32..16, any::<bool>(), any::<bool>()).prop_map(
        |(blocks, shift, exponent, thin, unmapped_reads_zeros)| Capacity {
            blocks,
            block_bytes: 1 << shift,
            physical_block_bytes: 1 << (shift + exponent),
            thin,
            unmapped_reads_zeros,
        },
    )
}

fn limits() -> impl Strategy<Value = BlockLimits> {
    let blocks = any::<[u32; 5]>();
    (any::<bool>(), any::<u8>(), any::<u16>(), blocks, option::of(0_u32..1 << 31), any::<u64>()).prop_map(
        |(write_same_not_zero, compare, granularity_blocks, blocks, unmap_alignment_blocks, same)| {
            let [transfer, best, unmap, descriptors, granularity] = blocks;
            BlockLimits {
                write_same_not_zero,
                max_compare_blocks: compare,
                granularity_blocks,
                max_transfer_blocks: transfer,
                best_transfer_blocks: best,
                max_unmap_blocks: unmap,
                max_unmap_descriptors: descriptors,
                unmap_granularity_blocks: granularity,
                unmap_alignment_blocks,
                max_write_same_blocks: same,
            }
        },
    )
}

fn provisioning() -> impl Strategy<Value = Provisioning> {
    any::<[bool; 4]>().prop_map(|[unmap, write_same_unmaps, unmapped_reads_zeros, thin]| Provisioning {
        unmap,
        write_same_unmaps,
        unmapped_reads_zeros,
        thin,
    })
}

fn mode_values() -> impl Strategy<Value = ModeValues> {
    any::<[bool; 3]>().prop_map(|[write_cache, descriptor_sense, write_protect]| ModeValues {
        write_cache,
        descriptor_sense,
        write_protect,
    })
}

fn descriptor() -> impl Strategy<Value = BlockDescriptor> {
    prop_oneof![
        Just(BlockDescriptor::None),
        (any::<u32>(), 0_u32..1 << 24)
            .prop_map(|(blocks, block_bytes)| BlockDescriptor::Short { blocks, block_bytes }),
        (any::<u64>(), any::<u32>())
            .prop_map(|(blocks, block_bytes)| BlockDescriptor::Long { blocks, block_bytes }),
    ]
}

proptest! {
    #[test]
    fn sense_in_descriptor_format(sense in sense()) {
        prop_assert_eq!(Sense::parse(&sense.encode(true)), Some(sense));
    }

    #[test]
    fn sense_in_fixed_format_keeps_32_bits_of_information(sense in sense()) {
        let information = sense.information.filter(|value| u32::try_from(*value).is_ok());
        prop_assert_eq!(Sense::parse(&sense.encode(false)), Some(Sense { information, ..sense }));
    }

    #[test]
    fn port_groups(groups in vec(port_group(), 0..6)) {
        let reply = alua::encode_groups(GroupsFormat::Short, groups.iter().cloned());
        prop_assert_eq!(alua::parse_groups(&reply), groups);
    }

    #[test]
    fn standard_inquiry(inquiry in inquiry()) {
        prop_assert_eq!(StandardInquiry::parse(&inquiry.encode()), Some(inquiry));
    }

    #[test]
    fn capacities(capacity in capacity()) {
        prop_assert_eq!(Capacity::parse_16(&capacity.encode_16()), Some(capacity));
        let short = Capacity::parse_10(&capacity.encode_10()).unwrap();
        prop_assert_eq!(short.blocks, capacity.blocks.min(1 << 32));
        prop_assert_eq!(short.block_bytes, capacity.block_bytes);
    }

    #[test]
    fn vpd_pages(limits in limits(), provisioning in provisioning(), code in any::<u8>()) {
        let page = vpd::encode_page(code, &limits.encode());
        prop_assert_eq!(BlockLimits::parse(vpd::page_body(&page, code)), limits);
        let page = vpd::encode_page(code, &provisioning.encode());
        prop_assert_eq!(Provisioning::parse(vpd::page_body(&page, code)), provisioning);
        prop_assert!(vpd::page_body(&page, code.wrapping_add(1)).is_empty());
    }

    #[test]
    fn designators(values in vec((0_u8..3, 0_u8..16, vec(any::<u8>(), 0..40)), 0..8)) {
        let all: Vec<_> = values.iter().map(|(association, kind, value)| Designator {
            association: [Association::Unit, Association::Port, Association::Target][usize::from(*association)],
            kind: *kind,
            value,
        }).collect();
        let mut body = Vec::new();
        for item in &all {
            item.push(CodeSet::Binary, &mut body);
        }
        prop_assert_eq!(vpd::designators(&body).collect::<Vec<_>>(), all);
    }

    #[test]
    fn port_numbers(number in any::<u16>()) {
        prop_assert_eq!(vpd::parse_number(&vpd::number_value(number)), Some(number));
    }

    #[test]
    fn lun_lists(numbers in vec(0..=lun::MAX_LUN, 0..40)) {
        prop_assert_eq!(lun::parse_list(&lun::encode_list(numbers.iter().copied())), Some(numbers));
    }

    #[test]
    fn transfers(lba in any::<u64>(), blocks in any::<u32>(), write in any::<bool>()) {
        let kind = if write { Transfer::Write } else { Transfer::Read };
        prop_assert_eq!(cdb::lba_and_blocks(&cdb::transfer_16(kind, lba, blocks)), (lba, blocks));
        let (lba, blocks) = (lba as u32, blocks as u16);
        let short = cdb::transfer_10(kind, lba, blocks);
        prop_assert_eq!(cdb::lba_and_blocks(&short), (u64::from(lba), u32::from(blocks)));
    }

    #[test]
    fn unmap_ranges(lba in any::<u64>(), blocks in any::<u32>()) {
        let range = unmap::Range { lba, blocks };
        prop_assert_eq!(unmap::ranges(&unmap::one_range(range)).unwrap().collect::<Vec<_>>(), vec![range]);
    }

    #[test]
    fn mode_lists(values in mode_values(), descriptor in descriptor(), device_specific in any::<u8>()) {
        let pages: Vec<u8> = PAGES.iter().flat_map(|codes| values.page(*codes)).collect();
        let list = ModeList { device_specific, descriptor, pages: &pages };
        for form in [ModeForm::Six, ModeForm::Ten] {
            if form == ModeForm::Six && matches!(descriptor, BlockDescriptor::Long { .. }) {
                continue;
            }
            let encoded = list.encode(form);
            prop_assert_eq!(ModeList::parse(&encoded, form), Ok(list));
            if form == ModeForm::Six {
                prop_assert_eq!(mode::write_cache(&encoded), Some(values.write_cache));
                let before_wce = encoded.len() - pages.len() + values.page(PAGES[0]).len() + 2;
                prop_assert_eq!(mode::write_cache(&encoded[..before_wce]), None);
            }
        }
    }

    #[test]
    fn mode_pages(values in mode_values(), start in mode_values()) {
        let mut read = start;
        for codes in PAGES {
            let page = values.page(codes);
            prop_assert_eq!(page_codes(&page), Some(codes));
            read.read_page(codes, &page);
        }
        prop_assert_eq!(read, values);
    }

    #[test]
    fn no_bytes_make_a_parser_panic(bytes in vec(any::<u8>(), 0..300), cdb in any::<[u8; 16]>()) {
        let _ = (Sense::parse(&bytes), StandardInquiry::parse(&bytes), lun::parse_list(&bytes));
        let _ = (Capacity::parse_10(&bytes), Capacity::parse_16(&bytes), alua::parse_groups(&bytes));
        let _ = (BlockLimits::parse(&bytes), Provisioning::parse(&bytes), vpd::page_body(&bytes, cdb[0]));
        let _ = (vpd::designators(&bytes).count(), unmap::ranges(&bytes).map(Iterator::count));
        let _ = (ModeList::parse(&bytes, ModeForm::Six), ModeList::parse(&bytes, ModeForm::Ten), page_codes(&bytes));
        let _ = (mode::write_cache(&bytes), SpaceUse::parse(&bytes), Capacity::lowest_aligned_block(&bytes));
        let _ = (cdb::lba_and_blocks(&cdb), Status::from_code(cdb[0]));
    }
}

#[test]
fn every_status_is_read_back() {
    for status in Status::ALL {
        assert_eq!(Status::from_code(status as u8), Some(status));
    }
    assert_eq!(Status::from_code(0x22), None);
}

#[test]
fn state_changes_are_one_unit_attention() {
    assert_eq!(alua::STATE_CHANGED.code, code::ACCESS_STATE_CHANGED);
    assert_eq!(
        Sense::parse(&Sense::new(SenseKey::UnitAttention, code::ACCESS_STATE_CHANGED).encode(false))
            .expect("a regular expression")
            .code,
        alua::STATE_CHANGED
    );
}
