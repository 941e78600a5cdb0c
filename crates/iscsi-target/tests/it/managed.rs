//! Volumes of the engine: RAID sets and pools, through real sockets.

use crate::support::{Client, IQN, read10, write10};
use linerate_iscsi_proto::pdu::Response;
use linerate_iscsi_target::{Array, ArrayConfig};
use std::{thread, time::Duration};

/// An array whose LUN 0 is on six disks in a RAID set; `volume` is its configuration.
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

/// Large reads are sent from the disks' memory where the volume has pages, and copied where it has none.
#[test]
fn large_reads_find_the_newest_bytes_and_holes() {
    let pool = r#"{"name": "p", "raid_sets": ["r"], "page_bytes": 65536}"#;
    for (level, pool, volume) in [
        ("raid10", pool, r#""kind": "pool", "size_bytes": 16777216"#),
        ("raid6", pool, r#""kind": "pool", "size_bytes": 16777216"#),
        ("raid5", "", r#""kind": "raid""#),
    ] {
        let array = array(level, pool, volume);
        let mut client = Client::login(array.portals()[0], 1, "ImmediateData=Yes\0InitialR2T=Yes\0");
        client.clear_attention();
        let mut expected = vec![0; 1 << 20];
        let mut rng = fastrand::Rng::with_seed(4);
        for round in 0..60 {
            let (at, len) = (rng.usize(0..240) * 4096, rng.usize(1..17) * 4096);
            let bytes = pattern(len, round);
            client.write_as_asked((at / 512) as u32, &bytes, 8192);
            expected[at..at + len].copy_from_slice(&bytes);
            let (at, len) = (rng.usize(0..192) * 4096, rng.usize(16..65) * 4096);
            assert!(client.read((at / 512) as u32, len) == expected[at..at + len], "{level}, round {round}");
        }
    }
}

fn manage(array: &Array, command: &str) -> Result<serde_json::Value, String> {
    let reply = array.manage(&serde_json::from_str(command).unwrap());
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

/// Sends 16 reads of 64 KiB from the first MiB and one write, and receives their answers; returns how often each status
/// arrived. Data-In of a successful read must be `bytes`.
fn ended(client: &mut Client, reads: &[u32], write: u32, bytes: &[u8]) -> [usize; 2] {
    let (mut good, mut failed) = (0, 0);
    while good + failed < reads.len() + 1 {
        let pdu = client.receive().expect("an answer to every command");
        match pdu.response {
            Response::DataIn(data) => {
                let read = reads.iter().position(|itt| *itt == data.itt).expect("a read of ours");
                let at = read * (64 << 10) + data.buffer_offset as usize;
                assert_eq!(pdu.data, bytes[at..at + pdu.data.len()]);
                good += usize::from(data.status.is_some_and(|status| status.status == 0));
            }
            Response::Scsi(response) if response.status == 0 => {
                assert_eq!(response.itt, write);
                good += 1;
            }
            Response::Scsi(_) => failed += 1,
            other => panic!("{other:?}"),
        }
    }
    [good, failed]
}

#[test]
fn a_volume_that_is_deleted_or_resized_under_commands_answers_each_and_harms_no_other() {
    let pool = r#"{"name": "p", "raid_sets": ["r"], "page_bytes": 65536}"#;
    for (change, is_deleted) in [
        (r#"{"verb": "delete", "volume": "w"}"#, true),
        (r#"{"verb": "resize", "volume": "w", "size_bytes": 2097152}"#, false),
    ] {
        let array = array("raid6", pool, r#""kind": "pool", "size_bytes": 16777216"#);
        manage(&array, r#"{"verb": "create_volume", "name": "w", "size_bytes": 4194304}"#).unwrap();
        let keys = "ImmediateData=Yes\0InitialR2T=Yes\0";
        let mut other = Client::login(array.portals()[0], 1, keys);
        let mut client = Client::login(array.portals()[0], 2, keys);
        client.lun = 1;
        other.clear_attention();
        client.clear_attention();
        let bytes = pattern(1 << 20, 7);
        client.write_as_asked(0, &bytes, 8192);
        let late = client.command(write10(7000, 128 << 10), false, true, 128 << 10);
        client.send(|bhs| late.emit(bhs), &[]);
        let Response::R2t(r2t) = client.receive().unwrap().response else { panic!("no R2T") };
        thread::scope(|scope| {
            let changing = scope.spawn(|| manage(&array, change));
            let reads: Vec<u32> = (0..16)
                .map(|nth| {
                    let read = client.command(read10(nth * 128, 64 << 10), true, false, 64 << 10);
                    client.send(|bhs| read.emit(bhs), &[]);
                    read.itt
                })
                .collect();
            if is_deleted {
                crate::support::wait_for(&array, "the other one hears that a LUN is gone", |_| {
                    other.attention() == Some((6, 0x3F0E))
                });
            } else {
                thread::sleep(Duration::from_millis(50));
            }
            other.write(0, &bytes[..8192]);
            assert_eq!(other.read(0, 8192), bytes[..8192]);
            assert!(!changing.is_finished(), "it waits for the write that has begun");
            client.answer_r2t(&r2t, &bytes[..128 << 10], 8192);
            let [good, failed] = ended(&mut client, &reads, late.itt, &bytes);
            assert!(good >= 1, "the write ends well: {good} {failed}");
            changing.join().unwrap().unwrap();
        });
        if is_deleted {
            assert_eq!(client.attention(), Some((5, 0x2500)), "the LUN does not exist any more");
        } else {
            client.clear_attention();
            assert_eq!(client.read(0, 1 << 20), bytes);
            let beyond = client.command(read10(7000, 512), true, false, 512);
            client.send(|bhs| beyond.emit(bhs), &[]);
            assert_eq!(client.status(), 2, "beyond the new end");
        }
        assert_eq!(other.read(0, 8192), bytes[..8192]);
    }
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
    crate::support::wait_for(&array, "redundancy is back", |_| {
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

/// Volumes that were created while it served exist after a stop, deleted ones do not.
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
