//! What the writes of a virtual disk cost the file: the calls, in their order.

use crate::cut_disk::{CutDisk, Kind};
use linerate_vhdx::{CreateOptions, FileCall, GuidSource, OpenMode, Preallocation, TracedFile, VhdxImage};
use std::{cell::RefCell, rc::Rc};

const MIB: u64 = 1 << 20;
const HEADERS: [FileCall; 2] = [write(64 << 10, 4096), write(128 << 10, 4096)];
const BAT: FileCall = write(3 * MIB, 4096);

const fn write(offset: u64, bytes: u64) -> FileCall {
    FileCall::Write { offset, bytes }
}

type Calls = Rc<RefCell<Vec<FileCall>>>;

/// A new image of 8 blocks of 1 MiB, and the calls that its creation took.
fn image(kind: Kind, preallocation: Preallocation) -> (VhdxImage<impl linerate_vhdx::ImageFile>, Calls) {
    let calls = Calls::default();
    let seen = Rc::clone(&calls);
    let file = TracedFile::new(CutDisk::new(kind), move |call| seen.borrow_mut().push(call));
    let options = CreateOptions { block_bytes: 1 << 20, preallocation, ..CreateOptions::dynamic(8 * MIB) };
    (VhdxImage::create(file, &options, GuidSource::from_seed(1)).unwrap(), calls)
}

#[test]
fn the_first_write_of_a_block_grows_the_file_and_its_flush_logs_the_table() {
    let (mut image, calls) = image(Kind::File, Preallocation::Off);
    calls.take();
    image.write(0, &vec![1; 65536]).unwrap();
    let (grow, data) = (FileCall::SetLength { bytes: 5 * MIB }, write(4 * MIB, 65536));
    assert_eq!(calls.take(), [HEADERS[0], FileCall::Flush, grow, data]);
    image.flush().unwrap();
    let log = write(MIB, 8192);
    let first = [FileCall::Flush, log, FileCall::Flush, HEADERS[1], FileCall::Flush, BAT];
    assert_eq!(calls.take(), first);
    // In a block that is there: data, and one flush.
    image.write(65536, &vec![1; 65536]).unwrap();
    image.flush().unwrap();
    assert_eq!(calls.take(), [write(4 * MIB + 65536, 65536), FileCall::Flush]);
    // The header names the log already.
    image.write(MIB, &vec![1; 65536]).unwrap();
    image.flush().unwrap();
    let (grow, data) = (FileCall::SetLength { bytes: 6 * MIB }, write(5 * MIB, 65536));
    assert_eq!(calls.take(), [grow, data, FileCall::Flush, write(MIB + 8192, 8192), FileCall::Flush, BAT]);
    image.close().unwrap();
    let close = [FileCall::Flush, FileCall::Flush, HEADERS[0], FileCall::Flush, HEADERS[1], FileCall::Flush];
    assert_eq!(calls.take(), close);
}

#[test]
fn an_entry_that_would_cross_the_end_of_the_log_begins_at_its_start() {
    let calls = Calls::default();
    let seen = Rc::clone(&calls);
    let mut disk = CutDisk::new(Kind::File);
    let file = TracedFile::new(&mut disk, move |call| seen.borrow_mut().push(call));
    let options = CreateOptions { block_bytes: 1 << 20, ..CreateOptions::dynamic(1024 * MIB) };
    let mut image = VhdxImage::create(file, &options, GuidSource::from_seed(1)).unwrap();
    // Two pages of the table are three sectors of the log, one page is two: no entry ends where the log does.
    image.write(600 * MIB, &[1; 4096]).unwrap();
    for block in 0..140 {
        image.write(block * MIB, &[1; 4096]).unwrap();
        image.flush().unwrap();
    }
    drop(image);
    let entries = calls.take().into_iter().filter_map(|call| match call {
        FileCall::Write { offset, bytes } if (MIB..2 * MIB).contains(&offset) => Some((offset, bytes)),
        _ => None,
    });
    let entries: Vec<_> = entries.collect();
    assert!(entries.iter().all(|(offset, bytes)| offset + bytes <= 2 * MIB), "{entries:?}");
    assert_eq!(entries.iter().filter(|(offset, _)| *offset == MIB).count(), 2, "{entries:?}");
    // It was not closed, so the log is replayed.
    let mut image = VhdxImage::open(&mut disk, OpenMode::ReadWrite, GuidSource::from_seed(2)).unwrap();
    let mut found = [0; 4096];
    for block in (0..140).chain([600]) {
        image.read(block * MIB, &mut found).unwrap();
        assert_eq!(found, [1; 4096], "block {block}");
    }
}

#[test]
fn what_a_replay_writes_is_durable_before_the_header_forgets_the_log() {
    let mut disk = CutDisk::new(Kind::File);
    let options = CreateOptions { block_bytes: 1 << 20, ..CreateOptions::dynamic(8 * MIB) };
    let mut image = VhdxImage::create(&mut disk, &options, GuidSource::from_seed(1)).unwrap();
    image.write(0, &[1; 4096]).unwrap();
    image.flush().unwrap();
    // Not closed: the log stays.
    drop(image);
    let calls = Calls::default();
    let seen = Rc::clone(&calls);
    let file = TracedFile::new(&mut disk, move |call| seen.borrow_mut().push(call));
    VhdxImage::open(file, OpenMode::ReadWrite, GuidSource::from_seed(2)).unwrap();
    let replay = [HEADERS[0], FileCall::Flush, BAT, FileCall::Flush, HEADERS[1], FileCall::Flush];
    let written = calls.take().into_iter().filter(|call| !matches!(call, FileCall::Read { .. }));
    assert_eq!(written.collect::<Vec<_>>(), replay);
}

#[test]
fn a_fixed_image_takes_data_only() {
    let (mut image, calls) = image(Kind::File, Preallocation::Length);
    calls.take();
    image.write(0, &vec![1; 65536]).unwrap();
    image.write(7 * MIB, &vec![1; 65536]).unwrap();
    image.flush().unwrap();
    let data = [write(4 * MIB, 65536), write(11 * MIB, 65536)];
    assert_eq!(calls.take(), [HEADERS[0], FileCall::Flush, data[0], data[1], FileCall::Flush]);
}

#[test]
fn a_full_preallocation_writes_zeros_from_the_first_block_to_the_last() {
    let (_, calls) = image(Kind::File, Preallocation::Full);
    let zeros: Vec<_> = calls
        .take()
        .into_iter()
        .filter(|call| matches!(call, FileCall::Write { offset, .. } if *offset >= 4 * MIB))
        .collect();
    assert_eq!(zeros, (4..12).map(|mib| write(mib * MIB, MIB)).collect::<Vec<_>>());
    let (_, calls) = image(Kind::File, Preallocation::Length);
    assert!(
        !calls.take().iter().any(|call| matches!(call, FileCall::Write { offset, .. } if *offset >= 4 * MIB))
    );
}

#[test]
fn on_a_lun_a_new_block_is_filled_around_its_first_data() {
    let (mut image, calls) = image(Kind::Lun(20 * MIB), Preallocation::Off);
    calls.take();
    image.write(65536, &vec![1; 65536]).unwrap();
    let filled =
        [write(4 * MIB, 65536), write(4 * MIB + 131_072, MIB - 131_072), write(4 * MIB + 65536, 65536)];
    assert_eq!(calls.take()[2..], filled);
}
