//! A set of memory disks without redundancy, for threads that access its bytes directly.

use super::striping::{StripedRun, Striping};
use crate::disk::MemoryPages;
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// The positions of the bytes of a RAID 0 of memory disks. Any thread may read and write them there while the set
/// [`StripedPages::is_served`], and counts its I/O on the members.
#[derive(Debug)]
pub struct StripedPages {
    striping: Striping,
    members: Vec<Member>,
    is_served: Arc<AtomicBool>,
}

#[derive(Debug)]
struct Member {
    pages: MemoryPages,
    /// Offset of its share of the set.
    start: u64,
}

/// A run of bytes in one member's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageRun {
    /// Which member, in the order of [`StripedPages::members`].
    pub member: usize,
    /// First byte, from the beginning of the member's region.
    pub offset: u64,
    /// Length in bytes.
    pub len: u64,
}

impl StripedPages {
    /// `members` are the memory of each group's only disk, and the offset of the group's bytes in it. `is_served`
    /// becomes false for good when the set fails.
    pub(super) fn new(
        striping: Striping,
        members: impl Iterator<Item = (MemoryPages, u64)>,
        is_served: Arc<AtomicBool>,
    ) -> Self {
        let members = members.map(|(pages, start)| Member { pages, start }).collect();
        Self { striping, members, is_served }
    }

    /// Whether the set's bytes may still be used. Operations in progress are not stopped: a writer checks again before
    /// it acknowledges.
    pub fn is_served(&self) -> bool {
        self.is_served.load(Ordering::Acquire)
    }

    /// The members' memory.
    pub fn members(&self) -> impl ExactSizeIterator<Item = &MemoryPages> {
        self.members.iter().map(|member| &member.pages)
    }

    /// The memory of one member.
    pub fn member(&self, member: usize) -> &MemoryPages {
        &self.members[member].pages
    }

    /// The position of the set's bytes from `offset` on, up to the end of their chunk or `len`.
    pub fn run(&self, offset: u64, len: u64) -> PageRun {
        self.in_member(self.striping.run(offset, len))
    }

    /// The extents of a range: one run in each member that it touches.
    pub fn joined(&self, offset: u64, len: u64) -> impl Iterator<Item = PageRun> {
        self.striping.joined(offset, len).into_iter().map(|run| self.in_member(run))
    }

    fn in_member(&self, StripedRun { group, offset, len }: StripedRun) -> PageRun {
        PageRun { member: group, offset: self.members[group].start + offset, len }
    }
}
