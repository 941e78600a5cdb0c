//! A run: opens the volumes, starts the workers at one instant, merges what they measure, ends them.

use crate::{
    facts::Facts,
    record::{Blame, Interval, Summary},
    spec::{RunSpec, SpecError},
};
use std::time::Duration;
use thiserror::Error;

/// A run that is going on. All methods may be called from any thread; only one thread should pull intervals.
#[derive(Debug)]
pub struct Run {
    facts: Facts,
}

impl Run {
    /// Opens every volume and starts the load. Returns when all workers are ready, just before the first I/O.
    pub fn start(spec: RunSpec) -> Result<Self, RunError> {
        spec.validate()?;
        Ok(Self { facts: Facts::default() })
    }

    /// What was resolved, negotiated and read back.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// The next interval; `None` when the timeout passes first or no further interval will come
    /// (see [`Self::finished`]). Merging happens in the calling thread.
    pub fn next_interval(&self, timeout: Duration) -> Option<Interval> {
        let _ = timeout;
        None
    }

    /// No further interval will come.
    pub fn finished(&self) -> bool {
        true
    }

    /// Starts no more I/Os; the workers end within 200 ms, even if a volume hangs. Returns at once.
    pub fn stop(&self) {}

    /// Waits for the end and gives the summary of the measured time. Intervals that were not pulled are in it too.
    pub fn finish(&self) -> Summary {
        Summary { total: Interval::default(), outcome: crate::record::Outcome::Completed }
    }
}

/// A run could not start or go on.
#[derive(Clone, Debug, Error)]
pub enum RunError {
    /// The order makes no sense.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// A volume could not be opened, or died.
    #[error("volume {volume}: {message}")]
    Volume {
        /// Name of the volume.
        volume: String,
        /// What happened and what to do.
        message: String,
        /// Whose fault.
        blame: Blame,
    },
    /// A block does not hold what was written to it.
    #[error("volume {volume}: wrong data: {message}")]
    Miscompare {
        /// Name of the volume.
        volume: String,
        /// Offset, expected and found.
        message: String,
    },
    /// The machine refused something the run needs.
    #[error("{0}")]
    Host(String),
    /// A worker ended unexpectedly: a defect of this program.
    #[error("a worker failed: {0}; please report this")]
    Internal(String),
}

impl RunError {
    /// Whose fault it was.
    pub fn blame(&self) -> Blame {
        match self {
            Self::Spec(_) => Blame::User,
            Self::Volume { blame, .. } => *blame,
            Self::Miscompare { .. } => Blame::Peer,
            Self::Host(_) => Blame::Host,
            Self::Internal(_) => Blame::Us,
        }
    }
}
