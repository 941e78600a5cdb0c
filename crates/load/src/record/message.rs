//! Messages of workers, and of the sampler of the host, to the merger.

use super::tally::{Coarse, Tally};
use linerate_io::system::HostCpu;

/// One interval of one worker.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) index: u32,
    /// End of the interval in ns since the start of the run; earlier than scheduled when the run ended.
    pub(crate) end: u64,
    pub(crate) tally: Box<Tally>,
}

/// A message to the merger.
#[derive(Debug)]
pub(crate) enum WorkerMessage {
    /// A worker ended an interval.
    Interval {
        /// Which worker.
        worker: usize,
        /// Its counts.
        batch: Batch,
    },
    /// A worker has ended.
    Last {
        /// Which worker.
        worker: usize,
        /// Counts of its last interval.
        batch: Batch,
        /// Distributions of its volumes over the measured time.
        coarse: Vec<[Coarse; 2]>,
    },
    /// Host CPU at the end of an interval (or of the run).
    Host {
        /// Which interval.
        index: u32,
        /// Since the host started.
        cpu: HostCpu,
        /// No more will come.
        last: bool,
    },
}
