//! Disks that are missing, damaged, exchanged or foreign: what is reported about them, and that nothing is overwritten.

use linerate_io::{Preference, open_driver, with_driver};
use linerate_storage::{
    Host,
    controller::{
        Controller, DiskState, Inspection, Severity, StorageConfig, StorageError, StorageStatus, inspect,
    },
    raid::RaidState,
};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::{FileExt, MetadataExt},
    path::{Path, PathBuf},
};

const SIZE_BYTES: u64 = 16 << 20;
const DISKS: usize = 4;
const SUPERBLOCK_BYTES: u64 = 64 << 10;

/// A RAID 5 set of three disks and a spare, and a pool with a volume on it, in a folder of its own.
struct Lab {
    dir: tempfile::TempDir,
    /// The record of the array.
    served: Value,
    create: Vec<&'static str>,
    /// Changes of the RAID set's table.
    set: BTreeMap<&'static str, Value>,
    page_bytes: u64,
}

impl Lab {
    /// An array that has served once.
    fn new() -> Self {
        let lab = Self::blank();
        lab.open().unwrap();
        lab
    }

    fn blank() -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self { dir, served: json!({}), create: Vec::new(), set: BTreeMap::new(), page_bytes: 65_536 }
    }

    fn path(&self, disk: usize) -> PathBuf {
        self.dir.path().join(format!("d{disk}.img"))
    }

    fn config(&self) -> StorageConfig {
        let disk = |number| {
            let path = self.path(number);
            json!({"name": format!("d{number}"), "kind": "file", "path": path, "size_bytes": SIZE_BYTES, "sparse": true})
        };
        let mut set = json!({"name": "r0", "level": "raid5", "disks": ["d0", "d1", "d2"], "spares": ["d3"],
            "initialise": "assume_clean"});
        for (key, value) in &self.set {
            set[*key] = value.clone();
        }
        let config = json!({
            "disks": (0..DISKS).map(disk).collect::<Vec<_>>(),
            "raid_sets": [set],
            "pools": [{"name": "p0", "raid_sets": ["r0"], "page_bytes": self.page_bytes}],
            "served": self.served,
            "create": self.create,
        });
        serde_json::from_value(config).unwrap()
    }

    /// Starts it, makes sure that its volume is there, and stops it.
    fn open(&self) -> Result<StorageStatus, StorageError> {
        with_driver!(open_driver(Preference::Auto).unwrap(), |driver| {
            let mut host = Host::new(driver);
            let (runtime, files, config) = (host.runtime(), host.files(), self.config());
            host.block_on(async move {
                let controller = Controller::open(runtime.clone(), Some(files), config).await?;
                controller.begin();
                controller.thin_volume(Some("p0"), "v0", Some(1 << 20)).await?;
                let mut status = controller.status();
                // A disk has two superblocks only after the second one was written.
                while status.raid_sets[0].task.is_some() {
                    runtime.sleep(1_000_000).await;
                    status = controller.status();
                }
                controller.close().await;
                Ok(controller.status())
            })
            .unwrap()
        })
    }

    /// An inspection; it must change nothing.
    fn inspect(&self) -> Inspection {
        let before = self.contents();
        let found = inspect(self.config(), Preference::Auto).unwrap();
        assert!(self.contents() == before, "looking has changed something");
        found
    }

    /// The start is refused with the expected reason, an inspection reports the same, and nothing changes.
    fn refused(&self, expected: &str) {
        let before = self.contents();
        self.refused_above(expected);
        assert!(self.contents() == before, "a refused start has changed something");
    }

    /// The same for the contents of a RAID set, which is already open.
    fn refused_above(&self, expected: &str) {
        let error = self.open().unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        let found = self.inspect();
        let says = |finding: &&linerate_storage::controller::Finding| {
            finding.severity == Severity::Refused && finding.text.contains(expected)
        };
        assert!(found.findings.iter().any(|finding| says(&finding)), "{:?}", found.findings);
    }

    /// The array serves without a disk, and reports why.
    fn serves_without(&self, disk: usize, state: DiskState, why: &str) {
        let found = self.inspect();
        let (about, care) = (format!("disk d{disk}"), Severity::Care);
        let says = found
            .findings
            .iter()
            .any(|one| one.about == about && one.severity == care && one.text.contains(why));
        assert!(says, "{:?}", found.findings);
        let status = self.open().unwrap();
        assert_eq!(status.disks[disk].state, state, "{:?}", status.disks[disk]);
        assert_eq!(status.volumes.len(), 1);
    }

    /// Files, with their contents and the times of their last changes.
    fn contents(&self) -> BTreeMap<PathBuf, (Vec<u8>, i64, i64)> {
        let entries = fs::read_dir(self.dir.path()).unwrap().map(|entry| entry.unwrap().path());
        let one = |path: PathBuf| {
            let metadata = fs::metadata(&path).unwrap();
            let bytes = fs::read(&path).unwrap();
            (path, (bytes, metadata.mtime(), metadata.mtime_nsec()))
        };
        entries.map(one).collect()
    }

    /// Records what was served, as an array does.
    fn remember(&mut self, status: &StorageStatus) {
        let set = &status.raid_sets[0];
        let disks: Vec<String> = (0..DISKS).map(|number| format!("d{number}")).collect();
        self.served = json!({
            "raid_sets": {"r0": {"id": set.id, "generations": set.generations}},
            "pools": ["p0"],
            "disks": disks,
        });
    }

    fn write(&self, disk: usize, offset: u64, bytes: &[u8]) {
        let file = fs::OpenOptions::new().write(true).open(self.path(disk)).unwrap();
        file.write_all_at(bytes, offset).unwrap();
    }

    /// Overwrites one superblock of a disk, or both, with garbage or zeros.
    fn spoil(&self, disk: usize, copies: &[u64], byte: Option<u8>) {
        for copy in copies {
            match byte {
                // The magic stays.
                None => self.write(disk, copy * SUPERBLOCK_BYTES + 40, &[0x5A; 64]),
                Some(byte) => self.write(disk, copy * SUPERBLOCK_BYTES, &[byte; 4096]),
            }
        }
    }

    /// The members, without the spare.
    fn each(&self, work: impl Fn(&Self, usize)) {
        (0..3).for_each(|disk| work(self, disk));
    }
}

fn state(lab: &Lab) -> RaidState {
    lab.open().unwrap().raid_sets[0].state
}

#[test]
fn what_is_sound_is_found_sound() {
    let lab = Lab::blank();
    let found = lab.inspect();
    assert!(found.findings[0].text.contains("will be made"), "{:?}", found.findings);
    lab.open().unwrap();
    let found = lab.inspect();
    assert!(found.findings.is_empty(), "{:?}", found.findings);
    assert_eq!((found.storage.pools.len(), found.storage.volumes.len()), (1, 1));
}

#[test]
fn one_superblock_of_two_is_enough() {
    let lab = Lab::new();
    lab.open().unwrap();
    let one = [0, 1]
        .into_iter()
        .find(|copy| fs::read(lab.path(1)).unwrap()[(copy * SUPERBLOCK_BYTES) as usize] != 0);
    lab.spoil(1, &[one.unwrap()], None);
    let found = lab.inspect();
    assert!(found.findings[0].text.contains("one of its two superblocks is damaged"), "{:?}", found.findings);
    assert_eq!(state(&lab), RaidState::Optimal);
}

#[test]
fn a_disk_whose_superblocks_are_damaged_is_left_out() {
    let lab = Lab::new();
    lab.spoil(1, &[0, 1], None);
    lab.serves_without(1, DiskState::Out, "both of its superblocks are damaged");
}

#[test]
fn when_all_superblocks_are_damaged_nothing_is_made_anew() {
    let lab = Lab::new();
    lab.each(|lab, disk| lab.spoil(disk, &[0, 1], None));
    lab.refused("both of its superblocks are damaged");
}

#[test]
fn when_all_superblocks_are_gone_nothing_is_made_anew() {
    let mut lab = Lab::new();
    let status = lab.open().unwrap();
    lab.each(|lab, disk| lab.spoil(disk, &[0, 1], Some(0)));
    lab.refused("unknown data");
    lab.remember(&status);
    lab.refused("was served before, and none of its disks holds it now");
    lab.create = vec!["r0", "p0"];
    assert_eq!(lab.open().unwrap().volumes.len(), 1, "created again when its name is given");
}

#[test]
fn a_later_version_is_named() {
    let lab = Lab::new();
    lab.each(|lab, disk| {
        lab.write(disk, 8, &[9]);
        lab.write(disk, SUPERBLOCK_BYTES + 8, &[9]);
    });
    lab.refused("written by a later version of Linerate (superblock version 9)");
}

#[test]
fn a_disk_of_another_set_is_left_out() {
    let lab = Lab::new();
    let mut other = Lab::blank();
    other.set.insert("name", json!("r9"));
    // The pool's set has another name here.
    let mut config = other.config();
    config.pools.clear();
    with_driver!(open_driver(Preference::Auto).unwrap(), |driver| {
        let mut host = Host::new(driver);
        let (runtime, files) = (host.runtime(), host.files());
        let opening =
            async move { Controller::open(runtime, Some(files), config).await.map(|made| made.begin()) };
        host.block_on(opening).unwrap().unwrap();
    });
    fs::copy(other.path(2), lab.path(2)).unwrap();
    lab.serves_without(2, DiskState::Out, "it belongs to RAID set r9");
}

#[test]
fn disks_of_another_array_are_no_members() {
    let (mut lab, other) = (Lab::new(), Lab::new());
    let status = lab.open().unwrap();
    fs::copy(other.path(0), lab.path(0)).unwrap();
    lab.serves_without(0, DiskState::Out, "it belongs to RAID set r0 (");
    // Most of the disks belong to another array: only the record tells which set is meant.
    fs::copy(other.path(1), lab.path(1)).unwrap();
    fs::copy(other.path(2), lab.path(2)).unwrap();
    fs::remove_file(lab.path(3)).unwrap();
    lab.remember(&status);
    lab.refused("these are not the disks of one RAID set");
}

#[test]
fn a_tie_between_two_sets_is_refused() {
    let mirror = |mut lab: Lab| {
        lab.set.insert("level", json!("raid1"));
        lab.set.insert("disks", json!(["d0", "d1"]));
        lab.set.insert("spares", json!([]));
        lab.open().unwrap();
        lab
    };
    let (lab, other) = (mirror(Lab::blank()), mirror(Lab::blank()));
    fs::copy(other.path(1), lab.path(1)).unwrap();
    lab.refused("these are not the disks of one RAID set");
}

#[test]
fn exchanged_files_are_found_by_what_they_hold() {
    let lab = Lab::new();
    let aside = lab.dir.path().join("aside");
    fs::rename(lab.path(0), &aside).unwrap();
    fs::rename(lab.path(2), lab.path(0)).unwrap();
    fs::rename(aside, lab.path(2)).unwrap();
    let found = lab.inspect();
    assert!(found.findings.iter().all(|finding| finding.severity == Severity::Note), "{:?}", found.findings);
    assert!(found.findings[0].text.contains("holds what disk d2 held before"), "{:?}", found.findings);
    assert_eq!(state(&lab), RaidState::Optimal);
}

#[test]
fn copies_of_a_disk_are_refused() {
    let lab = Lab::new();
    fs::copy(lab.path(1), lab.path(3)).unwrap();
    lab.refused("are copies of each other");
}

#[test]
fn disks_that_were_left_behind_are_refused() {
    let mut lab = Lab::new();
    lab.set.insert("level", json!("raid1"));
    lab.set.insert("disks", json!(["d0", "d1"]));
    lab.set.insert("spares", json!([]));
    lab.create = vec!["r0", "p0"];
    lab.open().unwrap();
    lab.create.clear();
    // The set was served without d1, which must not be used when it returns alone.
    let aside = lab.dir.path().join("aside");
    fs::rename(lab.path(1), &aside).unwrap();
    let status = lab.open().unwrap();
    assert_eq!(status.raid_sets[0].state, RaidState::Degraded);
    lab.remember(&status);
    fs::rename(aside, lab.path(1)).unwrap();
    fs::remove_file(lab.path(0)).unwrap();
    lab.refused("older than what was served last");
}

#[test]
fn a_file_that_was_cut_short_is_left_out() {
    let lab = Lab::new();
    fs::OpenOptions::new().write(true).open(lab.path(1)).unwrap().set_len(9 << 20).unwrap();
    lab.serves_without(1, DiskState::Out, "its size is 9 MiB, and it needs 16 MiB: it was cut short");
}

#[test]
fn another_level_is_refused() {
    let mut lab = Lab::new();
    lab.set.insert("level", json!("raid1"));
    lab.refused("it is raid5, not raid1");
}

#[test]
fn missing_files_are_not_made_anew() {
    let mut lab = Lab::new();
    fs::remove_file(lab.path(1)).unwrap();
    lab.serves_without(1, DiskState::Missing, "there is no file");
    assert!(!lab.path(1).exists(), "a missing disk was created again");
    let status = lab.open().unwrap();
    fs::remove_file(lab.path(0)).unwrap();
    fs::remove_file(lab.path(2)).unwrap();
    lab.refused("has too few disks to serve");
    (0..DISKS).for_each(|disk| drop(fs::remove_file(lab.path(disk))));
    lab.remember(&status);
    lab.refused("is empty: is its file system mounted?");
}

#[test]
fn disks_that_an_array_uses_have_a_state_of_their_own() {
    let lab = Lab::new();
    let states = |found: &Inspection| found.storage.disks.iter().map(|disk| disk.state).collect::<Vec<_>>();
    let held = fs::File::open(lab.path(3)).unwrap();
    held.lock().unwrap();
    let found = lab.inspect();
    assert_eq!(states(&found)[..], [[DiskState::Online; 3].as_slice(), &[DiskState::InUse]].concat());
    let words = |about: &str| {
        found.findings.iter().filter(|one| one.about == about).map(|one| one.text.clone()).collect::<String>()
    };
    assert!(
        words("disk d3").starts_with("is not looked at: an array that serves uses"),
        "{:?}",
        found.findings
    );
    assert_eq!(words("RAID set r0"), "", "it serves with all of its members");
    let members: Vec<fs::File> = (0..2).map(|disk| fs::File::open(lab.path(disk)).unwrap()).collect();
    for file in &members {
        file.lock().unwrap();
    }
    fs::remove_file(lab.path(2)).unwrap();
    let found = lab.inspect();
    assert_eq!(
        states(&found),
        [DiskState::InUse, DiskState::InUse, DiskState::Missing, DiskState::InUse],
        "{:?}",
        found.findings
    );
    assert_eq!(serde_json::to_value(DiskState::InUse).unwrap(), "in_use");
    assert!(found.findings.iter().all(|finding| finding.severity == Severity::Note), "{:?}", found.findings);
}

#[test]
fn a_new_spare_is_made_and_a_missing_one_is_not() {
    let mut lab = Lab::new();
    let status = lab.open().unwrap();
    fs::remove_file(lab.path(3)).unwrap();
    lab.open().unwrap();
    assert!(!lab.path(3).exists(), "it may have been there before");
    lab.remember(&status);
    lab.open().unwrap();
    assert!(!lab.path(3).exists(), "it was there before");
    lab.served["disks"] = json!(["d0", "d1", "d2"]);
    assert_eq!(lab.open().unwrap().disks[3].state, DiskState::Spare);
}

#[test]
fn what_others_have_on_a_disk_is_not_overwritten() {
    let mut lab = Lab::blank();
    for (offset, bytes, meaning) in [
        (0x438_u64, &[0x53_u8, 0xEF][..], "ext4"),
        (0, b"XFSB", "XFS"),
        (512, b"LABELONE", "LVM"),
        (510, &[0x55, 0xAA], "partition table"),
        (9 << 20, b"precious", "unknown data"),
    ] {
        let file = fs::File::create(lab.path(1)).unwrap();
        file.set_len(SIZE_BYTES).unwrap();
        file.write_all_at(bytes, offset).unwrap();
        // At places that are looked at.
        lab.refused(meaning);
        assert!(!lab.path(0).exists(), "no other disk was made either");
    }
    lab.create = vec!["r0"];
    lab.open().unwrap();
}

#[test]
fn a_spare_that_holds_something_is_no_spare() {
    let lab = Lab::new();
    lab.spoil(3, &[0], Some(7));
    lab.serves_without(3, DiskState::Out, "it holds unknown data");
}

/// Position of the set's bytes on its members: the first stripe of 64 KiB chunks begins here.
fn on_set(lab: &Lab, work: impl Fn(&Path)) {
    lab.each(|lab, disk| work(&lab.path(disk)));
}

/// Replaces every occurrence of these bytes.
fn replace_bytes(path: &Path, from: &[u8], to: &[u8]) {
    let mut bytes = fs::read(path).unwrap();
    let places: Vec<usize> =
        bytes.windows(from.len()).enumerate().filter(|(_, part)| *part == from).map(|(at, _)| at).collect();
    for at in places {
        bytes[at..at + to.len()].copy_from_slice(to);
    }
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_pool_whose_superblocks_are_damaged_is_not_made_anew() {
    let mut lab = Lab::new();
    lab.set.insert("checksums", json!(false));
    lab.open().unwrap();
    on_set(&lab, |path| replace_bytes(path, b"LNRTPOOL\x20", b"LNRTPOOL\x21"));
    lab.refused_above("both superblocks of the pool are damaged");
    on_set(&lab, |path| replace_bytes(path, b"LNRTPOOL", &[0; 8]));
    lab.refused_above("its RAID sets hold something else");
}

#[test]
fn a_pool_whose_metadata_are_damaged_is_refused() {
    let mut lab = Lab::new();
    lab.set.insert("checksums", json!(false));
    lab.open().unwrap();
    on_set(&lab, |path| replace_bytes(path, b"LNRTMETA", b"LNRTMETB"));
    lab.refused_above("the metadata is damaged: neither copy is whole");
}

#[test]
fn another_page_size_is_refused() {
    let mut lab = Lab::new();
    lab.page_bytes = 131_072;
    lab.refused_above("not what this pool was created with");
}

#[test]
fn a_pool_that_was_served_is_missed() {
    let mut lab = Lab::blank();
    // Only the set, as if there had never been a pool.
    let mut config = lab.config();
    config.pools.clear();
    let status = with_driver!(open_driver(Preference::Auto).unwrap(), |driver| {
        let mut host = Host::new(driver);
        let (runtime, files) = (host.runtime(), host.files());
        host.block_on(async move {
            let controller = Controller::open(runtime, Some(files), config).await.unwrap();
            controller.begin();
            controller.status()
        })
        .unwrap()
    });
    lab.remember(&status);
    lab.refused_above("was served before, and its RAID sets do not hold it now");
    lab.served["pools"] = json!([]);
    assert_eq!(lab.open().unwrap().volumes.len(), 1);
}

#[test]
fn a_start_that_comes_to_nothing_leaves_no_files_behind() {
    let mut lab = Lab::blank();
    lab.page_bytes = 1 << 30;
    lab.open().unwrap_err();
    assert_eq!(lab.contents().len(), 0);
}
