//! Opening a device over several paths, and what else a caller may ask for.

use super::{Failback, Multipath, MultipathOptions, Path, PathFacts, PathSpec};
use crate::balance::PathCounters;
use crate::commands::Question;
use crate::device::{Device, Route};
use crate::event::IoSink;
use crate::facts::{DeviceId, DeviceState, SessionId};
use crate::initiator::Initiator;
use crate::options::address::LunAddress;
use crate::options::credentials::Credentials;
use crate::options::error::OptionsError;
use crate::options::session::SessionOptions;
use crate::request::SubmitError;
use crate::session::{Config, PathTimes, nanos};
use crate::task::NewTask;
use linerate_io::{Driver, Nanos};

/// Looks at the time within one `path_timeout_s`, so that what is late is seen in time.
const LOOKS_PER_TIMEOUT: Nanos = 20;

/// The session options of a path. Silence is found within `path_timeout_s`: a ping leaves after a third of it and is
/// waited for half of it; the rest is for the looks at the time in between.
fn path_options(options: &SessionOptions, multipath: &MultipathOptions, spec: &PathSpec) -> SessionOptions {
    let timeout_s = multipath.path_timeout_s;
    SessionOptions {
        connections: if spec.connections > 1 { spec.connections } else { options.connections },
        source_address: spec.source_address.or(options.source_address),
        ping_interval_s: timeout_s * 0.33,
        ping_timeout_s: timeout_s * 0.5,
        // An attempt into a dead path must end soon, or it outlasts the path's return.
        login_timeout_s: options.login_timeout_s.min(3.0 * timeout_s),
        ..options.clone()
    }
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
        let lone = [PathSpec::named("path")];
        let paths = if paths.is_empty() { &lone[..] } else { paths };
        let mut configs = Vec::new();
        for spec in paths {
            let portal = spec.portal.as_ref().unwrap_or(&address.portal);
            let own = path_options(options, multipath, spec);
            let mut config = Config::new(portal, Some(&address.target), &own, credentials)?;
            config.path = Some(PathTimes {
                user_timeout_ms: (multipath.path_timeout_s * 1000.0).ceil() as u32,
                pause_max_ns: nanos(multipath.checker_interval_s),
            });
            configs.push((spec, config));
        }
        let open_until = driver.now() + nanos(options.login_timeout_s);
        let mut all = Multipath::new(multipath, options.command_timeout_s, open_until);
        let device = DeviceId(self.devices.len() as u32);
        let mut starts = Vec::new();
        for (spec, config) in configs {
            for number in 1..=spec.sessions {
                let session = SessionId((self.sessions.len() + starts.len()) as u32);
                let name =
                    if spec.sessions > 1 { format!("{}#{number}", spec.name) } else { spec.name.clone() };
                starts.push((config.clone(), all.paths.len() as u16));
                all.paths.push(Path::new(name, session, spec));
            }
        }
        self.devices.push(Device::new(address.clone(), Route::Many(Box::new(all)), Question::PATH));
        self.tick_ns = self.tick_ns.min(nanos(multipath.path_timeout_s) / LOOKS_PER_TIMEOUT);
        for (config, place) in starts {
            self.start_session(driver, config, Some((device, place)));
        }
        Ok(device)
    }

    /// The paths of a device, in the order of its list; empty for one that was opened without paths.
    pub fn path_facts(&self, device: DeviceId) -> impl Iterator<Item = PathFacts<'_>> {
        let all = self.multipath(device);
        let paths = all.into_iter().flat_map(|all| all.paths.iter().enumerate().map(move |at| (all, at)));
        paths.map(|(all, (place, path))| {
            let session = self.sessions[path.session.index()].facts.as_ref();
            PathFacts {
                name: &path.name,
                session: path.session,
                state: path.state,
                in_use: all.uses(place),
                peer_addr: session.map(|facts| facts.peer_addr),
                portal_group: session.and_then(|facts| facts.portal_group),
            }
        })
    }

    /// Hands `take` what each path of a device has carried since the last call, by its place in the list.
    pub fn take_path_counters(&mut self, device: DeviceId, mut take: impl FnMut(usize, PathCounters)) {
        let Route::Many(all) = &self.devices[device.index()].route else { return };
        for (place, path) in all.paths.iter().enumerate() {
            take(place, std::mem::take(&mut self.sessions[path.session.index()].meter.counters));
        }
    }

    /// Takes the better paths of a device that are back into use again: for [`Failback::Manual`].
    pub fn fail_back(&mut self, device: DeviceId, now: Nanos, sink: &mut impl IoSink) {
        if let Some(all) = self.multipath_mut(device) {
            all.paths.iter_mut().for_each(Path::release);
            self.settle_paths(device, now, sink);
        }
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
        let all = self.devices.iter().filter_map(|device| match &device.route {
            Route::Many(all) => Some(&all.paths),
            Route::One(_) => None,
        });
        let concerned = all.flatten().filter(|path| path.interface.as_deref() == Some(interface));
        let sessions: Vec<SessionId> = concerned.map(|path| path.session).collect();
        for id in sessions {
            self.with_session(id, sink, |session, turn| {
                session.link_changed(driver, interface, up, now, turn);
            });
        }
        self.deliver_notices(now, sink);
    }

    /// Finds the place of an I/O that cannot simply go its way.
    #[cold]
    pub(crate) fn submit_disturbed(&mut self, device: DeviceId, task: &NewTask) -> Result<(), SubmitError> {
        let Route::Many(all) = &mut self.devices[device.index()].route else { return Ok(()) };
        if all.usable.is_empty() || !all.displaced.lets_go(task) {
            all.displaced.wait(*task);
            // Perhaps it has waited long enough already.
            self.wake_at = 0;
            return Ok(());
        }
        let id = all.select(&self.sessions, task.len_bytes);
        self.sessions[id.index()].enqueue(task).ok_or(SubmitError::Full)?;
        self.mark(id);
        Ok(())
    }

    pub(super) fn multipath(&self, device: DeviceId) -> Option<&Multipath> {
        match &self.devices[device.index()].route {
            Route::Many(all) => Some(all),
            Route::One(_) => None,
        }
    }

    pub(super) fn multipath_mut(&mut self, device: DeviceId) -> Option<&mut Multipath> {
        match &mut self.devices[device.index()].route {
            Route::Many(all) => Some(all),
            Route::One(_) => None,
        }
    }

    /// Whether a device that was opened over paths is still to become ready or not.
    pub(super) fn is_opening(&self, device: DeviceId) -> bool {
        self.devices[device.index()].state == DeviceState::Opening
    }
}

impl Failback {
    /// How long a better path that is back waits; none = until it is asked for.
    pub(super) fn delay_ns(self) -> Option<Nanos> {
        match self {
            Failback::Immediate => Some(0),
            Failback::Manual => None,
            Failback::Delayed(seconds) => Some(nanos(seconds)),
        }
    }
}
