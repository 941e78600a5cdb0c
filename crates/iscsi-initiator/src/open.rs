//! Opening devices, over one session or over several paths.

use crate::device::Device;
use crate::facts::{DeviceId, SessionId};
use crate::initiator::Initiator;
use crate::options::address::{LunAddress, PortalAddress};
use crate::options::credentials::Credentials;
use crate::options::error::OptionsError;
use crate::options::nanos;
use crate::options::paths::{MultipathOptions, PathSpec};
use crate::options::session::SessionOptions;
use crate::paths::Multipath;
use crate::probe_command::ProbeCommand;
use crate::session::{Config, LimitNames, RetryRules};
use linerate_io::{Driver, Nanos};

/// Ticks within one `path_timeout_s`, so that a timeout is noticed soon.
const TICKS_PER_TIMEOUT: Nanos = 20;

/// Whether a device may use a session that another device opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// A session of its own.
    Own,
    /// One session per portal, target, credentials and options.
    Shared,
}

impl Initiator {
    /// Starts to open a LUN: session (new or shared), login, facts. It does not wait.
    pub fn open<D: Driver>(
        &mut self,
        driver: &mut D,
        address: &LunAddress,
        options: &SessionOptions,
        credentials: &Credentials,
        sharing: Sharing,
    ) -> Result<DeviceId, OptionsError> {
        let config = Config::new(&address.portal, Some(&address.target), options, credentials)?;
        let session = match sharing {
            Sharing::Own => self.sessions.start(driver, config),
            Sharing::Shared => self.sessions.share(driver, config),
        };
        Ok(self.add_device(driver, address, ProbeCommand::DISK, session, options))
    }

    /// Starts to ask a LUN these commands over a shared session, without I/O afterwards. The answers become part of the
    /// facts.
    pub(crate) fn ask<D: Driver>(
        &mut self,
        driver: &mut D,
        address: &LunAddress,
        commands: &'static [ProbeCommand],
        options: &SessionOptions,
        credentials: &Credentials,
    ) -> Result<DeviceId, OptionsError> {
        let config = Config::new(&address.portal, Some(&address.target), options, credentials)?;
        let session = self.sessions.share(driver, config);
        Ok(self.add_device(driver, address, commands, session, options))
    }

    fn add_device<D: Driver>(
        &mut self,
        driver: &mut D,
        address: &LunAddress,
        commands: &'static [ProbeCommand],
        session: SessionId,
        options: &SessionOptions,
    ) -> DeviceId {
        let id = self.next_device();
        let device = Device::new(address.clone(), commands);
        self.devices.push(Multipath::over_session(id, device, session, options));
        self.sessions[session].users.push((id, 0));
        if self.sessions[session].is_ready() {
            self.with_device(id, driver.now(), &mut Vec::new(), |device, cx| device.on_logged_in(0, cx));
        }
        id
    }

    /// Starts to open a LUN over several paths, each with sessions of its own. It does not wait. The device is ready when
    /// every path has been tried and one of them can carry I/O.
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
            configs.push((spec, path_config(address, spec, multipath, options, credentials)?));
        }
        self.sessions.tick_ns =
            self.sessions.tick_ns.min(nanos(multipath.path_timeout_s) / TICKS_PER_TIMEOUT);
        let id = self.next_device();
        let mut list = Vec::new();
        for (spec, config) in configs {
            for number in 1..=spec.sessions {
                let name =
                    if spec.sessions > 1 { format!("{}#{number}", spec.name) } else { spec.name.clone() };
                let session = self.sessions.start(driver, config.clone());
                self.sessions[session].users.push((id, list.len() as u16));
                list.push((name, session, spec));
            }
        }
        let device = Device::new(address.clone(), ProbeCommand::PATH);
        let now = driver.now();
        self.devices.push(Multipath::over_paths(id, device, list.into_iter(), multipath, options, now));
        Ok(id)
    }

    /// Starts a discovery session; [`take_targets`](Self::take_targets) returns its text.
    pub(crate) fn start_discovery<D: Driver>(
        &mut self,
        driver: &mut D,
        portal: &PortalAddress,
        options: &SessionOptions,
        credentials: &Credentials,
    ) -> Result<SessionId, OptionsError> {
        let config = Config::new(portal, None, options, credentials)?;
        Ok(self.sessions.start(driver, config))
    }

    fn next_device(&self) -> DeviceId {
        DeviceId(self.devices.len() as u32)
    }
}

/// The common configuration of all sessions of a path.
fn path_config(
    address: &LunAddress,
    spec: &PathSpec,
    multipath: &MultipathOptions,
    options: &SessionOptions,
    credentials: &Credentials,
) -> Result<Config, OptionsError> {
    let portal = spec.portal.as_ref().unwrap_or(&address.portal);
    let own = path_options(options, multipath, spec);
    let retry = RetryRules {
        fails_over: true,
        pause_max_ns: nanos(multipath.checker_interval_s),
        give_up_ns: None,
        user_timeout_ms: Some((multipath.path_timeout_s * 1000.0).ceil() as u32),
    };
    let is_shorter = own.login_timeout_s < options.login_timeout_s;
    let login = if is_shorter { "three times path_timeout" } else { "login_timeout_s" };
    let limits = LimitNames { ping: "path_timeout", login };
    Ok(Config { retry, limits, ..Config::new(portal, Some(&address.target), &own, credentials)? })
}

/// The session options of a path. A silent peer is noticed within `path_timeout_s`: a ping is sent after a third of it
/// and may take half of it; the rest is for the ticks in between.
fn path_options(options: &SessionOptions, multipath: &MultipathOptions, spec: &PathSpec) -> SessionOptions {
    let timeout_s = multipath.path_timeout_s;
    SessionOptions {
        connections: if spec.connections > 1 { spec.connections } else { options.connections },
        source_address: spec.source_address.or(options.source_address),
        ping_interval_s: timeout_s * 0.33,
        ping_timeout_s: timeout_s * 0.5,
        // An attempt over a dead path must end soon; otherwise it would still run when the path returns.
        login_timeout_s: options.login_timeout_s.min(3.0 * timeout_s),
        ..options.clone()
    }
}
