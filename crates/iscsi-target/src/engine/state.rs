//! The state that the engine's tasks share: the storage, the volumes by number, the answers to workers.

use super::{
    EngineRequest, Exports, Name, OpenedVolume, Operation, OperationError, OperationOutput, OperationRequest,
    VolumeNumber,
    export_record::ExportRecord,
    serve::{self, Served},
};
use crate::config::{VolumeConfig, VolumeKind};
use bytes::Bytes;
use linerate_storage::{
    Disk, DiskError, Runtime,
    controller::{Controller, Kept, StorageError},
    disk::NextAccess,
    replica::service::Service,
};
use std::{
    cell::{Cell, OnceCell, RefCell},
    collections::BTreeSet,
    rc::Rc,
};

/// See the module text.
pub(super) struct EngineState {
    /// Of the engine.
    pub(super) number: u8,
    pub(super) runtime: Runtime,
    pub(super) controller: Rc<Controller>,
    pub(super) outbox: Rc<serve::Outbox>,
    /// The targets for exports; known once the array serves.
    pub(super) exports: OnceCell<Exports>,
    /// Known once the storage is open.
    pub(super) replication: OnceCell<Rc<Service>>,
    /// For the bytes of one operation at a time.
    buffer: RefCell<Vec<u8>>,
    /// Volumes of pools from which hosts are excluded.
    barred: RefCell<BTreeSet<String>>,
    /// By number; numbers are never used again.
    volumes: RefCell<Vec<Option<ServedVolume>>>,
}

#[derive(Clone)]
struct ServedVolume {
    volume: Served,
    /// Number of the newest reservations to be kept.
    kept: Rc<Cell<u64>>,
}

impl EngineState {
    pub(super) fn new(number: u8, runtime: Runtime, controller: Rc<Controller>) -> Self {
        Self {
            number,
            runtime,
            controller,
            outbox: Rc::default(),
            exports: OnceCell::new(),
            replication: OnceCell::new(),
            buffer: RefCell::default(),
            barred: RefCell::default(),
            volumes: RefCell::default(),
        }
    }

    pub(super) fn read(self: &Rc<Self>, request: EngineRequest) {
        match request {
            EngineRequest::Introduce(workers, exports) => {
                self.outbox.introduce(workers);
                // Called once per array.
                let _ = self.exports.set(exports);
                self.watch_space();
            }
            // The caller may have stopped waiting.
            EngineRequest::Records(reply) => drop(reply.send(self.records())),
            EngineRequest::Open(config, reply) => {
                let state = Rc::clone(self);
                self.runtime.spawn(async move { drop(reply.send(state.open(&config).await)) });
            }
            EngineRequest::Manage(command, reply) => {
                let state = Rc::clone(self);
                self.runtime.spawn(async move { drop(reply.send(state.manage(*command).await)) });
            }
            EngineRequest::Replicate(verb, fields, reply) => {
                let state = Rc::clone(self);
                self.runtime.spawn(async move { drop(reply.send(state.replicate(&verb, fields).await)) });
            }
            EngineRequest::Status(reply) => drop(reply.send(self.status())),
            EngineRequest::Has(name, reply) => drop(reply.send(self.has(&name))),
            EngineRequest::Serves { touches_memory } => {
                self.controller.begin();
                if touches_memory {
                    self.controller.touch_memory();
                }
            }
            EngineRequest::Stop => {}
        }
    }

    /// Performs an operation that needs no waiting.
    pub(super) fn serve_nowait(&self, request: &mut OperationRequest) -> Option<OperationOutput> {
        let volumes = self.volumes.borrow();
        let volume = &volumes.get(request.volume.index as usize)?.as_ref()?.volume;
        if self.is_barred(volume).is_some() {
            return None;
        }
        let mut buffer = self.buffer.borrow_mut();
        serve::perform_nowait(volume, request, &mut buffer)
    }

    /// Hint: [`EngineState::serve_nowait`] of the same request follows soon.
    pub(super) fn prefetch(&self, request: &OperationRequest) {
        let (offset_bytes, next) = match request.operation {
            Operation::Read { offset_bytes, .. } => (offset_bytes, NextAccess::Read),
            Operation::Write { offset_bytes, .. } => (offset_bytes, NextAccess::Write),
            _ => return,
        };
        if let Some(Some(entry)) = self.volumes.borrow().get(request.volume.index as usize) {
            let len = request.memory.iter().map(|part| u64::from(part.len)).sum();
            entry.volume.disk().prefetch(offset_bytes, len, next);
        }
    }

    pub(super) fn serve(self: &Rc<Self>, mut request: OperationRequest) {
        let output = self.serve_nowait(&mut request);
        let OperationRequest { volume, operation, memory, in_place, worker, tag } = request;
        let due = serve::Due::new(&self.outbox, worker, tag, (memory, in_place));
        if let Some(output) = output {
            return due.give(Ok(output));
        }
        let entry = self.volumes.borrow().get(volume.index as usize).cloned().flatten();
        // Without a volume, `due` answers with an error when it is dropped.
        let Some(entry) = entry else { return };
        if let Some(name) = self.is_barred(&entry.volume) {
            return due.give(Err(OperationError::Disk(DiskError::Protected(name))));
        }
        let state = Rc::clone(self);
        self.runtime.spawn(async move {
            let result = match operation {
                Operation::Keep { number, reservations } => state.keep(&entry, number, reservations).await,
                operation => serve::perform(&entry.volume, operation, due.memory()).await,
            };
            due.give(result);
        });
    }

    /// Keeps persistent reservations over a power loss.
    async fn keep(
        &self,
        entry: &ServedVolume,
        number: u64,
        reservations: Vec<u8>,
    ) -> Result<OperationOutput, OperationError> {
        let disk = entry.volume.disk();
        if number <= entry.kept.get() {
            // A newer state replaced this one. It is durable when the operations before this flush are.
            disk.flush().await.map_err(OperationError::Disk)?;
            return Ok(OperationOutput::Moved(0));
        }
        entry.kept.set(number);
        let bytes = (!reservations.is_empty()).then(|| Bytes::from(reservations));
        let kept = match self.controller.pool_name_of(disk.name()) {
            Ok(pool) => self.controller.keep(Kept::Reservations, pool, disk.name(), bytes).await,
            Err(error) => Err(error),
        };
        kept.map(|()| OperationOutput::Moved(0)).map_err(|error| {
            tracing::error!(
                event = "reservations_not_kept",
                volume = disk.name(),
                %error,
                "persistent reservations could not be kept"
            );
            OperationError::Gone
        })
    }

    /// Opens, and if necessary creates, a volume of the configuration.
    async fn open(&self, config: &VolumeConfig) -> Result<OpenedVolume, StorageError> {
        if config.kind == VolumeKind::Raid {
            let set = self.controller.raid_volume(config.raid_set.as_deref())?;
            let pages = set.striped_pages();
            return Ok(OpenedVolume { pages, ..self.add(Served::Whole(set)) });
        }
        let pool = config.pool.as_deref();
        let volume = self.controller.thin_volume(pool, &config.name, config.size_bytes).await?;
        let kept = self.controller.all_kept(Kept::Reservations).into_iter();
        let mine = kept.filter(|(_, volume, _)| *volume == config.name).map(|(_, _, bytes)| bytes).next();
        Ok(OpenedVolume { reservations: mine, ..self.add(Served::Thin(volume)) })
    }

    /// Gives a volume a number.
    pub(super) fn add(&self, volume: Served) -> OpenedVolume {
        let mut volumes = self.volumes.borrow_mut();
        let disk = volume.disk();
        let opened = OpenedVolume {
            volume: VolumeNumber { engine: self.number, index: volumes.len() as u32 },
            size_bytes: disk.size_bytes(),
            block_bytes: disk.block_bytes(),
            page_bytes: volume.page_bytes(),
            reservations: None,
            pages: None,
        };
        volumes.push(Some(ServedVolume { volume, kept: Rc::default() }));
        opened
    }

    /// Excludes hosts from volumes, or admits them again. Their operations in progress continue.
    pub(super) fn bar(&self, volumes: &[String], is_barred: bool) {
        let mut barred = self.barred.borrow_mut();
        for volume in volumes {
            if is_barred {
                barred.insert(volume.clone());
            } else {
                barred.remove(volume);
            }
        }
    }

    /// The volume's name, if hosts are excluded from it.
    fn is_barred(&self, volume: &Served) -> Option<String> {
        // Only volumes of pools are replicated, and only those can be barred.
        let Served::Thin(volume) = volume else { return None };
        self.barred.borrow().get(volume.name()).cloned()
    }

    /// Whether operations of hosts on a pool's volume are in progress.
    pub(super) fn is_in_use(&self, name: &str) -> bool {
        let volumes = self.volumes.borrow();
        let mine = volumes
            .iter()
            .flatten()
            .filter(|entry| matches!(&entry.volume, Served::Thin(volume) if volume.name() == name));
        mine.into_iter().any(|entry| Rc::strong_count(&entry.kept) > 1)
    }

    /// Operations in progress on a volume.
    pub(super) fn under_way(&self, number: VolumeNumber) -> usize {
        let volumes = self.volumes.borrow();
        let entry = volumes.get(number.index as usize).and_then(Option::as_ref);
        entry.map_or(0, |entry| Rc::strong_count(&entry.kept) - 1)
    }

    /// Removes the volume of this number: no operation reaches it any more.
    pub(super) fn remove(&self, number: VolumeNumber) {
        if let Some(entry) = self.volumes.borrow_mut().get_mut(number.index as usize) {
            *entry = None;
        }
    }

    fn has(&self, name: &Name) -> bool {
        match name {
            Name::Disk(disk) => self.controller.has_disk(disk),
            Name::Volume(volume) => self.controller.volume(volume).is_ok(),
            Name::Group(group) => self.replication.get().is_some_and(|service| service.has_group(group)),
        }
    }

    /// The exports that differ from the configuration.
    fn records(&self) -> Vec<(String, String, ExportRecord)> {
        let kept = self.controller.all_kept(Kept::Export).into_iter();
        let read = kept.filter_map(|(pool, volume, bytes)| match serde_json::from_slice(&bytes) {
            Ok(record) => Some((pool, volume, record)),
            Err(error) => {
                tracing::error!(
                    event = "volume_not_shown",
                    volume,
                    %error,
                    "how this volume was shown is lost; it is not shown"
                );
                None
            }
        });
        read.collect()
    }
}
