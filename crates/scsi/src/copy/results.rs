//! The results of finished copies.

use super::limits::HELD_RESULTS;
use std::collections::VecDeque;

/// How a finished copy went.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CopyResult {
    pub(super) nexus: u64,
    pub(super) list_id: u8,
    pub(super) succeeded: bool,
    pub(super) segments_done: u16,
    pub(super) copied_bytes: u64,
}

/// The latest results of a unit, over all nexuses.
#[derive(Debug, Default)]
pub(crate) struct CopyResults(VecDeque<CopyResult>);

impl CopyResults {
    /// Stores a result, in place of an earlier one with the same list identifier.
    pub(super) fn keep(&mut self, result: CopyResult) {
        self.0.retain(|old| (old.nexus, old.list_id) != (result.nexus, result.list_id));
        if self.0.len() == HELD_RESULTS {
            self.0.pop_front();
        }
        self.0.push_back(result);
    }

    /// The result of a nexus's copy with this list identifier.
    pub(super) fn find(&self, nexus: u64, list_id: u8) -> Option<&CopyResult> {
        self.0.iter().find(|result| (result.nexus, result.list_id) == (nexus, list_id))
    }
}
