//! Options that cannot be used.

use linerate_iscsi_proto::chap::ChapConfigError;
use linerate_iscsi_proto::names::NameError;

/// Invalid options; the user must correct them.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum OptionsError {
    /// A length key out of range.
    #[error("{key} = {value}: must be between 512 and 16777215")]
    Length {
        /// The key.
        key: &'static str,
        /// Its value in bytes.
        value: u32,
    },
    /// First burst above max burst.
    #[error("first_burst_bytes = {first} is larger than max_burst_bytes = {max}")]
    BurstOrder {
        /// `FirstBurstLength`.
        first: u32,
        /// `MaxBurstLength`.
        max: u32,
    },
    /// `MaxOutstandingR2T` of zero.
    #[error("max_outstanding_r2t must be at least 1")]
    ZeroR2t,
    /// `connections` out of range.
    #[error("connections = {0}: must be between 1 and 64")]
    Connections(u16),
    /// A time out of range.
    #[error("{key} = {seconds} s: must be between 0.001 (0 where it means never) and 1000000")]
    Time {
        /// The key.
        key: &'static str,
        /// Its value in seconds.
        seconds: f64,
    },
    /// Round robin that never moves on.
    #[error("ios_per_path and bytes_per_path must be at least 1")]
    ZeroTurn,
    /// A list of paths that cannot be used.
    #[error("paths: {0}")]
    Paths(String),
    /// Our name or the target's name is not an iSCSI name.
    #[error("iSCSI name: {0}")]
    Name(#[from] NameError),
    /// CHAP settings that cannot be used.
    #[error(transparent)]
    Chap(#[from] ChapConfigError),
    /// A user without secret or a secret without user.
    #[error("a CHAP user needs a secret, and a secret needs a user")]
    HalfCredentials,
    /// Mutual CHAP without one-way CHAP.
    #[error("mutual CHAP needs a user and a secret of our own too")]
    MutualAlone,
}
