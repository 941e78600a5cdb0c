//! The load of a path, now and since the last reading: numbers that are updated when an I/O is queued and when it ends.

use linerate_io::Nanos;

/// The counters of a path since they were last read. Only successful I/Os count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathCounters {
    /// Reads done.
    pub read_ios: u64,
    /// Writes done.
    pub write_ios: u64,
    /// Bytes of these reads.
    pub read_bytes: u64,
    /// Bytes of these writes.
    pub write_bytes: u64,
    /// Time from an I/O's first sending over this path to its end, summed over reads and writes. Divided by the time
    /// that has passed, this is the mean number in flight (Little's law).
    pub service_sum_ns: u64,
    /// The longest of these times.
    pub service_max_ns: u64,
    /// I/Os that were in flight when the path failed, and were sent again over another path.
    pub requeued: u64,
}

/// The load of a path, for a policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Load {
    /// I/Os queued or sent and not ended.
    pub(crate) ios: u32,
    /// Their bytes.
    pub(crate) bytes: u64,
    /// Time per byte, including the path's queue, in 1/1024 ns; 0 = not known yet.
    pub(crate) cost: u64,
}

/// The direction and size of an I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moves {
    Read,
    Write,
    /// Neither: flushes and discards.
    Nothing,
}

/// The meter of one session.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    pub(crate) load: Load,
    pub(crate) counters: PathCounters,
}

/// Weight of the past in the estimate of the time per byte: one sample changes it by 1/16 of the difference.
const PAST_SHIFT: u32 = 4;

impl Meter {
    /// An I/O of `bytes` is queued. Returns the bytes that are now in flight, including its own.
    #[inline]
    pub(crate) fn begin(&mut self, bytes: u32) -> u64 {
        self.load.ios += 1;
        self.load.bytes += u64::from(bytes);
        self.load.bytes
    }

    /// An I/O has ended or was handed back.
    #[inline]
    pub(crate) fn end(&mut self, bytes: u32) {
        self.load.ios -= 1;
        self.load.bytes -= u64::from(bytes);
    }

    /// An I/O has succeeded `service_ns` after it was sent; the queue, with this I/O, was `queue_bytes` long.
    #[inline]
    pub(crate) fn done(&mut self, moves: Moves, bytes: u32, queue_bytes: u64, service_ns: Nanos) {
        let counters = &mut self.counters;
        match moves {
            Moves::Read => {
                counters.read_ios += 1;
                counters.read_bytes += u64::from(bytes);
            }
            Moves::Write => {
                counters.write_ios += 1;
                counters.write_bytes += u64::from(bytes);
            }
            Moves::Nothing => return,
        }
        counters.service_sum_ns += service_ns;
        counters.service_max_ns = counters.service_max_ns.max(service_ns);
        let sample = ((service_ns << 10) / queue_bytes.max(1)).max(1);
        let cost = &mut self.load.cost;
        *cost =
            if *cost == 0 { sample } else { (*cost - (*cost >> PAST_SHIFT) + (sample >> PAST_SHIFT)).max(1) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_estimate_follows_the_path() {
        let mut meter = Meter::default();
        for _ in 0..200 {
            meter.begin(8192);
            meter.done(Moves::Read, 8192, 8192, 81_920);
            meter.end(8192);
        }
        assert!((9_500..=10_500).contains(&meter.load.cost), "{} of 10240", meter.load.cost);
        for _ in 0..200 {
            meter.done(Moves::Write, 8192, 81_920, 8_192_000);
        }
        assert!((95_000..=105_000).contains(&meter.load.cost), "{} of 102400", meter.load.cost);
        assert_eq!((meter.counters.read_ios, meter.counters.write_bytes), (200, 200 * 8192));
        assert_eq!((meter.load.ios, meter.load.bytes), (0, 0));
    }
}
