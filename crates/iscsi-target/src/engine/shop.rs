//! What the engine's tasks share: the storage, the volumes by number, the way back to the workers.

use super::{
    Answer, Fault, Letter, Opened, Operation, Request, Stage,
    exports::Record,
    serve::{self, Served},
};
use crate::config::{VolumeConfig, VolumeKind};
use bytes::Bytes;
use linerate_storage::{
    Disk, DiskError, Runtime,
    controller::{Controller, Kept, StorageError},
    replica::service::Service,
};
use std::{
    cell::{Cell, OnceCell, RefCell},
    collections::BTreeSet,
    rc::Rc,
};

/// See the module text.
pub(super) struct Shop {
    pub(super) runtime: Runtime,
    pub(super) controller: Rc<Controller>,
    pub(super) outbox: Rc<serve::Outbox>,
    /// Where volumes are shown; known once the array serves.
    pub(super) stage: OnceCell<Stage>,
    /// Known once the storage is open.
    pub(super) replication: OnceCell<Rc<Service>>,
    /// Volumes of pools that hosts are kept out of.
    barred: RefCell<BTreeSet<String>>,
    /// By number; numbers are never used again.
    volumes: RefCell<Vec<Option<Entry>>>,
}

#[derive(Clone)]
struct Entry {
    volume: Served,
    /// Number of the newest reservations that were to be kept.
    kept: Rc<Cell<u64>>,
}

impl Shop {
    pub(super) fn new(runtime: Runtime, controller: Rc<Controller>) -> Self {
        Self {
            runtime,
            controller,
            outbox: Rc::default(),
            stage: OnceCell::new(),
            replication: OnceCell::new(),
            barred: RefCell::default(),
            volumes: RefCell::default(),
        }
    }

    pub(super) fn read(self: &Rc<Self>, letter: Letter) {
        match letter {
            Letter::Io(requests) => requests.into_iter().for_each(|request| self.serve(request)),
            Letter::Introduce(workers, stage) => {
                self.outbox.introduce(workers);
                // Said once per array.
                let _ = self.stage.set(stage);
                self.watch_space();
            }
            // Whoever asked and did not wait for the answer does not need it.
            Letter::Records(reply) => drop(reply.send(self.records())),
            Letter::Open(config, reply) => {
                let shop = Rc::clone(self);
                self.runtime.spawn(async move { drop(reply.send(shop.open(&config).await)) });
            }
            Letter::Manage(command, reply) => {
                let shop = Rc::clone(self);
                self.runtime.spawn(async move { drop(reply.send(shop.manage(*command).await)) });
            }
            Letter::Replicate(verb, fields, reply) => {
                let shop = Rc::clone(self);
                self.runtime.spawn(async move { drop(reply.send(shop.replicate(&verb, fields).await)) });
            }
            Letter::Status(reply) => drop(reply.send(self.status())),
            Letter::Serves => self.controller.begin(),
            Letter::Stop => {}
        }
    }

    fn serve(self: &Rc<Self>, request: Request) {
        let due = serve::Due::new(&self.outbox, &request);
        let entry = self.volumes.borrow().get(request.volume as usize).cloned().flatten();
        // Without a volume, `due` says so when it is dropped.
        let Some(entry) = entry else { return };
        if let Some(name) = self.is_barred(&entry.volume) {
            return due.give(Err(Fault::Disk(DiskError::Protected(name))));
        }
        let shop = Rc::clone(self);
        self.runtime.spawn(async move {
            let result = match request.operation {
                Operation::Keep { number, reservations } => shop.keep(&entry, number, reservations).await,
                operation => serve::perform(&entry.volume, operation, &request.memory).await,
            };
            due.give(result);
        });
    }

    /// Keeps persistent reservations over a power loss.
    async fn keep(&self, entry: &Entry, number: u64, reservations: Vec<u8>) -> Result<Answer, Fault> {
        let disk = entry.volume.disk();
        if number <= entry.kept.get() {
            // A newer state overtook this one. It is durable when what was begun before this flush is.
            disk.flush().await.map_err(Fault::Disk)?;
            return Ok(Answer::Moved(0));
        }
        entry.kept.set(number);
        let bytes = (!reservations.is_empty()).then(|| Bytes::from(reservations));
        let kept = match self.controller.pool_name_of(disk.name()) {
            Ok(pool) => self.controller.keep(Kept::Reservations, pool, disk.name(), bytes).await,
            Err(error) => Err(error),
        };
        kept.map(|()| Answer::Moved(0)).map_err(|error| {
            tracing::error!(
                event = "reservations_not_kept",
                volume = disk.name(),
                %error,
                "persistent reservations could not be kept"
            );
            Fault::Gone
        })
    }

    /// Opens, and if need be makes, a volume of the configuration.
    async fn open(&self, config: &VolumeConfig) -> Result<Opened, StorageError> {
        if config.kind == VolumeKind::Raid {
            let set = self.controller.raid_volume(config.raid_set.as_deref())?;
            let pages = set.striped_pages();
            return Ok(Opened { pages, ..self.add(Served::Whole(set)) });
        }
        let pool = config.pool.as_deref();
        let volume = self.controller.thin_volume(pool, &config.name, config.size_bytes).await?;
        let kept = self.controller.all_kept(Kept::Reservations).into_iter();
        let mine = kept.filter(|(_, volume, _)| *volume == config.name).map(|(_, _, bytes)| bytes).next();
        Ok(Opened { reservations: mine, ..self.add(Served::Thin(volume)) })
    }

    /// Gives a volume a number.
    pub(super) fn add(&self, volume: Served) -> Opened {
        let mut volumes = self.volumes.borrow_mut();
        let disk = volume.disk();
        let opened = Opened {
            volume: volumes.len() as u32,
            size_bytes: disk.size_bytes(),
            block_bytes: disk.block_bytes(),
            page_bytes: volume.page_bytes(),
            reservations: None,
            pages: None,
        };
        volumes.push(Some(Entry { volume, kept: Rc::default() }));
        opened
    }

    /// Keeps hosts out of volumes, or lets them in again. What they have begun is not touched.
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

    /// The volume's name, if hosts are kept out of it.
    fn is_barred(&self, volume: &Served) -> Option<String> {
        let Served::Thin(volume) = volume else { return None };
        self.barred.borrow().get(volume.name()).cloned()
    }

    /// Whether operations of hosts on a pool's volume are under way.
    pub(super) fn is_in_use(&self, name: &str) -> bool {
        let volumes = self.volumes.borrow();
        let mine = volumes
            .iter()
            .flatten()
            .filter(|entry| matches!(&entry.volume, Served::Thin(volume) if volume.name() == name));
        mine.into_iter().any(|entry| Rc::strong_count(&entry.kept) > 1)
    }

    /// Operations on a volume that are under way.
    pub(super) fn under_way(&self, number: u32) -> usize {
        let volumes = self.volumes.borrow();
        let entry = volumes.get(number as usize).and_then(Option::as_ref);
        entry.map_or(0, |entry| Rc::strong_count(&entry.kept) - 1)
    }

    /// Nobody reaches the volume of this number any more.
    pub(super) fn remove(&self, number: u32) {
        if let Some(entry) = self.volumes.borrow_mut().get_mut(number as usize) {
            *entry = None;
        }
    }

    /// How volumes are shown that are not shown as the configuration says.
    fn records(&self) -> Vec<(String, String, Record)> {
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
