//! The counters of a disk.

use linerate_io::Nanos;
use std::cell::Cell;

/// Counters since the start. They only grow, so the difference of two snapshots is the figure of an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct DiskStats {
    /// Reads that completed.
    pub reads: u64,
    /// Writes that completed.
    pub writes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Flushes that completed.
    pub flushes: u64,
    /// Discards that completed.
    pub discards: u64,
    /// Operations that failed.
    pub errors: u64,
    /// Sum over all reads and writes of the time from call to completion: per second, the mean number outstanding.
    pub response_ns: u64,
    /// Time with at least one operation in progress.
    pub busy_ns: u64,
}

/// The kind of an operation, for counters and for decisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpKind {
    /// [`super::Disk::read`].
    Read,
    /// [`super::Disk::write`].
    Write,
    /// [`super::Disk::flush`].
    Flush,
    /// [`super::Disk::discard`].
    Discard,
}

impl DiskStats {
    /// One more operation that succeeded.
    pub(crate) fn count(&mut self, kind: OpKind, len_bytes: u64) {
        match kind {
            OpKind::Read => {
                self.reads += 1;
                self.read_bytes += len_bytes;
            }
            OpKind::Write => {
                self.writes += 1;
                self.write_bytes += len_bytes;
            }
            OpKind::Flush => self.flushes += 1,
            OpKind::Discard => self.discards += 1,
        }
    }
}

/// Keeps the [`DiskStats`] of a disk whose operations take time.
#[derive(Debug, Default)]
pub struct Meter {
    stats: Cell<DiskStats>,
    outstanding: Cell<u32>,
    busy_since: Cell<Nanos>,
}

impl Meter {
    /// An operation or background work begins.
    pub fn begin(&self, now: Nanos) {
        if self.outstanding.replace(self.outstanding.get() + 1) == 0 {
            self.busy_since.set(now);
        }
    }

    /// An operation has succeeded that took no time.
    pub fn count(&self, kind: OpKind, len_bytes: u64) {
        let mut stats = self.stats.get();
        stats.count(kind, len_bytes);
        self.stats.set(stats);
    }

    /// An operation that began at `begun` has ended, with or without success. Call it once for each [`Meter::begin`].
    pub fn end(&self, begun: Nanos, now: Nanos, kind: OpKind, len_bytes: u64, is_ok: bool) {
        let mut stats = self.stats.get();
        if is_ok {
            stats.count(kind, len_bytes);
        } else {
            stats.errors += 1;
        }
        if matches!(kind, OpKind::Read | OpKind::Write) {
            stats.response_ns += now.saturating_sub(begun);
        }
        self.stats.set(stats);
        self.rest(now);
    }

    /// Background work has ended (a write cache was emptied): like [`Meter::end`], but nothing is counted.
    pub fn rest(&self, now: Nanos) {
        self.outstanding.set(self.outstanding.get() - 1);
        if self.outstanding.get() == 0 {
            let mut stats = self.stats.get();
            stats.busy_ns += now.saturating_sub(self.busy_since.get());
            self.stats.set(stats);
        }
    }

    /// The counters, including the time of work in progress.
    pub fn stats(&self, now: Nanos) -> DiskStats {
        let mut stats = self.stats.get();
        if self.outstanding.get() > 0 {
            stats.busy_ns += now.saturating_sub(self.busy_since.get());
        }
        stats
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_operations_are_busy_once_and_outstanding_twice() {
        let meter = Meter::default();
        meter.begin(100);
        meter.begin(150);
        assert_eq!(meter.stats(160).busy_ns, 60);
        meter.end(100, 200, OpKind::Read, 512, true);
        meter.end(150, 250, OpKind::Write, 4096, true);
        meter.begin(400);
        meter.end(400, 410, OpKind::Read, 512, false);
        let expected = DiskStats {
            reads: 1,
            writes: 1,
            read_bytes: 512,
            write_bytes: 4096,
            errors: 1,
            response_ns: 100 + 100 + 10,
            busy_ns: 150 + 10,
            ..DiskStats::default()
        };
        assert_eq!(meter.stats(500), expected);
    }
}
