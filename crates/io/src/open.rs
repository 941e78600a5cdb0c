//! Selection of the driver.
//!
//! `Auto` uses `io_uring` if the probe permits it, else epoll. The reason is files:
//! `cargo run --release -p linerate-io --example compare` on a 2-core machine with kernel 6.18 showed 7 us of CPU per
//! direct 4 KiB read at depth 32 with `io_uring` and 21 to 29 us with epoll, whose reads wait in threads. On sockets
//! the two cost the same: 23 to 27 us per round trip and 47 to 54 us per batch of 32 answers of 4 KiB, client included.

use crate::{EpollDriver, UringDriver};
use std::{fmt, io, str::FromStr};

/// Which driver the user wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Preference {
    /// The better one for this system.
    #[default]
    Auto,
    /// `io_uring`, or an error with the reason.
    IoUring,
    /// epoll; works everywhere.
    Epoll,
}

impl FromStr for Preference {
    type Err = OpenDriverError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name {
            "auto" => Ok(Self::Auto),
            "io_uring" => Ok(Self::IoUring),
            "epoll" => Ok(Self::Epoll),
            other => Err(OpenDriverError::UnknownName(other.into())),
        }
    }
}

impl fmt::Display for Preference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::IoUring => "io_uring",
            Self::Epoll => "epoll",
        })
    }
}

/// The driver that [`open_driver`] chose. [`with_driver!`](crate::with_driver) runs generic code on it.
#[expect(clippy::large_enum_variant, reason = "there is one per thread")]
pub enum AnyDriver {
    /// The completion driver.
    IoUring(UringDriver),
    /// The readiness driver.
    Epoll(EpollDriver),
}

/// Opens a driver for the calling thread.
pub fn open_driver(preference: Preference) -> Result<AnyDriver, OpenDriverError> {
    let epoll = || EpollDriver::new().map(AnyDriver::Epoll).map_err(OpenDriverError::Epoll);
    let uring = || UringDriver::new().map(AnyDriver::IoUring).map_err(OpenDriverError::IoUring);
    match preference {
        Preference::IoUring => uring(),
        Preference::Epoll => epoll(),
        Preference::Auto => uring().or_else(|_| epoll()),
    }
}

/// Runs the same generic code on the opened driver: `with_driver!(any, |driver| serve(driver))`. The body is compiled
/// once per driver, so the choice costs nothing per operation. Use it once, at the start of a thread.
#[macro_export]
macro_rules! with_driver {
    ($any:expr, |$driver:ident| $body:expr) => {
        match $any {
            $crate::AnyDriver::IoUring($driver) => $body,
            $crate::AnyDriver::Epoll($driver) => $body,
        }
    };
    ($any:expr, |mut $driver:ident| $body:expr) => {
        match $any {
            $crate::AnyDriver::IoUring(mut $driver) => $body,
            $crate::AnyDriver::Epoll(mut $driver) => $body,
        }
    };
}

/// Why no driver could be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenDriverError {
    /// The user asked for a driver that does not exist.
    #[error("there is no I/O driver \"{0}\"; use \"auto\", \"io_uring\" or \"epoll\"")]
    UnknownName(String),
    /// The host does not let this process use `io_uring`.
    #[error(
        "this host does not offer io_uring ({0}); choose driver \"auto\" or \"epoll\", or allow io_uring \
         (sysctl kernel.io_uring_disabled=0, and the container's seccomp profile)"
    )]
    IoUring(#[source] io::Error),
    /// The host has too few file descriptors or too little memory.
    #[error("cannot open an epoll driver ({0}); raise the limit of open files (ulimit -n)")]
    Epoll(#[source] io::Error),
}
