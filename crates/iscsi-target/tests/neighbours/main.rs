//! One verified, rate-limited initiator beside each attack on another target of the same worker: its data stays right,
//! it keeps at least half of its rate, and 99.9 % of its I/O takes less than 250 ms. Files are in memory, if there is
//! such a file system: this tests the array, not the host's disk.
//!
//! `LINERATE_NEIGHBOUR_SECONDS` is the length of each attack (2 s; the long test takes 20).

#![allow(clippy::unwrap_used, clippy::disallowed_methods)] // a test may wait and may fail loudly
#![allow(clippy::print_stdout)] // prints its measurements

mod attacks;
mod neighbour;
#[path = "../support/mod.rs"]
mod support;

use attacks::Attack;
use linerate_iscsi_target::Array;
use neighbour::Neighbour;
use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};
use support::{slow_drivers, wait_for};

pub(crate) const EVIL: &str = "iqn.2026-11.lab.linerate:evil";
pub(crate) const HONEST: &str = "iqn.2026-11.lab.linerate:honest";
const VOLUME_BYTES: u64 = 16 << 20;

/// The neighbours' rate, in I/O per second, and their limits.
const RATE: u32 = 300;
const P999_MAX: Duration = Duration::from_millis(250);
/// Limit of the growth of the array's memory: the memory for I/O, and some for sessions.
const GROWTH_BYTES_MAX: u64 = 400 << 20;

/// Attacks measure time, so they take turns.
static TURN: Mutex<()> = Mutex::new(());

fn lasts() -> Duration {
    let seconds = std::env::var("LINERATE_NEIGHBOUR_SECONDS").ok();
    Duration::from_secs_f64(seconds.map_or(2.0, |seconds| seconds.parse().unwrap()))
}

/// Two targets, each with a volume in memory (LUN 0) and one in a file (LUN 1), on one worker.
fn array(driver: &str, dir: &tempfile::TempDir) -> Array {
    let target = |name: &str| {
        let path = dir.path().join(name.rsplit(':').next().unwrap());
        format!(
            r#"{{"name": "{name}", "volumes": [
                {{"lun": 0, "name": "{name}-0", "size_bytes": {VOLUME_BYTES}, "kind": "memory"}},
                {{"lun": 1, "name": "{name}-1", "size_bytes": {VOLUME_BYTES}, "kind": "file", "path": "{}"}}]}}"#,
            path.display()
        )
    };
    let json = format!(
        r#"{{"portals": ["127.0.0.1:0"], "driver": "{driver}", "workers": 1, "touch_memory": false,
            "targets": [{}, {}]}}"#,
        target(EVIL),
        target(HONEST)
    );
    Array::start(serde_json::from_str(&json).unwrap()).unwrap()
}

fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

fn neighbours(addr: SocketAddr, stop: &Arc<AtomicBool>) -> Vec<thread::JoinHandle<Neighbour>> {
    let run = |lun| {
        let stop = Arc::clone(stop);
        thread::spawn(move || Neighbour::run(addr, lun, RATE, &stop))
    };
    [0, 1].map(run).into()
}

/// Runs an attack beside two neighbours, one on a memory volume and one on a file.
fn survives(attack: Attack) {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    for driver in slow_drivers() {
        let memory = std::path::Path::new("/dev/shm");
        let dir = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap();
        let array = array(driver, &dir);
        let addr = array.portals()[0];
        let stop = Arc::new(AtomicBool::new(false));
        let neighbours = neighbours(addr, &stop);
        let before = resident_bytes();
        let attackers = attack.start(addr, &stop);
        let began = Instant::now();
        let mut most = before;
        while began.elapsed() < lasts() {
            thread::sleep(Duration::from_millis(50));
            most = most.max(resident_bytes());
        }
        stop.store(true, Relaxed);
        let took = began.elapsed();
        for neighbour in neighbours {
            let neighbour = neighbour.join().unwrap();
            let due = took.as_secs_f64() * f64::from(RATE);
            println!(
                "{driver} {attack:?}: {} of {due:.0} I/Os, 99.9 % within {:?}",
                neighbour.done(),
                neighbour.p999()
            );
            assert!(neighbour.done() as f64 >= due / 2.0, "{driver} {attack:?}: half of the rate is kept");
            assert!(neighbour.p999() < P999_MAX, "{driver} {attack:?}: 99.9 % in time");
        }
        let acts: u64 = attackers.into_iter().map(|attacker| attacker.join().unwrap()).sum();
        println!("{driver} {attack:?}: {acts} acts, {} MiB more memory", (most - before) >> 20);
        assert!(acts >= attack.least_acts(), "{driver} {attack:?}: only {acts} acts");
        assert!(most - before < GROWTH_BYTES_MAX, "{driver} {attack:?}: memory is bounded");
        wait_for(&array, "all is given back", |stats| {
            (stats.tasks, stats.pool_bytes, stats.sessions) == (0, 0, 0)
        });
    }
}

#[test]
fn aborts_with_several_connections() {
    survives(Attack::Aborts);
}

#[test]
fn sessions_that_do_not_read() {
    survives(Attack::NonReaders);
}

#[test]
fn sessions_that_do_not_send() {
    survives(Attack::NonSenders);
}

#[test]
fn sessions_that_do_not_send_what_needs_no_asking() {
    survives(Attack::NonSendersUnsolicited);
}

#[test]
fn large_reads_with_digests_that_are_not_read() {
    survives(Attack::UnreadDigests);
}

#[test]
fn parameter_lists_that_stop_before_their_end() {
    survives(Attack::UnfinishedLists);
}

#[test]
fn a_queue_behind_a_write_that_does_not_end() {
    survives(Attack::StuckQueue);
}

#[test]
fn a_flood_of_logins() {
    survives(Attack::Logins);
}

#[test]
fn logins_of_one_byte_at_a_time() {
    survives(Attack::SlowLogins);
}

#[test]
fn a_flood_of_pings() {
    survives(Attack::Pings);
}

#[test]
fn a_flood_of_pings_without_an_ear() {
    survives(Attack::DeafPings);
}

#[test]
fn a_flood_of_resets() {
    survives(Attack::Resets);
}

#[test]
fn sessions_that_come_and_go() {
    survives(Attack::Churn);
}
