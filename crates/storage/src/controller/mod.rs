//! The storage of an array: opened from a configuration, changed while it serves, and reported.
//!
//! - `config.rs`, `command.rs`, `status.rs`: the JSON of inputs and outputs. `error.rs`: errors and whose fault they
//!   are.
//! - `check.rs`: whether a configuration is consistent. `parts.rs`: divides it between threads.
//! - `disks.rs`, `sets.rs`, `pools.rs`: what is in it. `concat.rs`: several RAID sets under one pool. `assembly`: which
//!   sets may be made, and what must not be overwritten.
//! - `volumes.rs`: creates and deletes volumes of pools. `space.rs`: the free space of file systems.
//! - `inspect.rs`: reads all of it and changes nothing.

mod assembly;
mod check;
mod command;
mod concat;
mod config;
mod disks;
mod error;
mod inspect;
mod parts;
mod pools;
mod sets;
mod space;
mod status;
mod volumes;

pub use assembly::{Finding, Severity};
pub use command::{Command, Export, Reply};
pub use config::{DiskKind, DiskSpec, PoolSpec, RaidSetSpec, Served, ServedSet, StorageConfig};
pub use error::{Noun, StorageError};
pub use inspect::{Inspection, inspect};
pub use status::{DiskState, DiskStatus, FileSystemStatus, PoolVolumeStatus, RaidSetStatus, StorageStatus};
pub use volumes::Kept;

use crate::{disk::Disk, host::Files, pool::Pool, raid::RaidSet, runtime::Runtime};
use assembly::{Assembly, Content, Findings, check_new, probe};
use concat::Concat;
use disks::DiskTable;
use futures::future::{Either, select};
use linerate_io::{Nanos, system::unix_time_s};
use pools::PoolEntry;
use sets::{SetEntry, SetOrigin};
use space::Spaces;
use std::rc::Rc;

/// How long closing waits for something that may never come, such as space on a file system.
const CLOSE_NS: Nanos = 10_000_000_000;

/// The storage of one array. It belongs to the thread that runs its tasks.
pub struct Controller {
    runtime: Runtime,
    disk_table: DiskTable,
    sets: Vec<SetEntry>,
    pools: Vec<PoolEntry>,
    spaces: Option<Spaces>,
}

impl Controller {
    /// Opens the storage of a configuration, and makes the parts that do not exist yet. Without `files`, all disks are
    /// in memory.
    pub async fn open(
        runtime: Runtime,
        files: Option<Files>,
        config: StorageConfig,
    ) -> Result<Rc<Self>, StorageError> {
        let disks = check::check(&config)?;
        let disk_table = DiskTable::open(runtime.clone(), files, disks, false).await?;
        match Self::open_sets(&runtime, &disk_table, config).await {
            Ok((sets, pools)) => {
                let spaces = Spaces::watch(&disk_table);
                let controller = Rc::new(Self { runtime, disk_table, sets, pools, spaces });
                controller.watch_spaces();
                Ok(controller)
            }
            Err(error) => {
                disk_table.remove_made();
                Err(error)
            }
        }
    }

    async fn open_sets(
        runtime: &Runtime,
        disk_table: &DiskTable,
        config: StorageConfig,
    ) -> Result<(Vec<SetEntry>, Vec<PoolEntry>), StorageError> {
        let StorageConfig { raid_sets, pools, served, create, .. } = config;
        let findings = Findings::default();
        let assembly = Assembly { disk_table, served: &served, create: &create, findings };
        let mut sets = Vec::new();
        for spec in raid_sets {
            let opened = SetEntry::open(runtime, &assembly, spec).await;
            assembly.findings.log();
            sets.push(opened?);
        }
        assembly.make_unassigned(|disk| sets.iter().any(|entry| entry.claims(disk))).await?;
        let mut entries = Vec::new();
        for spec in pools {
            let opened = open_pool(runtime, &assembly, &sets, spec).await;
            assembly.findings.log();
            entries.push(opened?);
        }
        Ok((sets, entries))
    }

    /// The storage serves: keep what this start made.
    pub fn begin(&self) {
        self.disk_table.keep_made();
    }

    /// Memory disks take their memory in the background, so that no I/O waits for it; see
    /// [`linerate_io::Region::touch_ahead`].
    pub fn touch_memory(&self) {
        self.disk_table.touch_memory();
    }

    /// The storage will not serve: remove what this start made, if it is empty.
    pub fn abandon(&self) {
        self.disk_table.remove_made();
    }

    /// Tasks and timers of the thread.
    pub fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// Whether there is a disk of this name, in use or not.
    pub fn has_disk(&self, name: &str) -> bool {
        self.disk_table.check(name).is_ok()
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

    /// Executes a command that concerns only the storage. Commands that make, delete or change exported volumes have
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
            Command::ReplaceDisk { disk, new, overwrite } => {
                self.replace_disk(&disk, new, overwrite).await?;
            }
            Command::Scrub { raid_set } => {
                let entry = named(Noun::RaidSet, Some(&raid_set), &self.sets, |entry| &entry.spec.name)?;
                entry.set.may_scrub().map_err(|error| entry.fault(error))?;
                // The scrub starts here and runs in the background. The status shows its results.
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

    async fn replace_disk(&self, disk: &str, new: DiskSpec, overwrite: bool) -> Result<(), StorageError> {
        let entry = self.set_with(disk)?;
        let (name, path) = (new.name.clone(), new.path.clone().unwrap_or_default());
        let (comes, missing) = self.disk_table.add(new, disk).await?;
        let content = match self.disk_table.old_file(&name) {
            Some(file) if !overwrite => probe(&file).await,
            _ => Ok(Content::Nothing),
        };
        let content = content.unwrap_or(Content::Other("nothing readable"));
        let replaced = match check_new(&name, &path, &content, entry.id()) {
            Ok(()) => entry.set.replace_disk(disk, comes).await.map_err(|error| entry.fault(error)),
            Err(refused) => Err(refused),
        };
        match replaced {
            Ok(()) => self.disk_table.keep(&name, disk),
            Err(_) => self.disk_table.undo(&name, missing),
        }
        if let Some(spaces) = &self.spaces {
            spaces.look_at(&self.disk_table);
        }
        replaced
    }

    /// The state of all parts.
    pub fn status(&self) -> StorageStatus {
        let places: Vec<_> = self.sets.iter().flat_map(SetEntry::places).collect();
        let mut status = StorageStatus {
            file_systems: self.file_systems(),
            disks: self.disk_table.status(&places),
            raid_sets: self.sets.iter().map(SetEntry::status).collect(),
            ..StorageStatus::default()
        };
        for (pool, volumes) in self.pools.iter().map(PoolEntry::status) {
            status.pools.push(pool);
            status.volumes.extend(volumes);
        }
        status.volumes.sort_by(|one, other| one.volume.name.cmp(&other.volume.name));
        status
    }

    /// Makes everything durable and ends background work. Parts that cannot be closed in time are also safe, but take
    /// longer at the next start.
    pub async fn close(&self) {
        let closing = Box::pin(self.close_all());
        let late = Box::pin(self.runtime.sleep(CLOSE_NS));
        if let Either::Right(_) = select(closing, late).await {
            tracing::error!(
                "the storage could not be closed in time; the next start will go through more of it"
            );
        }
    }

    async fn close_all(&self) {
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

    /// The RAID set of a disk, also of a missing one.
    fn set_with(&self, disk: &str) -> Result<&SetEntry, StorageError> {
        let has = self.sets.iter().find(|entry| entry.has(disk));
        if let Some(entry) = has {
            return Ok(entry);
        }
        self.disk_table.check(disk)?;
        Err(StorageError::Refused(format!("disk \"{disk}\" is in no RAID set")))
    }
}

/// Opens a pool on its RAID sets.
async fn open_pool(
    runtime: &Runtime,
    assembly: &Assembly<'_>,
    sets: &[SetEntry],
    spec: PoolSpec,
) -> Result<PoolEntry, StorageError> {
    let below =
        spec.raid_sets.iter().map(|name| named(Noun::RaidSet, Some(name), sets, |one| &one.spec.name));
    let below: Vec<&SetEntry> = below.collect::<Result<_, _>>()?;
    let least = below.iter().map(|entry| entry.origin).min().unwrap_or(SetOrigin::Assembled);
    let disks = below.iter().map(|entry| Rc::<RaidSet>::clone(&entry.set) as Rc<dyn Disk>).collect();
    let disk = Concat::of(&spec.name, disks);
    PoolEntry::open(runtime, assembly, spec, disk, least).await
}

/// The entry of a name; without a name, the only entry.
pub fn named<'a, T>(
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
