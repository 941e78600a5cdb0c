//! LUNs through the initiator: one [`Initiator`] per worker has all of its iSCSI volumes.

use super::{
    Backend, BackendKind, Failure, FinishedIo, Io, Notice, OpenError, OpenedVolume, Reports, VolumeToOpen,
    tcp::TcpCounters,
};
use crate::{
    record::{
        Op, PathRow,
        tally::{NetworkTally, TcpTally},
    },
    spec::{
        SessionUse, VolumeSpec,
        options::{multipath_options, session_options},
    },
};
use linerate_blame::Blame;
use linerate_io::{Completion, Driver, Nanos, Region, RegionId, net::NetWatch};
use linerate_iscsi_initiator::{
    Credentials, DeviceId, DeviceState, DigestChoice, Event, EventKind, Initiator, IoDone, IoOp, IoRequest,
    IoSink, LunAddress, PathFacts, ReadInto, Secret, SessionFacts, SessionId, Sharing,
};
use serde_json::json;
use std::sync::Arc;

/// The LUNs of a worker.
#[derive(Debug, Default)]
pub(crate) struct Iscsi {
    initiator: Initiator,
    devices: Vec<DeviceId>,
    /// The initiator follows links that go down and come up.
    follows_links: bool,
    /// The volume in the specification, by device.
    volumes: Vec<u32>,
    /// By session.
    tcp: TcpCounters,
}

impl Iscsi {
    /// Makes a region usable in I/Os.
    pub(crate) fn attach<D: Driver>(&mut self, driver: &mut D, region: &Arc<Region>) -> RegionId {
        self.initiator.attach(driver, region)
    }

    /// The negotiated values of a device's session, and its socket as read back; with paths, the same for each path.
    fn session_json<D: Driver>(&self, driver: &D, device: DeviceId) -> serde_json::Value {
        let lun = self.initiator.facts(device);
        let session = self.initiator.session_of(device);
        let Some(facts) = self.initiator.session_facts(session) else { return serde_json::Value::Null };
        let mut json = json!({
            "lun": lun.lun,
            "vendor": lun.vendor,
            "product": lun.product,
            "serial": lun.serial,
        });
        let path_json = |path: PathFacts<'_>| {
            let mut json = json!({"name": path.name, "state": path.state.word(), "in_use": path.in_use});
            let facts = self.initiator.session_facts(path.session);
            extend(&mut json, facts.map(|facts| self.negotiated(driver, path.session, facts)));
            json
        };
        let paths: Vec<_> = self.initiator.path_facts(device).map(path_json).collect();
        extend(&mut json, Some(self.negotiated(driver, session, facts)));
        extend(&mut json, (!paths.is_empty()).then(|| json!({ "paths": paths })));
        json
    }

    #[inline]
    fn request(&mut self, unit: u32, request: &IoRequest, reports: &mut Reports) {
        if self.initiator.submit(self.devices[unit as usize], request).is_err() {
            // Offsets and lengths were checked when the volume was opened, so the device itself was removed.
            let result = Err(Failure::Iscsi(linerate_iscsi_initiator::IoError::Closed));
            reports.done.push(FinishedIo { slot: request.slot, result });
        }
    }

    fn negotiated<D: Driver>(
        &self,
        driver: &D,
        session: SessionId,
        facts: &SessionFacts,
    ) -> serde_json::Value {
        let (params, tcp) = (&facts.params, self.initiator.tcp_info(driver, session).unwrap_or_default());
        json!({
            "target": facts.target,
            "portal": facts.portal,
            "local_address": facts.local_addr.to_string(),
            "peer_address": facts.peer_addr.to_string(),
            "header_digest": format!("{:?}", params.header_digest).to_lowercase(),
            "data_digest": format!("{:?}", params.data_digest).to_lowercase(),
            "immediate_data": params.immediate_data,
            "initial_r2t": params.initial_r2t,
            "first_burst_bytes": params.first_burst_length,
            "max_burst_bytes": params.max_burst_length,
            "max_recv_data_segment_bytes": params.max_recv_data_segment_length,
            "peer_max_recv_data_segment_bytes": params.peer_max_recv_data_segment_length,
            "max_outstanding_r2t": params.max_outstanding_r2t,
            "max_connections": params.max_connections,
            "connections": facts.connections.len(),
            "error_recovery_level": params.error_recovery_level,
            "nodelay": tcp.nodelay,
            "send_buffer_bytes": tcp.send_buffer_bytes,
            "recv_buffer_bytes": tcp.recv_buffer_bytes,
            "congestion_control": tcp.congestion_control,
            "snd_mss": tcp.snd_mss,
            "pmtu": tcp.pmtu,
        })
    }
}

/// Adds the keys of one object to another.
fn extend(json: &mut serde_json::Value, more: Option<serde_json::Value>) {
    if let (Some(json), Some(serde_json::Value::Object(more))) = (json.as_object_mut(), more) {
        json.extend(more);
    }
}

fn credentials(spec: &VolumeSpec) -> Credentials {
    let secret =
        |secret: &Option<crate::spec::Secret>| secret.as_ref().map(|text| Secret::new(text.reveal()));
    Credentials {
        user: spec.user.clone(),
        secret: secret(&spec.secret),
        mutual_user: spec.mutual_user.clone(),
        mutual_secret: secret(&spec.mutual_secret),
    }
}

impl<D: Driver> Backend<D> for Iscsi {
    /// Starts to log in and to probe the LUN.
    fn open(&mut self, driver: &mut D, opening: &VolumeToOpen<'_>) -> Result<OpenedVolume, OpenError> {
        let spec = opening.spec;
        let user = |error: &dyn std::fmt::Display| OpenError::new(Blame::User, error.to_string());
        let (address, in_url) = LunAddress::parse(&spec.url).map_err(|error| user(&error))?;
        let options = session_options(spec).map_err(|error| user(&error))?;
        let credentials = if spec.user.is_some() { credentials(spec) } else { in_url };
        let sharing = match spec.session {
            SessionUse::Own => Sharing::Own,
            SessionUse::Shared => Sharing::Shared,
        };
        let (paths, multipath) = multipath_options(spec).map_err(|(_, problem)| user(&problem))?;
        if !self.follows_links && paths.iter().any(|path| path.interface.is_some()) {
            let watch = NetWatch::open().map_err(|error| {
                let problem = format!("links cannot be followed: {error}; leave interface out of the paths");
                OpenError::new(Blame::Host, problem)
            })?;
            self.initiator.watch_links(watch);
            self.follows_links = true;
        }
        let device = if paths.is_empty() {
            self.initiator.open(driver, &address, &options, &credentials, sharing)
        } else {
            self.initiator.open_paths(driver, &address, &paths, &multipath, &options, &credentials)
        };
        self.devices.push(device.map_err(|error| user(&error))?);
        self.volumes.push(opening.index);
        Ok(OpenedVolume {
            unit: self.devices.len() as u32 - 1,
            kind: "iscsi",
            capacity_bytes: 0,
            block_bytes: 0,
            max_transfer_bytes: 0,
            has_checksums: options.data_digest != DigestChoice::None,
            session: serde_json::Value::Null,
        })
    }

    fn wait_ready(&mut self, driver: &mut D) -> Result<(), OpenError> {
        if self.devices.is_empty() {
            return Ok(());
        }
        let mut ignored = Vec::new();
        self.initiator
            .wait_ready(driver, &mut ignored)
            .map_err(|error| OpenError::new(Blame::Host, format!("waiting for the network failed: {error}")))
    }

    fn finish_opening(&self, driver: &D, opened: OpenedVolume) -> Result<OpenedVolume, OpenError> {
        let device = self.devices[opened.unit as usize];
        if let DeviceState::Failed(failure) = self.initiator.state(device) {
            let error = OpenError::new(failure.blame, failure.message.clone());
            return Err(OpenError { remedy: failure.remedy, ..error });
        }
        let facts = self.initiator.facts(device);
        Ok(OpenedVolume {
            capacity_bytes: facts.capacity_bytes(),
            block_bytes: facts.block_bytes,
            max_transfer_bytes: u64::from(facts.max_transfer_blocks) * u64::from(facts.block_bytes),
            session: self.session_json(driver, device),
            ..opened
        })
    }

    fn path_name(&self, unit: u32, path: usize) -> String {
        let mut paths = self.initiator.path_facts(self.devices[unit as usize]);
        paths.nth(path).map(|facts| facts.name.to_owned()).unwrap_or_default()
    }

    fn network_since_last(&mut self, driver: &D, network: &mut NetworkTally) {
        let (initiator, tcp) = (&self.initiator, &mut self.tcp);
        let tally = |session: SessionId| tcp.since_last(session.index(), initiator.tcp_info(driver, session));
        let tallies: Vec<TcpTally> = initiator.sessions().map(tally).collect();
        for tally in &tallies {
            network.tcp.add(tally);
        }
        for (&device, &volume) in self.devices.iter().zip(&self.volumes) {
            let first = network.paths.len();
            network.paths.extend(self.initiator.path_facts(device).map(|path| {
                let tcp = &tallies[path.session.index()];
                PathRow {
                    volume,
                    path: path.name.to_owned(),
                    state: path.state.word(),
                    retransmits: tcp.retransmits,
                    bytes_sent: tcp.bytes_sent,
                    bytes_received: tcp.bytes_received,
                    ..PathRow::default()
                }
            }));
            self.initiator.take_path_counters(device, |path, counters| {
                let row = &mut network.paths[first + path];
                (row.read_ios, row.write_ios) = (counters.read_ios, counters.write_ios);
                (row.read_bytes, row.write_bytes) = (counters.read_bytes, counters.write_bytes);
                row.service_sum_ns = counters.service_sum_ns;
                row.service_max_ns = counters.service_max_ns;
                row.requeued = counters.requeued;
            });
        }
    }

    fn submit(&mut self, _: &mut D, io: &Io, reports: &mut Reports) {
        let op = match io.op {
            Op::Read if io.keep => IoOp::Read(ReadInto::Segment(io.data)),
            Op::Read => IoOp::Read(ReadInto::Nothing),
            Op::Write if io.durable => IoOp::WriteDurable(io.data),
            Op::Write => IoOp::Write(io.data),
        };
        let request = IoRequest { slot: io.slot, op, offset_bytes: io.offset, len_bytes: io.data.len };
        self.request(io.unit, &request, reports);
    }

    fn sync(&mut self, _: &mut D, slot: u32, unit: u32, reports: &mut Reports) {
        let request = IoRequest { slot, op: IoOp::Sync, offset_bytes: 0, len_bytes: 0 };
        self.request(unit, &request, reports);
    }

    fn flush(&mut self, driver: &mut D) {
        if !self.devices.is_empty() {
            self.initiator.flush(driver);
        }
    }

    fn complete(
        &mut self,
        driver: &mut D,
        completion: Completion<D::Socket>,
        reports: &mut Reports,
    ) -> Option<Completion<D::Socket>> {
        self.initiator.handle_completion(driver, completion, reports)
    }

    fn on_time(&mut self, driver: &mut D, now: Nanos, reports: &mut Reports) {
        if !self.devices.is_empty() {
            self.initiator.on_time(driver, now, reports);
        }
    }

    fn next_deadline(&self) -> Option<Nanos> {
        if self.devices.is_empty() { None } else { self.initiator.next_deadline() }
    }

    fn close(&mut self, driver: &mut D, timeout_ns: Nanos) {
        if !self.devices.is_empty() {
            // A driver that cannot wait sends no logout.
            let _ = self.initiator.close(driver, timeout_ns, &mut Vec::new());
        }
    }
}

impl IoSink for Reports {
    fn done(&mut self, done: IoDone) {
        self.done.push(FinishedIo { slot: done.slot, result: done.result.map_err(Failure::Iscsi) });
    }

    fn event(&mut self, event: Event) {
        let mut whose = Blame::Peer;
        let mut path = None;
        let (kind, message, fatal) = match event.kind {
            EventKind::DeviceReady => return,
            EventKind::DeviceFailed(failure) => {
                whose = failure.blame;
                ("volume_failed", failure.message, true)
            }
            EventKind::Redirected { to } => {
                ("redirected", format!("the target sent the login to {to}"), false)
            }
            EventKind::SessionLost(reason) => ("session_lost", reason, false),
            EventKind::SessionRestored { retried_commands } => (
                "session_back",
                format!("logged in again; {retried_commands} commands are sent again"),
                false,
            ),
            EventKind::SessionFailed(failure) => {
                whose = failure.blame;
                ("session_failed", failure.message, true)
            }
            EventKind::AsyncMessage(what) => ("async_message", what.to_owned(), false),
            EventKind::CommandTimeout => (
                "command_timeout",
                "a command was not answered in time and is being aborted".to_owned(),
                false,
            ),
            EventKind::PathFailed { path: failed, reason, requeued } => {
                path = Some(failed);
                (
                    "path_failed",
                    format!("{reason}; {requeued} I/Os in flight are sent again elsewhere"),
                    false,
                )
            }
            EventKind::PathRestored { path: back } => {
                path = Some(back);
                ("path_restored", "logged in again, and the LUN is the same".to_owned(), false)
            }
            EventKind::PathStateChanged { path: changed, state } => {
                path = Some(changed);
                ("path_state", format!("state reported by the array: {}", state.word()), false)
            }
            EventKind::FailoverDone { path: failed, after_ns, .. } => {
                path = Some(failed);
                let after_ms = after_ns as f64 / 1e6;
                ("failover", format!("the first I/O was done elsewhere after {after_ms:.1} ms"), false)
            }
            EventKind::NoPath => ("no_path", "no path is left; I/O waits".to_owned(), false),
            EventKind::PathsBack { waiting } => {
                ("paths_back", format!("there is a path again; {waiting} I/Os waited for it"), false)
            }
            other => ("session", format!("{other:?}"), false),
        };
        // The worker opens its LUNs in the order of its units, so a device's index is its unit.
        let unit = event.device.map(|device| device.index() as u32);
        self.note(Notice {
            at: event.at,
            backend: BackendKind::Iscsi,
            unit,
            path,
            kind,
            message,
            blame: whose,
            refusal: None,
            fatal,
        });
    }
}
