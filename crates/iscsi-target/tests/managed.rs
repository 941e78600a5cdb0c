//! Volumes whose bytes lie behind the engine: RAID sets and pools, through real sockets.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)] // a test may wait and may fail loudly

#[path = "volumes/striped.rs"]
mod striped;
mod support;

use linerate_iscsi_target::{Array, ArrayConfig};
use support::{Client, IQN};

/// An array whose LUN 0 is made of six disks in a RAID set: `volume` says how.
fn array(level: &str, pools: &str, volume: &str) -> Array {
    let json = format!(
        r#"{{"portals": ["127.0.0.1:0"], "storage": {{
            "disks": [{{"name": "d", "size_bytes": 33554432, "count": 6}}],
            "raid_sets": [{{"name": "r", "level": "{level}", "disks": ["d0", "d1", "d2", "d3"],
                "spares": ["d4"], "initialise": "assume_clean"}}], "pools": [{pools}]}},
            "targets": [{{"name": "{IQN}", "volumes": [{{"lun": 0, "name": "v0", {volume}}}]}}]}}"#
    );
    let config: ArrayConfig = serde_json::from_str(&json).unwrap();
    Array::start(config).unwrap()
}

fn kinds() -> [Array; 3] {
    let pool = r#"{"name": "p", "raid_sets": ["r"], "page_bytes": 65536}"#;
    [
        array("raid0", "", r#""kind": "raid""#),
        array("raid5", "", r#""kind": "raid""#),
        array("raid6", pool, r#""kind": "pool", "size_bytes": 16777216"#),
    ]
}

fn pattern(len: usize, seed: usize) -> Vec<u8> {
    (0..len).map(|at| (at / 512 * 31 + at % 251 + seed) as u8).collect()
}

#[test]
fn what_is_written_is_read_back_at_every_size() {
    for array in kinds() {
        let mut client = Client::login(array.portals()[0], 1, "ImmediateData=Yes\0InitialR2T=Yes\0");
        client.clear_attention();
        for (lba, len) in [(0, 512), (7, 4096), (100, 8192)] {
            let bytes = pattern(len, lba as usize);
            client.write(lba, &bytes);
            assert_eq!(client.read(lba, len), bytes);
        }
        let bytes = pattern(1 << 20, 9);
        client.write_as_asked(2048, &bytes, 8192);
        assert_eq!(client.read(2048, 1 << 20), bytes);
        let storage = array.report().storage.unwrap();
        let written: u64 = storage.disks.iter().map(|disk| disk.stats.write_bytes).sum();
        assert!(written >= (1 << 20) + 512, "{storage:?}");
    }
}

fn manage(array: &Array, command: &str) -> Result<serde_json::Value, String> {
    let reply = array.manage(serde_json::from_str(command).unwrap());
    reply.map(serde_json::Value::Object).map_err(|error| error.to_string())
}

#[test]
fn volumes_are_made_shown_resized_and_deleted_while_it_serves() {
    let pool = r#"{"name": "p", "raid_sets": ["r"], "page_bytes": 65536}"#;
    let array = array("raid6", pool, r#""kind": "pool", "size_bytes": 16777216"#);
    let mut client = Client::login(array.portals()[0], 1, "ImmediateData=Yes\0InitialR2T=Yes\0");
    client.clear_attention();
    let made = manage(&array, r#"{"verb": "create_volume", "name": "w", "size_bytes": 1048576}"#).unwrap();
    assert_eq!((made["lun"].as_u64(), made["target"].as_str()), (Some(1), Some(IQN)));
    assert_eq!(client.attention(), Some((6, 0x3F0E)));
    client.lun = 1;
    client.clear_attention();
    let bytes = pattern(65536, 3);
    client.write(0, &bytes);
    let snapshot = r#"{"verb": "snapshot", "volumes": ["w", "v0"], "name": "s"}"#;
    assert!(manage(&array, snapshot).unwrap()["at_s"].as_f64().unwrap() > 1.7e9);
    client.write(0, &pattern(65536, 4));
    manage(&array, r#"{"verb": "restore", "volume": "w", "snapshot": "s"}"#).unwrap();
    assert_eq!(client.read(0, 65536), bytes);
    manage(&array, r#"{"verb": "resize", "volume": "w", "size_bytes": 2097152}"#).unwrap();
    assert_eq!(client.attention(), Some((6, 0x2A09)));
    client.write(3000, &bytes);
    let refused = manage(&array, r#"{"verb": "delete", "volume": "w"}"#).unwrap_err();
    assert!(refused.contains("has snapshots (s)"), "{refused}");
    manage(&array, r#"{"verb": "delete", "volume": "w", "with_snapshots": true}"#).unwrap();
    assert_eq!(client.attention(), Some((5, 0x2500)));
    let cloned = r#"{"verb": "clone", "volume": "v0", "snapshot": "s", "name": "c"}"#;
    assert_eq!(manage(&array, cloned).unwrap()["lun"], 1, "its LUN is free again");
    let volumes = array.report().storage.unwrap().volumes;
    let shown: Vec<_> = volumes.iter().map(|volume| (&*volume.volume.name, volume.lun)).collect();
    assert_eq!(shown, [("c", Some(1)), ("v0", Some(0))]);
}

#[test]
fn disks_fail_under_load_and_a_spare_takes_over() {
    let array = array("raid6", "", r#""kind": "raid""#);
    let mut client = Client::login(array.portals()[0], 1, "ImmediateData=Yes\0InitialR2T=Yes\0");
    client.clear_attention();
    let bytes = pattern(1 << 20, 5);
    client.write_as_asked(0, &bytes, 8192);
    manage(&array, r#"{"verb": "fail_disk", "disk": "d0"}"#).unwrap();
    manage(&array, r#"{"verb": "fail_disk", "disk": "d1"}"#).unwrap();
    assert_eq!(client.read(0, 1 << 20), bytes);
    client.write_as_asked(1000, &bytes, 8192);
    assert_eq!(client.read(1000, 1 << 20), bytes);
    manage(&array, r#"{"verb": "replace_disk", "disk": "d1", "new": {"name": "n", "size_bytes": 33554432}}"#)
        .unwrap();
    support::wait_for(&array, "redundancy is back", |_| {
        let storage = array.report().storage.unwrap();
        serde_json::to_value(&storage.raid_sets[0]).unwrap()["state"] == "optimal"
    });
    let storage = array.report().storage.unwrap();
    let set = |name: &str| {
        let disk = storage.disks.iter().find(|disk| disk.name == name)?;
        Some((serde_json::to_value(disk.state).unwrap().as_str()?.to_owned(), disk.raid_set.clone()))
    };
    assert_eq!(set("d4"), Some(("online".into(), Some("r".into()))));
    assert_eq!(set("n"), Some(("online".into(), Some("r".into()))));
    assert_eq!(client.read(1000, 1 << 20), bytes);
    let wrong = manage(&array, r#"{"verb": "fail_disk", "disk": "x"}"#).unwrap_err();
    assert!(wrong.contains("there is no disk \"x\"; there are: d0"), "{wrong}");
}

/// What was made while it served is there after a stop, and what was deleted is not.
#[test]
fn an_array_in_files_comes_back_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let json = format!(
        r#"{{"portals": ["127.0.0.1:0"], "storage": {{
            "disks": [{{"name": "d", "kind": "file", "path": "{}/d", "size_bytes": 33554432, "count": 3}}],
            "raid_sets": [{{"name": "r", "level": "raid5", "disks": ["d0", "d1", "d2"]}}],
            "pools": [{{"name": "p", "raid_sets": ["r"], "page_bytes": 65536}}]}},
            "targets": [{{"name": "{IQN}", "volumes": [
                {{"lun": 0, "name": "v0", "kind": "pool", "size_bytes": 4194304}},
                {{"lun": 1, "name": "v1", "kind": "pool", "size_bytes": 4194304}}]}}]}}"#,
        dir.path().display()
    );
    let start = || Array::start(serde_json::from_str(&json).unwrap()).unwrap();
    let log_in = |array: &Array, lun| {
        let mut client = Client::login(array.portals()[0], 1, "ImmediateData=Yes\0InitialR2T=Yes\0");
        client.lun = lun;
        client.clear_attention();
        client
    };
    let bytes = pattern(65536, 6);
    let array = start();
    manage(&array, r#"{"verb": "create_volume", "name": "w", "size_bytes": 1048576, "lun": 7}"#).unwrap();
    manage(&array, r#"{"verb": "delete", "volume": "v1"}"#).unwrap();
    manage(&array, r#"{"verb": "resize", "volume": "v0", "size_bytes": 8388608}"#).unwrap();
    let mut client = log_in(&array, 7);
    client.write(0, &bytes);
    client.register_to_keep(0xABC);
    drop(client);
    array.stop();
    let array = start();
    let mut client = log_in(&array, 7);
    assert_eq!(client.read(0, 65536), bytes);
    assert_eq!(client.reservation_keys(), [0xABC]);
    let volumes = array.report().storage.unwrap().volumes;
    let found: Vec<_> =
        volumes.iter().map(|volume| (&*volume.volume.name, volume.lun, volume.volume.size_bytes)).collect();
    assert_eq!(found, [("v0", Some(0), 8 << 20), ("w", Some(7), 1 << 20)]);
}

#[test]
fn a_clone_is_shown_beside_its_parent() {
    let json = r#"{"portals": ["127.0.0.1:0"], "storage": {
        "disks": [{"name": "d", "size_bytes": 33554432, "count": 2}],
        "raid_sets": [{"name": "r", "level": "raid0", "disks": ["d0", "d1"]}],
        "pools": [{"name": "p", "raid_sets": ["r"], "page_bytes": 65536, "overcommit": 2.0}]},
        "targets": [{"name": "iqn.2026-11.lab.linerate:first", "volumes": []},
            {"name": "iqn.2026-11.lab.linerate:second", "volumes": [
                {"lun": 0, "name": "v0", "kind": "pool", "pool": "p", "size_bytes": 1048576}]}]}"#;
    let array = Array::start(serde_json::from_str(json).unwrap()).unwrap();
    manage(&array, r#"{"verb": "snapshot", "volumes": ["v0"], "name": "s"}"#).unwrap();
    let clone = r#"{"verb": "clone", "volume": "v0", "snapshot": "s", "name": "c"}"#;
    assert_eq!(manage(&array, clone).unwrap()["target"], "iqn.2026-11.lab.linerate:second");
    let elsewhere = r#"{"verb": "clone", "volume": "v0", "snapshot": "s", "name": "e",
        "target": "iqn.2026-11.lab.linerate:first"}"#;
    assert_eq!(manage(&array, elsewhere).unwrap()["target"], "iqn.2026-11.lab.linerate:first");
    let huge = r#"{"verb": "create_volume", "name": "huge", "size_bytes": 12884901888}"#;
    let refused = manage(&array, huge).unwrap_err();
    assert!(refused.contains("12 GiB would be provisioned; the limit is"), "{refused}");
}
