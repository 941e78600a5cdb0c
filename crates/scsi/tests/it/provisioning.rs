//! WRITE SAME, UNMAP, GET LBA STATUS and EXTENDED COPY.

use crate::support::{BLOCK, BLOCKS, Lab, Session, be32, cdb_10, cdb_16, config};
use linerate_scsi::MediumError;

const INVALID_FIELD: (u8, u16) = (5, 0x2400);
const INVALID_PARAMETER: (u8, u16) = (5, 0x2600);
const BAD_LENGTH: (u8, u16) = (5, 0x0E03);
const LIST_LENGTH: (u8, u16) = (5, 0x1A00);

fn block(byte: u8) -> Vec<u8> {
    vec![byte; BLOCK]
}

fn unmap_list(ranges: &[(u64, u32)]) -> Vec<u8> {
    let mut list = vec![0; 8];
    list[..2].copy_from_slice(&(6 + ranges.len() as u16 * 16).to_be_bytes());
    list[2..4].copy_from_slice(&(ranges.len() as u16 * 16).to_be_bytes());
    for (lba, blocks) in ranges {
        list.extend_from_slice(&lba.to_be_bytes());
        list.extend_from_slice(&blocks.to_be_bytes());
        list.extend_from_slice(&[0; 4]);
    }
    list
}

fn unmap(session: &Session, list: &[u8]) -> crate::support::Outcome {
    let [high, low] = (list.len() as u16).to_be_bytes();
    session.write(&[0x42, 0, 0, 0, 0, 0, 0, high, low, 0], list)
}

/// (first LBA, blocks, deallocated) of every descriptor.
fn lba_status(session: &Session, lba: u64, allocation: u32) -> Vec<(u64, u32, bool)> {
    let data = session.read(&cdb_16(0x9E, 0x12, lba, allocation), allocation).good();
    assert_eq!(be32(&data, 0) as usize + 4, data.len());
    let describe = |entry: &[u8]| {
        let lba = u64::from(be32(entry, 0)) << 32 | u64::from(be32(entry, 4));
        (lba, be32(entry, 8), entry[12] & 0x0F == 1)
    };
    data[8..].chunks(16).map(describe).collect()
}

#[test]
fn write_same_fills_across_chunks() {
    let session = Lab::new().login("a");
    session.write(&cdb_10(0x41, 0, 1, BLOCKS as u16 - 2), &block(0xA5)).good();
    let bytes = session.lab.volumes[&0].borrow().bytes.clone();
    assert!(bytes[BLOCK..bytes.len() - BLOCK].iter().all(|byte| *byte == 0xA5));
    assert_eq!((bytes[BLOCK - 1], bytes[bytes.len() - BLOCK]), (0, 0));
}

#[test]
fn write_same_takes_exactly_one_block_or_none_with_ndob() {
    let session = Lab::new().login("a");
    for len in [0, 256, 1024] {
        assert_eq!(session.write(&cdb_10(0x41, 0, 0, 4), &vec![1; len]).check(), BAD_LENGTH, "{len}");
        assert_eq!(session.write(&cdb_16(0x93, 0x08, 0, 4), &vec![1; len]).check(), BAD_LENGTH, "{len}");
    }
    session.write(&cdb_16(0x93, 0, 0, 4), &block(1)).good();
    session.write(&cdb_16(0x93, 0x01, 1, 2), &[]).good();
    assert_eq!(session.read_10(0, 4).good(), [block(1), block(0), block(0), block(1)].concat());
    assert_eq!(session.write(&cdb_16(0x93, 0x01, 0, 4), &block(1)).check(), BAD_LENGTH);
    assert_eq!(session.write(&cdb_16(0x93, 0x10, 0, 4), &block(0)).check(), INVALID_FIELD, "ANCHOR");
    assert_eq!(session.write(&cdb_16(0x93, 0x18, 0, 4), &block(0)).check(), INVALID_FIELD, "ANCHOR");
}

#[test]
fn write_same_with_unmap_deallocates_zeros_only() {
    let session = Lab::new().login("a");
    session.write(&cdb_16(0x93, 0, 0, 64), &block(1)).good();
    session.write(&cdb_16(0x93, 0x08, 8, 8), &block(0)).good();
    session.write(&cdb_16(0x93, 0x09, 24, 8), &[]).good();
    session.write(&cdb_16(0x93, 0x08, 40, 8), &block(7)).good();
    let expected =
        [(0, 8, false), (8, 8, true), (16, 8, false), (24, 8, true), (32, 32, false), (64, 4032, true)];
    assert_eq!(lba_status(&session, 0, 4096), expected);
    assert_eq!(session.read_10(40, 1).good(), block(7));
    assert_eq!(session.read_10(8, 1).good(), block(0));
}

#[test]
fn lba_status_starts_where_asked_and_fits_the_allocation() {
    let session = Lab::new().login("a");
    session.write(&cdb_16(0x93, 0, 0, 64), &block(1)).good();
    unmap(&session, &unmap_list(&[(8, 8), (16, 8), (40, 1)])).good();
    assert_eq!(lba_status(&session, 10, 24), [(10, 14, true)]);
    assert_eq!(lba_status(&session, 10, 40), [(10, 14, true), (24, 16, false)]);
    assert_eq!(lba_status(&session, BLOCKS - 1, 64), [(BLOCKS - 1, 1, true)]);
}

#[test]
fn unmap_checks_everything_before_it_discards_anything() {
    let session = Lab::new().login("a");
    session.write(&cdb_16(0x93, 0, 0, 64), &block(1)).good();
    let beyond = unmap_list(&[(0, 8), (BLOCKS - 1, 2)]);
    assert_eq!(unmap(&session, &beyond).check(), (5, 0x2100));
    assert_eq!(unmap(&session, &unmap_list(&[(0, 1); 257])).check(), INVALID_PARAMETER);
    assert_eq!(unmap(&session, &[0; 7]).check(), LIST_LENGTH);
    assert_eq!(session.read_10(0, 1).good(), block(1));
    unmap(&session, &[]).good();
    unmap(&session, &unmap_list(&[])).good();
    unmap(&session, &unmap_list(&[(0, 0), (BLOCKS, 0)])).good();
    let cdb = [0x42, 0, 0, 0, 0, 0, 0, 0, 24, 0];
    assert_eq!(session.write(&cdb, &[0; 8]).check(), BAD_LENGTH, "the list must come whole");
    assert_eq!(session.write(&[0x42, 1, 0, 0, 0, 0, 0, 0, 0, 0], &[]).check(), INVALID_FIELD, "ANCHOR");
    assert_eq!(session.read_10(0, 64).good(), block(1).repeat(64));
}

/// An EXTENDED COPY parameter list over units given by their NAA designators.
fn copy_list(list_id: u8, units: &[[u8; 16]], segments: &[Vec<u8>]) -> Vec<u8> {
    let mut list = vec![0; 16];
    list[0] = list_id;
    list[2..4].copy_from_slice(&(units.len() as u16 * 32).to_be_bytes());
    let len: usize = segments.iter().map(Vec::len).sum();
    list[8..12].copy_from_slice(&(len as u32).to_be_bytes());
    for naa in units {
        list.extend_from_slice(&[0xE4, 0, 0, 0, 1, 3, 0, 16]);
        list.extend_from_slice(naa);
        list.extend_from_slice(&[0, 0, 0, 0, 0, 0, 2, 0]);
    }
    list.extend(segments.concat());
    list
}

fn naa(lun: u8) -> [u8; 16] {
    config(lun).identity.naa
}

fn segment(source: u16, destination: u16, blocks: u16, from: u64, to: u64) -> Vec<u8> {
    let mut bytes = vec![0x02, 0, 0, 24];
    bytes.extend_from_slice(&source.to_be_bytes());
    bytes.extend_from_slice(&destination.to_be_bytes());
    bytes.extend_from_slice(&[0, 0]);
    bytes.extend_from_slice(&blocks.to_be_bytes());
    bytes.extend_from_slice(&from.to_be_bytes());
    bytes.extend_from_slice(&to.to_be_bytes());
    bytes
}

fn byte_segment(bytes: u32, from: u64, to: u64) -> Vec<u8> {
    let mut out = vec![0x0A, 0, 0, 28, 0, 0, 0, 0];
    out.extend_from_slice(&bytes.to_be_bytes());
    out.extend_from_slice(&from.to_be_bytes());
    out.extend_from_slice(&to.to_be_bytes());
    out.extend_from_slice(&[0; 4]);
    out
}

fn extended_copy(session: &Session, list: &[u8]) -> crate::support::Outcome {
    session.write(&cdb_16(0x83, 0, 0, list.len() as u32), list)
}

fn copy_status(session: &Session, list_id: u8) -> crate::support::Outcome {
    let mut cdb = cdb_16(0x84, 0, 0, 64);
    cdb[2] = list_id;
    session.read(&cdb, 64)
}

#[test]
fn copies_within_and_between_units() {
    let session = Lab::new().login("a");
    let data: Vec<u8> = (0..3000 * BLOCK).map(|at| (at / 13) as u8).collect();
    session.write(&cdb_16(0x8A, 0, 10, 3000), &data).good();
    let list = copy_list(7, &[naa(0), naa(1)], &[segment(0, 1, 3000, 10, 500), segment(1, 0, 8, 500, 0)]);
    extended_copy(&session, &list).good();
    let copied = session.on(1).read(&cdb_16(0x88, 0, 500, 3000), data.len() as u32).good();
    assert_eq!(copied, data);
    assert_eq!(session.read_10(0, 8).good(), data[..8 * BLOCK]);
    let status = copy_status(&session, 7).good();
    assert_eq!((status[4], status[6], be32(&status, 8)), (1, 2, 3008 * BLOCK as u32));
    assert_eq!(copy_status(&session, 8).check(), INVALID_FIELD);
    assert_eq!(copy_status(&session.lab.login("b"), 7).check(), INVALID_FIELD, "another nexus's copy");
    let bytes = copy_list(9, &[naa(0)], &[byte_segment(1024, 10, 4000)]);
    extended_copy(&session, &bytes).good();
    assert_eq!(session.read_10(4000, 2).good(), data[..1024]);
    extended_copy(&session, &[]).good();
}

/// Pitfall: a copy reached units that its sender must not see.
#[test]
fn copies_reach_only_units_of_this_target() {
    let session = Lab::new().login("a");
    let (unreachable, foreign) = ((0xA, 0x0D02), naa(77));
    let list = copy_list(1, &[naa(0), foreign], &[segment(0, 1, 1, 0, 0)]);
    assert_eq!(extended_copy(&session, &list).check(), unreachable);
    assert_eq!(copy_status(&session, 1).good()[4], 2, "failed");
    let mut other_type = copy_list(1, &[naa(0)], &[segment(0, 0, 1, 0, 8)]);
    other_type[16 + 5] = 1;
    assert_eq!(extended_copy(&session, &other_type).check(), unreachable);
}

#[test]
fn copies_respect_reservations_of_every_unit() {
    let lab = Lab::new();
    let (a, b) = (lab.login("a"), lab.login("b"));
    b.on(1).read(&[0x16, 0, 0, 0, 0, 0], 0).good();
    for (source, destination) in [(0, 1), (1, 0)] {
        let list = copy_list(1, &[naa(0), naa(1)], &[segment(source, destination, 1, 0, 0)]);
        assert_eq!(extended_copy(&a, &list).check(), (0xA, 0x0D02));
    }
    b.read(&[0x16, 0, 0, 0, 0, 0], 0).good();
    extended_copy(&a, &copy_list(1, &[naa(0)], &[segment(0, 0, 1, 0, 8)])).conflict();
}

#[test]
fn copy_lists_are_checked() {
    let session = Lab::new().login("a");
    let good = copy_list(1, &[naa(0)], &[segment(0, 0, 1, 0, 8)]);
    for len in 1..good.len() {
        assert_eq!(extended_copy(&session, &good[..len]).check(), LIST_LENGTH, "{len} bytes");
    }
    let one = segment(0, 0, 1, 0, 8);
    let check = |list: Vec<u8>| extended_copy(&session, &list).check();
    assert_eq!(check(copy_list(1, &[naa(0); 17], std::slice::from_ref(&one))), (5, 0x2606));
    assert_eq!(check(copy_list(1, &[naa(0)], &vec![one.clone(); 65])), (5, 0x2608));
    assert_eq!(check(copy_list(1, &[naa(0); 17], &vec![one.clone(); 80])), LIST_LENGTH);
    assert_eq!(check(copy_list(1, &[naa(0)], &[segment(0, 5, 1, 0, 8)])), (0xA, 0x0804));
    assert_eq!(check(copy_list(1, &[naa(0)], &[segment(0, 0, 9, 0, BLOCKS - 1)])), (0xA, 0));
    assert_eq!(check(copy_list(1, &[naa(0)], &[byte_segment(100, 0, 8)])), (0xA, 0));
    let mut stream = one.clone();
    stream[0] = 0x03;
    assert_eq!(check(copy_list(1, &[naa(0)], &[stream])), (5, 0x2609));
    let mut fibre_channel = good.clone();
    fibre_channel[16] = 0xE0;
    assert_eq!(check(fibre_channel), (5, 0x2607));
    let mut tape = good;
    tape[17] = 0x01;
    assert_eq!(check(tape), INVALID_PARAMETER);
}

#[test]
fn a_copy_that_the_medium_fails_is_aborted_and_recorded() {
    let session = Lab::new().login("a");
    session.lab.fault.set(Some(MediumError::Read));
    let list = copy_list(3, &[naa(0)], &[segment(0, 0, 1, 0, 8)]);
    assert_eq!(extended_copy(&session, &list).check(), (0xA, 0x0D01));
    assert_eq!(copy_status(&session, 3).good()[4], 2);
}
