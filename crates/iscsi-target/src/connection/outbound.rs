//! Answers to send: one list is being sent while the next one is filled.

use crate::{
    buffers::budget::{Budget, Share},
    buffers::pool::{ChunkPool, Chunks},
    buffers::spare_lists::SpareLists,
    context::WorkerContext,
    engine::InPlace,
};
use linerate_io::{Driver, Handle, Nanos, Outgoing};

/// Answers that may gather before parsing stops.
const GATHERED_BYTES_MAX: usize = 2 << 20;

/// A send in progress.
struct Sending {
    since: Nanos,
    /// I/O buffers and memory of disks that are being sent from.
    chunks: Chunks,
    in_place: Vec<InPlace>,
    /// Bytes of its list that are copies.
    copied_bytes: usize,
}

/// Send state of one connection.
pub(super) struct Outbound {
    /// Answers that gather.
    pub(super) list: Box<Outgoing>,
    /// I/O buffers and memory of disks that `list` refers to.
    pub(super) chunks: Chunks,
    pub(super) in_place: Vec<InPlace>,
    /// PDUs in `list`.
    pub(super) pdus: u64,
    spare: Option<Box<Outgoing>>,
    /// Empty, with memory.
    spare_in_place: Vec<InPlace>,
    sending: Option<Sending>,
    /// The counted size of the copies in both lists after the last turn.
    copies: Share,
}

impl Outbound {
    pub(super) fn new() -> Self {
        Self {
            list: Box::default(),
            chunks: Chunks::NONE,
            in_place: Vec::new(),
            pdus: 0,
            spare: None,
            spare_in_place: Vec::new(),
            sending: None,
            copies: Share::default(),
        }
    }

    pub(super) fn is_sending(&self) -> bool {
        self.sending.is_some()
    }

    /// The time since which the last send is in progress.
    pub(super) fn sending_since(&self) -> Option<Nanos> {
        self.sending.as_ref().map(|sending| sending.since)
    }

    fn copied_bytes(&self) -> usize {
        self.list.copied_bytes() + self.sending.as_ref().map_or(0, |sending| sending.copied_bytes)
    }

    /// The list is full: no more commands for now. `share_bytes` is the limit for copies of one connection.
    pub(super) fn is_full(&self, share_bytes: u64) -> bool {
        let gathered = self.list.len_bytes();
        gathered > 0 && (gathered >= GATHERED_BYTES_MAX || self.copied_bytes() as u64 >= share_bytes)
    }

    /// Sends the list unless a send is in progress. Returns whether a send was started.
    pub(super) fn send<D: Driver>(&mut self, stream: Handle, context: &mut WorkerContext<D>) -> bool {
        if self.sending.is_some() || self.list.is_empty() {
            return false;
        }
        context.counters.sends += 1;
        context.counters.pdus_sent += std::mem::take(&mut self.pdus);
        context.counters.bytes_sent += self.list.len_bytes() as u64;
        let next = self.spare.take().unwrap_or_default();
        let list = std::mem::replace(&mut self.list, next);
        let chunks = std::mem::take(&mut self.chunks);
        let in_place = std::mem::replace(&mut self.in_place, std::mem::take(&mut self.spare_in_place));
        let (since, copied_bytes) = (context.now, list.copied_bytes());
        self.sending = Some(Sending { since, chunks, in_place, copied_bytes });
        // Counted before it is sent, so that the counters include it when the initiator has the answer.
        context.publish();
        context.driver.send(stream, list);
        true
    }

    /// Gives the list memory before it is filled.
    #[inline]
    pub(super) fn begin_turn(&mut self, spare: &mut SpareLists) {
        if self.list.capacity_bytes() == 0
            && let Some(memory) = spare.take()
        {
            *self.list = memory;
        }
    }

    /// Returns the memory if the list is empty, and counts the memory of its contents.
    #[inline]
    pub(super) fn end_turn(&mut self, spare: &mut SpareLists, answers: &mut Budget) {
        if self.list.is_empty() {
            spare.keep(&mut self.list);
        }
        let copied = self.copied_bytes() as u64;
        let counted = self.copies.bytes();
        if copied > counted {
            answers.take(&mut self.copies, copied - counted);
        } else if copied < counted {
            answers.give_back(&mut self.copies, counted - copied);
        }
    }

    /// A send has ended.
    pub(super) fn sent<D: Driver>(
        &mut self,
        mut list: Box<Outgoing>,
        context: &mut WorkerContext<D>,
        share: &mut Share,
    ) {
        if let Some(mut sending) = self.sending.take() {
            context.pool.give_back(share, sending.chunks);
            sending.in_place.drain(..).for_each(|sent| context.spare_parts.keep(sent.parts));
            self.spare_in_place = sending.in_place;
        }
        list.clear();
        context.spare_lists.keep(&mut list);
        self.spare = Some(list);
    }

    /// The connection is closed: the list will never be sent.
    pub(super) fn drop_gathered(&mut self, pool: &mut ChunkPool, share: &mut Share) {
        self.list.clear();
        self.in_place.clear();
        pool.give_back(share, std::mem::take(&mut self.chunks));
    }
}
