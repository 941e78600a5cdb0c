//! Files of SMB shares: one [`SmbClient`] per worker has all of its files, each with a connection of its own.

use super::{
    Backend, BackendKind, Failure, FinishedIo, Io, Notice, OpenError, OpenedVolume, Reports, VolumeToOpen,
    tcp::TcpCounters,
};
use crate::{
    record::{Op, tally::NetworkTally},
    spec::options::smb_options,
};
use linerate_blame::Blame;
use linerate_io::{Completion, Driver, Nanos, Region, RegionId, TcpInfo};
use linerate_smb::{
    FileFacts, SmbAddress, SmbClient, SmbCredentials, SmbEvent, SmbEventKind, SmbFailure, SmbFileId,
    SmbFileState, SmbIo, SmbIoDone, SmbIoError, SmbMode, SmbOp, SmbSink,
};
use serde_json::json;
use std::sync::Arc;

/// Smallest unit of I/O: files have none, so it is that of local files.
const BLOCK_BYTES: u32 = 512;

/// The most channels of a file (`smb.channels`).
const CHANNELS_MAX: usize = 16;

/// The files of a worker.
#[derive(Debug, Default)]
pub(crate) struct Smb {
    client: SmbClient,
    files: Vec<SmbFileId>,
    /// By file and channel.
    tcp: TcpCounters,
}

impl Smb {
    /// Makes a region usable in I/Os that is attached to the driver.
    pub(crate) fn add_region(&mut self, id: RegionId, region: Arc<Region>) {
        self.client.add_region(id, region);
    }

    #[inline]
    fn request(&mut self, unit: u32, request: &SmbIo, reports: &mut Reports) {
        if self.client.submit(self.files[unit as usize], request).is_err() {
            // Lengths and access were checked when the volume was opened, so its connection was lost.
            reports.done(SmbIoDone { slot: request.slot, result: Err(SmbIoError::Lost) });
        }
    }
}

impl<D: Driver> Backend<D> for Smb {
    /// Starts to log on and to open the file.
    fn open(&mut self, driver: &mut D, opening: &VolumeToOpen<'_>) -> Result<OpenedVolume, OpenError> {
        let spec = opening.spec;
        let user = |error: &dyn std::fmt::Display| OpenError::new(Blame::User, error.to_string());
        let address = SmbAddress::parse(&spec.url).map_err(|error| user(&error))?;
        let options = smb_options(spec).map_err(|error| user(&error))?;
        let password = spec.secret.as_ref().map(crate::spec::Secret::reveal);
        let credentials = SmbCredentials::of_user(spec.user.as_deref(), password);
        let wanted = spec.size_bytes.map(|size| spec.first_byte + size);
        let creates = spec.create && opening.may_create;
        let mode = SmbMode { write: opening.writes, create_bytes: wanted.filter(|_| creates) };
        let file = self
            .client
            .open(driver, &address, &options, credentials, mode)
            .map_err(|error| failed(&error))?;
        self.files.push(file);
        Ok(OpenedVolume {
            unit: self.files.len() as u32 - 1,
            kind: "smb",
            capacity_bytes: 0,
            block_bytes: BLOCK_BYTES,
            max_transfer_bytes: 0,
            has_checksums: false,
            session: serde_json::Value::Null,
        })
    }

    fn wait_ready(&mut self, driver: &mut D) -> Result<(), OpenError> {
        self.client
            .wait_ready(driver)
            .map_err(|error| OpenError::new(Blame::Host, format!("waiting for the network failed: {error}")))
    }

    fn finish_opening(&self, driver: &D, opened: OpenedVolume) -> Result<OpenedVolume, OpenError> {
        let file = self.files[opened.unit as usize];
        if let SmbFileState::Failed(failure) = self.client.state(file) {
            return Err(failed(failure));
        }
        let facts = self.client.facts(file);
        let facts = facts.ok_or_else(|| OpenError::new(Blame::Us, "a file is open without its facts"))?;
        let tcp = self.client.tcp_infos(driver, file).next().map(|(_, info)| info).unwrap_or_default();
        let session = share_session_json(self.client.address(file), &facts, &tcp);
        let has_checksums = facts.signing.is_some();
        Ok(OpenedVolume { capacity_bytes: facts.size_bytes, has_checksums, session, ..opened })
    }

    fn network_since_last(&mut self, driver: &D, network: &mut NetworkTally) {
        for &file in &self.files {
            for (channel, now) in self.client.tcp_infos(driver, file) {
                let index = file.index() * CHANNELS_MAX + channel;
                network.tcp.add(&self.tcp.since_last(index, Some(now)));
            }
        }
    }

    fn submit(&mut self, _: &mut D, io: &Io, reports: &mut Reports) {
        let op = match io.op {
            Op::Read => SmbOp::Read(io.keep.then_some(io.data)),
            Op::Write => SmbOp::Write { from: io.data, durable: io.durable },
        };
        let request = SmbIo { slot: io.slot, op, offset_bytes: io.offset, len_bytes: io.data.len };
        self.request(io.unit, &request, reports);
    }

    fn sync(&mut self, _: &mut D, slot: u32, unit: u32, reports: &mut Reports) {
        self.request(unit, &SmbIo { slot, op: SmbOp::Flush, offset_bytes: 0, len_bytes: 0 }, reports);
    }

    fn set_length(&mut self, _: &mut D, slot: u32, unit: u32, length_bytes: u64, reports: &mut Reports) {
        let request = SmbIo { slot, op: SmbOp::SetLength, offset_bytes: length_bytes, len_bytes: 0 };
        self.request(unit, &request, reports);
    }

    fn flush(&mut self, driver: &mut D) {
        if !self.files.is_empty() {
            self.client.flush(driver);
        }
    }

    fn complete(
        &mut self,
        driver: &mut D,
        completion: Completion<D::Socket>,
        reports: &mut Reports,
    ) -> Option<Completion<D::Socket>> {
        self.client.handle_completion(driver, completion, reports)
    }

    fn on_time(&mut self, driver: &mut D, now: Nanos, reports: &mut Reports) {
        if !self.files.is_empty() {
            self.client.on_time(driver, now, reports);
        }
    }

    fn next_deadline(&self) -> Option<Nanos> {
        self.client.next_deadline()
    }

    fn close(&mut self, driver: &mut D, timeout_ns: Nanos) {
        if !self.files.is_empty() {
            // A driver that cannot wait sends no LOGOFF.
            let _ = self.client.close(driver, timeout_ns, &mut Vec::new());
        }
    }
}

/// What was negotiated, as facts of a run.
pub(crate) fn share_session_json(
    address: &SmbAddress,
    facts: &FileFacts,
    tcp: &TcpInfo,
) -> serde_json::Value {
    json!({
        "portal": address.server(),
        "share": address.share,
        "path": address.path,
        "local_address": facts.local_addr.map(|addr| addr.to_string()),
        "peer_address": facts.peer_addr.to_string(),
        "dialect": facts.dialect,
        "signing": facts.signing.unwrap_or("off"),
        "encryption": facts.encryption.unwrap_or("off"),
        "max_io_bytes": facts.max_io_bytes,
        "max_read_bytes": facts.max_read_bytes,
        "max_write_bytes": facts.max_write_bytes,
        "durable_handle": facts.durable.unwrap_or("none"),
        "credits": facts.credits,
        "channels": facts.channels,
        "guest": facts.is_guest,
        "nodelay": tcp.nodelay,
        "send_buffer_bytes": tcp.send_buffer_bytes,
        "recv_buffer_bytes": tcp.recv_buffer_bytes,
        "congestion_control": tcp.congestion_control,
        "snd_mss": tcp.snd_mss,
        "pmtu": tcp.pmtu,
    })
}

fn failed(failure: &SmbFailure) -> OpenError {
    let error = OpenError::new(failure.blame, failure.message.clone());
    OpenError { refusal: failure.refusal, is_missing: failure.is_missing, ..error }
}

fn restored(after_ns: Nanos, requests: u32, is_same_handle: bool) -> String {
    let after_ms = after_ns as f64 / 1e6;
    let file = if is_same_handle { "the server had kept the file open" } else { "the file was opened again" };
    format!("logged on again after {after_ms:.1} ms; {file}; {requests} requests are sent again")
}

impl SmbSink for Reports {
    fn done(&mut self, done: SmbIoDone) {
        self.done.push(FinishedIo { slot: done.slot, result: done.result.map_err(Failure::Smb) });
    }

    fn event(&mut self, event: SmbEvent) {
        let refusal = match &event.kind {
            SmbEventKind::Failed(failure) => failure.refusal,
            _ => None,
        };
        let (kind, message, blame, fatal) = match event.kind {
            SmbEventKind::Failed(failure) => ("volume_failed", failure.message, failure.blame, true),
            SmbEventKind::CreditWait { granted } => (
                "credit_wait",
                format!("I/Os wait for credits: the server grants {granted}; an I/O needs one per 64 KiB"),
                Blame::Peer,
                false,
            ),
            SmbEventKind::ConnectionLost { reason } => ("session_lost", reason, Blame::Peer, false),
            SmbEventKind::ChannelLost { reason, requests, left } => (
                "channel_lost",
                format!("{reason}; {left} channels are left and send {requests} requests again"),
                Blame::Peer,
                false,
            ),
            SmbEventKind::ChannelRestored { channels } => {
                ("channel_back", format!("the session has {channels} channels again"), Blame::Peer, false)
            }
            SmbEventKind::ConnectionRestored { after_ns, requests, is_same_handle } => {
                ("session_back", restored(after_ns, requests, is_same_handle), Blame::Peer, false)
            }
            SmbEventKind::Timeout => (
                "command_timeout",
                "a request was not answered in time and is being cancelled".to_owned(),
                Blame::Peer,
                false,
            ),
        };
        self.note(Notice {
            at: event.at,
            backend: BackendKind::Smb,
            // The worker opens its files in the order of its units, so a file's index is its unit.
            unit: Some(event.file.index() as u32),
            path: None,
            kind,
            message,
            blame,
            refusal,
            fatal,
        });
    }
}
