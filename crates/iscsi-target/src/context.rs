//! The services of a worker for its connections.

use crate::connection_key::ConnectionKey;
use crate::{
    buffers::budget::Budget,
    buffers::disk_regions::DiskRegions,
    buffers::operation::{Operations, Origin},
    buffers::pool::ChunkPool,
    buffers::spare_lists::{SpareLists, SpareParts},
    completion_guard::CompletionGuard,
    config::ArrayLimits,
    engine::OperationRequest,
    mcs::McsSessions,
    shared::{Mailbox, SharedState, WorkerMessage},
    stats::Counters,
    volume::Media,
};
use linerate_io::{Buffer, Driver, Nanos, Seg};
use std::{collections::VecDeque, io, sync::Arc};

/// Receive buffers of each size that a worker keeps for reuse.
const SPARE_BUFFERS: usize = 64;
/// Staging buffers that a worker keeps for reuse; each is at most as long as the largest data segment.
const SPARE_STAGING: usize = 8;

/// Fills a slice with bytes that peers cannot predict.
pub(crate) type Random = dyn FnMut(&mut [u8]) + Send;

/// The services of a worker for its connections.
pub(crate) struct WorkerContext<D: Driver> {
    pub(crate) driver: D,
    /// Where others leave messages, and find the counters.
    pub(crate) mailbox: Arc<Mailbox<D::Socket>>,
    pub(crate) shared: Arc<SharedState<D::Socket>>,
    pub(crate) limits: ArrayLimits,
    pub(crate) index: usize,
    pub(crate) media: Media,
    /// Requests to the engines. A turn ends with the first ones.
    pub(crate) requests: VecDeque<OperationRequest>,
    /// Requests that only the threads of engines can perform; empty between calls.
    pub(crate) waiting_requests: Vec<OperationRequest>,
    pub(crate) operations: Operations,
    pub(crate) pool: ChunkPool,
    pub(crate) disk_regions: DiskRegions,
    /// Memory of answers that are copies.
    pub(crate) answers: Budget,
    /// A list for the segments of one call, empty between calls.
    pub(crate) segs: Vec<Seg>,
    /// Receive buffers for reuse.
    pub(crate) small_buffers: Vec<Buffer>,
    pub(crate) large_buffers: Vec<Buffer>,
    /// Memory for payload that waits for its digest, for reuse: idle sessions keep none.
    staging: Vec<Vec<u8>>,
    pub(crate) spare_lists: SpareLists,
    pub(crate) spare_parts: SpareParts,
    pub(crate) counters: Counters,
    /// Time of the last poll.
    pub(crate) now: Nanos,
    /// Connections with tasks that wait for I/O memory.
    pub(crate) waiting_for_buffers: VecDeque<ConnectionKey>,
    /// Tasks that wait for others.
    pub(crate) waiting: Vec<Origin>,
    /// Answers that are due when outdated tasks at their units have ended.
    pub(crate) outdated: Vec<CompletionGuard>,
    /// Sessions that may have several connections.
    pub(crate) mcs_sessions: McsSessions,
    /// For challenges.
    pub(crate) random: Box<Random>,
}

impl<D: Driver> WorkerContext<D> {
    pub(crate) fn new(mut driver: D, shared: Arc<SharedState<D::Socket>>, index: usize) -> io::Result<Self> {
        let waker = driver.waker();
        let mailbox = Arc::new(Mailbox::new(Box::new(move || D::wake(&waker))));
        let media = Media::attach(&shared.volumes, &mut driver)?;
        Ok(Self {
            now: driver.now(),
            driver,
            mailbox,
            limits: shared.limits.clone(),
            index,
            media,
            requests: VecDeque::new(),
            waiting_requests: Vec::new(),
            operations: Operations::new(),
            disk_regions: DiskRegions::default(),
            pool: ChunkPool::new(shared.memory_per_worker_bytes / 4 * 3),
            answers: Budget::new(shared.memory_per_worker_bytes / 4),
            segs: Vec::new(),
            small_buffers: Vec::new(),
            large_buffers: Vec::new(),
            staging: Vec::new(),
            spare_lists: SpareLists::default(),
            spare_parts: SpareParts::default(),
            counters: Counters::default(),
            waiting_for_buffers: VecDeque::new(),
            waiting: Vec::new(),
            outdated: Vec::new(),
            shared,
            mcs_sessions: McsSessions::default(),
            // Without random bytes no challenge is safe. The host has them a few seconds after its start.
            random: Box::new(|bytes| getrandom::fill(bytes).expect("the host gives random bytes")),
        })
    }

    /// A task waits for other commands; it is tried again soon.
    pub(crate) fn wait_for_others(&mut self, task: Origin) {
        self.waiting.push(task);
    }

    /// An answer of a connection, which is due when the last clone of this is dropped.
    pub(crate) fn guard(&self, connection: ConnectionKey, number: usize) -> CompletionGuard {
        let mailbox = Arc::clone(&self.mailbox);
        CompletionGuard::new(move || mailbox.post(WorkerMessage::Due { connection, number }))
    }

    /// Ends, on all workers, the tasks of other sessions that a command has ended at their units.
    pub(crate) fn end_outdated_tasks(&mut self, guard: CompletionGuard) {
        for (index, mailbox) in self.shared.mailboxes().iter().enumerate() {
            if index != self.index {
                mailbox.post(WorkerMessage::EndOutdated(guard.clone()));
            }
        }
        self.outdated.push(guard);
    }

    /// Shows the counters to others.
    pub(crate) fn publish(&mut self) {
        self.counters.pool_bytes = self.pool.lent_bytes();
        self.mailbox.counters.publish(&self.counters);
    }

    /// Keeps a receive buffer for reuse.
    pub(crate) fn keep_buffer(&mut self, buffer: Buffer, large: bool) {
        let spare = if large { &mut self.large_buffers } else { &mut self.small_buffers };
        if spare.len() < SPARE_BUFFERS {
            spare.push(buffer);
        }
    }

    /// Adds payload to the bytes that wait for the end of their data segment.
    pub(crate) fn stage(&mut self, staged: &mut Vec<u8>, payload: &[u8]) {
        if staged.capacity() == 0
            && let Some(spare) = self.staging.pop()
        {
            *staged = spare;
        }
        staged.extend_from_slice(payload);
    }

    /// Keeps memory of [`WorkerContext::stage`] for reuse.
    pub(crate) fn keep_staging(&mut self, mut staged: Vec<u8>) {
        if staged.capacity() > 0 && self.staging.len() < SPARE_STAGING {
            staged.clear();
            self.staging.push(staged);
        }
    }
}
