//! All engines of an array: each has a part of the storage that shares nothing with the others.
//!
//! The names of disks, RAID sets, pools, volumes and replication groups are unique on the array, not only in an engine.
//! A command goes to the engine that knows its name. Commands that bring a new name run one at a time.

use super::{
    Deliver, Engine, EngineHandles, ExportRecord, Exports, Name, OpenedVolume, handles::ENGINES_MAX, lock,
};
use crate::config::{VolumeConfig, VolumeKind};
use linerate_io::{Preference, WaitMode};
use linerate_storage::{
    controller::{Command, DiskSpec, Noun, Reply, StorageConfig, StorageError, StorageStatus, named},
    replica::{ReplicaError, service::Fields},
};
use serde_json::Value;
use std::{fmt, sync::Mutex};

/// See the module text. There is at least one engine.
pub(crate) struct Engines {
    all: Vec<Engine>,
    order: Order,
    /// Held by commands that bring a new name.
    naming: Mutex<()>,
}

/// The names of the configuration, in its order.
struct Order {
    disks: Vec<String>,
    /// With the numbers of their engines.
    raid_sets: Vec<(String, usize)>,
    pools: Vec<(String, usize)>,
}

impl Order {
    fn new(config: &StorageConfig, parts: &[StorageConfig]) -> Self {
        let part_with = |has: &dyn Fn(&StorageConfig) -> bool| parts.iter().position(has).unwrap_or(0);
        let set = |name: &String| part_with(&|part| part.raid_sets.iter().any(|set| set.name == *name));
        let pool = |name: &String| part_with(&|part| part.pools.iter().any(|pool| pool.name == *name));
        let disks = config.disks.iter().flat_map(DiskSpec::each);
        let sets = config.raid_sets.iter().map(|spec| &spec.name);
        let pools = config.pools.iter().map(|spec| &spec.name);
        Self {
            disks: disks.map(|disk| disk.name).collect(),
            raid_sets: sets.map(|name| (name.clone(), set(name))).collect(),
            pools: pools.map(|name| (name.clone(), pool(name))).collect(),
        }
    }
}

impl Engines {
    /// Opens the storage of a configuration with at most `engines_max` threads.
    pub(crate) fn start(
        config: &StorageConfig,
        engines_max: usize,
        driver: Preference,
        wait: WaitMode,
    ) -> Result<Self, StorageError> {
        let parts = config.divide(engines_max.min(ENGINES_MAX))?;
        let order = Order::new(config, &parts);
        let numbered = (0..).zip(parts);
        let engines = numbered.map(|(number, part)| Engine::start(number, part, driver, wait));
        Ok(Self { all: engines.collect::<Result<_, _>>()?, order, naming: Mutex::default() })
    }

    pub(crate) fn handles(&self) -> EngineHandles {
        EngineHandles::new(self.all.iter().map(Engine::inbox))
    }

    /// Volumes that were created while the array served: pool, name, record.
    pub(crate) fn made(&self) -> impl Iterator<Item = &(String, String, ExportRecord)> {
        self.all.iter().flat_map(Engine::made)
    }

    /// Whether a volume of the configuration was deleted.
    pub(crate) fn has_deleted(&self, volume: &str) -> bool {
        self.all.iter().any(|engine| engine.has_deleted(volume))
    }

    /// Sets the receivers of answers, by the number of the worker, and the targets for exports.
    pub(crate) fn introduce(&self, workers: &[Deliver], exports: &Exports) {
        self.all.iter().for_each(|engine| engine.introduce(workers.to_vec(), exports.clone()));
    }

    /// Reports that the array serves.
    pub(crate) fn serves(&self, touches_memory: bool) {
        self.all.iter().for_each(|engine| engine.serves(touches_memory));
    }

    /// Opens a volume of kind "raid" or "pool".
    pub(crate) fn open(&self, config: &VolumeConfig) -> Result<OpenedVolume, StorageError> {
        if config.kind == VolumeKind::Raid {
            let sets = &self.order.raid_sets;
            let (set, number) = named(Noun::RaidSet, config.raid_set.as_deref(), sets, |(name, _)| name)?;
            let config = VolumeConfig { raid_set: Some(set.clone()), ..config.clone() };
            return self.all[*number].open(config);
        }
        let (pool, engine) = self.pool(config.pool.as_deref())?;
        let volume = Name::Volume(config.name.clone());
        if !engine.has(&volume) {
            self.check_free(volume)?;
        }
        engine.open(VolumeConfig { pool: Some(pool), ..config.clone() })
    }

    /// The state of all parts whose engines have not ended. At least one has not.
    pub(crate) fn status(&self) -> Result<StorageStatus, StorageError> {
        let mut all = StorageStatus::default();
        let parts: Vec<_> = self.all.iter().filter_map(|engine| engine.status().ok()).collect();
        if parts.is_empty() {
            return Err(StorageError::Gone);
        }
        for StorageStatus { file_systems, disks, raid_sets, pools, volumes } in parts {
            all.file_systems.extend(file_systems);
            all.disks.extend(disks);
            all.raid_sets.extend(raid_sets);
            all.pools.extend(pools);
            all.volumes.extend(volumes);
        }
        let Order { disks, raid_sets, pools } = &self.order;
        all.disks.sort_by_key(|disk| place(disks.iter(), &disk.name));
        all.raid_sets.sort_by_key(|set| place(raid_sets.iter().map(|(name, _)| name), &set.name));
        all.pools.sort_by_key(|pool| place(pools.iter().map(|(name, _)| name), &pool.name));
        all.volumes.sort_by(|one, other| one.volume.name.cmp(&other.volume.name));
        Ok(all)
    }

    /// Carries a command out.
    pub(crate) fn manage(&self, command: &Command) -> Result<Reply, StorageError> {
        let new_name = match command {
            Command::CreateVolume { name, .. } | Command::Clone { name, .. } => {
                Some(Name::Volume(name.clone()))
            }
            // A missing disk may come back under its own name, which its engine knows.
            Command::ReplaceDisk { disk, new, .. } if new.name != *disk => Some(Name::Disk(new.name.clone())),
            _ => None,
        };
        let _naming = new_name.as_ref().map(|_| lock(&self.naming));
        new_name.map_or(Ok(()), |name| self.check_free(name))?;
        let (noun, name) = match command {
            Command::Status {} => {
                return Ok(match serde_json::to_value(self.status()?) {
                    Ok(Value::Object(status)) => status,
                    _ => Reply::new(),
                });
            }
            Command::CreateVolume { pool, name, size_bytes, export } => {
                let (pool, engine) = self.pool(pool.as_deref())?;
                let (pool, name, size_bytes) = (Some(pool), name.clone(), *size_bytes);
                return engine.manage(Command::CreateVolume {
                    pool,
                    name,
                    size_bytes,
                    export: export.clone(),
                });
            }
            Command::Resize { volume, .. }
            | Command::Delete { volume, .. }
            | Command::DeleteSnapshot { volume, .. }
            | Command::Restore { volume, .. }
            | Command::Clone { volume, .. } => (Noun::Volume, volume.clone()),
            Command::Snapshot { volumes, .. } => (Noun::Volume, volumes.first().cloned().unwrap_or_default()),
            Command::FailDisk { disk } | Command::ReplaceDisk { disk, .. } => (Noun::Disk, disk.clone()),
            Command::Scrub { raid_set } => (Noun::RaidSet, raid_set.clone()),
        };
        self.ask_all(noun, &name, |engine| engine.manage(command.clone()))
    }

    /// Carries out a verb of replication.
    pub(crate) fn replicate(&self, verb: &str, mut fields: Fields) -> Result<Reply, StorageError> {
        match verb {
            "replica_prepare" => {
                if let Some(engine) = self.with_group(fields.get("group")) {
                    return engine.replicate(verb, fields);
                }
                let _naming = lock(&self.naming);
                let engine = self.with_volume(fields.get("volumes")).unwrap_or(&self.all[0]);
                engine.replicate(verb, fields)
            }
            "replica_begin" => {
                let group = fields.get("offer").and_then(|offer| offer.get("group"));
                if let Some(engine) = self.with_group(group) {
                    return engine.replicate(verb, fields);
                }
                let _naming = lock(&self.naming);
                let (pool, engine) = self.pool(fields.get("pool").and_then(Value::as_str))?;
                self.check_offer(fields.get("offer"))?;
                fields.insert("pool".into(), pool.into());
                engine.replicate(verb, fields)
            }
            _ => {
                let mut refusal = StorageError::Gone;
                for engine in &self.all {
                    match engine.replicate(verb, fields.clone()) {
                        Err(StorageError::Gone) => {}
                        Err(error @ StorageError::Replica(ReplicaError::UnknownGroup(_))) => refusal = error,
                        answer => return answer,
                    }
                }
                Err(refusal)
            }
        }
    }

    /// The volumes of a new group must be new on the array.
    fn check_offer(&self, offer: Option<&Value>) -> Result<(), StorageError> {
        let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
        let volumes = offer.and_then(|offer| offer.get("volumes")).and_then(Value::as_array);
        for volume in volumes.into_iter().flatten().map(|volume| text(volume.get("name"))) {
            if self.find(&Name::Volume(volume.clone())).is_some() {
                let group = text(offer.and_then(|offer| offer.get("group")));
                return Err(ReplicaError::NameTaken { group, volume }.into());
            }
        }
        Ok(())
    }

    /// The engine with this replication group.
    fn with_group(&self, name: Option<&Value>) -> Option<&Engine> {
        self.find(&Name::Group(name?.as_str()?.to_owned()))
    }

    /// The engine with the first of these volumes.
    fn with_volume(&self, names: Option<&Value>) -> Option<&Engine> {
        self.find(&Name::Volume(names?.get(0)?.as_str()?.to_owned()))
    }

    fn find(&self, name: &Name) -> Option<&Engine> {
        self.all.iter().find(|engine| engine.has(name))
    }

    /// Refuses a new name that is in use.
    fn check_free(&self, name: Name) -> Result<(), StorageError> {
        if self.find(&name).is_some() { Err(name.taken()) } else { Ok(()) }
    }

    /// A pool and its engine; without a name, the only pool.
    fn pool(&self, name: Option<&str>) -> Result<(String, &Engine), StorageError> {
        let (pool, number) = named(Noun::Pool, name, &self.order.pools, |(name, _)| name)?;
        Ok((pool.clone(), &self.all[*number]))
    }

    /// Asks one engine after the other, until one knows the name. An engine that does not know it changes nothing.
    fn ask_all(
        &self,
        noun: Noun,
        name: &str,
        ask: impl Fn(&Engine) -> Result<Reply, StorageError>,
    ) -> Result<Reply, StorageError> {
        let (mut all_known, mut has_ended) = (Vec::new(), false);
        for engine in &self.all {
            match ask(engine) {
                Err(StorageError::Gone) => has_ended = true,
                Err(StorageError::Unknown { noun: wanted, name: unknown, known })
                    if wanted == noun && unknown == name =>
                {
                    all_known.extend(known);
                }
                Err(StorageError::Unnamed { noun: wanted, known }) if wanted == noun => {
                    all_known.extend(known);
                }
                answer => return answer,
            }
        }
        Err(if has_ended {
            StorageError::Gone
        } else if name.is_empty() {
            StorageError::Unnamed { noun, known: all_known }
        } else {
            StorageError::Unknown { noun, name: name.to_owned(), known: all_known }
        })
    }
}

/// The place of a name in the configuration; unknown names follow all others.
fn place<'a>(mut names: impl Iterator<Item = &'a String>, name: &str) -> usize {
    names.position(|known| known == name).unwrap_or(usize::MAX)
}

impl fmt::Debug for Engines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engines").field("all", &self.all.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::engine::EngineRequest;

    #[test]
    fn an_engine_that_has_ended_takes_no_other_with_it() {
        let storage = serde_json::json!({
            "disks": [{"name": "d", "count": 2, "size_bytes": 16 << 20}],
            "raid_sets": [
                {"name": "r0", "level": "raid0", "disks": ["d0"]},
                {"name": "r1", "level": "raid0", "disks": ["d1"]}],
        });
        let storage = serde_json::from_value(storage).unwrap();
        let mut engines = Engines::start(&storage, 2, Preference::Auto, WaitMode::Block).unwrap();
        let _ = engines.all[0].inbox.post(EngineRequest::Stop);
        engines.all[0].thread.take().unwrap().join().unwrap();
        let status = engines.status().unwrap();
        assert_eq!(status.raid_sets.iter().map(|set| &*set.name).collect::<Vec<_>>(), ["r1"]);
        let fail = |disk: &str| {
            let command = serde_json::json!({"verb": "fail_disk", "disk": disk});
            engines.manage(&serde_json::from_value(command).unwrap())
        };
        fail("d1").unwrap();
        assert!(matches!(fail("d0"), Err(StorageError::Gone)), "its engine has ended");
        let _ = engines.all[1].inbox.post(EngineRequest::Stop);
        engines.all[1].thread.take().unwrap().join().unwrap();
        assert!(matches!(engines.status(), Err(StorageError::Gone)));
    }
}
