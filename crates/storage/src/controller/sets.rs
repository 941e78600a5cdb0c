//! An array's RAID sets.

use super::{
    assembly::{Assembly, Parts, Verdict},
    config::RaidSetSpec,
    error::StorageError,
    status::{DiskState, RaidSetStatus},
};
use crate::{
    disk::Disk,
    raid::{MemberState, RaidConfig, RaidError, RaidSet, RaidStatus},
    runtime::Runtime,
};
use std::rc::Rc;

/// A RAID set and its configuration.
pub(super) struct SetEntry {
    pub(super) spec: RaidSetSpec,
    pub(super) set: Rc<RaidSet>,
    pub(super) origin: SetOrigin,
}

/// How a set came to be at this start. The order is that of what is known of its contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SetOrigin {
    /// It existed.
    Assembled,
    /// It was made.
    Made,
    /// It was made of disks that hold zeros.
    MadeOfZeros,
}

/// The role of a disk in a RAID set.
pub(super) struct Membership {
    pub(super) disk: String,
    pub(super) set: String,
    pub(super) state: DiskState,
}

impl SetEntry {
    /// Assembles a set, or creates it if this is permitted.
    pub(super) async fn open(
        runtime: &Runtime,
        assembly: &Assembly<'_>,
        spec: RaidSetSpec,
    ) -> Result<Self, StorageError> {
        let config = config(&spec);
        let (set, origin) = match assembly.judge(&spec).await? {
            Verdict::Assemble(Parts { disks, mut spares }, new) => {
                spares.extend(assembly.new_spares(&new).await);
                (RaidSet::assemble(runtime.clone(), config, disks, spares).await, SetOrigin::Assembled)
            }
            Verdict::Create(absent) => {
                let disk_table = assembly.disk_table;
                disk_table.make(&absent).await?;
                let disks = |names: &[String]| -> Result<Vec<_>, StorageError> {
                    let disks =
                        names.iter().map(|name| disk_table.disk(name)).collect::<Result<Vec<_>, _>>()?;
                    Ok(disks.into_iter().flatten().collect())
                };
                let (members, spares) = (disks(&spec.disks)?, disks(&spec.spares)?);
                let set = RaidSet::create(runtime.clone(), config, members, spares).await;
                // Disks in memory begin as zeros, and so do new files.
                let of_zeros = spec.disks.iter().all(|name| disk_table.old_file(name).is_none());
                (set, if of_zeros { SetOrigin::MadeOfZeros } else { SetOrigin::Made })
            }
        };
        match set {
            Ok(set) => Ok(Self { spec, set, origin }),
            Err(error) => Err(StorageError::Raid { set: spec.name, error }),
        }
    }

    /// Adds the set's name to an error.
    pub(super) fn fault(&self, error: RaidError) -> StorageError {
        StorageError::Raid { set: self.spec.name.clone(), error }
    }

    /// Whether a disk is a member, a missing member, or a spare.
    pub(super) fn has(&self, disk: &str) -> bool {
        let RaidStatus { members, spares, .. } = self.set.status();
        members.iter().any(|member| member.name == disk) || spares.iter().any(|spare| spare == disk)
    }

    /// Whether the set has this disk by the configuration, or in fact.
    pub(super) fn claims(&self, disk: &str) -> bool {
        self.has(disk) || self.spec.disks.iter().chain(&self.spec.spares).any(|name| name == disk)
    }

    /// Distinguishes sets of the same name.
    pub(super) fn id(&self) -> u64 {
        self.set.status().id
    }

    pub(super) fn places(&self) -> Vec<Membership> {
        let RaidStatus { members, spares, former, .. } = self.set.status();
        let place =
            |disk: &str, state| Membership { disk: disk.to_owned(), set: self.spec.name.clone(), state };
        let state = |state| match state {
            MemberState::Online => DiskState::Online,
            MemberState::Rebuilding => DiskState::Rebuilding,
            MemberState::Failed => DiskState::Failed,
            MemberState::Missing => DiskState::Missing,
        };
        let members = members.iter().map(|member| place(&member.name, state(member.state)));
        let spares = spares.iter().map(|spare| place(spare, DiskState::Spare));
        members.chain(spares).chain(former.iter().map(|disk| place(disk, DiskState::Failed))).collect()
    }

    pub(super) fn status(&self) -> RaidSetStatus {
        let RaidStatus { state, raw_bytes, task, counters, id, generations, .. } = self.set.status();
        RaidSetStatus {
            name: self.spec.name.clone(),
            id: format!("{id:016x}"),
            generations,
            level: self.spec.level,
            state,
            size_bytes: self.set.size_bytes(),
            raw_bytes,
            task,
            counters,
        }
    }
}

fn config(spec: &RaidSetSpec) -> RaidConfig {
    RaidConfig {
        name: spec.name.clone(),
        level: spec.level,
        chunk_bytes: spec.chunk_bytes,
        groups: spec.groups as usize,
        initialise: spec.initialise,
        journal: spec.journal,
        rebuild_bytes_per_s: spec.rebuild_bytes_per_s,
        checksums: spec.checksums,
    }
}
