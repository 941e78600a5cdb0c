//! Volumes in memory, as one worker accesses them: a region, or the striped memory of a RAID set.

use linerate_io::{Driver, Region, RegionId, Seg};
use linerate_scsi::{MediumOp, MediumResult};
use linerate_storage::{
    disk::MemoryPages,
    raid::{PageRun, StripedPages},
};
use std::sync::Arc;

/// Where a volume's bytes are.
#[derive(Debug)]
pub(crate) enum MemoryVolume {
    /// In one region, in order.
    Whole { region: Arc<Region>, id: RegionId },
    /// In the members of a set; `ids` are in their order.
    Striped { set: Arc<StripedPages>, ids: Vec<RegionId> },
}

/// A run of a volume's bytes in one region.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part<'a> {
    pub(crate) region: &'a Arc<Region>,
    id: RegionId,
    pub(crate) offset: u64,
    pub(crate) len: u64,
}

/// The counted direction of an I/O on a disk.
#[derive(Clone, Copy, Debug)]
pub(crate) enum IoDirection {
    Read,
    Written,
}

impl Part<'_> {
    /// For the driver. The length of a transfer fits into 32 bits.
    pub(crate) fn seg(&self) -> Seg {
        Seg { region: self.id, offset: self.offset, len: self.len as u32 }
    }
}

impl MemoryVolume {
    /// Attaches one region to `driver`.
    pub(crate) fn whole<D: Driver>(region: &Arc<Region>, driver: &mut D) -> Self {
        Self::Whole { region: Arc::clone(region), id: driver.attach(Arc::clone(region)) }
    }

    /// Attaches the members of a set to `driver`.
    pub(crate) fn striped<D: Driver>(set: &Arc<StripedPages>, driver: &mut D) -> Self {
        let ids = set.members().map(|member| driver.attach(Arc::clone(member.region()))).collect();
        Self::Striped { set: Arc::clone(set), ids }
    }

    /// Whether the bytes may still be used: those of a set until it fails.
    pub(crate) fn are_served(&self) -> bool {
        match self {
            Self::Whole { .. } => true,
            Self::Striped { set, .. } => set.is_served(),
        }
    }

    /// The memory of a range of the volume, in order.
    pub(crate) fn parts(&self, mut offset: u64, mut len: u64) -> impl Iterator<Item = Part<'_>> {
        std::iter::from_fn(move || {
            if len == 0 {
                return None;
            }
            let part = self.part(offset, len);
            offset += part.len;
            len -= part.len;
            Some(part)
        })
    }

    fn part(&self, offset: u64, len: u64) -> Part<'_> {
        match self {
            Self::Whole { region, id } => Part { region, id: *id, offset, len },
            Self::Striped { set, ids } => {
                let PageRun { member, offset, len } = set.run(offset, len);
                Part { region: set.member(member).region(), id: ids[member], offset, len }
            }
        }
    }

    /// Counts moved bytes on the modelled disks below the volume, if it has any.
    pub(crate) fn count(&self, moved: IoDirection, mut offset: u64, mut len: u64) {
        // Plain memory has no disks.
        let Self::Striped { set, .. } = self else { return };
        while len > 0 {
            let run = set.run(offset, len);
            match moved {
                IoDirection::Read => set.member(run.member).count_read(run.len),
                IoDirection::Written => set.member(run.member).count_write(run.len),
            }
            offset += run.len;
            len -= run.len;
        }
    }

    /// Copies bytes in. Old bytes need not be loaded for that.
    pub(crate) fn write(&self, offset: u64, bytes: &[u8]) {
        let mut done = 0;
        for part in self.parts(offset, bytes.len() as u64) {
            let end = done + part.len as usize;
            part.region.write_streaming(part.offset, &bytes[done..end]);
            done = end;
        }
    }

    fn read(&self, offset: u64, len: u32) -> Vec<u8> {
        let mut data = Vec::with_capacity(len as usize);
        for part in self.parts(offset, u64::from(len)) {
            part.region.append_to(part.offset, part.len as usize, &mut data);
        }
        data
    }

    /// Does an operation of a command of several steps.
    pub(crate) fn perform(&self, op: MediumOp) -> MediumResult {
        match op {
            MediumOp::Read { offset_bytes, len_bytes } => {
                let data = self.read(offset_bytes, len_bytes);
                self.count(IoDirection::Read, offset_bytes, u64::from(len_bytes));
                MediumResult::Data(data)
            }
            MediumOp::Write { offset_bytes, data, .. } => {
                self.write(offset_bytes, &data);
                self.count(IoDirection::Written, offset_bytes, data.len() as u64);
                MediumResult::Done
            }
            MediumOp::Fill { offset_bytes, len_bytes, pattern, .. } => {
                // A part holds whole patterns: both are blocks or a multiple of them.
                for part in self.parts(offset_bytes, u64::from(len_bytes)) {
                    part.region.fill(part.offset, part.len, &pattern);
                }
                self.count(IoDirection::Written, offset_bytes, u64::from(len_bytes));
                MediumResult::Done
            }
            MediumOp::Discard { offset_bytes, len_bytes } => {
                self.discard(offset_bytes, len_bytes);
                MediumResult::Done
            }
            MediumOp::Sync { .. } => {
                if let Self::Striped { set, .. } = self {
                    set.members().for_each(MemoryPages::count_flush);
                }
                MediumResult::Done
            }
            // Volumes in memory keep nothing over a power cut, and report this.
            MediumOp::Keep { .. } => MediumResult::Done,
            MediumOp::Mapped { len_bytes, .. } => MediumResult::Mapped { mapped: true, len_bytes },
        }
    }

    fn discard(&self, offset: u64, len: u64) {
        match self {
            Self::Whole { region, .. } => region.discard(offset, len),
            Self::Striped { set, .. } => {
                for run in set.joined(offset, len) {
                    let member = set.member(run.member);
                    member.region().discard(run.offset, run.len);
                    member.count_discard();
                }
            }
        }
    }
}
