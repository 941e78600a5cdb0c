//! A file or a LUN in memory that can lose its power: then any part of what was written since the last flush is lost,
//! sector by sector.

use linerate_sim::Rng;
use linerate_vhdx::ImageFile;
use std::{collections::BTreeMap, io, sync::Arc};

const CHUNK_BYTES: u64 = 64 << 10;
/// What a cut loses or keeps as a whole.
const SECTOR_BYTES: usize = 512;

/// What the image is stored on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A file that is empty at first and grows with zeros.
    File,
    /// A LUN of this capacity in bytes, full of old data.
    Lun(u64),
}

/// What the disk does wrong, to show that the tests notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    /// Writes into these bytes are lost.
    Loses {
        from: u64,
        to: u64,
    },
    /// A flush makes nothing durable.
    IgnoresFlush,
}

/// Bytes by their places. What was never written is zeros in a file and old data on a LUN.
#[derive(Clone, Debug)]
struct Content {
    kind: Kind,
    length: u64,
    /// Shared between copies until one of them is written.
    chunks: BTreeMap<u64, Arc<Vec<u8>>>,
}

#[derive(Clone, Debug)]
enum Change {
    Write { offset: u64, data: Vec<u8> },
    Length(u64),
}

/// The disk. Cheap to read, and to write where it holds something.
#[derive(Clone, Debug)]
pub(crate) struct CutDisk {
    now: Content,
    durable: Content,
    /// Since the last flush.
    pending: Vec<Change>,
    fault: Fault,
    /// Calls that write until the power is cut; None: it is not.
    calls_left: Option<u64>,
    /// All calls so far.
    pub(crate) calls: u64,
}

fn old_data(chunk: u64) -> u8 {
    0xA0 | (chunk & 0xf) as u8
}

impl Content {
    fn new(kind: Kind) -> Self {
        let length = match kind {
            Kind::File => 0,
            Kind::Lun(capacity) => capacity,
        };
        Self { kind, length, chunks: BTreeMap::new() }
    }

    /// Calls `each` with every chunk of a range: its number, the part in it, and the part of the caller's bytes.
    fn parts(
        offset: u64,
        len: usize,
    ) -> impl Iterator<Item = (u64, std::ops::Range<usize>, std::ops::Range<usize>)> {
        let end = offset + len as u64;
        (offset / CHUNK_BYTES..end.div_ceil(CHUNK_BYTES)).map(move |chunk| {
            let begin = chunk * CHUNK_BYTES;
            let (from, to) = (offset.max(begin), end.min(begin + CHUNK_BYTES));
            let inside = (from - begin) as usize..(to - begin) as usize;
            (chunk, inside, (from - offset) as usize..(to - offset) as usize)
        })
    }

    fn read(&self, offset: u64, into: &mut [u8]) {
        for (chunk, inside, outside) in Self::parts(offset, into.len()) {
            match (self.chunks.get(&chunk), self.kind) {
                (Some(bytes), _) => into[outside].copy_from_slice(&bytes[inside]),
                (None, Kind::File) => into[outside].fill(0),
                (None, Kind::Lun(_)) => into[outside].fill(old_data(chunk)),
            }
        }
    }

    fn write(&mut self, offset: u64, data: &[u8]) {
        for (chunk, inside, outside) in Self::parts(offset, data.len()) {
            let data = &data[outside];
            let is_hole = self.kind == Kind::File && !self.chunks.contains_key(&chunk);
            if is_hole && data.iter().all(|byte| *byte == 0) {
                continue;
            }
            let bytes = self.chunks.entry(chunk).or_insert_with(|| {
                let old = if self.kind == Kind::File { 0 } else { old_data(chunk) };
                Arc::new(vec![old; CHUNK_BYTES as usize])
            });
            Arc::make_mut(bytes)[inside].copy_from_slice(data);
        }
    }

    fn set_length(&mut self, length: u64) {
        if self.kind != Kind::File {
            return;
        }
        if length < self.length {
            self.chunks.split_off(&length.div_ceil(CHUNK_BYTES));
            if let Some(last) = self.chunks.get_mut(&(length / CHUNK_BYTES)) {
                Arc::make_mut(last)[(length % CHUNK_BYTES) as usize..].fill(0);
            }
        }
        self.length = length;
    }

    /// Drops what is beyond the end.
    fn cut_to_length(&mut self) {
        let length = self.length;
        self.length = u64::MAX;
        self.set_length(length);
        self.length = length;
    }

    fn apply(&mut self, change: &Change) {
        match change {
            Change::Write { offset, data } => self.write(*offset, data),
            Change::Length(length) => self.set_length(*length),
        }
    }
}

impl CutDisk {
    pub(crate) fn new(kind: Kind) -> Self {
        let content = Content::new(kind);
        Self {
            now: content.clone(),
            durable: content,
            pending: Vec::new(),
            fault: Fault::None,
            calls_left: None,
            calls: 0,
        }
    }

    pub(crate) fn set_fault(&mut self, fault: Fault) {
        self.fault = fault;
    }

    /// The power is cut at the write, flush or change of length after this many.
    pub(crate) fn cut_after(&mut self, calls: u64) {
        self.calls_left = Some(calls);
    }

    /// The power is cut now, unless it was, and is back.
    pub(crate) fn after_cut(self, rng: &mut Rng) -> Self {
        let mut content = self.durable;
        let lengths = self.pending.iter().filter(|change| matches!(change, Change::Length(_))).count();
        // A file system keeps the order of changes of the length.
        let mut lengths_left = rng.range(0, lengths as u64);
        let kept = [0, 100, rng.range(1, 99) as u32][rng.range(0, 2) as usize];
        for change in &self.pending {
            match change {
                Change::Write { offset, data } => {
                    for (at, sector) in data.chunks(SECTOR_BYTES).enumerate() {
                        if rng.chance(kept) {
                            content.write(offset + (at * SECTOR_BYTES) as u64, sector);
                        }
                    }
                }
                Change::Length(length) if lengths_left > 0 => {
                    content.set_length(*length);
                    lengths_left -= 1;
                }
                Change::Length(_) => {}
            }
        }
        // A sector beyond the end is lost, also if the disk has kept it.
        content.cut_to_length();
        Self {
            now: content.clone(),
            durable: content,
            pending: Vec::new(),
            fault: self.fault,
            calls_left: None,
            calls: 0,
        }
    }

    /// Changes bytes behind the back of the image.
    pub(crate) fn put(&mut self, offset: u64, bytes: &[u8]) {
        for content in [&mut self.now, &mut self.durable] {
            content.write(offset, bytes);
        }
    }

    /// Changes the length behind the back of the image.
    pub(crate) fn truncate(&mut self, length: u64) {
        for content in [&mut self.now, &mut self.durable] {
            content.set_length(length);
        }
    }

    /// The bytes of a range, whether or not they are durable.
    pub(crate) fn bytes(&self, offset: u64, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.now.read(offset, &mut bytes);
        bytes
    }

    /// Counts a call. Err: the power was cut before, or is cut now.
    fn call(&mut self) -> io::Result<()> {
        self.calls += 1;
        match &mut self.calls_left {
            None => Ok(()),
            Some(0) => Err(io::Error::other("the power was cut")),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
        }
    }

    fn is_off(&self) -> bool {
        self.calls_left == Some(0)
    }

    fn change(&mut self, change: Change) {
        self.now.apply(&change);
        self.pending.push(change);
    }
}

impl ImageFile for CutDisk {
    fn length(&mut self) -> io::Result<u64> {
        Ok(self.now.length)
    }

    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.calls += 1;
        if self.is_off() {
            return Err(io::Error::other("the power was cut"));
        }
        if offset + into.len() as u64 > self.now.length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.now.read(offset, into);
        Ok(())
    }

    fn write_at(&mut self, offset: u64, data: &[u8]) -> io::Result<()> {
        let is_late = self.is_off();
        let called = self.call();
        assert!(offset + data.len() as u64 <= self.now.length, "a write beyond the end");
        let is_lost = matches!(self.fault, Fault::Loses { from, to } if offset >= from && offset + data.len() as u64 <= to);
        // A write that the cut interrupts may be on the disk in part.
        if !is_late && !is_lost {
            self.change(Change::Write { offset, data: data.to_vec() });
        }
        called
    }

    fn flush(&mut self) -> io::Result<()> {
        self.call()?;
        if self.fault != Fault::IgnoresFlush {
            for change in std::mem::take(&mut self.pending) {
                self.durable.apply(&change);
            }
        }
        Ok(())
    }

    fn set_length(&mut self, length_bytes: u64) -> io::Result<()> {
        self.call()?;
        match self.now.kind {
            Kind::Lun(capacity) if length_bytes > capacity => Err(io::ErrorKind::StorageFull.into()),
            Kind::Lun(_) => Ok(()),
            Kind::File => {
                self.change(Change::Length(length_bytes));
                Ok(())
            }
        }
    }

    fn grows_with_zeros(&self) -> bool {
        self.now.kind == Kind::File
    }
}
