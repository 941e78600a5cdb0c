//! What an arriving message is, and where the data of a READ response go.

use super::tasks::TaskSlot;
use linerate_io::{AttachedRegions, Seg};

/// The longest message without read data.
pub(super) const CONTROL_BYTES_MAX: u32 = 128 * 1024;
/// A rest of read data at least this long is received straight into the caller's segment; below it, a copy out of the
/// receive buffer costs less than a receive of its own.
const DIRECT_BYTES_MIN: u32 = 16 * 1024;

/// What the arriving message is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Incoming {
    /// Nothing of interest.
    Ignored,
    /// Collected, then handled.
    Whole,
    /// Collected, then handled one by one.
    Compound,
    /// Collected, then decrypted.
    Sealed,
    /// The data of a READ.
    Read(ReadData),
}

/// The data of a READ response behind its head.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadData {
    pub(super) task: TaskSlot,
    pub(super) into: Option<Seg>,
    /// Bytes between the head and the data.
    pub(super) skip: u32,
    /// Bytes of data.
    pub(super) len: u32,
    /// Bytes of the message behind its head.
    pub(super) rest_len: u32,
}

impl ReadData {
    /// Where the data go that are missing, while `remaining` bytes of the message are; None: they are few or dropped.
    pub(super) fn missing(&self, remaining: u32) -> Option<Seg> {
        let seg = self.into?;
        let done = (self.rest_len - remaining).checked_sub(self.skip)?;
        let len = self.len.checked_sub(done)?;
        (len >= DIRECT_BYTES_MIN).then_some(Seg { offset: seg.offset + u64::from(done), len, ..seg })
    }

    /// Stores the data among some bytes behind the head.
    #[inline]
    pub(super) fn store(&self, bytes: &[u8], offset: u32, regions: &AttachedRegions) {
        let Some(seg) = self.into else { return };
        let start = offset.max(self.skip);
        let end = (offset + bytes.len() as u32).min(self.skip + self.len);
        if start < end {
            let part = &bytes[(start - offset) as usize..(end - offset) as usize];
            regions.of(seg).write(seg.offset + u64::from(start - self.skip), part);
        }
    }
}
