//! The two copies of the database's file on the disk: every step is written to both, and one of them is enough.

use super::{BLOCK_BYTES, image::Step, seal, unseal};
use crate::disk::{Disk, DiskError};
use bytes::{Bytes, BytesMut};
use futures::future::{join, join_all, try_join_all};
use std::rc::Rc;

const MAGIC: [u8; 8] = *b"LNRTMETA";
const READ_BYTES: u64 = 1 << 20;

/// One copy: a head of one block, then the file.
#[derive(Clone)]
pub(crate) struct Region {
    disk: Rc<dyn Disk>,
    offset: u64,
}

impl Region {
    pub(crate) fn new(disk: Rc<dyn Disk>, offset: u64) -> Self {
        Self { disk, offset }
    }

    /// The file of this copy; None if the copy was never completed, or is unreadable or damaged.
    pub(crate) async fn read(&self, max_bytes: u64) -> Result<Option<Vec<u8>>, DiskError> {
        let head = match self.disk.read(self.offset, BytesMut::zeroed(BLOCK_BYTES as usize)).await {
            Ok(head) => head,
            Err(DiskError::Unreadable { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let len = unseal(MAGIC, &head).and_then(|body| Some(u64::from_le_bytes(body.try_into().ok()?)));
        // Length 0: the copy was not completed.
        let Some(len) = len.filter(|len| (1..=max_bytes).contains(len)) else { return Ok(None) };
        let mut bytes = Vec::with_capacity(len as usize);
        while (bytes.len() as u64) < len {
            let left = len - bytes.len() as u64;
            let piece = BytesMut::zeroed(left.min(READ_BYTES).next_multiple_of(BLOCK_BYTES) as usize);
            match self.disk.read(self.offset + BLOCK_BYTES + bytes.len() as u64, piece).await {
                Ok(piece) => bytes.extend(piece.iter().take(left as usize)),
                Err(DiskError::Unreadable { .. }) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        Ok(Some(bytes))
    }

    /// Makes this copy hold exactly `file`. Until that is done the copy is invalid.
    pub(crate) async fn rewrite(&self, file: Bytes) -> Result<(), DiskError> {
        self.write_head(0).await?;
        let len = file.len() as u64;
        let mut writes = Vec::new();
        for start in (0..file.len()).step_by(READ_BYTES as usize) {
            let piece = file.slice(start..file.len().min(start + READ_BYTES as usize));
            let mut padded = BytesMut::from(piece.as_ref());
            padded.resize(piece.len().next_multiple_of(BLOCK_BYTES as usize), 0);
            writes.push(self.disk.write(self.offset + BLOCK_BYTES + start as u64, padded.freeze(), false));
        }
        try_join_all(writes).await?;
        self.disk.flush().await?;
        self.write_head(len).await
    }

    async fn write_head(&self, len: u64) -> Result<(), DiskError> {
        self.disk.write(self.offset, seal(MAGIC, &len.to_le_bytes()), true).await
    }

    async fn write(&self, step: Step) -> Result<(), DiskError> {
        let mut writes = Vec::new();
        for (offset, bytes) in step.writes {
            writes.push(self.disk.write(self.offset + BLOCK_BYTES + offset, bytes, false));
        }
        let head = match step.len_bytes {
            Some(len) => self.write_head(len).await,
            None => Ok(()),
        };
        join_all(writes).await.into_iter().collect::<Result<Vec<_>, _>>()?;
        head
    }
}

/// Both copies.
#[derive(Clone)]
pub(crate) struct Mirror {
    pub(crate) copies: [Region; 2],
    disk: Rc<dyn Disk>,
}

impl Mirror {
    pub(crate) fn new(disk: Rc<dyn Disk>, offsets: [u64; 2]) -> Self {
        Self { copies: offsets.map(|offset| Region::new(Rc::clone(&disk), offset)), disk }
    }

    /// Makes a step durable; it may be repeated. When it returns, no operation is in progress.
    pub(crate) async fn apply(&self, step: Step) -> Result<(), DiskError> {
        let [one, other] = &self.copies;
        let (first, second) = join(one.write(step.clone()), other.write(step)).await;
        first.and(second)?;
        self.disk.flush().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        disk::{FaultyDisk, MemoryDisk},
        runtime::Executor,
    };

    #[test]
    fn a_copy_is_the_old_file_or_the_new_one_or_none() {
        let len = 2 * READ_BYTES as usize;
        let mut found = Vec::new();
        for operations in 0.. {
            let mut executor = Executor::new();
            let memory = Rc::new(MemoryDisk::new("d0", 4 << 20, 512).unwrap());
            let disk = FaultyDisk::new(&executor.runtime(), memory, 1);
            let region = Region::new(Rc::new(disk.clone()), 0);
            let (is_done, file) = executor
                .run_in_virtual_time(async move {
                    region.rewrite(Bytes::from(vec![1; len])).await.unwrap();
                    disk.fail_after(operations);
                    let is_done = region.rewrite(Bytes::from(vec![2; len])).await.is_ok();
                    disk.revive();
                    (is_done, region.read(len as u64).await.unwrap())
                })
                .unwrap();
            let bytes = file.map(|file| (file[0], file.iter().all(|byte| *byte == file[0])));
            assert!(bytes.is_none_or(|(_, is_one_file)| is_one_file), "after {operations} operations");
            found.push(bytes.map(|(byte, _)| byte));
            if is_done {
                break;
            }
        }
        assert_eq!((found.first(), found.last()), (Some(&Some(1)), Some(&Some(2))));
        assert!(found.len() > 4 && found[1..found.len() - 1].iter().all(Option::is_none), "{found:?}");
    }
}
