//! Divides a configuration into parts that share no disk, so that each can have a thread of its own.
//!
//! A pool and its RAID sets are in one part. Sets with sparse files are in one part too: the warning of low space adds
//! up what all sparse files of a file system may still need.

use super::{
    check::check,
    config::{DiskSpec, RaidSetSpec, StorageConfig},
    error::StorageError,
};
use std::collections::BTreeMap;

/// The reason why RAID sets are in one part.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Bond<'a> {
    Pool(&'a str),
    SparseFiles,
    /// The set is in no pool.
    Alone(&'a str),
}

impl StorageConfig {
    /// Checks the configuration and divides it, in order, into at most `parts_max` parts. There is at least one. Disks
    /// that are in no RAID set are in the first part.
    pub fn divide(&self, parts_max: usize) -> Result<Vec<Self>, StorageError> {
        let disks = check(self)?;
        let numbers = self.part_numbers(&disks, parts_max);
        let count = numbers.values().max().map_or(1, |last| last + 1);
        Ok((0..count).map(|number| self.part(number, &disks, &numbers)).collect())
    }

    /// The part of each RAID set, by name.
    fn part_numbers(&self, disks: &[DiskSpec], parts_max: usize) -> BTreeMap<&str, usize> {
        let is_sparse = |name: &String| disks.iter().any(|disk| disk.sparse && disk.name == *name);
        let has_sparse = |set: &RaidSetSpec| set.disks.iter().chain(&set.spares).any(is_sparse);
        let sparse_pools: Vec<&str> = self
            .pools
            .iter()
            .filter(|pool| {
                self.raid_sets.iter().any(|set| pool.raid_sets.contains(&set.name) && has_sparse(set))
            })
            .map(|pool| pool.name.as_str())
            .collect();
        let mut bonds: Vec<Bond<'_>> = Vec::new();
        let mut numbers = BTreeMap::new();
        for set in &self.raid_sets {
            let pool = self.pools.iter().find(|pool| pool.raid_sets.contains(&set.name));
            let bond = match pool {
                Some(pool) if !sparse_pools.contains(&pool.name.as_str()) => Bond::Pool(&pool.name),
                None if !has_sparse(set) => Bond::Alone(&set.name),
                _ => Bond::SparseFiles,
            };
            let at = bonds.iter().position(|known| *known == bond).unwrap_or_else(|| {
                bonds.push(bond);
                bonds.len() - 1
            });
            numbers.insert(set.name.as_str(), at % parts_max.max(1));
        }
        numbers
    }

    fn part(&self, number: usize, disks: &[DiskSpec], numbers: &BTreeMap<&str, usize>) -> Self {
        let is_mine = |set: &str| numbers.get(set) == Some(&number);
        let part_of = |disk: &DiskSpec| {
            let has = |set: &&RaidSetSpec| set.disks.iter().chain(&set.spares).any(|one| *one == disk.name);
            self.raid_sets.iter().find(has).map_or(0, |set| numbers[set.name.as_str()])
        };
        let disks: Vec<_> = disks.iter().filter(|disk| part_of(disk) == number).cloned().collect();
        let raid_sets: Vec<_> = self.raid_sets.iter().filter(|set| is_mine(&set.name)).cloned().collect();
        let pools: Vec<_> =
            self.pools.iter().filter(|pool| pool.raid_sets.iter().any(|set| is_mine(set))).cloned().collect();
        let is_named = |name: &&String| {
            let names = disks.iter().map(|disk| &disk.name);
            let names = names.chain(raid_sets.iter().map(|set| &set.name));
            names.chain(pools.iter().map(|pool| &pool.name)).any(|known| known == *name)
        };
        let create = self.create.iter().filter(is_named).cloned().collect();
        Self { create, served: self.served.clone(), disks, raid_sets, pools }
    }
}

#[cfg(test)]
mod tests {
    use super::StorageConfig;

    /// The names of each part: disks, sets, pools.
    fn parts(json: &str, parts_max: usize) -> Vec<String> {
        let config: StorageConfig = serde_json::from_str(json).unwrap();
        let names = |part: &StorageConfig| {
            let names = part.disks.iter().map(|disk| &disk.name);
            let names = names.chain(part.raid_sets.iter().map(|set| &set.name));
            let names = names.chain(part.pools.iter().map(|pool| &pool.name));
            let created = part.create.iter().map(|name| format!("+{name}"));
            names.cloned().chain(created).collect::<Vec<_>>().join(" ")
        };
        config.divide(parts_max).unwrap().iter().map(names).collect()
    }

    const FOUR_SETS: &str = r#"{
        "disks": [{"name": "d", "size_bytes": 4096, "count": 6}],
        "raid_sets": [
            {"name": "r0", "level": "raid0", "disks": ["d0"]},
            {"name": "r1", "level": "raid0", "disks": ["d1"], "spares": ["d5"]},
            {"name": "r2", "level": "raid0", "disks": ["d2"]},
            {"name": "r3", "level": "raid0", "disks": ["d3"]}],
        "pools": [{"name": "p", "raid_sets": ["r2", "r0"]}],
        "create": ["r3", "p"]}"#;

    #[test]
    fn a_pool_keeps_its_sets_and_a_disk_without_a_set_is_in_the_first_part() {
        assert_eq!(parts(FOUR_SETS, 8), ["d0 d2 d4 r0 r2 p +p", "d1 d5 r1", "d3 r3 +r3"]);
    }

    #[test]
    fn there_are_at_most_so_many_parts() {
        assert_eq!(parts(FOUR_SETS, 2), ["d0 d2 d3 d4 r0 r2 r3 p +r3 +p", "d1 d5 r1"]);
        let one = parts(FOUR_SETS, 1);
        assert_eq!(one, ["d0 d1 d2 d3 d4 d5 r0 r1 r2 r3 p +r3 +p"]);
        assert_eq!(parts("{}", 3), [""], "there is always one");
    }

    #[test]
    fn sets_with_sparse_files_stay_together() {
        let json = r#"{
            "disks": [
                {"name": "a", "kind": "file", "path": "/a", "sparse": true, "size_bytes": 4096},
                {"name": "b", "size_bytes": 4096},
                {"name": "c", "kind": "file", "path": "/c", "sparse": true, "size_bytes": 4096}],
            "raid_sets": [
                {"name": "ra", "level": "raid0", "disks": ["a"]},
                {"name": "rb", "level": "raid0", "disks": ["b"]},
                {"name": "rc", "level": "raid0", "disks": ["c"]}],
            "pools": [{"name": "p", "raid_sets": ["rc"]}]}"#;
        assert_eq!(parts(json, 8), ["a c ra rc p", "b rb"]);
    }

    #[test]
    fn a_configuration_that_does_not_fit_together_is_refused() {
        let config: StorageConfig = serde_json::from_str(
            r#"{"disks": [{"name": "d", "size_bytes": 4096}],
                "raid_sets": [
                    {"name": "r", "level": "raid0", "disks": ["d"]},
                    {"name": "s", "level": "raid0", "disks": ["d"]}]}"#,
        )
        .unwrap();
        let refusal = config.divide(2).unwrap_err().to_string();
        assert!(refusal.contains("disk \"d\" is used by \"r\" and by \"s\""), "{refusal}");
    }
}
