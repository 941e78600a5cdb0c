//! What sessions cost when they rest. The array is a process of its own (this program once more), so that the clients'
//! memory is not counted.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)] // a test may wait and may fail loudly
#![allow(clippy::print_stdout)] // the array tells its portal there

mod support;

use linerate_target::Array;
use std::{
    io::{BufRead, BufReader, Lines, Read},
    net::SocketAddr,
    process::{Child, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};
use support::{Client, IQN, SIZE_BYTES};

const SESSIONS: usize = 200;
const WARM_UP_SESSIONS: usize = 8;
const LUNS: usize = 256;
const PER_SESSION_MAX: usize = 64 << 10;
const CONFIG: &str = "LINERATE_TEST_ARRAY_CONFIG";

/// The array's process.
struct Served {
    child: Child,
    portal: SocketAddr,
    /// Kept open for the words of the test harness.
    _told: Lines<BufReader<ChildStdout>>,
}

impl Served {
    fn start(volumes: &str) -> Self {
        let json = format!(
            r#"{{"portals": ["127.0.0.1:0"], "targets": [{{"name": "{IQN}", "volumes": [{volumes}]}}]}}"#
        );
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "serve", "--nocapture", "--include-ignored"])
            .env(CONFIG, json)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut told = BufReader::new(child.stdout.take().unwrap()).lines();
        let portal = told
            .by_ref()
            .map(Result::unwrap)
            .find_map(|line| line.split_once("portal ").map(|(_, address)| address.parse().unwrap()));
        Self { child, portal: portal.unwrap(), _told: told }
    }

    /// Private memory in bytes.
    fn anonymous_bytes(&self) -> Option<usize> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let line = status.lines().find(|line| line.starts_with("RssAnon:"))?;
        line.split_whitespace().nth(1)?.parse::<usize>().ok().map(|kib| kib << 10)
    }

    fn open_files(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.child.id())).unwrap().count()
    }

    /// What a session adds once `begin` has brought it to rest; `None` where the system does not tell.
    fn bytes_per_session(&self, begin: impl Fn(usize) -> Client) -> Option<usize> {
        let resting = self.open_files();
        // What is shared (pages of the volume, spare buffers, the allocator's pools) is there before the count begins.
        drop((0..WARM_UP_SESSIONS).map(&begin).collect::<Vec<_>>());
        let deadline = Instant::now() + Duration::from_secs(20);
        while self.open_files() > resting {
            assert!(Instant::now() < deadline, "the array keeps the sockets of clients that are gone");
            std::thread::sleep(Duration::from_millis(5));
        }
        let before = self.anonymous_bytes()?;
        let clients: Vec<_> = (0..SESSIONS).map(begin).collect();
        let after = self.anonymous_bytes()?;
        drop(clients);
        Some(after.saturating_sub(before) / SESSIONS)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// Not a test: the array's process, which ends with its standard input.
#[test]
#[ignore = "only the tests below start it"]
fn serve() {
    let Ok(json) = std::env::var(CONFIG) else { return };
    let array = Array::start(serde_json::from_str(&json).unwrap()).unwrap();
    println!("portal {}", array.portals()[0]);
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
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
fn an_idle_session_of_a_target_with_many_luns_is_small() {
    let volumes: Vec<String> = (0..LUNS)
        .map(|lun| format!(r#"{{"lun": {lun}, "name": "v{lun}", "size_bytes": 262144, "kind": "memory"}}"#))
        .collect();
    let array = Served::start(&volumes.join(","));
    let begin = |isid: usize| {
        let mut client = Client::login(array.portal, isid as u8, "");
        client.clear_attention();
        client
    };
    check(&format!("{LUNS} LUNs"), array.bytes_per_session(begin));
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
        let array =
            Served::start(&format!(r#"{{"lun": 0, "name": "v0", "size_bytes": {SIZE_BYTES}, {volume}}}"#));
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
        check(&format!("{volume} {how:?} digests {digests}"), array.bytes_per_session(begin));
    }
}
