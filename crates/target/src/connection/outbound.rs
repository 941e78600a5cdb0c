//! Answers on their way out: one list is being sent while the next one gathers.

use crate::{pool::ChunkPool, worker::Core};
use linerate_io::{Driver, Handle, Nanos, Outgoing, Seg};

/// Answers that may gather before parsing stops.
const GATHERED_BYTES_MAX: usize = 2 << 20;
/// Memory that an empty list may keep for reuse, so that a worker stays small after a burst.
const KEPT_BYTES_MAX: usize = 24 * 1024;

/// Memory of lists that a worker keeps for reuse.
const SPARE_LISTS: usize = 256;

/// Memory for lists, shared by the connections of a worker. The one that was used last is taken first: it is still in the
/// core's cache, where those of hundreds of connections together would not be.
#[derive(Debug, Default)]
pub(crate) struct SpareLists(Vec<Outgoing>);

impl SpareLists {
    /// Takes the memory of an empty list, unless it is so large that it is better given back.
    fn keep(&mut self, list: &mut Outgoing) {
        let memory = std::mem::take(list);
        if (1..=KEPT_BYTES_MAX).contains(&memory.capacity_bytes()) && self.0.len() < SPARE_LISTS {
            self.0.push(memory);
        }
    }
}

/// Send state of one connection.
pub(super) struct Outbound {
    /// Answers that gather.
    pub(super) list: Box<Outgoing>,
    /// I/O buffers that `list` refers to.
    pub(super) held: Vec<Seg>,
    /// PDUs in `list`.
    pub(super) pdus: u64,
    spare: Option<Box<Outgoing>>,
    /// Since when a send is under way.
    sending: Option<Nanos>,
    sending_held: Vec<Seg>,
}

impl Outbound {
    pub(super) fn new() -> Self {
        Self {
            list: Box::default(),
            held: Vec::new(),
            pdus: 0,
            spare: None,
            sending: None,
            sending_held: Vec::new(),
        }
    }

    pub(super) fn is_sending(&self) -> bool {
        self.sending.is_some()
    }

    /// I/O buffers that wait to be sent.
    pub(super) fn chunks(&self) -> usize {
        self.held.len() + self.sending_held.len()
    }

    /// Since when the peer has been taking what was sent last.
    pub(super) fn sending_since(&self) -> Option<Nanos> {
        self.sending
    }

    /// Enough has gathered: no more commands for now.
    pub(super) fn is_full(&self) -> bool {
        self.list.len_bytes() >= GATHERED_BYTES_MAX
    }

    /// Sends what has gathered unless a send is under way. Returns whether a send was started.
    pub(super) fn send<D: Driver>(&mut self, stream: Handle, core: &mut Core<D>) -> bool {
        if self.sending.is_some() || self.list.is_empty() {
            return false;
        }
        core.counters.sends += 1;
        core.counters.pdus_sent += std::mem::take(&mut self.pdus);
        core.counters.bytes_sent += self.list.len_bytes() as u64;
        let next = self.spare.take().unwrap_or_default();
        let list = std::mem::replace(&mut self.list, next);
        std::mem::swap(&mut self.held, &mut self.sending_held);
        self.sending = Some(core.now);
        // Whoever has the answer finds it counted.
        core.publish();
        core.driver.send(stream, list);
        true
    }

    /// Gives the list memory before anything gathers.
    #[inline]
    pub(super) fn begin_turn(&mut self, spare: &mut SpareLists) {
        if self.list.capacity_bytes() == 0
            && let Some(memory) = spare.0.pop()
        {
            *self.list = memory;
        }
    }

    /// Takes it back if nothing gathered.
    #[inline]
    pub(super) fn end_turn(&mut self, spare: &mut SpareLists) {
        if self.list.is_empty() {
            spare.keep(&mut self.list);
        }
    }

    /// A send has come back.
    pub(super) fn sent<D: Driver>(&mut self, mut list: Box<Outgoing>, core: &mut Core<D>) {
        self.sending = None;
        core.pool.give_back(&mut self.sending_held);
        list.clear();
        core.spare_lists.keep(&mut list);
        self.spare = Some(list);
    }

    /// The connection is closed: what gathered will never be sent.
    pub(super) fn drop_gathered(&mut self, pool: &mut ChunkPool) {
        self.list.clear();
        pool.give_back(&mut self.held);
    }
}
