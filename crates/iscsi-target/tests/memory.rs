//! The memory of idle sessions. The array is a process of its own (this program again), so that the clients' memory is
//! not counted.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)] // a test may wait and may fail loudly

mod support;

use support::{
    Client, IQN, SIZE_BYTES,
    served::{self, Served},
};

const SESSIONS: usize = 200;
const LUNS: usize = 256;
const PER_SESSION_MAX: usize = 64 << 10;

/// Not a test: the array's process, which ends with its standard input.
#[test]
#[ignore = "only the tests below start it"]
fn serve() {
    served::serve();
}

fn started(volumes: &str) -> Served {
    // Memory that is taken ahead in the background would be counted.
    Served::start(&format!(
        r#"{{"portals": ["127.0.0.1:0"], "touch_memory": false,
            "targets": [{{"name": "{IQN}", "volumes": [{volumes}]}}]}}"#
    ))
}

fn check(what: &str, per_session: Option<usize>) {
    let Some(bytes) = per_session else {
        return eprintln!("skipped: this system does not tell the size of a process");
    };
    eprintln!("{what}: {bytes} bytes");
    assert!(bytes < PER_SESSION_MAX, "{what}: {bytes} bytes");
}

#[derive(Clone, Copy, Debug)]
enum Burst {
    /// One write of 1 MiB, in solicited pieces.
    Large,
    /// 256 writes of 4 KiB with immediate data, sent together.
    Small,
    /// 1 MiB written, then 64 reads of 4 KiB that are sent together.
    Reads,
}

fn burst(client: &mut Client, how: Burst, bytes: &[u8]) {
    match how {
        Burst::Large => client.write_as_asked(0, bytes, 65_536),
        Burst::Reads => {
            burst(client, Burst::Large, bytes);
            let mut sent = Vec::new();
            for _ in 0..64 {
                let mut bhs = [0; linerate_iscsi_proto::pdu::BHS_BYTES];
                client.command(support::read10(0, 4096), true, false, 4096).emit(&mut bhs);
                client.framer.write(&bhs, &[], &mut sent);
            }
            client.send_raw(&sent);
            for _ in 0..64 {
                assert_eq!(client.receive().unwrap().data.len(), 4096);
            }
        }
        Burst::Small => {
            for batch in bytes.chunks(64 * 4096) {
                let mut sent = Vec::new();
                for block in batch.chunks(4096) {
                    let cdb = support::write10(0, 4096);
                    let mut command = client.command(cdb, false, true, 4096);
                    command.data_len = 4096;
                    let mut bhs = [0; linerate_iscsi_proto::pdu::BHS_BYTES];
                    command.emit(&mut bhs);
                    client.framer.write(&bhs, block, &mut sent);
                }
                client.send_raw(&sent);
                for _ in batch.chunks(4096) {
                    assert_eq!(client.status(), 0);
                }
            }
        }
    }
}

#[test]
fn an_idle_session_of_a_target_with_many_luns_is_small() {
    let volumes: Vec<String> = (0..LUNS)
        .map(|lun| format!(r#"{{"lun": {lun}, "name": "v{lun}", "size_bytes": 262144, "kind": "memory"}}"#))
        .collect();
    let array = started(&volumes.join(","));
    let begin = |isid: usize| {
        let mut client = Client::login(array.portal, isid as u8, "");
        client.clear_attention();
        client
    };
    check(&format!("{LUNS} LUNs"), array.bytes_per_connection(SESSIONS, begin));
}

#[test]
fn a_session_that_rests_after_a_burst_gives_its_memory_back() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("volume").display().to_string();
    let file = format!(r#""kind": "file", "path": "{path}", "write_cache": true"#);
    let memory = r#""kind": "memory""#.to_owned();
    let bytes = vec![0xA5; 1 << 20];
    for (volume, how, digests) in [
        (&memory, Burst::Large, false),
        (&memory, Burst::Small, false),
        (&memory, Burst::Large, true),
        (&memory, Burst::Reads, false),
        (&file, Burst::Large, false),
        (&file, Burst::Small, false),
        (&file, Burst::Reads, false),
    ] {
        let array = started(&format!(r#"{{"lun": 0, "name": "v0", "size_bytes": {SIZE_BYTES}, {volume}}}"#));
        let begin = |isid: usize| {
            let keys = if digests { "HeaderDigest=CRC32C\0DataDigest=CRC32C\0" } else { "" };
            let mut client = Client::login(array.portal, isid as u8, keys);
            if digests {
                client.use_digests();
            }
            client.clear_attention();
            burst(&mut client, how, &bytes);
            client
        };
        check(&format!("{volume} {how:?} digests {digests}"), array.bytes_per_connection(SESSIONS, begin));
    }
}
