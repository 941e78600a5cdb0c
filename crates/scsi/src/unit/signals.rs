//! Signals of a unit to the commands of one `I_T_L` nexus, without a lock.

use crate::{fast_path, port::PortPair};
use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

/// One `I_T_L` nexus as its unit knows it: its ports, and the two words that each command reads.
#[derive(Debug)]
pub(crate) struct Signals {
    nexus_id: u64,
    port: Arc<PortPair>,
    fast_path: AtomicU32,
    abort_epoch: AtomicU32,
}

impl Signals {
    /// A nexus whose first command gets the power-on attention.
    pub(crate) fn new(nexus_id: u64, port: Arc<PortPair>) -> Self {
        let (fast_path, abort_epoch) = (AtomicU32::new(fast_path::ATTENTION), AtomicU32::new(0));
        Self { nexus_id, port, fast_path, abort_epoch }
    }

    /// Number of the `I_T` nexus, unique in the process.
    pub(crate) fn nexus_id(&self) -> u64 {
        self.nexus_id
    }

    pub(crate) fn port(&self) -> &PortPair {
        &self.port
    }

    /// The fast-path word: bits of [`crate::fast_path`].
    pub(crate) fn fast_path(&self) -> u32 {
        self.fast_path.load(Ordering::Acquire)
    }

    pub(super) fn set_fast_path(&self, bits: u32) {
        self.fast_path.store(bits, Ordering::Release);
    }

    pub(crate) fn abort_epoch(&self) -> u32 {
        self.abort_epoch.load(Ordering::Acquire)
    }

    pub(crate) fn abort_tasks(&self) {
        self.abort_epoch.fetch_add(1, Ordering::AcqRel);
    }
}
