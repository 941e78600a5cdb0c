//! Damaged and foreign files: the error names the structure and its place, and no file makes an open long or large.

use crate::{
    cut_disk::CutDisk,
    patch::{self, BAT, HEADERS, LOG, METADATA, REGION_TABLES},
};
use linerate_sim::{Rng, for_each_seed};
use linerate_vhdx::{Blame, GuidSource, OpenMode, Structure, VhdxError, VhdxImage};

const MIB: u64 = 1 << 20;

fn open(disk: &mut CutDisk) -> Result<VhdxImage<&mut CutDisk>, VhdxError> {
    VhdxImage::open(disk, OpenMode::ReadWrite, GuidSource::from_seed(9))
}

/// Opens a closed image after a change, and compares the error: structure, place, a part of the message.
fn refused(change: impl FnOnce(&mut CutDisk), structure: Structure, place: u64, said: &str) {
    refused_of(patch::closed(), change, structure, place, said);
}

fn refused_of(
    mut disk: CutDisk,
    change: impl FnOnce(&mut CutDisk),
    structure: Structure,
    place: u64,
    said: &str,
) {
    change(&mut disk);
    let error = open(&mut disk).map(drop).unwrap_err();
    let text = error.to_string();
    let (VhdxError::Damaged { structure: found, offset_bytes, .. }
    | VhdxError::Unsupported { structure: found, offset_bytes, .. }) = &error
    else {
        panic!("{error}");
    };
    assert_eq!((*found, *offset_bytes), (structure, place), "{text}");
    assert!(text.contains(said), "{text}, expected {said}");
    assert_eq!(error.blame(), Blame::User);
}

#[test]
fn a_file_of_another_kind_is_foreign() {
    let mut disk = patch::closed();
    disk.put(0, b"conectix");
    assert!(matches!(open(&mut disk).map(drop), Err(VhdxError::Foreign)));
    disk.truncate(100);
    assert!(matches!(open(&mut disk).map(drop), Err(VhdxError::Foreign)));
    let mut disk = patch::closed();
    disk.truncate(MIB - 1);
    let error = open(&mut disk).map(drop).unwrap_err();
    assert!(error.to_string().contains("ends in the header section"), "{error}");
}

#[test]
fn one_damaged_header_or_region_table_is_replaced_by_the_other() {
    for place in [HEADERS[0], HEADERS[1], REGION_TABLES[0], REGION_TABLES[1]] {
        let mut disk = patch::closed();
        disk.put(place + 20, &[0x5a; 4]);
        assert!(open(&mut disk).is_ok(), "{place}");
    }
}

#[test]
fn damage_of_the_headers_is_named() {
    let header = |change: fn(&mut CutDisk), at: u64, said| {
        refused(change, Structure::Header, at, said);
    };
    header(|disk| HEADERS.iter().for_each(|at| disk.put(at + 100, &[1])), HEADERS[0], "has its checksum");
    header(|disk| HEADERS.iter().for_each(|at| disk.put(*at, b"tail")), HEADERS[0], "has its checksum");
    header(|disk| patch::headers(disk, 8, &7_u64.to_le_bytes()), HEADERS[0], "the same sequence number");
    // The second header is the newer one.
    header(|disk| patch::headers(disk, 66, &[2, 0]), HEADERS[1] + 66, "version 2 of the format");
    header(|disk| patch::headers(disk, 68, &[0; 4]), HEADERS[1] + 68, "a log of 0 bytes");
    header(|disk| patch::headers(disk, 68, &[1; 4]), HEADERS[1] + 68, "not whole MiB");
    header(|disk| patch::headers(disk, 72, &[0; 8]), HEADERS[1] + 72, "at 0 in a file");
    header(|disk| patch::headers(disk, 72, &(1_u64 << 62).to_le_bytes()), HEADERS[1] + 72, "in a file of");
    header(
        |disk| {
            patch::headers(disk, 64, &[1, 0]);
            patch::headers(disk, 48, &[1; 16]);
        },
        HEADERS[1] + 64,
        "version 1 of the log",
    );
}

#[test]
fn damage_of_the_region_table_is_named() {
    let table = |change: fn(&mut CutDisk), at: u64, said| {
        refused(change, Structure::RegionTable, REGION_TABLES[0] + at, said);
    };
    table(|disk| REGION_TABLES.iter().for_each(|at| disk.put(at + 100, &[1])), 0, "has its checksum");
    table(|disk| patch::region_tables(disk, 8, &2048_u32.to_le_bytes()), 8, "2048 entries");
    table(|disk| patch::region_tables(disk, 8, &1_u32.to_le_bytes()), 0, "no entry for the metadata region");
    table(|disk| patch::region_tables(disk, 16 + 16, &[1]), 16 + 16, "not whole MiB");
    table(|disk| patch::region_tables(disk, 16 + 16, &[0; 8]), 16 + 16, "not whole MiB after the first");
    table(|disk| patch::region_tables(disk, 16 + 16, &LOG.to_le_bytes()), 16, "another structure");
    table(|disk| patch::region_tables(disk, 16 + 16, &(1_u64 << 40).to_le_bytes()), 16, "outside the file");
    table(
        |disk| {
            let metadata = disk.bytes(REGION_TABLES[0] + 48, 16);
            patch::region_tables(disk, 16, &metadata);
        },
        48,
        "is there twice",
    );
    // An unknown region, required; and one that is not.
    table(
        |disk| {
            disk.truncate(20 * MIB);
            patch::region_tables(disk, 8, &3_u32.to_le_bytes());
            patch::region_tables(disk, 80, &region(1));
        },
        80,
        "requires region 01010101-0101-0101-0101-010101010101",
    );
    let mut disk = patch::closed();
    patch::region_tables(&mut disk, 8, &3_u32.to_le_bytes());
    patch::region_tables(&mut disk, 80, &region(0));
    disk.truncate(20 * MIB);
    assert!(open(&mut disk).is_ok());
}

/// The entry of a region of 1 MiB after the blocks.
fn region(required: u8) -> Vec<u8> {
    let mut entry = vec![1; 16];
    entry.extend((10 * MIB).to_le_bytes());
    entry.extend((MIB as u32).to_le_bytes());
    entry.extend([required, 0, 0, 0]);
    entry
}

#[test]
fn damage_of_the_metadata_is_named() {
    let table = |at: u64, bytes: &[u8], place: u64, said| {
        refused(|disk| disk.put(METADATA + at, bytes), Structure::MetadataTable, METADATA + place, said);
    };
    table(0, b"x", 0, "does not begin");
    table(10, &[0, 8], 10, "2048 entries");
    table(10, &[4, 0], 0, "physical sector size is missing");
    table(32 + 16, &[0, 0, 0], 32 + 16, "an item of 8 bytes at 0 ");
    table(32 + 20, &[0xff, 0xff, 0xff, 0], 32 + 16, "an item of 16777215 bytes");
    table(32 + 20, &[4], 32, "file parameters has 4 bytes");
    table(32 + 24, &[0x14], 32 + 24, "reserved flags");
    table(64 + 16, &[0, 0, 1, 0], 64, "overlaps another");
    let first = patch::closed().bytes(METADATA + 32, 16);
    table(64, &first, 64, "is there twice");
    table(160, &[9; 16], 160, "requires the item 09090909");
    let item = |at: u64, bytes: &[u8], place: u64, said| {
        let items = METADATA + (64 << 10);
        refused(|disk| disk.put(items + at, bytes), Structure::MetadataItem, items + place, said);
    };
    item(4, &[2], 0, "differencing image");
    item(4, &[4], 4, "reserved flags");
    item(0, &[1], 0, "blocks of 1048577 bytes");
    item(8, &[0xff; 8], 0, "a disk of 18446744073709551615 bytes");
    item(32, &[1], 0, "logical sectors");
    item(36, &[1], 0, "physical sectors");
}

#[test]
fn damage_of_the_table_of_blocks_is_named() {
    let entry = |index: u64, entry: u64, said| {
        refused(
            |disk| disk.put(BAT + index * 8, &entry.to_le_bytes()),
            Structure::Bat,
            BAT + index * 8,
            said,
        );
    };
    entry(5, (4 * MIB) | 6, "another structure");
    entry(5, (2 * MIB) | 6, "another structure");
    entry(5, 6, "another structure");
    entry(5, (100 * MIB) | 6, "outside the file");
    entry(5, u64::MAX - MIB + 7, "outside the file");
    entry(5, (4 * MIB) | 3, "another structure");
    entry(5, 8, "reserved bits");
    entry(5, 4, "state 4 is not defined");
    entry(5, 7, "partially present");
    refused(
        |disk| {
            // 64 TiB of blocks of 1 MiB need 512 MiB of entries.
            disk.put(METADATA + (64 << 10) + 8, &(64_u64 << 40).to_le_bytes());
        },
        Structure::Bat,
        BAT,
        "its region has 1048576 bytes",
    );
}

#[test]
fn the_entry_of_a_sector_bitmap_must_be_empty() {
    use linerate_vhdx::CreateOptions;
    // 16 blocks of 256 MiB in a chunk.
    let options = CreateOptions { block_bytes: 256 << 20, ..CreateOptions::dynamic(8 << 30) };
    let mut disk = CutDisk::new(crate::cut_disk::Kind::File);
    VhdxImage::create(&mut disk, &options, GuidSource::from_seed(1)).unwrap();
    disk.put(BAT + 16 * 8, &6_u64.to_le_bytes());
    let error = open(&mut disk).map(drop).unwrap_err().to_string();
    assert!(error.contains("sector bitmap block") && error.contains(&(BAT + 128).to_string()), "{error}");
}

#[test]
fn damage_of_the_log_is_named() {
    let log = |change: &dyn Fn(&mut CutDisk), at: u64, said| {
        refused_of(patch::unclosed(), change, Structure::Log, LOG + at, said);
    };
    // Nothing else than a complete entry is replayed.
    for (at, byte) in [(0, 0), (4, 1), (8, 1), (20, 1), (24, 9), (64, 1), (64 + 24, 9), (4096, 1), (8188, 9)]
    {
        log(&|disk| disk.put(LOG + at, &[byte]), 0, "no sequence of entries in it is complete");
    }
    for (at, byte) in [(13, 0x20), (48, 1), (64, b'x'), (64 + 16, 1), (64 + 24, 9), (4096, b'x'), (4100, 1)] {
        log(&|disk| patch::log_entry(disk, at, &[byte]), 0, "no sequence of entries in it is complete");
    }
    log(&|disk| disk.truncate(5 * MIB), 0, "its end is missing");
    let change =
        |at: u64, value: u64| move |disk: &mut CutDisk| patch::log_entry(disk, at, &value.to_le_bytes());
    log(&change(56, 1 << 60), 0, "no image");
    for place in [0, 64 << 10, LOG, 2 * MIB - 4096, 1 << 50] {
        log(&change(64 + 16, place), 0, "which is no metadata");
    }
    // Zeros instead of data: as many as are asked for, but not more than the file has.
    log(
        &|disk| {
            patch::log_entry(disk, 64, b"zero\0\0\0\0");
            patch::log_entry(disk, 64 + 8, &(1_u64 << 50).to_le_bytes());
        },
        0,
        "which is no metadata",
    );
}

#[test]
fn zeros_of_the_log_are_replayed() {
    let mut disk = patch::unclosed();
    patch::log_entry(&mut disk, 64, b"zero\0\0\0\0");
    patch::log_entry(&mut disk, 64 + 8, &4096_u64.to_le_bytes());
    let mut image = open(&mut disk).unwrap();
    assert_eq!(image.allocated_blocks(), 0);
    let mut sector = [1; 512];
    image.read(MIB, &mut sector).unwrap();
    assert_eq!(sector, [0; 512]);
}

/// A log full of entries that lead nowhere must not take longer than its length asks for.
#[test]
fn a_log_of_overlapping_entries_is_refused_in_time() {
    let mut disk = patch::unclosed();
    let head = disk.bytes(LOG, 64);
    for sector in 0..256_u64 {
        disk.put(LOG + sector * 4096, &head);
        disk.put(LOG + sector * 4096 + 8, &(MIB as u32).to_le_bytes());
    }
    disk.calls = 0;
    let error = open(&mut disk).map(drop).unwrap_err().to_string();
    assert!(error.contains("overlap"), "{error}");
    assert!(disk.calls < 2_000, "{} calls", disk.calls);
}

/// Random damage: an error or an image, never a panic, and a number of calls that the file's length bounds.
#[test]
fn random_damage_is_survived() {
    let images = [patch::closed(), patch::unclosed()];
    for_each_seed(3_000, |seed| {
        let mut rng = Rng::new(seed);
        let mut disk = images[rng.range(0, 1) as usize].clone();
        for _ in 0..rng.range(1, 4) {
            let starts = [0, HEADERS[0], HEADERS[1], REGION_TABLES[0], LOG, METADATA, METADATA + 65536, BAT];
            let at = starts[rng.range(0, 7) as usize] + rng.range(0, 160);
            disk.put(at, &[rng.next_u64() as u8]);
        }
        for header in HEADERS {
            if rng.chance(50) {
                let mut bytes = disk.bytes(header, 4096);
                bytes[4..8].fill(0);
                disk.put(header + 4, &crc32c::crc32c(&bytes).to_le_bytes());
            }
        }
        if rng.chance(50) {
            patch::region_tables(&mut disk, 12, &[0]);
        }
        if let Ok(mut image) = open(&mut disk) {
            let mut sectors = vec![0; 8192];
            let _ = image.read(0, &mut sectors);
            let _ = image.write(0, &sectors).and_then(|()| image.flush());
        }
        assert!(disk.calls < 10_000, "{} calls", disk.calls);
    });
}
