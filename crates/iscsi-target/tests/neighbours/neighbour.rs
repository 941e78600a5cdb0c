//! A well-behaved initiator that checks every byte.

use crate::{
    HONEST,
    support::raw::{Raw, Who},
};
use std::{
    net::SocketAddr,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

const IO_BYTES: u32 = 8192;
/// Blocks of [`IO_BYTES`] that it works on.
const PLACES: u64 = 512;

/// Its results.
pub(crate) struct Neighbour {
    latencies: Vec<Duration>,
}

fn content(place: u64, version: u64) -> Vec<u8> {
    let words = (0..u64::from(IO_BYTES / 8))
        .map(|word| (version << 32 ^ place << 16 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    if version == 0 { vec![0; IO_BYTES as usize] } else { words.flat_map(u64::to_le_bytes).collect() }
}

impl Neighbour {
    /// Reads and writes `rate` times a second, one at a time, until `stop`. A late I/O does not delay the next.
    pub(crate) fn run(addr: SocketAddr, lun: u8, rate: u32, stop: &AtomicBool) -> Self {
        let initiator = format!("iqn.2026-11.lab.linerate:neighbour{lun}");
        let who = Who { initiator: &initiator, target: HONEST, isid: lun.into(), keys: "" };
        let mut raw = Raw::login(addr, &who).unwrap();
        raw.clear_attention(lun).unwrap();
        let mut versions = vec![0_u64; PLACES as usize];
        let mut latencies = Vec::new();
        let began = Instant::now();
        let mut state = u64::from(lun) + 1;
        for number in 0.. {
            let due = began + Duration::from_secs(1) * number / rate;
            thread::sleep(due.saturating_duration_since(Instant::now()));
            if stop.load(Relaxed) {
                break;
            }
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let place = (state >> 33) % PLACES;
            let lba = (place * u64::from(IO_BYTES) / 512) as u32;
            let sent = Instant::now();
            if state >> 63 == 0 {
                let found = raw.read(lun, lba, IO_BYTES).unwrap();
                latencies.push(sent.elapsed());
                assert!(
                    found == content(place, versions[place as usize]),
                    "LUN {lun}: wrong bytes at {place}"
                );
            } else {
                versions[place as usize] = u64::from(number) + 1;
                let bytes = content(place, versions[place as usize]);
                // Sometimes with the command, sometimes after R2Ts.
                raw.write(lun, lba, &bytes, if state >> 62 & 1 == 0 { bytes.len() } else { 0 }).unwrap();
                latencies.push(sent.elapsed());
            }
        }
        latencies.sort();
        Self { latencies }
    }

    pub(crate) fn done(&self) -> usize {
        self.latencies.len()
    }

    /// The time within which 99.9 % of its I/O was done; if there are fewer than 3,000, all but three.
    pub(crate) fn p999(&self) -> Duration {
        let slower = (self.latencies.len() / 1000).max(3);
        self.latencies[self.latencies.len().saturating_sub(slower + 1)]
    }
}
