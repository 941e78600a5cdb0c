//! The engine: the thread behind volumes of kind "raid" and "pool".
//!
//! Everything of [`linerate_storage`] runs on one thread, with its own driver. Workers never wait for it: while it sleeps
//! they do operations themselves that need no waiting. All other requests they put into its inbox, once per turn, and
//! find the answers in their mailboxes, as they find completions of file operations in their drivers. The bytes pass
//! through the workers' I/O buffers and are copied once. Those of large reads are sent from the memory of the disks, if the
//! disks are memory ([`InPlace`]). The engine also owns RAID 0 of memory disks, but workers move its bytes themselves
//! (`memory_volume.rs`).
//!
//! - `mod.rs`: [`Engine`], the interface for the rest of the array.
//! - `request.rs`: the requests of workers, and the answers.
//! - `thread.rs`: the thread's loop. `core.rs`: what it and the workers use in turn. `state.rs`: the state that its tasks
//!   share. `serve.rs`: one operation on a volume.
//! - `exports.rs`: volumes that are created, changed and deleted while initiators use the array. `replica.rs`: volumes
//!   for partners; `transfers.rs`: their targets.

mod core;
mod export_record;
mod exports;
mod replica;
mod request;
mod serve;
mod state;
mod thread;
mod transfers;

#[cfg(test)]
mod tests;

pub(crate) use export_record::ExportRecord;
pub(crate) use exports::Exports;
pub(crate) use request::{
    BufferPart, FinishedOperation, InPlace, Operation, OperationError, OperationOutput, OperationRequest,
    OperationResult, Quota,
};
pub(crate) use transfers::Transfers;

use crate::config::VolumeConfig;
use bytes::Bytes;
use linerate_io::{Lent, Nanos, WaitMode};
use linerate_storage::{
    controller::{Command, Reply, StorageConfig, StorageError, StorageStatus},
    raid::StripedPages,
    replica::service::Fields,
};
use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, mpsc},
    thread::JoinHandle,
};

/// Passes answers to the worker that sent the requests.
/// It empties the list.
pub(crate) type Deliver = Box<dyn Fn(&mut Vec<FinishedOperation>) + Send + Sync>;

/// Pool, volume, and how it is shown.
pub(crate) type Records = Vec<(String, String, ExportRecord)>;

/// A volume that the engine looks after.
#[derive(Clone, Debug)]
pub(crate) struct OpenedVolume {
    /// Its number.
    pub(crate) volume: u32,
    pub(crate) size_bytes: u64,
    /// Smallest unit that its disks write whole.
    pub(crate) block_bytes: u32,
    /// The unit of allocation of its pool; 0: none.
    pub(crate) page_bytes: u32,
    /// Persistent reservations that were kept.
    pub(crate) reservations: Option<Bytes>,
    /// For a set of memory disks only: the positions of its bytes, for workers.
    pub(crate) pages: Option<Arc<StripedPages>>,
}

/// Requests to the engine.
enum EngineRequest {
    /// The workers, and the targets for exports.
    Introduce(Vec<Deliver>, Exports),
    /// The exports of volumes that the configuration does not name, or names no longer: pool, volume, record.
    Records(mpsc::Sender<Records>),
    /// Open, and if necessary create, a volume of the configuration.
    Open(Box<VolumeConfig>, mpsc::Sender<Result<OpenedVolume, StorageError>>),
    Manage(Box<Command>, mpsc::Sender<Result<Reply, StorageError>>),
    /// A verb of replication.
    Replicate(String, Fields, mpsc::Sender<Result<Reply, StorageError>>),
    Status(mpsc::Sender<StorageStatus>),
    /// The array serves; before that the start may still fail.
    Serves {
        /// Memory disks take their memory ahead of its first use.
        touches_memory: bool,
    },
    /// Make everything durable and end.
    Stop,
}

/// Where letters for the engine are left.
#[derive(Default)]
struct Inbox {
    requests: Mutex<EngineQueue>,
    core: Lent<core::EngineCore>,
    /// The thread sets it before the first post.
    wake: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

#[derive(Default)]
struct EngineQueue {
    list: Vec<EngineRequest>,
    /// Operations of workers, which are served after the others: those may introduce the workers.
    operations: Vec<OperationRequest>,
    /// The reader has ended.
    closed: bool,
}

impl EngineQueue {
    fn is_empty(&self) -> bool {
        self.list.is_empty() && self.operations.is_empty()
    }
}

/// See the module text. Ends the thread when it is dropped.
pub(crate) struct Engine {
    inbox: Arc<Inbox>,
    thread: Option<JoinHandle<()>>,
    /// As they were at the start.
    records: Records,
}

/// A worker's access to the engine.
#[derive(Clone)]
pub(crate) struct EngineHandle(Arc<Inbox>);

impl Inbox {
    /// Posts a request; returns it if the reader has ended.
    fn post(&self, request: EngineRequest) -> Result<(), EngineRequest> {
        {
            let mut requests = lock(&self.requests);
            if requests.closed {
                return Err(request);
            }
            requests.list.push(request);
        }
        self.wake();
        Ok(())
    }

    fn wake(&self) {
        if let Some(wake) = self.wake.get() {
            wake();
        }
    }
}

impl EngineHandle {
    /// Performs requests that need no waiting, if the engine's thread sleeps, and appends their answers to `finished`.
    /// It moves the others to `waiting`. Once the quota is used up, it leaves the rest for the next call. `now` is the
    /// worker's time.
    pub(crate) fn perform(
        &self,
        now: Nanos,
        quota: &mut Quota,
        requests: &mut VecDeque<OperationRequest>,
        waiting: &mut Vec<OperationRequest>,
        finished: &mut Vec<FinishedOperation>,
    ) {
        let mut has_news = false;
        while !quota.is_used_up()
            && let Some(mut request) = requests.pop_front()
        {
            let visited = self.0.core.visit(|core| {
                // Its bytes are on their way from memory while this request is performed.
                requests.front().inspect(|next| core.prefetch(next));
                (core.perform(now, &mut request), core.has_news())
            });
            let Some((done, news)) = visited else {
                waiting.push(request);
                waiting.extend(requests.drain(..));
                break;
            };
            has_news |= news;
            match done {
                Some(done) => {
                    quota.take(&done);
                    finished.push(done);
                }
                None => waiting.push(request),
            }
        }
        if has_news {
            self.0.wake();
        }
    }

    /// Takes requests out of the list; leaves them there if they will not be answered.
    pub(crate) fn send(&self, requests: &mut Vec<OperationRequest>) {
        {
            let mut queue = lock(&self.0.requests);
            if queue.closed {
                return;
            }
            queue.operations.append(requests);
        }
        self.0.wake();
    }
}

impl Engine {
    /// Opens the storage that a configuration describes.
    pub(crate) fn start(
        config: StorageConfig,
        driver: linerate_io::Preference,
        wait: WaitMode,
    ) -> Result<Self, StorageError> {
        let inbox = Arc::new(Inbox::default());
        let thread = thread::spawn(config, driver, wait, Arc::clone(&inbox))?;
        let mut engine = Self { inbox, thread: Some(thread), records: Vec::new() };
        engine.records = engine.ask(EngineRequest::Records)?;
        Ok(engine)
    }

    pub(crate) fn handle(&self) -> EngineHandle {
        EngineHandle(Arc::clone(&self.inbox))
    }

    /// Volumes that were created while the array served: pool, name, record.
    pub(crate) fn made(&self) -> impl Iterator<Item = &(String, String, ExportRecord)> {
        self.records.iter().filter(|(_, _, record)| !record.deleted)
    }

    /// Whether a volume of the configuration was deleted.
    pub(crate) fn has_deleted(&self, volume: &str) -> bool {
        self.records.iter().any(|(_, name, record)| name == volume && record.deleted)
    }

    /// Sets the receivers of answers, by the number of the worker, and the targets for exports.
    pub(crate) fn introduce(&self, workers: Vec<Deliver>, exports: Exports) {
        // Without a thread there will be no answers either.
        let _ = self.inbox.post(EngineRequest::Introduce(workers, exports));
    }

    /// Reports that the array serves.
    pub(crate) fn serves(&self, touches_memory: bool) {
        // Without a thread there is nothing to keep.
        let _ = self.inbox.post(EngineRequest::Serves { touches_memory });
    }

    /// Opens a volume of kind "raid" or "pool".
    pub(crate) fn open(&self, config: &VolumeConfig) -> Result<OpenedVolume, StorageError> {
        self.ask(|reply| EngineRequest::Open(Box::new(config.clone()), reply))?
    }

    /// Carries a command out.
    pub(crate) fn manage(&self, command: Command) -> Result<Reply, StorageError> {
        self.ask(|reply| EngineRequest::Manage(Box::new(command), reply))?
    }

    /// Carries out a verb of replication.
    pub(crate) fn replicate(&self, verb: &str, fields: Fields) -> Result<Reply, StorageError> {
        self.ask(|reply| EngineRequest::Replicate(verb.to_owned(), fields, reply))?
    }

    /// How everything is.
    pub(crate) fn status(&self) -> Result<StorageStatus, StorageError> {
        self.ask(EngineRequest::Status)
    }

    fn ask<T>(&self, request: impl FnOnce(mpsc::Sender<T>) -> EngineRequest) -> Result<T, StorageError> {
        let (reply, answer) = mpsc::channel();
        self.inbox.post(request(reply)).map_err(|_| StorageError::Gone)?;
        answer.recv().map_err(|_| StorageError::Gone)
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let _ = self.inbox.post(EngineRequest::Stop);
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has written to standard error; nothing else must be ended.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Engine")
    }
}

/// A request is pushed or taken as a whole, so a poisoned lock still guards valid data.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
