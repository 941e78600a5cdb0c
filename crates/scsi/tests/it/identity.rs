//! The facts that a unit reports: INQUIRY, capacity, ports, opcodes, and LUNs that do not exist.

use crate::support::{BLOCKS, Lab, be32, cdb_16, config};
use linerate_scsi::{Expected, Plan, Status};

const INVALID_FIELD: (u8, u16) = (5, 0x2400);

fn vpd(page: u8, len: u16) -> [u8; 6] {
    let [high, low] = len.to_be_bytes();
    [0x12, 1, page, high, low, 0]
}

#[test]
fn standard_inquiry_is_complete_and_consistent() {
    let data = Lab::new().login("a").read(&[0x12, 0, 0, 2, 0, 0], 512).good();
    assert_eq!(data.len(), usize::from(data[4]) + 5);
    assert_eq!((data[0], data[2], data[3] & 0x0F), (0, 6, 2));
    assert_eq!(&data[8..36], b"LINERATEVIRTUAL DISK    0001");
    let versions: Vec<u16> =
        data[58..66].chunks(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]])).collect();
    assert!(versions.contains(&0x04C0), "SBC-3");
}

/// Pitfall: short allocation lengths wrote past buffers elsewhere. At any length, the answer is a
/// prefix.
#[test]
fn every_allocation_length_gets_a_prefix_of_the_same_answer() {
    let lab = Lab::new();
    let session = lab.login("a");
    session.write(&[0x5F, 6, 0, 0, 0, 0, 0, 0, 24, 0], &{
        let mut list = [0; 24];
        list[15] = 9;
        list
    });
    // CDBs with the position and width of their allocation length.
    let mut cdbs: Vec<(Vec<u8>, usize, usize)> = vec![
        (vec![0x12, 0, 0, 0, 0, 0], 3, 2),
        (vec![0x03, 0, 0, 0, 0, 0], 4, 1),
        (vec![0x1A, 0, 0x3F, 0xFF, 0, 0], 4, 1),
        (vec![0x5A, 0x10, 0x3F, 0xFF, 0, 0, 0, 0, 0, 0], 7, 2),
        (vec![0xA0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], 6, 4),
        (vec![0xA3, 0x0A, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], 6, 4),
        (vec![0xA3, 0x2A, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], 6, 4),
        (vec![0xA3, 0x0C, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0], 6, 4),
        (vec![0x9E, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], 10, 4),
        (vec![0x9E, 0x12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], 10, 4),
        (vec![0x84, 0x03, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], 10, 4),
        (vec![0x37, 0, 0x18, 0, 0, 0, 0, 0, 0, 0], 7, 2),
        (vec![0xB7, 0x18, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], 6, 4),
        (vec![0x4D, 0, 0x40, 0, 0, 0, 0, 0, 0, 0], 7, 2),
    ];
    cdbs.extend((0..4).map(|action| (vec![0x5E, action, 0, 0, 0, 0, 0, 0, 0, 0], 7, 2)));
    let pages = session.read(&vpd(0, 255), 255).good();
    cdbs.extend(pages[4..].iter().map(|page| (vpd(*page, 0).to_vec(), 3, 2)));
    for (cdb, at, width) in cdbs {
        let ask = |len: u32| {
            let mut cdb = cdb.clone();
            cdb[at..at + width].copy_from_slice(&len.to_be_bytes()[4 - width..]);
            session.read(&cdb, 65_535).good()
        };
        let longest = if width == 1 { 255 } else { 4096 };
        let full = ask(longest);
        assert!(full.len() < longest as usize, "{cdb:02x?} fits");
        for len in (0..=8).chain([full.len() as u32 - 1, full.len() as u32]) {
            assert_eq!(ask(len), full[..full.len().min(len as usize)], "{cdb:02x?} with {len} bytes");
        }
    }
}

#[test]
fn vpd_pages_are_listed_sorted_and_carry_their_length() {
    let session = Lab::new().login("a");
    let list = session.read(&vpd(0, 255), 255).good();
    let pages = &list[4..];
    assert!(pages.is_sorted());
    assert_eq!(pages, [0, 0x80, 0x83, 0x86, 0x87, 0x88, 0x8F, 0xB0, 0xB1, 0xB2]);
    for page in pages {
        let data = session.read(&vpd(*page, 4096), 4096).good();
        assert_eq!((data[0], data[1]), (0, *page));
        assert_eq!(usize::from(u16::from_be_bytes([data[2], data[3]])) + 4, data.len(), "page {page:#04x}");
    }
    assert_eq!(session.read(&vpd(0x42, 255), 255).check(), INVALID_FIELD);
    assert_eq!(session.read(&[0x12, 0, 0x80, 0, 255, 0], 255).check(), INVALID_FIELD);
}

#[test]
fn device_identification_names_unit_port_group_and_target() {
    let lab = Lab::new();
    let data = lab.login_fresh("a", 2).read(&vpd(0x83, 4096), 4096).good();
    let mut found = Vec::new();
    let mut rest = &data[4..];
    while !rest.is_empty() {
        let (header, tail) = rest.split_at(4);
        let (value, tail) = tail.split_at(usize::from(header[3]));
        found.push((header[1], value.to_vec()));
        rest = tail;
    }
    let kinds: Vec<u8> = found.iter().map(|(kind, _)| *kind).collect();
    assert_eq!(kinds, [0x03, 0x01, 0x94, 0x95, 0x98, 0xA8]);
    assert_eq!(found[0].1, config(0).identity.naa);
    assert_eq!((found[2].1.as_slice(), found[3].1.as_slice()), (&[0, 0, 0, 2][..], &[0, 0, 0, 2][..]));
    assert!(found[4].1.starts_with(b"iqn.2026-11.lab.linerate:demo,t,0x0002\0"));
    assert!(found[5].1.starts_with(b"iqn.2026-11.lab.linerate:demo\0"));
}

#[test]
fn what_is_unmapped_together_is_announced() {
    for (unmap_bytes, expected) in [(0, 8), (1 << 20, 2048)] {
        let mut thin = config(0);
        thin.unmap_bytes = unmap_bytes;
        let limits = Lab::with([thin]).login("a").read(&vpd(0xB0, 255), 255).good();
        assert_eq!(be32(&limits, 28), expected, "OPTIMAL UNMAP GRANULARITY");
        assert_eq!(be32(&limits, 32), 0x8000_0000, "UGAVALID, from block 0 on");
    }
}

#[test]
fn block_limits_agree_with_what_is_enforced() {
    let session = Lab::new().login("a");
    let limits = session.read(&vpd(0xB0, 255), 255).good();
    assert_eq!(limits.len(), 64);
    let max_blocks = be32(&limits, 8);
    assert_eq!(max_blocks, linerate_scsi::MAX_TRANSFER_BYTES / 512);
    assert_eq!((limits[4], limits[5]), (1, 255), "WSNZ, COMPARE AND WRITE");
    assert_eq!(session.write(&cdb_16(0x93, 0, 0, 0), &[0; 512]).check(), INVALID_FIELD, "WSNZ");
    let mut thick = config(0);
    thick.thin = false;
    let session = Lab::with([thick]).login("a");
    let limits = session.read(&vpd(0xB0, 255), 255).good();
    assert_eq!((be32(&limits, 20), be32(&limits, 24)), (0, 0), "no UNMAP limits without UNMAP");
    assert_eq!(session.read(&vpd(0xB2, 255), 255).good()[4..], [0; 4]);
    assert_eq!(session.write(&[0x42, 0, 0, 0, 0, 0, 0, 0, 0, 0], &[]).check(), (5, 0x2000));
    assert_eq!(session.write(&cdb_16(0x93, 0x08, 0, 1), &[0; 512]).check(), INVALID_FIELD);
}

#[test]
fn capacity_in_both_sizes_and_after_a_resize() {
    let lab = Lab::new();
    let session = lab.login("a");
    let ten = session.read(&[0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0], 8).good();
    assert_eq!((be32(&ten, 0), be32(&ten, 4)), (BLOCKS as u32 - 1, 512));
    let sixteen = session.read(&cdb_16(0x9E, 0x10, 0, 32), 32).good();
    assert_eq!((be32(&sixteen, 4), sixteen[13], sixteen[14]), (BLOCKS as u32 - 1, 3, 0xC0));
    lab.unit(0).resize(1 << 33).unwrap();
    session.expect_attention(0x2A09);
    let ten = session.read(&[0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0], 8).good();
    assert_eq!(be32(&ten, 0), u32::MAX);
    lab.unit(0).resize(0).unwrap_err();
    lab.unit(0).resize(u64::MAX / 512).unwrap_err();
}

#[test]
fn luns_that_do_not_exist_answer_as_they_must() {
    let lab = Lab::new();
    let session = lab.login("a").on(9);
    let inquiry = session.read(&[0x12, 0, 0, 0, 255, 0], 255).good();
    assert_eq!((inquiry[0], inquiry.len()), (0x7F, 36));
    let luns = session.read(&[0xA0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 0, 0], 255).good();
    assert_eq!((be32(&luns, 0), luns.len()), (16, 24));
    let sense = session.read(&[0x03, 0, 0, 0, 18, 0], 18).good();
    assert_eq!((sense[2], sense[12]), (5, 0x25));
    assert_eq!(session.ready().check(), (5, 0x2500));
    assert_eq!(session.read(&vpd(0x83, 255), 255).check(), (5, 0x2500));
    assert_eq!(session.read_10(0, 1).check(), (5, 0x2500));
}

#[test]
fn port_groups_in_both_formats() {
    let session = Lab::new().login("a");
    let ask = |format: u8| session.read(&[0xA3, 0x0A | format << 5, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0], 256);
    let short = ask(0).good();
    assert_eq!(be32(&short, 0) as usize, short.len() - 4);
    let groups = [0, 0x8F, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0x8F, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2];
    assert_eq!(short[4..], groups);
    let long = ask(1).good();
    assert_eq!((be32(&long, 0) as usize, long[4]), (long.len() - 4, 0x10));
    assert_eq!(long[8..], groups);
    assert_eq!(ask(2).check(), INVALID_FIELD);
}

#[test]
fn supported_opcodes_one_by_one_match_the_list() {
    let session = Lab::new().login("a");
    let ask = |options: u8, opcode: u8, action: u16| {
        let [high, low] = action.to_be_bytes();
        session.read(&[0xA3, 0x0C, options, opcode, high, low, 0, 0, 0xFF, 0xFF, 0, 0], 65_535)
    };
    let all = ask(0, 0, 0).good();
    assert_eq!(be32(&all, 0) as usize, all.len() - 4);
    for row in all[4..].chunks(8) {
        let (opcode, action) = (row[0], u16::from_be_bytes([row[2], row[3]]));
        let has_action = row[5] & 1 != 0;
        assert!(has_action || action == 0);
        let (right, wrong) = if has_action { (2, 1) } else { (1, 2) };
        assert_eq!(ask(wrong, opcode, action).check(), INVALID_FIELD, "opcode {opcode:#04x}");
        let one = ask(right, opcode, action).good();
        assert_eq!((one[1], one[4]), (3, opcode));
        assert_eq!(one.len(), 4 + usize::from(one[3]));
        assert_eq!(ask(3, opcode, action).good(), one);
    }
    let with_timeouts = ask(0x80, 0, 0).good();
    assert!(with_timeouts[4..].chunks(20).all(|row| row[5] & 2 != 0 && row[9] == 10));
    assert_eq!(ask(0x83, 0x28, 0).good()[1], 0x83);
}

/// Pitfall: an invalid service action read outside the table.
#[test]
fn wild_opcodes_and_service_actions_are_not_supported() {
    let session = Lab::new().login("a");
    for opcode in 0..=255 {
        for action in [0, 31, 32, 255, 256, 65_535_u16] {
            let [high, low] = action.to_be_bytes();
            let cdb = [0xA3, 0x0C, 3, opcode, high, low, 0, 0, 1, 0, 0, 0];
            let answer = session.read(&cdb, 256).good();
            assert!(matches!(answer[1], 1 | 3), "opcode {opcode:#04x} action {action}");
        }
    }
    assert_eq!(session.read(&[0xA3, 0x0C, 7, 0, 0, 0, 0, 0, 1, 0, 0, 0], 256).check(), INVALID_FIELD);
    assert_eq!(session.read(&[0x48, 1, 0, 0, 0, 0, 0, 0, 0, 0], 0).check(), (5, 0x2000), "SANITIZE");
    assert_eq!(session.read(&[0x5E, 9, 0, 0, 0, 0, 0, 0, 8, 0], 8).check(), INVALID_FIELD);
}

#[test]
fn stopping_syncs_and_starting_brings_the_medium_back() {
    let session = Lab::new().login("a");
    session.read(&[0x1B, 0, 0, 0, 0, 0], 0).good();
    assert_eq!(session.lab.volumes[&0].borrow().syncs, 1);
    assert_eq!(session.ready().check(), (2, 0x0402));
    assert_eq!(session.read_10(0, 1).check(), (2, 0x0402));
    let sense = session.read(&[0x03, 0, 0, 0, 18, 0], 18).good();
    assert_eq!((sense[2], sense[12], sense[13]), (2, 4, 2));
    session.read(&[0x12, 0, 0, 0, 36, 0], 36).good();
    session.read(&[0x1B, 0, 0, 0, 1, 0], 0).good();
    session.read_10(0, 1).good();
    assert_eq!(session.read(&[0x1B, 0, 0, 0, 2, 0], 0).check(), INVALID_FIELD, "nothing to eject");
}

#[test]
fn a_lun_field_of_another_kind_reaches_nothing() {
    let lab = Lab::new();
    let nexus = lab.login("a").nexus;
    let expected = Expected::default();
    let Plan::Reply(reply) = nexus.begin([0x40, 0, 0, 0, 0, 0, 0, 0], &[0; 16], expected) else { panic!() };
    assert_eq!(reply.status, Status::Good, "flat space addressing of LUN 0");
    let Plan::Reply(reply) = nexus.begin([0, 0, 0, 1, 0, 0, 0, 0], &[0; 16], expected) else { panic!() };
    assert_eq!(reply.sense[12], 0x25);
}
