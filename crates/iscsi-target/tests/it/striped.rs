//! RAID 0 of disks in memory, which workers serve without the engine: the same bytes, counts and errors as with it.

use crate::support::{Client, IQN, read10, wait_for, write10};
use linerate_iscsi_proto::pdu::Response;
use linerate_iscsi_target::{Array, ArrayConfig};
use linerate_storage::controller::DiskStatus;
use std::{
    sync::atomic::{AtomicBool, Ordering::SeqCst},
    thread,
};

const CHUNK: usize = 16 << 10;
const HARDWARE_ERROR: u8 = 4;

/// An array of two workers whose LUN 0 is four striped disks.
fn array() -> Array {
    let json = format!(
        r#"{{"portals": ["127.0.0.1:0"], "workers": 2, "storage": {{
            "disks": [{{"name": "d", "size_bytes": 8388608, "count": 5}}],
            "raid_sets": [{{"name": "r", "level": "raid0", "disks": ["d0", "d1", "d2", "d3"], "spares": ["d4"],
                "chunk_bytes": {CHUNK}}}]}},
            "targets": [{{"name": "{IQN}", "volumes": [{{"lun": 0, "name": "v0", "kind": "raid"}}]}}]}}"#
    );
    let config: ArrayConfig = serde_json::from_str(&json).unwrap();
    Array::start(config).unwrap()
}

fn login(array: &Array, isid: u8, keys: &str) -> Client {
    let mut client = Client::login(array.portals()[0], isid, keys);
    client.clear_attention();
    client
}

fn manage(array: &Array, command: &str) -> Result<(), String> {
    let reply = array.manage(&serde_json::from_str(command).unwrap());
    reply.map(drop).map_err(|error| error.to_string())
}

fn disks(array: &Array) -> Vec<DiskStatus> {
    array.report().storage.unwrap().disks
}

fn pattern(len: usize, seed: usize) -> Vec<u8> {
    (0..len).map(|at| (at / 512 * 31 + at % 251 + seed) as u8).collect()
}

/// The sense key of the next response; None: it is GOOD.
fn outcome(client: &mut Client) -> Option<u8> {
    let pdu = client.receive().expect("a SCSI response");
    let Response::Scsi(response) = pdu.response else { panic!("{pdu:?}") };
    (response.status != 0).then(|| pdu.data[4] & 0x0F)
}

/// A write with its data; its sense key if it fails.
fn try_write(client: &mut Client, lba: u32, bytes: &[u8]) -> Result<(), u8> {
    let mut command = client.command(write10(lba, bytes.len()), false, true, bytes.len() as u32);
    command.data_len = bytes.len() as u32;
    client.send(|bhs| command.emit(bhs), bytes);
    outcome(client).map_or(Ok(()), Err)
}

/// A read that one PDU answers.
fn try_read(client: &mut Client, lba: u32, len: usize) -> Result<Vec<u8>, u8> {
    let command = client.command(read10(lba, len), true, false, len as u32);
    client.send(|bhs| command.emit(bhs), &[]);
    let pdu = client.receive().expect("data or an error");
    match pdu.response {
        Response::DataIn(_) => Ok(pdu.data),
        Response::Scsi(_) => Err(pdu.data[4] & 0x0F),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_crosses_disks_comes_back_and_each_disk_counts_its_part() {
    let array = array();
    let mut client = login(&array, 1, "ImmediateData=Yes\0InitialR2T=Yes\0");
    let before = disks(&array);
    // Half a chunk into the first disk, over all of them, to the middle of the first one's second chunk.
    let (lba, bytes) = ((CHUNK / 2 / 512) as u32, pattern(4 * CHUNK, 1));
    client.write_as_asked(lba, &bytes, 8192);
    assert_eq!(client.read(lba, bytes.len()), bytes);
    assert_eq!(client.read(lba + 3, CHUNK), bytes[3 * 512..][..CHUNK]);
    let moved: Vec<_> = disks(&array)
        .iter()
        .zip(&before)
        .map(|(now, before)| {
            (now.stats.write_bytes - before.stats.write_bytes, now.stats.read_bytes - before.stats.read_bytes)
        })
        .collect();
    let (chunk, part) = (CHUNK as u64, 3 * 512);
    let half = chunk / 2;
    assert_eq!(
        moved,
        [(chunk, chunk + half - part), (chunk, chunk + half + part), (chunk, chunk), (chunk, chunk), (0, 0)]
    );
}

#[test]
fn digests_cover_data_of_several_disks() {
    let array = array();
    let mut client = Client::login(array.portals()[0], 1, "HeaderDigest=CRC32C\0DataDigest=CRC32C\0");
    client.use_digests();
    client.clear_attention();
    let bytes = pattern(3 * CHUNK + 512, 2);
    client.write_as_asked(5, &bytes, 8192);
    assert_eq!(client.read(5, bytes.len()), bytes);
}

#[test]
fn blocks_are_filled_over_all_disks() {
    let array = array();
    let mut client = login(&array, 1, "ImmediateData=Yes\0InitialR2T=Yes\0");
    let (blocks, block) = ((6 * CHUNK / 512) as u16, pattern(512, 3));
    let mut same = [0; 16];
    (same[0], same[5]) = (0x41, 7); // WRITE SAME (10)
    same[7..9].copy_from_slice(&blocks.to_be_bytes());
    let mut command = client.command(same, false, true, 512);
    command.data_len = 512;
    client.send(|bhs| command.emit(bhs), &block);
    assert_eq!(outcome(&mut client), None);
    assert!(client.read(7, 6 * CHUNK).chunks(512).all(|found| found == block));
}

#[test]
fn a_set_that_fails_under_load_gives_errors_and_never_wrong_bytes() {
    let array = array();
    let has_failed = AtomicBool::new(false);
    thread::scope(|scope| {
        for isid in 1..=4_u8 {
            let (array, has_failed) = (&array, &has_failed);
            scope.spawn(move || {
                let mut client = login(array, isid, "ImmediateData=Yes\0MaxRecvDataSegmentLength=65536\0");
                let (first, mut seed) = (u32::from(isid) * 2048, usize::from(isid));
                let mut errors = 0;
                while errors < 50 {
                    seed += 7;
                    let (must_fail, bytes) = (has_failed.load(SeqCst), pattern(2 * CHUNK, seed));
                    let result = try_write(&mut client, first + 5, &bytes)
                        .and_then(|()| try_read(&mut client, first + 5, bytes.len()));
                    match result {
                        Ok(read) => assert!(!must_fail && read == bytes, "session {isid}, seed {seed}"),
                        Err(key) => {
                            assert_eq!(key, HARDWARE_ERROR, "session {isid}, seed {seed}");
                            errors += 1;
                        }
                    }
                }
            });
        }
        wait_for(&array, "load", |stats| stats.reads > 400);
        manage(&array, r#"{"verb": "fail_disk", "disk": "d2"}"#).unwrap();
        has_failed.store(true, SeqCst);
    });
}

#[test]
fn a_write_that_is_under_way_when_the_set_fails_is_not_acknowledged() {
    let array = array();
    let mut client = login(&array, 1, "ImmediateData=No\0InitialR2T=Yes\0");
    let bytes = pattern(2 * CHUNK, 4);
    let command = client.command(write10(0, bytes.len()), false, true, bytes.len() as u32);
    client.send(|bhs| command.emit(bhs), &[]);
    let Response::R2t(r2t) = client.receive().unwrap().response else { panic!("no R2T") };
    manage(&array, r#"{"verb": "fail_disk", "disk": "d0"}"#).unwrap();
    client.answer_r2t(&r2t, &bytes, 8192);
    assert_eq!(outcome(&mut client), Some(HARDWARE_ERROR));
    assert_eq!(try_read(&mut client, 0, 512), Err(HARDWARE_ERROR));
}

#[test]
fn what_cannot_be_done_to_it_leaves_it_as_it_is() {
    let array = array();
    let mut client = login(&array, 1, "ImmediateData=Yes\0InitialR2T=Yes\0");
    let bytes = pattern(2 * CHUNK, 5);
    for refused in [
        r#"{"verb": "resize", "volume": "v0", "size_bytes": 1048576}"#,
        r#"{"verb": "delete", "volume": "v0"}"#,
        r#"{"verb": "replace_disk", "disk": "d1", "new": {"name": "n", "size_bytes": 8388608}}"#,
    ] {
        client.write(9, &bytes);
        manage(&array, refused).unwrap_err();
        assert_eq!(client.read(9, bytes.len()), bytes, "{refused}");
    }
    manage(&array, r#"{"verb": "fail_disk", "disk": "d4"}"#).unwrap();
    assert_eq!(client.read(9, bytes.len()), bytes, "a spare is no member");
}
