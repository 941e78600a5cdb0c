//! What a path carries now and has carried.

/// What a path has carried since the counters were last taken. Only I/Os that succeeded count.
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
    /// I/Os that were in flight when the path failed, and were sent again elsewhere.
    pub displaced: u64,
}
