//! READ, WRITE, VERIFY and similar commands, one behaviour each.

use crate::support::{BLOCK, BLOCKS, Lab, caw, cdb_10, cdb_12, cdb_16, config};
use linerate_scsi::{MediumError, Plan, Residual, Status};

const ILLEGAL: u8 = 5;
const LBA_OUT_OF_RANGE: (u8, u16) = (ILLEGAL, 0x2100);
const INVALID_FIELD: (u8, u16) = (ILLEGAL, 0x2400);
const BAD_LENGTH: (u8, u16) = (ILLEGAL, 0x0E03);
const MISCOMPARE: (u8, u16) = (0xE, 0x1D00);

fn pattern(byte: u8, blocks: usize) -> Vec<u8> {
    vec![byte; blocks * BLOCK]
}

#[test]
fn every_size_of_read_and_write_reaches_the_same_blocks() {
    let session = Lab::new().login("a");
    session.write(&[0x0A, 0, 0, 7, 2, 0], &pattern(1, 2)).good();
    session.write(&cdb_10(0x2A, 0, 9, 2), &pattern(2, 2)).good();
    session.write(&cdb_12(0xAA, 0, 11, 2), &pattern(3, 2)).good();
    session.write(&cdb_16(0x8A, 0, 13, 2), &pattern(4, 2)).good();
    let expected: Vec<u8> = (1..=4).flat_map(|byte| pattern(byte, 2)).collect();
    let len = expected.len() as u32;
    assert_eq!(session.read(&[0x08, 0, 0, 7, 8, 0], len).good(), expected);
    assert_eq!(session.read(&cdb_10(0x28, 0, 7, 8), len).good(), expected);
    assert_eq!(session.read(&cdb_12(0xA8, 0, 7, 8), len).good(), expected);
    assert_eq!(session.read(&cdb_16(0x88, 0, 7, 8), len).good(), expected);
    assert_eq!(session.read(&[0x08, 0xE0, 0, 7, 8, 0], len).good(), expected, "a LUN as before SCSI-3");
}

#[test]
fn a_six_byte_length_of_zero_means_256() {
    let session = Lab::new().login("a");
    session.write(&[0x0A, 0, 0, 0, 0, 0], &pattern(7, 256)).good();
    assert_eq!(session.read(&[0x08, 0, 0, 0, 0, 0], 256 * BLOCK as u32).good(), pattern(7, 256));
}

#[test]
fn no_command_passes_the_last_block() {
    let session = Lab::new().login("a");
    let end = BLOCKS;
    let two = pattern(1, 2);
    for (lba, blocks) in [(end - 1, 2), (end, 1), (end + 1, 0), (u64::MAX, 1), (u64::MAX, 0), (1 << 63, 2)] {
        for opcode in [0x88, 0x8F, 0x90, 0x91] {
            let got = session.read(&cdb_16(opcode, 0, lba, blocks), 1024).check();
            assert_eq!(got, LBA_OUT_OF_RANGE, "opcode {opcode:#04x} lba {lba:#x} blocks {blocks}");
        }
        for opcode in [0x8A, 0x8B, 0x8E, 0x93] {
            let got = session.write(&cdb_16(opcode, 0, lba, blocks), &two).check();
            assert_eq!(got, LBA_OUT_OF_RANGE, "opcode {opcode:#04x} lba {lba:#x} blocks {blocks}");
        }
        let got = session.write(&caw(lba, blocks as u8), &two).check();
        assert_eq!(got, LBA_OUT_OF_RANGE, "COMPARE AND WRITE lba {lba:#x} blocks {blocks}");
    }
    let status = session.read(&cdb_16(0x9E, 0x12, end, 24), 24);
    assert_eq!(status.check(), LBA_OUT_OF_RANGE);
}

#[test]
fn zero_blocks_at_the_end_are_fine() {
    let session = Lab::new().login("a");
    session.read(&cdb_16(0x88, 0, BLOCKS, 0), 0).good();
    session.write(&cdb_16(0x8A, 0, BLOCKS, 0), &[]).good();
    session.write(&caw(BLOCKS, 0), &[]).good();
    session.write(&cdb_16(0x8B, 0, BLOCKS, 0), &[]).good();
    session.write(&cdb_16(0x8E, 0x02, BLOCKS, 0), &[]).good();
    session.read(&cdb_16(0x8F, 0x02, BLOCKS, 0), 0).good();
}

#[test]
fn transfers_beyond_the_published_limit_are_refused() {
    let big = linerate_scsi::MAX_TRANSFER_BYTES / BLOCK as u32 + 1;
    let mut large = config(0);
    large.capacity_blocks = u64::from(big) + 100;
    let session = Lab::with([large]).login("a");
    assert_eq!(session.read(&cdb_16(0x88, 0, 0, big), 512).check(), INVALID_FIELD);
    assert_eq!(session.write(&cdb_16(0x8A, 0, 0, big), &[0; 512]).check(), INVALID_FIELD);
    assert_eq!(session.read(&cdb_16(0x8F, 0, 0, big), 0).check(), INVALID_FIELD);
    session.read(&cdb_16(0x88, 0, 0, big - 1), 512).good();
}

#[test]
fn protection_and_unknown_bits_are_refused_and_pointed_at() {
    let session = Lab::new().login("a");
    for opcode in [0x28, 0x2A, 0x2E, 0x2F, 0x41, 0x8A, 0x88, 0x8B, 0x89, 0x93] {
        let mut cdb = [0; 16];
        (cdb[0], cdb[1]) = (opcode, 0x20);
        let outcome = session.run(&cdb, 0, &[]);
        assert_eq!(outcome.check(), INVALID_FIELD, "opcode {opcode:#04x}");
        assert_eq!(outcome.sense[15..18], [0xC0, 0, 1], "field pointer for {opcode:#04x}");
    }
    let mut naca = cdb_10(0x28, 0, 0, 1);
    naca[9] = 0x04;
    assert_eq!(session.read(&naca, 512).check(), INVALID_FIELD);
}

#[test]
fn writes_are_durable_when_asked_or_when_the_cache_is_off() {
    let session = Lab::new().login("a");
    let durable = |session: &crate::support::Session| session.lab.volumes[&0].borrow().durable_writes;
    session.write_10(0, &pattern(1, 1)).good();
    assert_eq!(durable(&session), 0);
    session.write(&cdb_10(0x2A, 0x18, 0, 1), &pattern(1, 1)).good();
    session.write(&cdb_12(0xAA, 0x08, 0, 1), &pattern(1, 1)).good();
    session.write(&[0x0A, 0x08, 0, 0, 0, 0], &pattern(1, 256)).check();
    assert_eq!(durable(&session), 2, "FUA; in six bytes the bit is part of an address beyond the end");
    let mut write_through = config(0);
    write_through.write_cache = false;
    let session = Lab::with([write_through]).login("a");
    session.write_10(0, &pattern(1, 1)).good();
    session.write(&[0x0A, 0, 0, 0, 1, 0], &pattern(1, 1)).good();
    session.write(&cdb_10(0x41, 0, 0, 4), &pattern(1, 1)).good();
    assert_eq!(durable(&session), 3);
}

#[test]
fn residuals_of_reads_and_writes() {
    let session = Lab::new().login("a");
    let read = session.read(&cdb_10(0x28, 0, 0, 1), 0);
    assert_eq!((read.status, read.residual), (Status::Good, Residual::Overflow(512)));
    let read = session.read(&cdb_10(0x28, 0, 0, 1), 10_000);
    assert_eq!((read.data.len(), read.residual), (512, Residual::Underflow(9_488)));
    let read = session.read(&cdb_10(0x28, 0, 0, 1), 200);
    assert_eq!((read.data.len(), read.residual), (200, Residual::Overflow(312)));

    session.write_10(0, &pattern(b'a', 20)).good();
    for opcode in [0x2A, 0x2E] {
        let write = session.write(&cdb_10(opcode, 0, 0, 2), &pattern(b'b', 1));
        assert_eq!((write.status, write.residual), (Status::Good, Residual::Overflow(512)));
        let write = session.write(&cdb_10(opcode, 0, 0, 1), &pattern(b'c', 2));
        assert_eq!((write.status, write.residual), (Status::Good, Residual::Underflow(512)));
        let write = session.write(&cdb_10(opcode, 0, 0, 1), &[]);
        assert_eq!((write.status, write.residual), (Status::Good, Residual::Overflow(512)));
        let write = session.write(&cdb_10(opcode, 0, 0, 1), &[b'd'; 200]);
        assert_eq!((write.check(), write.residual), (BAD_LENGTH, Residual::Overflow(312)));
        let mut expected = pattern(b'c', 1);
        expected.extend(pattern(b'a', 19));
        assert_eq!(session.read_10(0, 20).good(), expected, "nothing beyond what was sent is written");
    }
}

#[test]
fn verify_compares_as_byte_check_says() {
    let session = Lab::new().login("a");
    let mut data = pattern(5, 4);
    session.write_10(0, &data).good();
    for (opcode_10, opcode_12, opcode_16) in [(0x2F, 0xAF, 0x8F), (0x2E, 0xAE, 0x8E)] {
        session.write(&cdb_10(opcode_10, 0x02, 0, 4), &data).good();
        session.write(&cdb_12(opcode_12, 0x12, 0, 4), &data).good();
        session.write(&cdb_16(opcode_16, 0x02, 0, 4), &data).good();
    }
    session.read(&cdb_10(0x2F, 0, 0, 4), 0).good();
    data[1027] ^= 1;
    let outcome = session.write(&cdb_10(0x2F, 0x02, 0, 4), &data);
    assert_eq!((outcome.check(), outcome.information()), (MISCOMPARE, 1027));
    session.write(&cdb_10(0x2F, 0x06, 0, 4), &pattern(5, 1)).good();
    assert_eq!(session.write(&cdb_10(0x2F, 0x06, 0, 4), &pattern(6, 1)).check(), MISCOMPARE);
    assert_eq!(session.write(&cdb_10(0x2F, 0x04, 0, 4), &pattern(5, 4)).check(), INVALID_FIELD);
    assert_eq!(session.write(&cdb_10(0x2E, 0x06, 0, 4), &pattern(5, 4)).check(), INVALID_FIELD);
}

#[test]
fn long_verifies_and_writes_go_chunk_by_chunk() {
    let session = Lab::new().login("a");
    let blocks = (3 * linerate_scsi::MEDIUM_CHUNK_BYTES / 2) as usize / BLOCK;
    let mut data: Vec<u8> = (0..blocks * BLOCK).map(|at| (at / 7) as u8).collect();
    session.write(&cdb_16(0x8E, 0x02, 1, blocks as u32), &data).good();
    assert_eq!(session.read(&cdb_16(0x88, 0, 1, blocks as u32), data.len() as u32).good(), data);
    let last = data.len() - 1;
    data[last] ^= 0x80;
    let outcome = session.write(&cdb_16(0x8F, 0x02, 1, blocks as u32), &data);
    assert_eq!((outcome.check(), outcome.information()), (MISCOMPARE, last as u32));
    session.write(&cdb_16(0x8B, 0, 1, blocks as u32), &vec![0xFF; data.len()]).good();
    let all_ones = session.read(&cdb_16(0x88, 0, 1, blocks as u32), data.len() as u32).good();
    assert!(all_ones.iter().all(|byte| *byte == 0xFF));
}

#[test]
fn compare_and_write_writes_only_on_a_match() {
    let session = Lab::new().login("a");
    session.write_10(8, &pattern(1, 2)).good();
    let mut both = pattern(1, 2);
    both.extend(pattern(2, 2));
    session.write(&caw(8, 2), &both).good();
    assert_eq!(session.read_10(8, 2).good(), pattern(2, 2));
    let outcome = session.write(&caw(8, 2), &both);
    assert_eq!((outcome.check(), outcome.information()), (MISCOMPARE, 0));
    both[..1024].fill(2);
    both[700] = 9;
    let outcome = session.write(&caw(8, 2), &both);
    assert_eq!((outcome.check(), outcome.information()), (MISCOMPARE, 700));
    assert_eq!(session.read_10(8, 2).good(), pattern(2, 2));
    for wrong in [0, 512, 1024, 1536, 2560] {
        assert_eq!(session.write(&caw(8, 2), &vec![2; wrong]).check(), BAD_LENGTH, "{wrong} bytes");
    }
}

#[test]
fn or_write_ors() {
    let session = Lab::new().login("a");
    session.write_10(0, &pattern(0x0F, 3)).good();
    session.write(&cdb_16(0x8B, 0, 1, 1), &pattern(0xA0, 1)).good();
    let expected = [pattern(0x0F, 1), pattern(0xAF, 1), pattern(0x0F, 1)].concat();
    assert_eq!(session.read_10(0, 3).good(), expected);
}

#[test]
fn a_plain_write_waits_for_a_read_modify_write_of_the_same_blocks() {
    let lab = Lab::new();
    let (slow, fast) = (lab.login("slow"), lab.login("fast"));
    let both = [pattern(0, 1), pattern(1, 1)].concat();
    let Plan::Task(mut swap) = slow.begin(&caw(4, 1), 0, 1024) else { panic!("a task") };
    let input = slow.advance(&mut swap, linerate_scsi::Input::Start, &both).unwrap();
    // The comparison has read; nothing has been written yet.
    let input = slow.advance(&mut swap, input, &both).unwrap();
    let Plan::Task(mut write) = fast.begin(&cdb_10(0x2A, 0, 4, 1), 0, 512) else { panic!("it must wait") };
    let data = pattern(9, 1);
    let collected = fast.advance(&mut write, linerate_scsi::Input::Start, &data).unwrap();
    assert!(matches!(write.next(collected), linerate_scsi::TaskStep::Wait));
    assert!(
        matches!(fast.begin(&cdb_10(0x2A, 0, 4000, 1), 0, 512), Plan::Write(_)),
        "another stripe is free"
    );
    let input = slow.advance(&mut swap, input, &both).unwrap();
    assert_eq!(slow.advance(&mut swap, input, &both).unwrap_err().status, Status::Good);
    let input = fast.advance(&mut write, linerate_scsi::Input::Resume, &data).unwrap();
    assert_eq!(fast.advance(&mut write, input, &data).unwrap_err().status, Status::Good);
    assert_eq!(fast.read_10(4, 1).good(), data, "the write came second");
}

#[test]
fn a_read_modify_write_waits_for_plain_writes_inside() {
    let lab = Lab::new();
    let (a, b) = (lab.login("a"), lab.login("b"));
    let Plan::Write(extent) = a.begin(&cdb_10(0x2A, 0, 4, 1), 0, 512) else { panic!("a plain write") };
    let both = pattern(0, 2);
    let Plan::Task(mut swap) = b.begin(&caw(4, 1), 0, 1024) else { panic!("a task") };
    let input = b.advance(&mut swap, linerate_scsi::Input::Start, &both).unwrap();
    assert!(matches!(swap.next(input), linerate_scsi::TaskStep::Wait));
    a.nexus.end_write(a.field(), &extent);
    let input = b.advance(&mut swap, linerate_scsi::Input::Resume, &both).unwrap();
    drop(swap);
    assert!(matches!(a.begin(&cdb_10(0x2A, 0, 4, 1), 0, 512), Plan::Write(_)), "a dropped task lets go");
    drop(input);
}

#[test]
fn medium_errors_become_sense_data() {
    let session = Lab::new().login("a");
    let table = [
        (MediumError::Read, (3, 0x1100)),
        (MediumError::Write, (3, 0x0C00)),
        (MediumError::NoSpace, (7, 0x2707)),
        (MediumError::Hardware, (4, 0x4400)),
    ];
    for (error, expected) in table {
        session.lab.fault.set(Some(error));
        assert_eq!(session.write(&cdb_10(0x2E, 0, 0, 1), &pattern(1, 1)).check(), expected);
        let reply = session.nexus.medium_failed(session.field(), error);
        assert_eq!(
            (reply.sense[2], reply.sense[12..14].to_vec()),
            (expected.0, expected.1.to_be_bytes().to_vec())
        );
    }
    assert!(matches!(session.begin(&cdb_10(0x2A, 0, 0, 1), 0, 512), Plan::Write(_)), "nothing stays locked");
}

#[test]
fn read_only_units_say_data_protect() {
    let mut protected = config(0);
    protected.read_only = true;
    let session = Lab::with([protected]).login("a");
    session.read_10(0, 1).good();
    let writes: [&[u8]; 7] = [
        &cdb_10(0x2A, 0, 0, 1),
        &cdb_16(0x8A, 0, 0, 1),
        &cdb_10(0x2E, 0, 0, 1),
        &cdb_10(0x41, 0, 0, 1),
        &cdb_16(0x8B, 0, 0, 1),
        &caw(0, 1),
        &[0x42, 0, 0, 0, 0, 0, 0, 0, 24, 0],
    ];
    for cdb in writes {
        assert_eq!(session.write(cdb, &[0; 1024]).check(), (7, 0x2701), "opcode {:#04x}", cdb[0]);
    }
    let header = session.read(&[0x1A, 8, 0x3F, 0, 255, 0], 255).good();
    assert_eq!(header[2] & 0x80, 0x80, "WP");
}

#[test]
fn sync_and_prefetch_take_zero_as_to_the_end() {
    let session = Lab::new().login("a");
    session.read(&cdb_10(0x35, 0, 10, 0), 0).good();
    session.read(&cdb_16(0x91, 0x02, 0, 5), 0).good();
    assert_eq!(session.lab.volumes[&0].borrow().syncs, 2);
    session.read(&cdb_10(0x34, 0, 10, 0), 0).good();
    session.read(&cdb_16(0x90, 0x02, 10, 3), 0).good();
}
