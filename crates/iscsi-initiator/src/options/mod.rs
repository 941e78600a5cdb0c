//! The settings of the user: the address of a LUN, how its sessions and paths work, and the credentials.

use linerate_io::Nanos;

pub(crate) mod address;
pub(crate) mod credentials;
pub(crate) mod error;
pub(crate) mod paths;
pub(crate) mod session;

/// One second on the driver's clock.
pub(crate) const SECOND: Nanos = 1_000_000_000;

/// Converts seconds, as users write them, to the driver's clock.
pub(crate) fn nanos(seconds: f64) -> Nanos {
    (seconds * SECOND as f64) as Nanos
}
