//! The counters of a worker during one interval. Only its worker uses them. At the end of the interval the tally is
//! sent as a whole and returned empty, so the hot path neither locks nor allocates.

use super::{Generator, HISTOGRAM_MAX_NS, Histogram, Op, PathRow, RunEvent};

/// Sub-buckets per power of two in the upper half of the first bucket: three significant digits, as in [`Histogram`].
const HALF: usize = 1024;
const HALF_BITS: u32 = HALF.ilog2();
const LEN: usize = (HISTOGRAM_MAX_NS.ilog2() - HALF_BITS + 2) as usize * HALF;

/// Counts in the buckets of an HDR histogram with three digits. Recording is a shift and an addition; quantiles are left
/// to [`Histogram`].
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts(Box<[u64]>);

impl Counts {
    /// All zero. Pages take memory once a value is counted in them.
    pub(crate) fn new() -> Self {
        Self(vec![0; LEN].into())
    }

    /// Counts one value.
    pub(crate) fn record(&mut self, value_ns: u64) {
        let value = value_ns.min(HISTOGRAM_MAX_NS);
        let bucket = (value | (2 * HALF as u64 - 1)).ilog2() - HALF_BITS;
        self.0[bucket as usize * HALF + (value >> bucket) as usize] += 1;
    }

    /// Adds all counts to a histogram and resets them.
    pub(crate) fn drain_into(&mut self, histogram: &mut Histogram) {
        for (index, count) in self.0.iter_mut().enumerate().filter(|(_, count)| **count > 0) {
            histogram.record(value_at(index), std::mem::take(count));
        }
    }
}

/// Lowest value of a bucket.
fn value_at(index: usize) -> u64 {
    let bucket = (index / HALF).saturating_sub(1);
    ((index - bucket * HALF) as u64) << bucket
}

/// Sub-buckets per power of two of a coarse distribution: buckets are at most 1/16 wide.
const COARSE_HALF: usize = 16;
const COARSE_BITS: u32 = COARSE_HALF.ilog2();
const COARSE_LEN: usize = (HISTOGRAM_MAX_NS.ilog2() - COARSE_BITS + 2) as usize * COARSE_HALF;

/// A distribution in 2.5 KB: one per volume and operation over the whole measured time.
#[derive(Clone, Debug)]
pub(crate) struct Coarse(Box<[u32]>);

impl Coarse {
    /// All zero.
    pub(crate) fn new() -> Self {
        Self(vec![0; COARSE_LEN].into())
    }

    /// Counts one value.
    pub(crate) fn record(&mut self, value_ns: u64) {
        let value = value_ns.min(HISTOGRAM_MAX_NS);
        let bucket = (value | (2 * COARSE_HALF as u64 - 1)).ilog2() - COARSE_BITS;
        let count = &mut self.0[bucket as usize * COARSE_HALF + (value >> bucket) as usize];
        *count = count.saturating_add(1);
    }

    /// As a histogram: every count at the middle of its bucket.
    pub(crate) fn add_to(&self, histogram: &mut Histogram) {
        for (index, &count) in self.0.iter().enumerate().filter(|(_, count)| **count > 0) {
            let bucket = (index / COARSE_HALF).saturating_sub(1);
            let low = ((index - bucket * COARSE_HALF) as u64) << bucket;
            histogram.record(low + (1 << bucket) / 2, count.into());
        }
    }
}

/// Counters of one flow and operation.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cell {
    pub(crate) ios: u64,
    pub(crate) bytes: u64,
    pub(crate) errors: u64,
    pub(crate) service_sum_ns: u64,
    pub(crate) service_sumsq_ns2: f64,
    pub(crate) service_max_ns: u64,
    pub(crate) response_sum_ns: u64,
    pub(crate) response_max_ns: u64,
    pub(crate) flushes: u64,
    pub(crate) flush_sum_ns: u64,
    pub(crate) flush_max_ns: u64,
}

/// TCP counters of a worker's sessions over an interval; the round-trip times are summed to be averaged over all workers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TcpTally {
    pub(crate) retransmits: u64,
    pub(crate) data_segments_sent: u64,
    pub(crate) bytes_sent: u64,
    pub(crate) bytes_received: u64,
    pub(crate) busy_us: u64,
    pub(crate) rwnd_limited_us: u64,
    pub(crate) sndbuf_limited_us: u64,
    pub(crate) rtt_sum_us: u64,
    pub(crate) connections: u64,
}

/// The network traffic of a worker since the last query.
#[derive(Clone, Debug, Default)]
pub(crate) struct NetworkTally {
    /// Over all sessions.
    pub(crate) tcp: TcpTally,
    /// By volume and path.
    pub(crate) paths: Vec<PathRow>,
}

impl NetworkTally {
    /// Adds a later tally.
    pub(crate) fn add(&mut self, later: &Self) {
        self.tcp.add(&later.tcp);
        for row in &later.paths {
            let known = self.paths.iter_mut().find(|sum| (sum.volume, &sum.path) == (row.volume, &row.path));
            match known {
                Some(sum) => add_row(sum, row),
                None => self.paths.push(row.clone()),
            }
        }
    }
}

fn add_row(sum: &mut PathRow, later: &PathRow) {
    sum.state = later.state;
    sum.read_ios += later.read_ios;
    sum.write_ios += later.write_ios;
    sum.read_bytes += later.read_bytes;
    sum.write_bytes += later.write_bytes;
    sum.service_sum_ns += later.service_sum_ns;
    sum.service_max_ns = sum.service_max_ns.max(later.service_max_ns);
    sum.requeued += later.requeued;
    sum.retransmits += later.retransmits;
    sum.bytes_sent += later.bytes_sent;
    sum.bytes_received += later.bytes_received;
}

/// One interval of one worker.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// By flow and operation.
    pub(crate) cells: Box<[[Cell; 2]]>,
    /// By stream and operation; empty for streams without flows on this worker.
    pub(crate) service: Box<[[Counts; 2]]>,
    /// The same; empty for closed-loop streams.
    pub(crate) response: Box<[[Counts; 2]]>,
    pub(crate) generator: Generator,
    pub(crate) cpu_user_us: u64,
    pub(crate) cpu_system_us: u64,
    /// CPU time of polls that found nothing; it is part of `cpu_user_us` and `cpu_system_us`.
    pub(crate) polled_ns: u64,
    pub(crate) network: NetworkTally,
    pub(crate) events: Vec<RunEvent>,
}

/// The counters that a stream needs: whether this worker serves it, and whether response and service time differ.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Needs {
    pub(crate) served: bool,
    pub(crate) open_loop: bool,
}

impl Tally {
    /// For so many flows and these streams.
    pub(crate) fn new(flows: usize, streams: &[Needs]) -> Self {
        let counts = |wanted: bool| if wanted { [Counts::new(), Counts::new()] } else { Default::default() };
        Self {
            cells: vec![[Cell::default(); 2]; flows].into(),
            service: streams.iter().map(|stream| counts(stream.served)).collect(),
            response: streams.iter().map(|stream| counts(stream.served && stream.open_loop)).collect(),
            ..Self::default()
        }
    }

    /// Zeroes the counters that are not drained by reading.
    pub(crate) fn reset(&mut self) {
        self.cells.fill([Cell::default(); 2]);
        self.generator = Generator::default();
        (self.cpu_user_us, self.cpu_system_us, self.polled_ns) = (0, 0, 0);
        self.network = NetworkTally::default();
        self.events.clear();
    }
}

/// Index of an operation in pairs.
pub(crate) fn side(op: Op) -> usize {
    op as usize
}

#[cfg(test)]
mod tests {
    use super::{Coarse, Counts, Histogram};
    use crate::record::HISTOGRAM_MAX_NS;

    #[test]
    fn counts_fall_into_the_buckets_of_the_histogram() {
        let (mut counts, mut direct, mut drained) = (Counts::new(), Histogram::new(), Histogram::new());
        let mut value = 1_u64;
        while value < 2 * HISTOGRAM_MAX_NS {
            for near in [value - 1, value, value + 1, value + value / 3] {
                counts.record(near);
                direct.record(near, 1);
            }
            value = value * 3 / 2 + 1;
        }
        counts.drain_into(&mut drained);
        assert_eq!(drained.buckets(), direct.buckets());
        let mut again = Histogram::new();
        counts.drain_into(&mut again);
        assert_eq!(again.count(), 0);
    }

    #[test]
    fn coarse_values_are_right_to_a_sixteenth() {
        for value in [0_u64, 3, 31, 32, 1000, 123_456, 20_000_000, HISTOGRAM_MAX_NS] {
            let (mut coarse, mut histogram) = (Coarse::new(), Histogram::new());
            coarse.record(value);
            coarse.add_to(&mut histogram);
            let error = histogram.quantile(0.5).abs_diff(value);
            assert!(error * 16 <= value + 16, "{value} came back {error} off");
        }
    }
}
