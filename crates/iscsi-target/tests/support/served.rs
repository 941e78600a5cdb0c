//! An array in its own process (the test program again), so that the cost of clients is not counted as the array's.

#![allow(clippy::print_stdout)] // the array prints its portal there

use linerate_iscsi_target::Array;
use std::{
    io::{BufRead, BufReader, Lines, Read},
    net::SocketAddr,
    process::{Child, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

/// Connections that are opened before the cost of one is measured.
const WARM_UP: usize = 8;
const CONFIG: &str = "LINERATE_TEST_ARRAY_CONFIG";

/// The array's process.
pub(crate) struct Served {
    child: Child,
    pub(crate) portal: SocketAddr,
    /// Kept open for the words of the test harness.
    _told: Lines<BufReader<ChildStdout>>,
}

impl Served {
    /// Starts an array. The test program has a test named `serve` that calls [`serve`].
    pub(crate) fn start(json: &str) -> Self {
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
    pub(crate) fn anonymous_bytes(&self) -> Option<usize> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let line = status.lines().find(|line| line.starts_with("RssAnon:"))?;
        line.split_whitespace().nth(1)?.parse::<usize>().ok().map(|kib| kib << 10)
    }

    pub(crate) fn open_files(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.child.id())).unwrap().count()
    }

    /// The memory that a connection adds once `begin` has made it idle; `None` if the system does not report it.
    pub(crate) fn bytes_per_connection<C>(&self, count: usize, begin: impl Fn(usize) -> C) -> Option<usize> {
        let resting = self.open_files();
        // Shared memory (pages of the volume, spare buffers, the allocator's pools) exists before the count begins.
        drop((0..WARM_UP).map(&begin).collect::<Vec<_>>());
        let deadline = Instant::now() + Duration::from_secs(20);
        while self.open_files() > resting {
            assert!(Instant::now() < deadline, "the array keeps the sockets of clients that are gone");
            std::thread::sleep(Duration::from_millis(5));
        }
        let before = self.anonymous_bytes()?;
        let clients: Vec<_> = (0..count).map(begin).collect();
        let after = self.anonymous_bytes()?;
        drop(clients);
        Some(after.saturating_sub(before) / count)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// The array's process, which ends with its standard input.
pub(crate) fn serve() {
    let Ok(json) = std::env::var(CONFIG) else { return };
    let array = Array::start(serde_json::from_str(&json).unwrap()).unwrap();
    println!("portal {}", array.portals()[0]);
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}
