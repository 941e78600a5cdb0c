//! Why an array cannot start.

use crate::target::TargetError;
use linerate_blame::Blame;
use linerate_io::OpenDriverError;
use linerate_storage::controller::StorageError;
use std::{io, net::SocketAddr};

/// Why an array cannot start. [`ArrayError::blame`] returns whose fault it is.
#[derive(Debug, thiserror::Error)]
pub enum ArrayError {
    /// `portals` is empty.
    #[error("`portals` is empty; name at least one address, for example \"127.0.0.1:3260\"")]
    NoPortal,
    /// A portal is not an address with a port.
    #[error("portal \"{0}\" is not an address with a port, for example \"127.0.0.1:3260\" or \"[::1]:3260\"")]
    Portal(String),
    /// A portal has both an address and an interface, or neither.
    #[error("a portal needs either `address` or `interface`")]
    PortalPlace,
    /// A portal names an interface that does not exist.
    #[error("this host has no interface \"{0}\"; change `interface`")]
    NoInterface(String),
    /// Portals follow an interface, but its changes cannot be watched.
    #[error("cannot watch the host's interfaces ({0}); give portals an `address` instead of an `interface`")]
    Watch(#[source] io::Error),
    /// A portal group has the tag 0.
    #[error(
        "a portal group has the tag 0; tags are 1 to 65535, as they are also relative target port identifiers"
    )]
    GroupZero,
    /// A portal group is described twice.
    #[error("`portal_groups` describes group {0} twice")]
    GroupTwice(u16),
    /// A portal cannot be listened on.
    #[error("cannot listen on portal {portal} ({error}); {}", way_out(error))]
    Listen {
        /// Which portal.
        portal: SocketAddr,
        /// Why not.
        error: io::Error,
    },
    /// A limit is out of range.
    #[error("`limits.{key}` is out of range: {rule}")]
    Limit {
        /// The key.
        key: &'static str,
        /// The valid values.
        rule: &'static str,
    },
    /// Two targets have the same name.
    #[error("two targets are named \"{0}\"; names differ in more than case")]
    TwoTargets(String),
    /// Disks, RAID sets or pools cannot be opened.
    #[error("`storage`: {0}")]
    Storage(#[source] StorageError),
    /// A target cannot be served.
    #[error("target \"{name}\": {error}")]
    Target {
        /// Its name as configured.
        name: String,
        /// Why not.
        error: Box<TargetError>,
    },
    /// A worker cannot be pinned.
    #[error("cannot pin a worker to CPU {cpu} ({error}); `cpus` may name the CPUs that this process may use")]
    Cpu {
        /// Which CPU.
        cpu: usize,
        /// Why not.
        error: io::Error,
    },
    /// No I/O driver.
    #[error(transparent)]
    Driver(#[from] OpenDriverError),
    /// The host is short of threads, descriptors or memory.
    #[error("the host cannot start a worker ({0}); raise the limits of processes, open files or memory")]
    Host(#[source] io::Error),
    /// A worker ended while starting.
    #[error("a worker thread ended while starting; this is a mistake in the program")]
    WorkerDied,
}

impl ArrayError {
    /// Whose fault it is.
    pub fn blame(&self) -> Blame {
        match self {
            Self::WorkerDied => Blame::Us,
            Self::Host(_) | Self::Watch(_) => Blame::Host,
            // An array that starts sends nothing to its partner yet, so the fault is in its storage.
            Self::Storage(error) if error.blame() == Blame::Peer => Blame::Host,
            Self::Storage(error) => error.blame(),
            Self::Driver(error) => match error {
                OpenDriverError::UnknownName(_) => Blame::User,
                _ => Blame::Host,
            },
            Self::Target { error, .. } => match error.as_ref() {
                TargetError::Volume(error) if error.is_hosts_fault() => Blame::Host,
                _ => Blame::User,
            },
            _ => Blame::User,
        }
    }
}

fn way_out(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            "stop the program that uses the port, or choose another (port 0 = any free one)"
        }
        io::ErrorKind::AddrNotAvailable => "this host does not have the address",
        io::ErrorKind::PermissionDenied => "ports below 1024 need privileges; choose a higher one",
        _ => "choose another address",
    }
}
