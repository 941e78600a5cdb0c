//! Where a path stands.

/// Where a path stands. The five states in the middle are the array's asymmetric access states (SPC-6 5.18.2); without
/// ALUA every path that has passed its check is active/optimized.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PathState {
    /// Its first login is under way.
    Connecting,
    /// Logged in; the LUN behind it is being asked who it is.
    Checking,
    /// It carries I/O at full speed.
    ActiveOptimized,
    /// It carries I/O, but the array prefers others.
    ActiveNonOptimized,
    /// The array takes no I/O here until it changes its mind.
    Standby,
    /// The array takes hardly anything here.
    Unavailable,
    /// The array is changing the state.
    Transitioning,
    /// Lost; it is being brought back.
    Failed,
    /// Given up: another disk answered, or the login will never succeed.
    Refused,
}

impl PathState {
    /// I/O may take the path.
    pub fn is_active(self) -> bool {
        matches!(self, PathState::ActiveOptimized | PathState::ActiveNonOptimized)
    }

    /// The path has a session, and the LUN behind it is known to be the right one.
    pub fn is_connected(self) -> bool {
        self.is_active()
            || matches!(self, PathState::Standby | PathState::Unavailable | PathState::Transitioning)
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
