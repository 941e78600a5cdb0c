//! Commands in progress: a slab, so that a transfer tag leads straight to its task and nothing is allocated once warm.

use crate::{pool::ChunkPool, volume::VolumeId};
use linerate_io::{Nanos, Seg};
use linerate_iscsi::transfer::TargetWrite;
use linerate_scsi::{Extent, Reply, Task};

/// Most slots that a connection without tasks keeps for the next ones.
const KEPT_SLOTS: usize = 96;

/// What a task waits for or does.
#[derive(Debug)]
pub(super) enum Work {
    /// The slot is free.
    Free,
    /// A write to a memory volume: data lands in place.
    MemoryWrite(Extent),
    /// A read whose bytes come by way of I/O buffers.
    BufferedRead(Extent),
    /// A write whose data gathers in I/O buffers.
    BufferedWrite(Extent),
    /// A command of several steps.
    Steps(Box<Steps>),
    /// Answered as soon as the initiator has sent what it may send unasked.
    Drain(Reply),
}

/// A command of several steps and what it is in the middle of.
#[derive(Debug)]
pub(super) struct Steps {
    pub(super) task: Box<Task>,
    /// Data-out that is being collected.
    pub(super) data: Vec<u8>,
    /// The volume operation under way, or to be tried again when I/O buffers are free.
    pub(super) operation: Option<(VolumeId, linerate_scsi::MediumOp)>,
}

/// One command in progress.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) itt: u32,
    pub(super) immediate: bool,
    pub(super) lun: [u8; 8],
    pub(super) volume: Option<VolumeId>,
    /// What the initiator expects to receive, and to send.
    pub(super) expected_in: u32,
    pub(super) expected_out: u32,
    pub(super) work: Work,
    /// Bookkeeping of the command's data, if it sends any.
    pub(super) write: Option<TargetWrite>,
    /// I/O buffers.
    pub(super) segs: Vec<Seg>,
    /// The nexus's abort count when the command began.
    pub(super) epoch: u32,
    /// When the initiator's turn to send the data began.
    pub(super) since: Nanos,
    /// A volume operation, or after the end a receive into its place, is in flight: the slot must stay.
    pub(super) operating: bool,
    /// Aborted: nobody waits for the answer.
    pub(super) aborted: bool,
}

/// The slab.
#[derive(Debug)]
pub(super) struct Tasks {
    entries: Vec<Entry>,
    free: Vec<u32>,
}

impl Tasks {
    pub(super) fn new() -> Self {
        Self { entries: Vec::new(), free: Vec::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    /// Slot that the next [`Tasks::insert`] will use.
    pub(super) fn next_slot(&self) -> u32 {
        self.free.last().copied().unwrap_or(self.entries.len() as u32)
    }

    /// Starts a task. The entry's vector of segments is the slot's old one, for its memory.
    pub(super) fn insert(&mut self, mut entry: Entry) -> u32 {
        let Some(slot) = self.free.pop() else {
            self.entries.push(entry);
            return self.entries.len() as u32 - 1;
        };
        let place = &mut self.entries[slot as usize];
        if entry.segs.is_empty() {
            entry.segs = std::mem::take(&mut place.segs);
        }
        *place = entry;
        slot
    }

    /// A task in progress, aborted or not.
    pub(super) fn get_mut(&mut self, slot: u32) -> Option<&mut Entry> {
        self.entries.get_mut(slot as usize).filter(|entry| !matches!(entry.work, Work::Free))
    }

    /// A task that nobody has aborted.
    pub(super) fn live(&mut self, slot: u32) -> Option<&mut Entry> {
        self.get_mut(slot).filter(|entry| !entry.aborted)
    }

    /// The slot of a task by its tag. Rare: transfer tags name slots, so only unsolicited data and aborts come here.
    pub(super) fn find(&self, itt: u32) -> Option<u32> {
        let is_it = |entry: &Entry| entry.itt == itt && !entry.aborted && !matches!(entry.work, Work::Free);
        self.entries.iter().position(is_it).map(|slot| slot as u32)
    }

    /// Frees a slot; its I/O buffers go back. After a burst that needed many slots, the last one frees them all.
    pub(super) fn remove(&mut self, slot: u32, pool: &mut ChunkPool) {
        let entry = &mut self.entries[slot as usize];
        pool.give_back(&mut entry.segs);
        entry.work = Work::Free;
        entry.write = None;
        self.free.push(slot);
        if self.entries.len() > KEPT_SLOTS && self.len() == 0 {
            self.entries = Vec::new();
            self.free = Vec::new();
        }
    }

    /// Slots of live tasks.
    pub(super) fn slots(&self) -> impl Iterator<Item = u32> + use<> {
        let live = |entry: &Entry| !entry.aborted && !matches!(entry.work, Work::Free);
        let slots: Vec<u32> =
            (0_u32..).zip(&self.entries).filter(|(_, entry)| live(entry)).map(|(slot, _)| slot).collect();
        slots.into_iter()
    }

    /// Every entry, free or not.
    pub(super) fn entries_mut(&mut self) -> impl Iterator<Item = &mut Entry> {
        self.entries.iter_mut().filter(|entry| !matches!(entry.work, Work::Free))
    }

    /// I/O buffers that tasks hold.
    pub(super) fn chunks(&self) -> usize {
        self.entries.iter().map(|entry| entry.segs.len()).sum()
    }

    /// Writes whose data the initiator has yet to send. What waits for a volume waits for us.
    fn waiting_writes(&self) -> impl Iterator<Item = &Entry> {
        let waits =
            |entry: &&Entry| entry.write.is_some() && !entry.operating && !matches!(entry.work, Work::Free);
        self.entries.iter().filter(waits)
    }

    /// Whether the initiator has yet to send data of a write.
    pub(super) fn expects_data(&self) -> bool {
        self.waiting_writes().next().is_some()
    }

    /// Since when the oldest write waits for data of the initiator.
    pub(super) fn oldest_write(&self) -> Option<Nanos> {
        self.waiting_writes().map(|entry| entry.since).min()
    }

    /// Whether a write holds I/O buffers whose data the initiator has yet to send.
    pub(super) fn holds_for_peer(&self) -> bool {
        self.waiting_writes().any(|entry| !entry.segs.is_empty())
    }

    /// Ends all tasks but those whose volume operation must come back first. Returns how many were ended.
    pub(super) fn clear(&mut self, pool: &mut ChunkPool) -> u64 {
        let mut ended = 0;
        for slot in 0..self.entries.len() as u32 {
            let Some(entry) = self.get_mut(slot) else { continue };
            if entry.operating {
                entry.aborted = true;
            } else {
                self.remove(slot, pool);
                ended += 1;
            }
        }
        ended
    }
}
