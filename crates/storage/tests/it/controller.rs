//! Storage that is assembled again after a disk was replaced: the superblocks identify members, under any name.

use linerate_io::{Driver, Preference, open_driver, with_driver};
use linerate_storage::{
    Host,
    controller::{Command, Controller, DiskState, StorageConfig, StorageStatus},
    raid::RaidState,
};
use serde_json::{Value, json};
use std::{path::Path, rc::Rc};

const SIZE_BYTES: u64 = 4 << 20;

fn disk(folder: &Path, name: &str, file: &str) -> Value {
    json!({"name": name, "kind": "file", "path": folder.join(file), "size_bytes": SIZE_BYTES})
}

/// A RAID 1 set of two disks, each given as its name and its file.
fn config(folder: &Path, disks: [(&str, &str); 2]) -> StorageConfig {
    let names = disks.map(|(name, _)| name);
    let disks = disks.map(|(name, file)| disk(folder, name, file));
    let config = json!({"disks": disks, "raid_sets": [{"name": "r0", "level": "raid1", "disks": names}]});
    serde_json::from_value(config).unwrap()
}

/// Opens storage, works on it, and closes it.
fn with<D: Driver>(host: &mut Host<D>, config: StorageConfig, command: Option<Value>) -> StorageStatus {
    let (runtime, files) = (host.runtime(), host.files());
    host.block_on(async move {
        let controller: Rc<Controller> =
            Controller::open(runtime.clone(), Some(files), config).await.unwrap();
        if let Some(command) = command {
            controller.manage(serde_json::from_value::<Command>(command).unwrap()).await.unwrap();
        }
        while controller.status().raid_sets[0].task.is_some() {
            runtime.sleep(1_000_000).await;
        }
        controller.close().await;
        controller.status()
    })
    .unwrap()
}

fn states(status: &StorageStatus) -> Vec<(&str, DiskState, Option<&str>)> {
    status.disks.iter().map(|disk| (&*disk.name, disk.state, disk.raid_set.as_deref())).collect()
}

/// Replaces disk d1 of d0 and d1 by d2, in a folder of its own.
fn replace<D: Driver>(host: &mut Host<D>) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let new = disk(folder.path(), "d2", "2.img");
    let command = json!({"verb": "replace_disk", "disk": "d1", "new": new});
    let status = with(host, config(folder.path(), [("d0", "0.img"), ("d1", "1.img")]), Some(command));
    assert_eq!(status.raid_sets[0].state, RaidState::Optimal);
    folder
}

fn replaced<D: Driver>(mut host: Host<D>) {
    // With the path of the new disk, under any name, the set is complete.
    let folder = replace(&mut host);
    let status = with(&mut host, config(folder.path(), [("other", "2.img"), ("d0", "0.img")]), None);
    assert_eq!(status.raid_sets[0].state, RaidState::Optimal);
    let expected = [("other", DiskState::Online, Some("r0")), ("d0", DiskState::Online, Some("r0"))];
    assert_eq!(states(&status), expected);

    // While the configuration names the old disk, the set serves without the new one, and reports it.
    let folder = replace(&mut host);
    let status = with(&mut host, config(folder.path(), [("d0", "0.img"), ("d1", "1.img")]), None);
    assert_eq!(status.raid_sets[0].state, RaidState::Degraded);
    let expected = [
        ("d0", DiskState::Online, Some("r0")),
        ("d1", DiskState::Out, Some("r0")),
        ("d2", DiskState::Missing, Some("r0")),
    ];
    assert_eq!(states(&status), expected);
}

#[test]
fn a_disk_that_was_replaced_is_missed_by_name_and_found_by_what_it_holds() {
    for preference in [Preference::Epoll, Preference::IoUring] {
        match open_driver(preference) {
            Ok(driver) => with_driver!(driver, |driver| replaced(Host::new(driver))),
            Err(error) => eprintln!("skipped: {error}"),
        }
    }
}
