//! The database's file, in memory. All writes between two of its syncs form one [`Step`], which is written to the disk
//! later, in order.

use super::BLOCK_BYTES;
use bytes::Bytes;
use redb::StorageBackend;
use std::{
    collections::BTreeSet,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// The file. Cheap to clone: the database has one, the writer of its steps has another.
#[derive(Clone, Debug)]
pub(crate) struct Image(Arc<Mutex<Inner>>);

#[derive(Debug)]
struct Inner {
    bytes: Vec<u8>,
    max_bytes: u64,
    /// The file's length changed since the last step.
    is_resized: bool,
    /// Blocks that were written since the last step.
    dirty: BTreeSet<u64>,
    steps: Vec<Step>,
}

/// Writes that must be durable before the next step begins. Within a step there is no order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Step {
    /// The file's new length.
    pub(crate) len_bytes: Option<u64>,
    /// Runs of whole blocks.
    pub(crate) writes: Vec<(u64, Bytes)>,
}

impl Image {
    /// A file that holds `bytes` and grows up to `max_bytes`.
    pub(crate) fn new(bytes: Vec<u8>, max_bytes: u64) -> Self {
        let dirty = BTreeSet::new();
        Self(Arc::new(Mutex::new(Inner { bytes, max_bytes, is_resized: false, dirty, steps: Vec::new() })))
    }

    /// The steps since the last call.
    pub(crate) fn take_steps(&self) -> Vec<Step> {
        std::mem::take(&mut self.lock().steps)
    }

    /// Whether the file may still double its length; it always grows by doubling.
    pub(crate) fn may_grow(&self) -> bool {
        let inner = self.lock();
        inner.bytes.len() as u64 * 2 <= inner.max_bytes
    }

    /// All of the file.
    pub(crate) fn to_bytes(&self) -> Bytes {
        Bytes::copy_from_slice(&self.lock().bytes)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // No change here can panic half-way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn range(&self, offset: u64, len: usize) -> io::Result<std::ops::Range<usize>> {
        let start = usize::try_from(offset).map_err(io::Error::other)?;
        match start.checked_add(len) {
            Some(end) if end <= self.bytes.len() => Ok(start..end),
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// The blocks that were written since the last step, joined where they touch.
    fn take_writes(&mut self) -> Vec<(u64, Bytes)> {
        let mut runs: Vec<(u64, u64)> = Vec::new();
        for block in std::mem::take(&mut self.dirty) {
            match runs.last_mut() {
                Some((_, end)) if *end == block => *end += 1,
                _ => runs.push((block, block + 1)),
            }
        }
        let len = self.bytes.len() as u64;
        runs.into_iter()
            .filter_map(|(first, end)| {
                let (start, end) = (first * BLOCK_BYTES, (end * BLOCK_BYTES).min(len));
                // Blocks behind the end of a shrunken file need not be written.
                let bytes = self.bytes.get(start as usize..end as usize).filter(|bytes| !bytes.is_empty())?;
                let mut padded = bytes.to_vec();
                padded.resize(bytes.len().next_multiple_of(BLOCK_BYTES as usize), 0);
                Some((start, Bytes::from(padded)))
            })
            .collect()
    }
}

impl StorageBackend for Image {
    fn len(&self) -> io::Result<u64> {
        Ok(self.lock().bytes.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let inner = self.lock();
        let range = inner.range(offset, out.len())?;
        out.copy_from_slice(&inner.bytes[range]);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut inner = self.lock();
        if len > inner.max_bytes {
            return Err(io::ErrorKind::StorageFull.into());
        }
        inner.bytes.resize(usize::try_from(len).map_err(io::Error::other)?, 0);
        inner.is_resized = true;
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut inner = self.lock();
        let writes = inner.take_writes();
        let len_bytes = std::mem::take(&mut inner.is_resized).then_some(inner.bytes.len() as u64);
        if len_bytes.is_some() || !writes.is_empty() {
            inner.steps.push(Step { len_bytes, writes });
        }
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut inner = self.lock();
        let range = inner.range(offset, data.len())?;
        if !range.is_empty() {
            let (first, last) = (range.start as u64 / BLOCK_BYTES, (range.end as u64 - 1) / BLOCK_BYTES);
            inner.dirty.extend(first..=last);
        }
        inner.bytes[range].copy_from_slice(data);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_holds_what_was_written_until_then_in_whole_blocks() {
        let image = Image::new(Vec::new(), 1 << 20);
        image.set_len(5 * BLOCK_BYTES).unwrap();
        image.sync_data().unwrap();
        image.write(10, &[1; 4]).unwrap();
        image.write(BLOCK_BYTES - 1, &[2; 2]).unwrap();
        image.write(4 * BLOCK_BYTES, &[3]).unwrap();
        image.sync_data().unwrap();
        image.write(10, &[9; 4]).unwrap();
        let steps = image.take_steps();
        assert_eq!((steps.len(), steps[0].len_bytes), (2, Some(5 * BLOCK_BYTES)));
        let places: Vec<_> = steps[1].writes.iter().map(|(offset, bytes)| (*offset, bytes.len())).collect();
        assert_eq!(places, [(0, 8192), (16384, 4096)]);
        assert_eq!(steps[1].writes[0].1[10], 1, "as it stood at the sync");
    }

    #[test]
    fn the_file_ends_where_the_region_ends() {
        let image = Image::new(vec![0; 4096], 8192);
        assert!(image.may_grow());
        image.set_len(8192).unwrap();
        assert!(!image.may_grow());
        assert_eq!(image.set_len(8193).unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert!(image.write(8190, &[0; 3]).is_err());
    }
}
