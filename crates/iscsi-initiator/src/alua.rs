//! Asymmetric logical unit access (ALUA).

/// An asymmetric access state (SPC-6 table 338).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Optimized,
    NonOptimized,
    Standby,
    Unavailable,
    Transitioning,
}

impl Access {
    /// The port takes I/O.
    pub(crate) fn is_active(self) -> bool {
        matches!(self, Access::Optimized | Access::NonOptimized)
    }
}
