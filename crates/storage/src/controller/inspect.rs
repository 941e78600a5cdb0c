//! Inspects storage and changes nothing: the result is what a start of the array would find.
//!
//! Files are opened for reading, and recovery writes to memory only. The code is the code of a start.

use super::{
    assembly::{Assembly, Finding, Findings, Severity, Verdict},
    check,
    config::StorageConfig,
    disks::DiskTable,
    error::StorageError,
    open_pool,
    pools::PoolEntry,
    sets::SetEntry,
    status::{DiskState, StorageStatus},
};
use crate::{Disk, Host, amount::size_text, host::Files, runtime::Runtime};
use linerate_io::{Preference, open_driver, space, with_driver};
use serde::Serialize;
use std::{collections::BTreeMap, path::Path};

/// What was found.
#[derive(Clone, Debug, Serialize)]
pub struct Inspection {
    /// In the order of discovery.
    pub findings: Vec<Finding>,
    /// Everything as a start would find it.
    pub storage: StorageStatus,
}

/// Inspects the storage of a configuration. Error: the configuration is wrong, or the host cannot read the storage.
pub fn inspect(config: StorageConfig, preference: Preference) -> Result<Inspection, StorageError> {
    let driver = open_driver(preference).map_err(|error| StorageError::Host(error.to_string()))?;
    with_driver!(driver, |driver| {
        let mut host = Host::new(driver);
        let (runtime, files) = (host.runtime(), host.files());
        let looking = host.block_on(look(runtime, files, config));
        looking.map_err(|error| StorageError::Host(error.to_string()))?
    })
}

async fn look(runtime: Runtime, files: Files, config: StorageConfig) -> Result<Inspection, StorageError> {
    let disks = check::check(&config)?;
    let disk_table = DiskTable::open(runtime.clone(), Some(files), disks, true).await?;
    let findings = Findings::default();
    let StorageConfig { raid_sets, pools, served, create, .. } = config;
    let assembly =
        Assembly { disk_table: &disk_table, served: &served, create: &create, findings: findings.clone() };
    let (mut sets, mut entries) = (Vec::new(), Vec::new());
    for spec in raid_sets {
        let about = format!("RAID set {}", spec.name);
        if let Some(disk) = spec.disks.iter().find(|name| disk_table.is_in_use(name)) {
            findings.note(about, format!("is not looked at: {}", disk_table.why_absent(disk)));
            for disk in spec.disks.iter().chain(&spec.spares).filter(|name| disk_table.is_in_use(name)) {
                disk_table.leave_out(disk, &spec.name);
            }
            continue;
        }
        match assembly.judge(&spec).await {
            Err(error) => findings.refused(about, plain(&error)),
            Ok(Verdict::Create(absent)) => check_new(&disk_table, &findings, &about, &absent),
            Ok(Verdict::Assemble(..)) => match SetEntry::open(&runtime, &assembly, spec).await {
                Ok(entry) => sets.push(entry),
                Err(error) => findings.refused(about, error.to_string()),
            },
        }
    }
    for spec in pools {
        let about = format!("pool {}", spec.name);
        if !spec.raid_sets.iter().all(|name| sets.iter().any(|entry: &SetEntry| entry.spec.name == *name)) {
            findings.note(about, "is not looked at, as not all of its RAID sets can be read now");
            continue;
        }
        match open_pool(&runtime, &assembly, &sets, spec).await {
            Ok(entry) => entries.push(entry),
            Err(error) => findings.refused(about, error.to_string()),
        }
    }
    let storage = status(&disk_table, &sets, &entries);
    for disk in storage.disks.iter().filter(|disk| disk.state == DiskState::InUse && disk.raid_set.is_none())
    {
        let why = disk_table.why_absent(&disk.name);
        findings.note(format!("disk {}", disk.name), format!("is not looked at: {why}"));
    }
    judge(&disk_table, &storage, &findings);
    Ok(Inspection { findings: once(findings.take()), storage })
}

/// A set that would be made.
fn check_new(disk_table: &DiskTable, findings: &Findings, about: &str, absent: &[String]) {
    match disk_table.check_room(absent) {
        Ok(()) if absent.is_empty() => findings.note(about, "will be made: its disks hold nothing"),
        Ok(()) => findings.note(about, format!("will be made, with new files for {}", absent.join(", "))),
        Err(error) => findings.refused(about, plain(&error)),
    }
}

fn status(disk_table: &DiskTable, sets: &[SetEntry], pools: &[PoolEntry]) -> StorageStatus {
    let places: Vec<_> = sets.iter().flat_map(SetEntry::places).collect();
    let mut status = StorageStatus {
        disks: disk_table.status(&places),
        raid_sets: sets.iter().map(SetEntry::status).collect(),
        ..StorageStatus::default()
    };
    for (pool, volumes) in pools.iter().map(PoolEntry::status) {
        status.pools.push(pool);
        status.volumes.extend(volumes);
    }
    status
}

/// Reports findings that follow from the state of the storage.
fn judge(disk_table: &DiskTable, storage: &StorageStatus, findings: &Findings) {
    for set in &storage.raid_sets {
        let about = format!("RAID set {}", set.name);
        let members = storage.disks.iter().filter(|disk| disk.raid_set.as_ref() == Some(&set.name));
        let out: Vec<&str> = members
            .filter(|disk| matches!(disk.state, DiskState::Missing | DiskState::Failed))
            .map(|disk| disk.name.as_str())
            .collect();
        if !out.is_empty() {
            findings.care(&about, format!("serves without {}", out.join(", ")));
        }
        if set.counters.mismatches_found > set.counters.mismatches_mended {
            findings.care(&about, "holds blocks that do not agree with their checksum");
        }
    }
    for pool in storage.pools.iter().filter(|pool| pool.warning) {
        let (used, size) = (size_text(pool.used_bytes), size_text(pool.size_bytes));
        findings.care(format!("pool {}", pool.name), format!("is nearly full: {used} of {size} used"));
    }
    let mut wanted: BTreeMap<u64, (u64, u64, String)> = BTreeMap::new();
    for (_, path, file) in disk_table.kept_in_files() {
        let Ok(Some(found)) = space::file_space(&path) else { continue };
        if !file.is_thin() || found.allocated_bytes >= found.size_bytes {
            continue;
        }
        let folder = path.parent().unwrap_or(Path::new(".")).display().to_string();
        let entry = wanted.entry(found.file_system).or_insert((found.free_bytes, 0, folder));
        entry.1 += found.size_bytes - found.allocated_bytes;
    }
    for (free, unallocated, folder) in
        wanted.into_values().filter(|(free, unallocated, _)| free < unallocated)
    {
        let (free, unallocated) = (size_text(free), size_text(unallocated));
        let text = format!("{free} free, and the sparse disks on it may still need {unallocated}");
        findings.care(format!("file system of {folder}"), text);
    }
}

/// The text of an error that would end a start. An inspection changes nothing, so this part is left out.
fn plain(error: &StorageError) -> String {
    error.to_string().replace(" Nothing was changed.", "")
}

/// Each finding once, those that matter most first.
fn once(findings: Vec<Finding>) -> Vec<Finding> {
    let mut all: Vec<Finding> = Vec::new();
    for finding in findings {
        if !all.contains(&finding) {
            all.push(finding);
        }
    }
    let rank = |finding: &Finding| match finding.severity {
        Severity::Refused => 0,
        Severity::Care => 1,
        Severity::Note => 2,
    };
    all.sort_by_key(rank);
    all
}
