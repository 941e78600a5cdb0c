//! Properties and faults of the simulated network.

use crate::Rng;
use linerate_io::Nanos;

/// Properties of a network. Times in nanoseconds, percentages out of 100.
#[derive(Clone, Debug)]
pub struct Conditions {
    /// Least time that a byte travels.
    pub delay_ns: Nanos,
    /// Up to this much more, at random; bytes of one direction never overtake each other.
    pub jitter_ns: Nanos,
    /// Time that each byte occupies the link; 0 = infinitely fast.
    pub ns_per_byte: Nanos,
    /// Most bytes in transit or unread in one direction: how far a sender may be ahead of its receiver.
    pub window_bytes: usize,
    /// Most bytes that travel together; the rest follows in pieces.
    pub segment_bytes: usize,
    /// How often a receive gets only a part of what has arrived.
    pub short_receive_percent: u32,
    /// How often a connection attempt is refused.
    pub refuse_percent: u32,
    /// Mean time until a connection is lost; 0 = never.
    pub life_ns: Nanos,
    /// Share of the lost connections that are lost silently: bytes are lost and no end gets an error.
    pub silent_percent: u32,
    /// Longest time of most operations on a file; one in twenty takes up to ten times as long.
    pub file_ns: Nanos,
}

impl Conditions {
    /// A fast network without losses.
    pub fn calm() -> Self {
        Conditions {
            delay_ns: 10_000,
            jitter_ns: 0,
            ns_per_byte: 0,
            window_bytes: 1 << 20,
            segment_bytes: 1 << 20,
            short_receive_percent: 0,
            refuse_percent: 0,
            life_ns: 0,
            silent_percent: 0,
            file_ns: 100_000,
        }
    }

    /// A random network: slow or fast, in small pieces or large ones; with `lossy` connections get lost.
    pub fn random(rng: &mut Rng, lossy: bool) -> Self {
        let mut choose = |values: &[u64]| values[rng.range(0, values.len() as u64 - 1) as usize];
        let (delay_ns, jitter_ns) = (choose(&[1_000, 50_000, 1_000_000]), choose(&[0, 10_000, 2_000_000]));
        // Long enough for a login and some work, so that a test can succeed.
        let life_ns = (delay_ns + jitter_ns) * choose(&[100, 300, 1000]) + 1_000_000;
        Conditions {
            delay_ns,
            jitter_ns,
            ns_per_byte: choose(&[0, 0, 1, 8]),
            window_bytes: choose(&[3_000, 65_536, 1 << 20]) as usize,
            segment_bytes: choose(&[200, 1460, 8_192, 65_536]) as usize,
            short_receive_percent: choose(&[0, 10, 60]) as u32,
            refuse_percent: if lossy { choose(&[0, 0, 30]) as u32 } else { 0 },
            life_ns: if lossy { life_ns } else { 0 },
            silent_percent: choose(&[0, 20]) as u32,
            file_ns: choose(&[20_000, 500_000, 20_000_000]),
        }
    }
}
