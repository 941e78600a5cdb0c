//! What a disk counts.

/// Counters since the start; all only grow, so that differences of two snapshots are an interval's figures.
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
    /// Time in which the disk was at work on at least one operation.
    pub busy_ns: u64,
}
