//! What was written is read, in every kind of image, also after it was closed and opened.

use crate::cut_disk::{CutDisk, Kind};
use linerate_vhdx::{
    CreateOptions, GuidSource, ImageFile, NewImage, OpenMode, Preallocation, VhdxError, VhdxImage,
};
use proptest::prelude::*;

const MIB: u64 = 1 << 20;

/// One step of a test.
#[derive(Clone, Debug)]
enum Step {
    /// Sectors from here are written with this byte.
    Write {
        sector: u64,
        sectors: u64,
        byte: u8,
    },
    Flush,
    Reopen,
}

fn steps(sectors: u64) -> impl Strategy<Value = Vec<Step>> {
    let write = (0..sectors, 1..3000_u64, 1..=255_u8).prop_map(move |(sector, count, byte)| Step::Write {
        sector,
        sectors: count.min(sectors - sector),
        byte,
    });
    prop::collection::vec(prop_oneof![6 => write, 1 => Just(Step::Flush), 1 => Just(Step::Reopen)], 1..20)
}

fn options() -> impl Strategy<Value = CreateOptions> {
    let kinds = prop::sample::select(vec![Preallocation::Off, Preallocation::Length, Preallocation::Full]);
    (1..12_u64, 0..6_u64, 0..3_u32, prop::sample::select(vec![512, 4096]), kinds).prop_map(
        |(mib, odd, shift, logical_sector_bytes, preallocation)| CreateOptions {
            size_bytes: mib * MIB + odd * 4096,
            block_bytes: 1 << (20 + shift),
            logical_sector_bytes,
            preallocation,
        },
    )
}

fn check(options: &CreateOptions, kind: Kind, steps: &[Step]) -> Result<(), TestCaseError> {
    let sector_bytes = u64::from(options.logical_sector_bytes);
    let mut expected = vec![0; options.size_bytes as usize];
    let mut image = VhdxImage::create(CutDisk::new(kind), options, GuidSource::from_seed(1)).unwrap();
    for step in steps {
        match step {
            Step::Write { sector, sectors, byte } => {
                let offset = sector * sector_bytes;
                let data = vec![*byte; (sectors * sector_bytes) as usize];
                image.write(offset, &data).unwrap();
                expected[offset as usize..][..data.len()].copy_from_slice(&data);
            }
            Step::Flush => image.flush().unwrap(),
            Step::Reopen => {
                let file = image.close().unwrap();
                image = VhdxImage::open(file, OpenMode::ReadWrite, GuidSource::from_seed(2)).unwrap();
            }
        }
    }
    let mut found = vec![0xEE; expected.len()];
    image.read(0, &mut found).unwrap();
    prop_assert!(found == expected, "before it is closed");
    let allocated = image.allocated_blocks();
    let file = image.close().unwrap();
    let mut image = VhdxImage::open(file, OpenMode::ReadOnly, GuidSource::from_seed(3)).unwrap();
    image.read(0, &mut found).unwrap();
    prop_assert!(found == expected, "after it was closed");
    prop_assert_eq!(image.allocated_blocks(), allocated);
    prop_assert_eq!(image.is_fixed(), options.preallocation != Preallocation::Off);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn what_was_written_is_read(
        (options, steps) in options().prop_flat_map(|options| {
            let sectors = options.size_bytes / u64::from(options.logical_sector_bytes);
            (Just(options), steps(sectors))
        }),
        is_lun in any::<bool>(),
    ) {
        check(&options, if is_lun { Kind::Lun(40 * MIB) } else { Kind::File }, &steps)?;
    }
}

fn dynamic(size_bytes: u64) -> VhdxImage<CutDisk> {
    let options = CreateOptions { block_bytes: 1 << 20, ..CreateOptions::dynamic(size_bytes) };
    VhdxImage::create(CutDisk::new(Kind::File), &options, GuidSource::from_seed(1)).unwrap()
}

#[test]
fn a_dynamic_image_grows_by_the_blocks_that_are_written() {
    let mut image = dynamic(100 * MIB);
    assert_eq!(image.allocated_blocks(), 0);
    image.write(50 * MIB - 512, &[1; 1024]).unwrap();
    assert_eq!(image.allocated_blocks(), 2);
    // Header section, log, metadata, BAT, two blocks.
    let mut file = image.close().unwrap();
    assert_eq!(linerate_vhdx::ImageFile::length(&mut file).unwrap(), 6 * MIB);
}

#[test]
fn a_table_that_is_larger_than_one_log_entry_is_committed_in_parts() {
    // 70 pages of the table with 512 entries each, one block of each.
    let mut image = dynamic(70 * 512 * MIB);
    for page in 0..70 {
        image.write(page * 512 * MIB, &[page as u8 + 1; 512]).unwrap();
    }
    let file = image.close().unwrap();
    let mut image = VhdxImage::open(file, OpenMode::ReadWrite, GuidSource::from_seed(2)).unwrap();
    assert_eq!(image.allocated_blocks(), 70);
    let mut sector = [0; 512];
    image.read(69 * 512 * MIB, &mut sector).unwrap();
    assert_eq!(sector, [70; 512]);
}

#[test]
fn the_log_begins_again_at_its_start_and_is_replayed_if_the_image_was_not_closed() {
    let mut disk = CutDisk::new(Kind::File);
    let options = CreateOptions { block_bytes: 1 << 20, ..CreateOptions::dynamic(300 * MIB) };
    let mut image = VhdxImage::create(&mut disk, &options, GuidSource::from_seed(1)).unwrap();
    for block in 0..300 {
        image.write(block * MIB, &[block as u8; 512]).unwrap();
        image.flush().unwrap();
    }
    drop(image);
    let error = VhdxImage::open(&mut disk, OpenMode::ReadOnly, GuidSource::from_seed(2)).unwrap_err();
    assert!(matches!(error, VhdxError::NeedsReplay), "{error}");
    // The last change of the table is only in the log.
    disk.put(3 * MIB + 299 * 8, &[0; 8]);
    let mut image = VhdxImage::open(disk, OpenMode::ReadWrite, GuidSource::from_seed(2)).unwrap();
    assert_eq!(image.allocated_blocks(), 300);
    for block in 0..300 {
        let mut sector = [0; 512];
        image.read(block * MIB, &mut sector).unwrap();
        assert_eq!(sector, [block as u8; 512]);
    }
}

#[test]
fn a_session_that_only_reads_changes_nothing() {
    let mut image = dynamic(10 * MIB);
    image.write(0, &[1; 512]).unwrap();
    let file = image.close().unwrap();
    let before = file.bytes(0, 5 << 20);
    let mut image = VhdxImage::open(file, OpenMode::ReadWrite, GuidSource::from_seed(2)).unwrap();
    image.read(0, &mut [0; 512]).unwrap();
    image.flush().unwrap();
    assert!(image.close().unwrap().bytes(0, 5 << 20) == before);
}

#[test]
fn a_session_that_writes_changes_both_guids_once() {
    let mut image = dynamic(10 * MIB);
    image.write(0, &[1; 512]).unwrap();
    let guids = |disk: &CutDisk| {
        let headers = [disk.bytes(65536, 64), disk.bytes(131_072, 64)];
        let newest = headers.into_iter().max_by_key(|header| header[8..16].to_vec()).unwrap();
        (newest[16..32].to_vec(), newest[32..48].to_vec(), newest[8])
    };
    let file = image.close().unwrap();
    let (file_write, data_write, sequence) = guids(&file);
    let mut image = VhdxImage::open(file, OpenMode::ReadWrite, GuidSource::from_seed(2)).unwrap();
    // The block is there: nothing but the headers and the data change.
    image.write(512, &[2; 512]).unwrap();
    image.write(1024, &[2; 512]).unwrap();
    let (file_after, data_after, sequence_after) = guids(&image.close().unwrap());
    assert!(file_after != file_write && data_after != data_write);
    assert_eq!(sequence_after, sequence + 1);
}

#[test]
fn what_is_no_range_of_the_disk_is_refused() {
    let mut image = dynamic(10 * MIB);
    for (offset, len) in [(10 * MIB, 512), (10 * MIB - 512, 1024), (1, 512), (0, 511), (u64::MAX - 511, 512)]
    {
        let error = image.write(offset, &vec![0; len]).unwrap_err();
        assert!(
            matches!(error, VhdxError::OutOfRange { size_bytes, .. } if size_bytes == 10 * MIB),
            "{error}"
        );
        assert!(matches!(image.read(offset, &mut vec![0; len]), Err(VhdxError::OutOfRange { .. })));
    }
    let file = image.close().unwrap();
    let mut image = VhdxImage::open(file, OpenMode::ReadOnly, GuidSource::from_seed(2)).unwrap();
    assert!(matches!(image.write(0, &[0; 512]), Err(VhdxError::ReadOnly)));
}

#[test]
fn a_lun_without_room_for_a_block_says_so_and_keeps_the_others() {
    let options = CreateOptions { block_bytes: 1 << 20, ..CreateOptions::dynamic(10 * MIB) };
    let mut image =
        VhdxImage::create(CutDisk::new(Kind::Lun(6 * MIB)), &options, GuidSource::from_seed(1)).unwrap();
    image.write(0, &[1; 512]).unwrap();
    image.write(5 * MIB, &[2; 512]).unwrap();
    let error = image.write(7 * MIB, &[3; 512]).unwrap_err();
    assert_eq!(error.blame(), linerate_vhdx::Blame::Host);
    assert!(error.to_string().starts_with("the image's file cannot grow at byte 6291456"), "{error}");
    image.write(512, &[4; 512]).unwrap();
    let file = image.close().unwrap();
    let mut image = VhdxImage::open(file, OpenMode::ReadOnly, GuidSource::from_seed(2)).unwrap();
    let mut sectors = [0; 1024];
    image.read(0, &mut sectors).unwrap();
    assert_eq!((sectors[0], sectors[512], image.allocated_blocks()), (1, 4, 2));
}

#[test]
fn options_that_no_image_has_are_refused() {
    let options = CreateOptions { block_bytes: 3 << 20, ..CreateOptions::dynamic(10 * MIB) };
    let error = VhdxImage::create(CutDisk::new(Kind::File), &options, GuidSource::from_seed(1)).unwrap_err();
    assert_eq!(error.blame(), linerate_vhdx::Blame::User);
    assert!(error.to_string().contains("blocks of 3145728 bytes"), "{error}");
}

#[test]
fn a_caller_may_write_and_read_the_file_itself() {
    let mut file = tempfile::tempfile().unwrap();
    let options = CreateOptions { block_bytes: 1 << 20, ..CreateOptions::dynamic(4 * MIB) };
    let copy = file.try_clone().unwrap();
    let mut image = VhdxImage::create(copy, &options, GuidSource::from_seed(1)).unwrap();
    let none = image.extent(0, 4 * MIB).unwrap();
    assert_eq!((none.offset, none.bytes), (None, MIB));
    // Over the boundary of two blocks: two extents.
    let data: Vec<u8> = (0..8192_u32).map(|at| at as u8 | 1).collect();
    let (offset, mut at) = (MIB - 4096, 0);
    while at < data.len() {
        let extent = image.allocate_extent(offset + at as u64, (data.len() - at) as u64).unwrap();
        assert_eq!(extent.bytes, 4096);
        file.write_at(extent.offset.unwrap(), &data[at..at + 4096]).unwrap();
        at += 4096;
    }
    image.flush().unwrap();
    image.close().unwrap();
    let copy = file.try_clone().unwrap();
    let mut image = VhdxImage::open(copy, OpenMode::ReadOnly, GuidSource::from_seed(2)).unwrap();
    let mut found = vec![0; 3 * MIB as usize];
    image.read(0, &mut found).unwrap();
    assert!(found[offset as usize..][..8192] == data);
    assert!(found.iter().filter(|byte| **byte != 0).count() == 8192);
    let mut read = vec![0; 4096];
    file.read_at(image.extent(MIB, 4096).unwrap().offset.unwrap(), &mut read).unwrap();
    assert!(read == data[4096..]);
    assert!(matches!(image.extent(4 * MIB, 512), Err(VhdxError::OutOfRange { .. })));
    assert!(matches!(image.allocate_extent(0, 512), Err(VhdxError::ReadOnly)));
}

#[test]
fn a_new_image_is_none_until_it_is_finished() {
    let file = tempfile::tempfile().unwrap();
    let options = CreateOptions { preallocation: Preallocation::Full, ..CreateOptions::dynamic(3 * MIB) };
    let new = NewImage::begin(file.try_clone().unwrap(), &options, GuidSource::from_seed(1)).unwrap();
    assert_eq!(new.blocks(), 4 * MIB..36 * MIB);
    let open = || VhdxImage::open(file.try_clone().unwrap(), OpenMode::ReadOnly, GuidSource::from_seed(2));
    assert!(matches!(open(), Err(VhdxError::Foreign)));
    new.finish().unwrap().close().unwrap();
    assert!(open().unwrap().is_fixed());
}
