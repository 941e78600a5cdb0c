//! What sessions cost when they rest. Alone in its program, because it measures the whole process.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)] // a test may wait and may fail loudly

mod support;

use support::{Client, array_of, wait_for};

const SESSIONS: usize = 200;
const PER_SESSION_MAX: usize = 64 << 10;

/// Private memory of this process in bytes.
fn anonymous_bytes() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("RssAnon:"))?;
    line.split_whitespace().nth(1)?.parse::<usize>().ok().map(|kib| kib << 10)
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
                let mut bhs = [0; linerate_iscsi::pdu::BHS_BYTES];
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
                    let mut bhs = [0; linerate_iscsi::pdu::BHS_BYTES];
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
fn a_session_that_rests_after_a_burst_gives_its_memory_back() {
    if anonymous_bytes().is_none() {
        return eprintln!("skipped: this system does not tell the size of a process");
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("volume").display().to_string();
    let file = format!(r#""kind": "file", "path": "{path}", "write_cache": true"#);
    let bytes = vec![0xA5; 1 << 20];
    for (volume, how, digests) in [
        (r#""kind": "memory""#, Burst::Large, false),
        (r#""kind": "memory""#, Burst::Small, false),
        (r#""kind": "memory""#, Burst::Large, true),
        (r#""kind": "memory""#, Burst::Reads, false),
        (file.as_str(), Burst::Large, false),
        (file.as_str(), Burst::Small, false),
        (file.as_str(), Burst::Reads, false),
    ] {
        let array = array_of(volume, "");
        let start = |isid: usize| {
            let keys = if digests { "HeaderDigest=CRC32C\0DataDigest=CRC32C\0" } else { "" };
            let mut client = Client::login(array.portals()[0], isid as u8, keys);
            if digests {
                client.use_digests();
            }
            client.clear_attention();
            burst(&mut client, how, &bytes);
            client
        };
        // What is shared (pages of the volume, spare buffers, the allocator's pools) is there before the count begins.
        drop((0..8).map(start).collect::<Vec<_>>());
        wait_for(&array, "all are gone", |stats| stats.connections == 0);
        let before = anonymous_bytes().unwrap();
        let clients: Vec<_> = (0..SESSIONS).map(start).collect();
        let per_session = anonymous_bytes().unwrap().saturating_sub(before) / SESSIONS;
        eprintln!("{volume} {how:?} digests {digests}: {per_session} bytes");
        assert!(per_session < PER_SESSION_MAX, "{volume} {how:?} digests {digests}: {per_session} bytes");
        drop(clients);
    }
}
