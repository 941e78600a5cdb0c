//! Files.

use super::Bench;
use linerate_io::{Driver, FileOptions, Handle, Region, RegionId, Seg, space::file_space};
use std::{io::ErrorKind, net::TcpStream, sync::Arc};
use tempfile::TempDir;

const SIZE_BYTES: u64 = 1 << 20;

/// A new file of [`SIZE_BYTES`], and an attached region of the same size.
struct Desk {
    dir: TempDir,
    file: Handle,
    region: Arc<Region>,
    id: RegionId,
}

impl Desk {
    fn new<D: Driver<Socket = TcpStream>>(bench: &mut Bench<D>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let options =
            FileOptions { write: true, create: true, size_bytes: Some(SIZE_BYTES), ..FileOptions::default() };
        let file = bench.driver.open(&dir.path().join("disk"), &options).unwrap();
        let region = Region::anonymous(SIZE_BYTES).unwrap();
        let id = bench.driver.attach(region.clone());
        Self { dir, file, region, id }
    }

    fn seg(&self, offset: u64, len: u32) -> Seg {
        Seg { region: self.id, offset, len }
    }
}

pub(crate) fn files_keep_what_is_written<D: Driver<Socket = TcpStream>>(mut bench: Bench<D>) {
    let desk = Desk::new(&mut bench);
    assert_eq!(bench.driver.file_size(desk.file).unwrap(), SIZE_BYTES);
    desk.region.write(0, b"first");
    desk.region.write(100, b"second");
    for durable in [false, true] {
        let segs = [desk.seg(0, 5), desk.seg(100, 6)];
        bench.driver.write_at(desk.file, 1, &segs, 5000, durable);
        assert_eq!(bench.filed(desk.file, 1).unwrap(), 11);
        bench.driver.sync(desk.file, 2);
        assert_eq!(bench.filed(desk.file, 2).unwrap(), 0);
        bench.driver.read_at(desk.file, 3, &[desk.seg(200, 3), desk.seg(300, 8)], 5000);
        assert_eq!(bench.filed(desk.file, 3).unwrap(), 11);
        assert_eq!(desk.region.compare(200, b"fir"), None);
        assert_eq!(desk.region.compare(300, b"stsecond"), None);
    }
    let on_disk = std::fs::read(desk.dir.path().join("disk")).unwrap();
    assert_eq!(&on_disk[4999..5012], b"\0firstsecond\0");
}

pub(crate) fn reads_end_at_the_end_of_the_file<D: Driver<Socket = TcpStream>>(mut bench: Bench<D>) {
    let desk = Desk::new(&mut bench);
    for (offset, expected) in [(SIZE_BYTES - 100, 100), (SIZE_BYTES, 0), (SIZE_BYTES - 512, 512)] {
        bench.driver.read_at(desk.file, offset, &[desk.seg(0, 512)], offset);
        assert_eq!(bench.filed(desk.file, offset).unwrap(), expected);
    }
}

pub(crate) fn discarded_bytes_read_as_zeros<D: Driver<Socket = TcpStream>>(mut bench: Bench<D>) {
    let desk = Desk::new(&mut bench);
    desk.region.fill(0, 65_536, &[0xAB]);
    bench.driver.write_at(desk.file, 0, &[desk.seg(0, 65_536)], 0, false);
    bench.filed(desk.file, 0).unwrap();
    bench.driver.discard(desk.file, 1, 4096, 8192);
    bench.filed(desk.file, 1).unwrap();
    assert_eq!(bench.driver.file_size(desk.file).unwrap(), SIZE_BYTES);
    bench.driver.read_at(desk.file, 2, &[desk.seg(100_000, 65_536)], 0);
    assert_eq!(bench.filed(desk.file, 2).unwrap(), 65_536);
    assert_eq!(desk.region.compare(100_000, &[0xAB; 4096]), None);
    assert_eq!(desk.region.compare(104_096, &[0; 8192]), None);
    assert_eq!(desk.region.compare(112_288, &[0xAB; 1000]), None);
}

pub(crate) fn allocated_files_keep_their_space_and_their_bytes<D: Driver<Socket = TcpStream>>(
    mut bench: Bench<D>,
) {
    let desk = Desk::new(&mut bench);
    let path = desk.dir.path().join("disk");
    let allocated = || file_space(&path).unwrap().unwrap().allocated_bytes;
    desk.region.fill(0, 65_536, &[0xAB]);
    bench.driver.write_at(desk.file, 0, &[desk.seg(0, 8192)], 4096, false);
    bench.filed(desk.file, 0).unwrap();
    bench.driver.allocate(desk.file, 1, 0, 65_536);
    match bench.filed(desk.file, 1) {
        Err(error) if error.kind() == ErrorKind::Unsupported => return eprintln!("skipped: no fallocate"),
        result => assert_eq!(result.unwrap(), 0),
    }
    assert!((65_536..SIZE_BYTES).contains(&allocated()), "{}", allocated());
    // Opened to stay allocated, it does, and discarded ranges read as zeros nevertheless.
    let options = FileOptions { write: true, allocate: true, ..FileOptions::default() };
    let whole = bench.driver.open(&path, &options).unwrap();
    assert!(allocated() >= SIZE_BYTES);
    bench.driver.discard(whole, 2, 8192, 32_768);
    match bench.filed(whole, 2) {
        Err(error) if error.kind() == ErrorKind::Unsupported => eprintln!("no zeroing without giving back"),
        result => _ = result.unwrap(),
    }
    assert!(allocated() >= SIZE_BYTES);
    bench.driver.read_at(whole, 3, &[desk.seg(100_000, 8192)], 0);
    assert_eq!(bench.filed(whole, 3).unwrap(), 8192);
    assert_eq!(desk.region.compare(100_000, &[0; 4096]), None);
    assert_eq!(desk.region.compare(104_096, &[0xAB; 4096]), None);
}

pub(crate) fn file_errors_come_back_with_their_tag<D: Driver<Socket = TcpStream>>(mut bench: Bench<D>) {
    let desk = Desk::new(&mut bench);
    let path = desk.dir.path().join("disk");
    let read_only = bench.driver.open(&path, &FileOptions::default()).unwrap();
    bench.driver.write_at(read_only, 77, &[desk.seg(0, 512)], 0, false);
    assert!(bench.filed(read_only, 77).is_err());
    bench.driver.read_at(desk.file, 78, &[desk.seg(SIZE_BYTES, 1)], 0);
    assert_eq!(bench.filed(desk.file, 78).unwrap_err().kind(), ErrorKind::InvalidInput);
    let missing = bench.driver.open(&desk.dir.path().join("missing"), &FileOptions::default());
    assert_eq!(missing.unwrap_err().kind(), ErrorKind::NotFound);
    let exclusive = FileOptions { write: true, create: true, exclusive: true, ..FileOptions::default() };
    assert_eq!(bench.driver.open(&path, &exclusive).unwrap_err().kind(), ErrorKind::AlreadyExists);
    let directory = bench.driver.open(desk.dir.path(), &FileOptions::default());
    assert_eq!(directory.unwrap_err().kind(), ErrorKind::InvalidInput);
}

pub(crate) fn a_closed_file_finishes_its_operations<D: Driver<Socket = TcpStream>>(mut bench: Bench<D>) {
    let desk = Desk::new(&mut bench);
    desk.region.fill(0, SIZE_BYTES, &[0x5A]);
    bench.driver.write_at(desk.file, 1, &[desk.seg(0, SIZE_BYTES as u32)], 0, true);
    bench.driver.close(desk.file);
    assert_eq!(bench.filed(desk.file, 1).unwrap(), SIZE_BYTES as usize);
    let on_disk = std::fs::read(desk.dir.path().join("disk")).unwrap();
    assert!(on_disk.iter().all(|&byte| byte == 0x5A));
}

pub(crate) fn durable_writes_in_flight_together_all_complete<D: Driver<Socket = TcpStream>>(
    mut bench: Bench<D>,
) {
    const WRITES: u64 = 64;
    let desk = Desk::new(&mut bench);
    for round in 0..20_u64 {
        for tag in 0..WRITES {
            desk.region.write(tag * 512, &(round << 32 | tag).to_be_bytes());
            bench.driver.write_at(desk.file, tag, &[desk.seg(tag * 512, 512)], tag * 512, true);
        }
        for tag in 0..WRITES {
            assert_eq!(bench.filed(desk.file, tag).unwrap(), 512);
        }
        let on_disk = std::fs::read(desk.dir.path().join("disk")).unwrap();
        for tag in 0..WRITES {
            let at = tag as usize * 512;
            assert_eq!(on_disk[at..at + 8], (round << 32 | tag).to_be_bytes(), "round {round}, write {tag}");
        }
    }
    // Those in flight complete although the file is closed, and the file can be locked again afterwards.
    for tag in 0..WRITES {
        bench.driver.write_at(desk.file, tag, &[desk.seg(0, 512)], tag * 512, true);
    }
    bench.driver.close(desk.file);
    for tag in 0..WRITES {
        assert_eq!(bench.filed(desk.file, tag).unwrap(), 512);
    }
    let options = FileOptions { write: true, lock: true, ..FileOptions::default() };
    bench.driver.open(&desk.dir.path().join("disk"), &options).unwrap();
}

pub(crate) fn many_file_operations_at_once<D: Driver<Socket = TcpStream>>(mut bench: Bench<D>) {
    const OPERATIONS: u64 = 2000;
    let desk = Desk::new(&mut bench);
    for tag in 0..OPERATIONS {
        desk.region.write(tag * 512, &tag.to_be_bytes());
        bench.driver.write_at(desk.file, tag, &[desk.seg(tag * 512, 512)], tag * 512, tag % 500 == 0);
    }
    for tag in 0..OPERATIONS {
        assert_eq!(bench.filed(desk.file, tag).unwrap(), 512);
    }
    desk.region.discard(0, SIZE_BYTES);
    for tag in 0..OPERATIONS {
        bench.driver.read_at(desk.file, tag, &[desk.seg(tag * 512, 512)], tag * 512);
    }
    for tag in 0..OPERATIONS {
        assert_eq!(bench.filed(desk.file, tag).unwrap(), 512);
        assert_eq!(desk.region.compare(tag * 512, &tag.to_be_bytes()), None);
    }
}
