//! The options of a selector.

use schemars::JsonSchema;
use serde::Deserialize;

/// Which of the usable paths an I/O takes. Under every policy the usable paths are the working ones with the best rank:
/// active/optimized before active/non-optimized (ALUA), and then those that are not on standby.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// The first one in the list; the others are used only after it fails.
    FailoverOnly,
    /// Each in turn, for `ios_per_path` I/Os or `bytes_per_path` bytes. Every path is active: a path on standby is
    /// refused.
    #[default]
    RoundRobin,
    /// The same over the paths that are not on standby.
    RoundRobinSubset,
    /// The one with the fewest I/Os in flight.
    LeastQueueDepth,
    /// The one with the fewest bytes in flight.
    LeastBlocks,
    /// The one with the least weight; paths of equal weight take turns.
    WeightedPaths,
    /// The one that would complete the I/O first, by the measured time per byte and the bytes in flight.
    ServiceTime,
}

/// The options of a selector.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BalanceOptions {
    pub(crate) policy: Policy,
    /// Round robin moves on after so many I/Os.
    pub(crate) ios_per_path: u32,
    /// Round robin moves on after so many bytes; none = it counts I/Os.
    pub(crate) bytes_per_path: Option<u64>,
}

impl BalanceOptions {
    /// Round robin moves on after each I/O.
    pub(crate) fn new(policy: Policy) -> Self {
        Self { policy, ios_per_path: 1, bytes_per_path: None }
    }
}
