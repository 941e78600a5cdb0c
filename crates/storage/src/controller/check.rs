//! Whether the parts of a configuration fit together.

use super::{
    config::{DiskSpec, StorageConfig},
    error::{Noun, StorageError},
};
use std::collections::HashMap;

/// Longest name.
const NAME_CHARACTERS: usize = 48;
const IO_TIMEOUT_S: std::ops::RangeInclusive<f64> = 0.1..=3600.0;

/// Checks a configuration, and returns its disks one by one.
pub(super) fn check(config: &StorageConfig) -> Result<Vec<DiskSpec>, StorageError> {
    let disks: Vec<DiskSpec> = config.disks.iter().flat_map(DiskSpec::each).collect();
    let disk_names = names(Noun::Disk, disks.iter().map(|disk| &disk.name))?;
    let set_names = names(Noun::RaidSet, config.raid_sets.iter().map(|set| &set.name))?;
    names(Noun::Pool, config.pools.iter().map(|pool| &pool.name))?;
    disks.iter().try_for_each(check_disk)?;
    let mut owners = HashMap::new();
    for set in &config.raid_sets {
        for disk in set.disks.iter().chain(&set.spares) {
            own(Noun::Disk, disk, &set.name, &disk_names, &mut owners)?;
        }
    }
    let mut owners = HashMap::new();
    for pool in &config.pools {
        if pool.raid_sets.is_empty() {
            return Err(value(Noun::Pool, &pool.name, "raid_sets", "names at least one RAID set"));
        }
        if !(0.0..=1.0).contains(&pool.warn_at) {
            return Err(value(Noun::Pool, &pool.name, "warn_at", "is a share, 0 to 1"));
        }
        if pool.overcommit.is_some_and(|ratio| !(1.0..=1e6).contains(&ratio)) {
            return Err(value(Noun::Pool, &pool.name, "overcommit", "is a ratio of at least 1"));
        }
        for set in &pool.raid_sets {
            own(Noun::RaidSet, set, &pool.name, &set_names, &mut owners)?;
        }
    }
    let pool_names = config.pools.iter().map(|pool| pool.name.clone()).collect::<Vec<_>>();
    for name in &config.create {
        if ![&disk_names, &set_names, &pool_names].iter().any(|names| names.contains(name)) {
            let known = [set_names, pool_names].concat();
            return Err(StorageError::Unknown { noun: Noun::RaidSet, name: name.clone(), known });
        }
    }
    Ok(disks)
}

/// Checks that a name can be used in messages, files and commands.
pub(super) fn check_name(name: &str) -> Result<(), StorageError> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if (1..=NAME_CHARACTERS).contains(&name.len()) && name.bytes().all(is_plain) {
        return Ok(());
    }
    Err(StorageError::Name(name.to_owned()))
}

/// Checks a disk, apart from its name.
pub(super) fn check_disk(disk: &DiskSpec) -> Result<(), StorageError> {
    use super::config::DiskKind::{File, Memory};
    let wrong = |key, rule| Err(value(Noun::Disk, &disk.name, key, rule));
    if !matches!(disk.sector_bytes, 512 | 4096) {
        return wrong("sector_bytes", "is 512 or 4096");
    }
    let sector = u64::from(disk.sector_bytes);
    if disk.size_bytes.is_some_and(|size| size == 0 || !size.is_multiple_of(sector)) {
        return wrong("size_bytes", "is a multiple of the sector size, and not 0");
    }
    if !IO_TIMEOUT_S.contains(&disk.io_timeout_s) {
        return wrong("io_timeout_s", "is a number of seconds from 0.1 to 3600");
    }
    match disk.kind {
        Memory if disk.path.is_some() => {
            wrong("path", "is for kind \"file\"; leave it out, or change the kind")
        }
        Memory if disk.size_bytes.is_none() => wrong("size_bytes", "is missing; a disk in memory needs it"),
        File if disk.path.is_none() => wrong("path", "is missing; a disk of kind \"file\" needs it"),
        Memory | File => Ok(()),
    }
}

pub(super) fn value(noun: Noun, name: &str, key: &'static str, rule: &str) -> StorageError {
    StorageError::Value { noun, name: name.to_owned(), key, rule: rule.to_owned() }
}

fn names<'a>(noun: Noun, names: impl Iterator<Item = &'a String>) -> Result<Vec<String>, StorageError> {
    let mut seen: Vec<String> = Vec::new();
    for name in names {
        check_name(name)?;
        if seen.contains(name) {
            return Err(StorageError::Taken { noun, name: name.clone() });
        }
        seen.push(name.clone());
    }
    Ok(seen)
}

/// Records that only `owner` uses `name`.
fn own(
    noun: Noun,
    name: &str,
    owner: &str,
    known: &[String],
    owners: &mut HashMap<String, String>,
) -> Result<(), StorageError> {
    if !known.iter().any(|other| other == name) {
        return Err(StorageError::Unknown { noun, name: name.to_owned(), known: known.to_vec() });
    }
    match owners.insert(name.to_owned(), owner.to_owned()) {
        Some(first) => {
            Err(StorageError::UsedTwice { noun, name: name.to_owned(), first, second: owner.to_owned() })
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(json: &str) -> String {
        check(&serde_json::from_str(json).unwrap()).unwrap_err().to_string()
    }

    #[test]
    fn every_mistake_names_its_place_and_the_way_out() {
        let disks = r#""disks": [{"name": "d", "size_bytes": 4096, "count": 2}]"#;
        let cases = [
            (
                format!(r#"{{{disks}, "raid_sets": [{{"name": "r", "level": "raid0", "disks": ["d2"]}}]}}"#),
                "there is no disk \"d2\"; there are: d0, d1",
            ),
            (
                format!(
                    r#"{{{disks}, "raid_sets": [{{"name": "r", "level": "raid0", "disks": ["d1", "d1"]}}]}}"#
                ),
                "disk \"d1\" is used by \"r\" and by \"r\"",
            ),
            (r#"{"disks": [{"name": "a b", "size_bytes": 512}]}"#.into(), "\"a b\" is not a valid name"),
            (r#"{"disks": [{"name": "d", "size_bytes": 513}]}"#.into(), "`size_bytes` is a multiple"),
            (r#"{"disks": [{"name": "d"}]}"#.into(), "`size_bytes` is missing"),
            (r#"{"disks": [{"name": "d", "kind": "file"}]}"#.into(), "`path` is missing"),
            (
                r#"{"disks": [{"name": "d", "size_bytes": 512, "io_timeout_s": 0}]}"#.into(),
                "from 0.1 to 3600",
            ),
            (r#"{"pools": [{"name": "p", "raid_sets": []}]}"#.into(), "at least one RAID set"),
        ];
        for (json, expected) in cases {
            assert!(refusal(&json).contains(expected), "{json}: {}", refusal(&json));
        }
    }
}
