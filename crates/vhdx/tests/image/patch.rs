//! Changes of an image that its checksums confirm.

use crate::cut_disk::{CutDisk, Kind};
use linerate_vhdx::{CreateOptions, GuidSource, VhdxImage};

const MIB: u64 = 1 << 20;
pub(crate) const HEADERS: [u64; 2] = [64 << 10, 128 << 10];
pub(crate) const REGION_TABLES: [u64; 2] = [192 << 10, 256 << 10];
pub(crate) const LOG: u64 = MIB;
pub(crate) const METADATA: u64 = 2 * MIB;
pub(crate) const BAT: u64 = 3 * MIB;

/// A dynamic image of 64 blocks of 1 MiB; blocks 0 and 1 are allocated. Not closed: the log has an entry.
pub(crate) fn unclosed() -> CutDisk {
    let mut disk = CutDisk::new(Kind::File);
    let options = CreateOptions { block_bytes: 1 << 20, ..CreateOptions::dynamic(64 * MIB) };
    let mut image = VhdxImage::create(&mut disk, &options, GuidSource::from_seed(1)).unwrap();
    image.write(MIB - 512, &[1; 1024]).unwrap();
    image.flush().unwrap();
    drop(image);
    disk
}

/// The same image, closed.
pub(crate) fn closed() -> CutDisk {
    let image = VhdxImage::open(unclosed(), linerate_vhdx::OpenMode::ReadWrite, GuidSource::from_seed(2));
    image.unwrap().close().unwrap()
}

fn seal(disk: &mut CutDisk, offset: u64, len: usize) {
    let mut bytes = disk.bytes(offset, len);
    bytes[4..8].fill(0);
    disk.put(offset + 4, &crc32c::crc32c(&bytes).to_le_bytes());
}

/// Changes a field of both headers.
pub(crate) fn headers(disk: &mut CutDisk, at: u64, bytes: &[u8]) {
    for header in HEADERS {
        disk.put(header + at, bytes);
        seal(disk, header, 4096);
    }
}

/// Changes a field of both region tables.
pub(crate) fn region_tables(disk: &mut CutDisk, at: u64, bytes: &[u8]) {
    for table in REGION_TABLES {
        disk.put(table + at, bytes);
        seal(disk, table, 64 << 10);
    }
}

/// Changes a field of the first log entry.
pub(crate) fn log_entry(disk: &mut CutDisk, at: u64, bytes: &[u8]) {
    disk.put(LOG + at, bytes);
    let len = u32::from_le_bytes(disk.bytes(LOG + 8, 4).try_into().unwrap());
    seal(disk, LOG, len as usize);
}
