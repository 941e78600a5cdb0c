//! Engines: the threads behind volumes of kind "raid" and "pool".
//!
//! RAID sets and pools that share no disk may be in different engines; an array has as many engines as workers, at most.
//! Everything of [`linerate_storage`] in an engine runs on one thread, with its own driver. Workers never wait for it:
//! while it sleeps they do operations themselves that need no waiting. All other requests they put into its inbox, once
//! per turn, and find the answers in their mailboxes, as they find completions of file operations in their drivers. The
//! bytes pass through the workers' I/O buffers and are copied once. Those of large reads are sent from the memory of the
//! disks, if the disks are memory ([`InPlace`]). An engine also owns RAID 0 of memory disks, but workers move its bytes
//! themselves (`memory_volume.rs`).
//!
//! - `mod.rs`: [`Engine`], one of them. `engines.rs`: [`Engines`], the interface for the rest of the array.
//! - `handles.rs`: a worker's access. `request.rs`: its requests, and the answers.
//! - `thread.rs`: the thread's loop. `core.rs`: what it and the workers use in turn. `state.rs`: the state that its tasks
//!   share. `serve.rs`: one operation on a volume.
//! - `exports.rs`: volumes that are created, changed and deleted while initiators use the array. `replica.rs`: volumes
//!   for partners; `transfers.rs`: their targets.

mod core;
mod engines;
mod export_record;
mod exports;
mod handles;
mod replica;
mod request;
mod serve;
mod state;
mod thread;
mod transfers;

#[cfg(test)]
mod tests;

pub(crate) use engines::Engines;
pub(crate) use export_record::ExportRecord;
pub(crate) use exports::Exports;
pub(crate) use handles::EngineHandles;
pub(crate) use request::{
    BufferPart, FinishedOperation, InPlace, Operation, OperationError, OperationOutput, OperationRequest,
    OperationResult, Quota, VolumeNumber,
};
pub(crate) use transfers::Transfers;

use crate::config::VolumeConfig;
use bytes::Bytes;
use linerate_io::{Lent, WaitMode};
use linerate_storage::{
    controller::{Command, Noun, Reply, StorageConfig, StorageError, StorageStatus},
    raid::StripedPages,
    replica::{ReplicaError, service::Fields},
};
use std::{
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, mpsc},
    thread::JoinHandle,
};

/// Passes answers to the worker that sent the requests.
/// It empties the list.
pub(crate) type Deliver = Arc<dyn Fn(&mut Vec<FinishedOperation>) + Send + Sync>;

/// Pool, volume, and how it is shown.
pub(crate) type Records = Vec<(String, String, ExportRecord)>;

/// A volume that the engine looks after.
#[derive(Clone, Debug)]
pub(crate) struct OpenedVolume {
    pub(crate) volume: VolumeNumber,
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

/// A name that one engine of the array knows at most.
#[derive(Clone)]
enum Name {
    Disk(String),
    Volume(String),
    /// Of replication.
    Group(String),
}

impl Name {
    /// The error for a new name that is in use.
    fn taken(self) -> StorageError {
        match self {
            Self::Disk(name) => StorageError::Taken { noun: Noun::Disk, name },
            Self::Volume(name) => StorageError::Taken { noun: Noun::Volume, name },
            Self::Group(name) => ReplicaError::OtherGroup(name).into(),
        }
    }
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
    /// Whether it has something of this name.
    Has(Name, mpsc::Sender<bool>),
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

/// One engine. Ends its thread when it is dropped.
struct Engine {
    inbox: Arc<Inbox>,
    thread: Option<JoinHandle<()>>,
    /// As they were at the start.
    records: Records,
}

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

impl Engine {
    /// Opens the storage that a configuration describes. `number`: of the engine.
    fn start(
        number: u8,
        config: StorageConfig,
        driver: linerate_io::Preference,
        wait: WaitMode,
    ) -> Result<Self, StorageError> {
        let inbox = Arc::new(Inbox::default());
        let thread = thread::spawn(number, config, driver, wait, Arc::clone(&inbox))?;
        let mut engine = Self { inbox, thread: Some(thread), records: Vec::new() };
        engine.records = engine.ask(EngineRequest::Records)?;
        Ok(engine)
    }

    fn inbox(&self) -> Arc<Inbox> {
        Arc::clone(&self.inbox)
    }

    /// Volumes that were created while the array served: pool, name, record.
    fn made(&self) -> impl Iterator<Item = &(String, String, ExportRecord)> {
        self.records.iter().filter(|(_, _, record)| !record.deleted)
    }

    /// Whether a volume of the configuration was deleted.
    fn has_deleted(&self, volume: &str) -> bool {
        self.records.iter().any(|(_, name, record)| name == volume && record.deleted)
    }

    /// Sets the receivers of answers, by the number of the worker, and the targets for exports.
    fn introduce(&self, workers: Vec<Deliver>, exports: Exports) {
        // Without a thread there will be no answers either.
        let _ = self.inbox.post(EngineRequest::Introduce(workers, exports));
    }

    /// Reports that the array serves.
    fn serves(&self, touches_memory: bool) {
        // Without a thread there is nothing to keep.
        let _ = self.inbox.post(EngineRequest::Serves { touches_memory });
    }

    /// Opens a volume of kind "raid" or "pool".
    fn open(&self, config: VolumeConfig) -> Result<OpenedVolume, StorageError> {
        self.ask(|reply| EngineRequest::Open(Box::new(config), reply))?
    }

    /// Carries a command out.
    fn manage(&self, command: Command) -> Result<Reply, StorageError> {
        self.ask(|reply| EngineRequest::Manage(Box::new(command), reply))?
    }

    /// Carries out a verb of replication.
    fn replicate(&self, verb: &str, fields: Fields) -> Result<Reply, StorageError> {
        self.ask(|reply| EngineRequest::Replicate(verb.to_owned(), fields, reply))?
    }

    /// How everything is.
    fn status(&self) -> Result<StorageStatus, StorageError> {
        self.ask(EngineRequest::Status)
    }

    /// Whether it has something of this name. An engine that has ended has nothing.
    fn has(&self, name: &Name) -> bool {
        self.ask(|reply| EngineRequest::Has(name.clone(), reply)).unwrap_or(false)
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

/// A request is pushed or taken as a whole, so a poisoned lock still guards valid data.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
