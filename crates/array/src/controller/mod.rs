//! The array's storage as its owner sees it: made from a configuration, managed while it serves, asked how it is.
//!
//! - `config.rs`, `command.rs`, `status.rs`: what goes in and out, as JSON. `error.rs`: whose fault.
//! - `check.rs`: whether a configuration fits together. `disks.rs`, `sets.rs`, `pools.rs`: its parts, opened; `joined.rs`:
//!   several RAID sets under one pool.
//! - `volumes.rs`: a pool's volumes, made and ended.

mod check;
mod command;
mod config;
mod disks;
mod error;
mod joined;
mod pools;
mod sets;
mod status;
mod volumes;

pub use command::{Command, Export, Reply};
pub use config::{
    DiskKind, DiskSpec, Initialise, JournalUse, PoolSpec, RaidLevelName, RaidSetSpec, StorageConfig,
};
pub use error::{Blame, Noun, StorageError};
pub use status::{
    DiskState, DiskStatus, PoolStatus, RaidSetState, RaidSetStatus, SnapshotStatus, StorageStatus, TaskKind,
    TaskStatus, VolumeStatus,
};
pub use volumes::Kept;

use crate::{disk::Disk, host::Files, pool::Pool, raid::RaidSet, runtime::Runtime};
use disks::Shelf;
use joined::Joined;
use linerate_io::system::unix_time_s;
use pools::PoolEntry;
use sets::SetEntry;
use std::rc::Rc;

/// The storage of one array. Belongs to the thread whose tasks work for it.
pub struct Controller {
    runtime: Runtime,
    shelf: Shelf,
    sets: Vec<SetEntry>,
    pools: Vec<PoolEntry>,
}

impl Controller {
    /// Opens what a configuration describes, and makes what of it is not there yet. Without `files`, all disks are in
    /// memory.
    pub async fn open(
        runtime: Runtime,
        files: Option<Files>,
        config: StorageConfig,
    ) -> Result<Rc<Self>, StorageError> {
        let disks = check::check(&config)?;
        let shelf = Shelf::open(runtime.clone(), files, disks).await?;
        let mut sets = Vec::new();
        for spec in config.raid_sets {
            sets.push(SetEntry::open(&runtime, &shelf, spec).await?);
        }
        let mut pools = Vec::new();
        for spec in config.pools {
            let below = spec.raid_sets.iter().map(|name| -> Result<Rc<dyn Disk>, StorageError> {
                Ok(Rc::<RaidSet>::clone(&named(Noun::RaidSet, Some(name), &sets, |one| &one.spec.name)?.set))
            });
            let disk = Joined::of(&spec.name, below.collect::<Result<_, _>>()?);
            pools.push(PoolEntry::open(&runtime, spec, disk).await?);
        }
        Ok(Rc::new(Self { runtime, shelf, sets, pools }))
    }

    /// The tasks' view of the thread that it belongs to.
    pub fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// All pools, by name.
    pub fn pools(&self) -> Vec<(String, Pool)> {
        self.pools.iter().map(|entry| (entry.spec.name.clone(), entry.pool.clone())).collect()
    }

    /// A volume that is a whole RAID set; `None`: the only one.
    pub fn raid_volume(&self, raid_set: Option<&str>) -> Result<Rc<RaidSet>, StorageError> {
        let entry = named(Noun::RaidSet, raid_set, &self.sets, |entry| &entry.spec.name)?;
        match self.pools.iter().find(|pool| pool.spec.raid_sets.contains(&entry.spec.name)) {
            Some(pool) => Err(StorageError::UsedTwice {
                noun: Noun::RaidSet,
                name: entry.spec.name.clone(),
                first: pool.spec.name.clone(),
                second: "a volume of kind raid".into(),
            }),
            None => Ok(Rc::clone(&entry.set)),
        }
    }

    /// Carries out a command that concerns nobody but the storage; those that make, end or change what initiators see are
    /// methods of their own.
    pub async fn manage(&self, command: Command) -> Result<Reply, StorageError> {
        match command {
            Command::Snapshot { volumes, name } => return self.snapshot(&volumes, &name).await,
            Command::DeleteSnapshot { volume, snapshot } => {
                let entry = self.pool_of(&volume)?;
                entry.pool.delete_snapshot(&volume, &snapshot).await.map_err(entry.fault())?;
            }
            Command::Restore { volume, snapshot } => {
                let entry = self.pool_of(&volume)?;
                entry.pool.restore(&volume, &snapshot).await.map_err(entry.fault())?;
            }
            Command::FailDisk { disk } => {
                let entry = self.set_with(&disk)?;
                entry.set.fail_disk(&disk).await.map_err(|error| entry.fault(error))?;
            }
            Command::ReplaceDisk { disk, new } => self.replace_disk(&disk, new).await?,
            Command::Scrub { raid_set } => {
                let entry = named(Noun::RaidSet, Some(&raid_set), &self.sets, |entry| &entry.spec.name)?;
                entry.set.may_scrub().map_err(|error| entry.fault(error))?;
                // It begins here and goes on by itself; the status tells what it finds.
                drop(entry.set.scrub());
            }
            Command::Status {} => {
                let status = serde_json::to_value(self.status());
                return Ok(match status {
                    Ok(serde_json::Value::Object(status)) => status,
                    _ => Reply::new(),
                });
            }
            Command::CreateVolume { .. }
            | Command::Clone { .. }
            | Command::Resize { .. }
            | Command::Delete { .. } => {
                return Err(StorageError::Refused("initiators would not be told of it".into()));
            }
        }
        Ok(Reply::new())
    }

    async fn snapshot(&self, volumes: &[String], name: &str) -> Result<Reply, StorageError> {
        let Some(first) = volumes.first() else {
            return Err(StorageError::Unnamed { noun: Noun::Volume, known: self.volume_names() });
        };
        let entry = self.pool_of(first)?;
        let volumes: Vec<&str> = volumes.iter().map(String::as_str).collect();
        let at_s = unix_time_s();
        entry.pool.snapshot(&volumes, name, at_s).await.map_err(entry.fault())?;
        Ok(Reply::from_iter([("at_s".to_owned(), at_s.into())]))
    }

    async fn replace_disk(&self, disk: &str, new: DiskSpec) -> Result<(), StorageError> {
        let entry = self.set_with(disk)?;
        let name = new.name.clone();
        let comes = self.shelf.add(new).await?;
        let replaced = entry.set.replace_disk(disk, comes).await;
        // Whichever of the two is out of use now is let go.
        self.shelf.remove(if replaced.is_ok() { disk } else { &name });
        replaced.map_err(|error| entry.fault(error))
    }

    /// How everything is.
    pub fn status(&self) -> StorageStatus {
        let places: Vec<_> = self.sets.iter().flat_map(SetEntry::places).collect();
        let mut status = StorageStatus {
            disks: self.shelf.status(&places),
            raid_sets: self.sets.iter().map(SetEntry::status).collect(),
            ..StorageStatus::default()
        };
        for (pool, volumes) in self.pools.iter().map(PoolEntry::status) {
            status.pools.push(pool);
            status.volumes.extend(volumes);
        }
        status.volumes.sort_by(|one, other| one.name.cmp(&other.name));
        status
    }

    /// Makes everything durable and ends background work.
    pub async fn close(&self) {
        for entry in &self.pools {
            if let Err(error) = entry.pool.flush().await {
                tracing::error!(pool = entry.spec.name, %error, "a pool could not be closed cleanly");
            }
        }
        for entry in &self.sets {
            if let Err(error) = entry.set.close().await {
                tracing::error!(raid_set = entry.spec.name, %error, "a RAID set could not be closed cleanly");
            }
        }
    }

    /// The RAID set that a disk is in.
    fn set_with(&self, disk: &str) -> Result<&SetEntry, StorageError> {
        if let Some(entry) = self.sets.iter().find(|entry| entry.has(disk)) {
            return Ok(entry);
        }
        self.shelf.check(disk)?;
        Err(StorageError::Refused(format!("disk \"{disk}\" is in no RAID set")))
    }
}

/// What has a name; without one, the only thing that there is.
fn named<'a, T>(
    noun: Noun,
    name: Option<&str>,
    all: &'a [T],
    name_of: impl Fn(&T) -> &String,
) -> Result<&'a T, StorageError> {
    let known = || all.iter().map(|one| name_of(one).clone()).collect();
    match (name, all) {
        (None, [only]) => Ok(only),
        (None, _) => Err(StorageError::Unnamed { noun, known: known() }),
        (Some(name), _) => all.iter().find(|one| name_of(one) == name).ok_or_else(|| StorageError::Unknown {
            noun,
            name: name.to_owned(),
            known: known(),
        }),
    }
}
