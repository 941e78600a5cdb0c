//! A VHDX image with changes that the input names: an open ends with an error or with an image that keeps what is
//! written to it.

use linerate_vhdx::{CreateOptions, GuidSource, ImageFile, OpenMode, VhdxImage};
use std::{collections::BTreeMap, io, sync::OnceLock};

const MIB: u64 = 1 << 20;
const PAGE_BYTES: u64 = 4096;
/// The file does not grow further.
const LENGTH_MAX: u64 = 600 * MIB;
/// Reads and writes of one image: far more than a sound one of this length needs.
const CALLS_MAX: u64 = 20_000;
/// Where the structures of the image are, and where the input's changes begin.
const STRUCTURES: [u64; 9] =
    [0, 64 << 10, 128 << 10, 192 << 10, 256 << 10, MIB, 2 * MIB, 2 * MIB + (64 << 10), 3 * MIB];
/// Structures with a checksum: the place and the length of each.
const SEALED: [(u64, usize); 5] =
    [(64 << 10, 4096), (128 << 10, 4096), (192 << 10, 65_536), (256 << 10, 65_536), (MIB, 8192)];

/// A file of pages; those of zeros take no memory.
#[derive(Clone, Default)]
struct PageFile {
    pages: BTreeMap<u64, Box<[u8; PAGE_BYTES as usize]>>,
    length: u64,
    calls: u64,
}

impl PageFile {
    /// Calls `each` with the page, the place in it, and the place in the caller's bytes.
    fn parts(offset: u64, len: usize, mut each: impl FnMut(u64, usize, std::ops::Range<usize>)) {
        let mut done = 0;
        while done < len {
            let at = offset + done as u64;
            let within = (at % PAGE_BYTES) as usize;
            let count = (PAGE_BYTES as usize - within).min(len - done);
            each(at / PAGE_BYTES, within, done..done + count);
            done += count;
        }
    }

    fn put(&mut self, offset: u64, data: &[u8]) {
        Self::parts(offset, data.len(), |page, within, range| {
            let data = &data[range];
            if self.pages.contains_key(&page) || data.iter().any(|byte| *byte != 0) {
                let bytes = self.pages.entry(page).or_insert_with(|| Box::new([0; PAGE_BYTES as usize]));
                bytes[within..within + data.len()].copy_from_slice(data);
            }
        });
    }

    fn get(&self, offset: u64, into: &mut [u8]) {
        Self::parts(offset, into.len(), |page, within, range| match self.pages.get(&page) {
            Some(bytes) => {
                let len = range.len();
                into[range].copy_from_slice(&bytes[within..within + len]);
            }
            None => into[range].fill(0),
        });
    }

    fn seal(&mut self, offset: u64, len: usize) {
        let mut bytes = vec![0; len];
        self.get(offset, &mut bytes);
        bytes[4..8].fill(0);
        self.put(offset + 4, &crc32c::crc32c(&bytes).to_le_bytes());
    }

    fn call(&mut self) {
        self.calls += 1;
        assert!(self.calls < CALLS_MAX, "the image keeps its reader busy");
    }
}

impl ImageFile for PageFile {
    fn length(&mut self) -> io::Result<u64> {
        Ok(self.length)
    }

    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.call();
        if offset.checked_add(into.len() as u64).is_none_or(|end| end > self.length) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.get(offset, into);
        Ok(())
    }

    fn write_at(&mut self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.call();
        let end = offset.checked_add(data.len() as u64);
        assert!(end.is_some_and(|end| end <= self.length), "a write beyond the end of the file");
        self.put(offset, data);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn set_length(&mut self, length_bytes: u64) -> io::Result<()> {
        if length_bytes > LENGTH_MAX {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.length = length_bytes;
        Ok(())
    }
}

/// An image with two blocks that was not closed, and the same image closed.
fn images() -> &'static [PageFile; 2] {
    static IMAGES: OnceLock<[PageFile; 2]> = OnceLock::new();
    IMAGES.get_or_init(|| {
        let mut file = PageFile::default();
        let options = CreateOptions { block_bytes: 1 << 20, ..CreateOptions::dynamic(64 * MIB) };
        let mut image = VhdxImage::create(&mut file, &options, GuidSource::from_seed(1)).expect("an image");
        image.write(MIB - 512, &[1; 1024]).expect("written");
        image.flush().expect("flushed");
        drop(image);
        let closed = VhdxImage::open(file.clone(), OpenMode::ReadWrite, GuidSource::from_seed(2));
        [file, closed.expect("opened").close().expect("closed")]
    })
}

/// The input: which image, which checksums are made right again, then changes: structure, place (16 bits), length, bytes.
pub fn vhdx_image(data: &[u8]) {
    let Some(([choice, seals], mut changes)) = data.split_first_chunk() else { return };
    let mut file = images()[usize::from(choice & 1)].clone();
    if choice & 2 != 0 {
        file.length = u64::from(*seals) * MIB / 2;
    }
    while let Some(([structure, low, high, len], rest)) = changes.split_first_chunk() {
        let (bytes, rest) = rest.split_at(usize::from(*len).min(rest.len()));
        let place = STRUCTURES[usize::from(*structure) % STRUCTURES.len()];
        file.put(place + u64::from(u16::from_le_bytes([*low, *high])), bytes);
        changes = rest;
    }
    for (number, (place, len)) in SEALED.into_iter().enumerate() {
        if seals & 1 << number != 0 {
            file.seal(place, len);
        }
    }
    file.calls = 0;
    let Ok(mut image) = VhdxImage::open(file, OpenMode::ReadWrite, GuidSource::from_seed(3)) else { return };
    let sector_bytes = u64::from(image.logical_sector_bytes());
    let last = image.size_bytes() - sector_bytes;
    let middle = last / 2 / sector_bytes * sector_bytes;
    let sector = vec![0xC3; sector_bytes as usize];
    let mut found = vec![0; sector_bytes as usize];
    for offset in [0, middle, last] {
        if image.read(offset, &mut found).is_err() || image.write(offset, &sector).is_err() {
            return;
        }
    }
    let Ok(file) = image.close() else { return };
    let mut again =
        VhdxImage::open(file, OpenMode::ReadOnly, GuidSource::from_seed(4)).expect("what we closed");
    for offset in [0, middle, last] {
        again.read(offset, &mut found).expect("what we wrote");
        assert_eq!(found, sector, "at {offset}");
    }
}
