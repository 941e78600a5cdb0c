//! The states of a path as a table. Its session has another table; this one decides whether I/O may use the path.
//!
//! ```text
//! Connecting -> Checking -> Optimized, NonOptimized, Standby, Unavailable, Transitioning (as the array reports)
//!     |  ^         |  |                    |   ^ any to any
//!     v  |         |  +-> Refused          v   |
//!   Failed <-------+-----------------------+---+
//! ```
//!
//! An input without a row in a state is ignored: it is late.

use crate::facts::PathState;
use linerate_scsi_proto::alua::AccessState;

/// Events that change the state of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PathInput {
    /// Its session is in full feature phase.
    LoggedIn,
    /// The access state that the array reports, for a LUN that has passed its check.
    Access(AccessState),
    /// The LUN must be probed again before it gets I/O.
    Recheck,
    /// There is no connection, and another attempt may help.
    Lost,
    /// Trying again cannot help.
    GaveUp,
}

/// The LUN behind the path has passed its check.
const CONNECTED: &[PathState] = &[
    PathState::ActiveOptimized,
    PathState::ActiveNonOptimized,
    PathState::Standby,
    PathState::Unavailable,
    PathState::Transitioning,
];

/// There is a session.
const LOGGED_IN: &[PathState] = &[
    PathState::Checking,
    PathState::ActiveOptimized,
    PathState::ActiveNonOptimized,
    PathState::Standby,
    PathState::Unavailable,
    PathState::Transitioning,
];

/// Every transition there is: from any of these states, on this input, to that state.
const TRANSITIONS: &[(&[PathState], PathInput, PathState)] = &[
    (&[PathState::Connecting, PathState::Failed], PathInput::LoggedIn, PathState::Checking),
    (LOGGED_IN, PathInput::Access(AccessState::ActiveOptimized), PathState::ActiveOptimized),
    (LOGGED_IN, PathInput::Access(AccessState::ActiveNonOptimized), PathState::ActiveNonOptimized),
    (LOGGED_IN, PathInput::Access(AccessState::Standby), PathState::Standby),
    (LOGGED_IN, PathInput::Access(AccessState::Unavailable), PathState::Unavailable),
    (LOGGED_IN, PathInput::Access(AccessState::Transitioning), PathState::Transitioning),
    (CONNECTED, PathInput::Recheck, PathState::Checking),
    (&[PathState::Connecting], PathInput::Lost, PathState::Failed),
    (LOGGED_IN, PathInput::Lost, PathState::Failed),
    (&[PathState::Connecting, PathState::Failed], PathInput::GaveUp, PathState::Refused),
    (LOGGED_IN, PathInput::GaveUp, PathState::Refused),
];

impl From<AccessState> for PathState {
    fn from(access: AccessState) -> Self {
        match access {
            AccessState::ActiveOptimized => PathState::ActiveOptimized,
            AccessState::ActiveNonOptimized => PathState::ActiveNonOptimized,
            AccessState::Standby => PathState::Standby,
            AccessState::Unavailable => PathState::Unavailable,
            AccessState::Transitioning => PathState::Transitioning,
        }
    }
}

impl PathState {
    /// The state after `input`; none if there is no such transition.
    pub(crate) fn after(self, input: PathInput) -> Option<PathState> {
        let row = TRANSITIONS.iter().find(|(from, on, _)| *on == input && from.contains(&self));
        row.map(|(_, _, to)| *to).filter(|to| *to != self)
    }

    /// I/O may take the path.
    pub fn is_active(self) -> bool {
        matches!(self, PathState::ActiveOptimized | PathState::ActiveNonOptimized)
    }

    /// The path has a session, and the LUN behind it is known to be the right one.
    pub fn is_connected(self) -> bool {
        CONNECTED.contains(&self)
    }

    /// As events and results write it.
    pub fn word(self) -> &'static str {
        match self {
            PathState::Connecting => "connecting",
            PathState::Checking => "checking",
            PathState::ActiveOptimized => "active_optimized",
            PathState::ActiveNonOptimized => "active_non_optimized",
            PathState::Standby => "standby",
            PathState::Unavailable => "unavailable",
            PathState::Transitioning => "transitioning",
            PathState::Failed => "failed",
            PathState::Refused => "refused",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATES: [PathState; 9] = [
        PathState::Connecting,
        PathState::Checking,
        PathState::ActiveOptimized,
        PathState::ActiveNonOptimized,
        PathState::Standby,
        PathState::Unavailable,
        PathState::Transitioning,
        PathState::Failed,
        PathState::Refused,
    ];

    fn inputs() -> Vec<PathInput> {
        TRANSITIONS.iter().map(|(_, input, _)| *input).collect()
    }

    #[test]
    fn one_row_per_state_and_input() {
        for state in STATES {
            for input in inputs() {
                let rows = TRANSITIONS.iter().filter(|(from, on, _)| *on == input && from.contains(&state));
                let targets: Vec<_> = rows.map(|(_, _, to)| to).collect();
                assert!(targets.len() <= 1, "{state:?} {input:?}: {targets:?}");
            }
        }
    }

    #[test]
    fn no_path_carries_io_before_its_lun_was_asked() {
        for state in STATES {
            for input in inputs() {
                let Some(next) = state.after(input) else { continue };
                assert_ne!(next, state, "{state:?} {input:?}: a transition changes something");
                if next.is_active() {
                    assert!(state == PathState::Checking || state.is_connected(), "{state:?} {input:?}");
                }
            }
        }
    }

    #[test]
    fn every_state_is_reachable_and_only_refused_is_an_end() {
        for state in STATES {
            let reached = state == PathState::Connecting
                || STATES.iter().any(|from| inputs().iter().any(|input| from.after(*input) == Some(state)));
            assert!(reached, "{state:?}");
            let left = inputs().iter().any(|input| state.after(*input).is_some());
            assert_eq!(left, state != PathState::Refused, "{state:?}");
        }
    }

    #[test]
    fn a_connected_path_survives_the_loss_of_its_session() {
        for state in STATES.into_iter().filter(|state| state.is_connected()) {
            assert_eq!(state.after(PathInput::Lost), Some(PathState::Failed));
        }
    }
}
