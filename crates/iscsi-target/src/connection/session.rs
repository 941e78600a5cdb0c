//! A session in full feature phase: its negotiated values, the command window, and its volumes.

use super::tasks::{TaskWork, Tasks};
use crate::{
    config::ArrayLimits,
    stats::{LiveSession, SessionCounters},
    target::IscsiTarget,
};
use linerate_iscsi_proto::{
    frame::Framer,
    login::Established,
    params::{DigestKind, SessionParams},
    send_targets::TargetText,
    window::TargetWindow,
};
use linerate_scsi::Nexus;
use std::sync::Arc;

/// See the module text.
pub(super) struct Session {
    pub(super) params: SessionParams,
    pub(super) framer: Framer,
    pub(super) window: TargetWindow,
    pub(super) text: TargetText,
    /// `None` in a discovery session.
    pub(super) device: Option<Device>,
    /// The initiator of a discovery session, which sees only the targets that it may log in to.
    pub(super) discovers_as: Option<String>,
    pub(super) cid: u16,
    tsih: u16,
    /// Payload that waits for its data digest before it may be written to a volume.
    pub(super) staged: Vec<u8>,
    /// A logout was requested from the initiator.
    pub(super) asked_to_log_out: bool,
    /// Tag of the next ping.
    pub(super) next_ping: u32,
    pub(super) counters: SessionCounters,
    /// Where the counters are published.
    pub(super) live: Arc<LiveSession>,
}

/// The target that a session is logged in to.
pub(super) struct Device {
    pub(super) nexus: Arc<Nexus>,
    pub(super) target: Arc<IscsiTarget>,
}

/// The session of a connection in full feature phase. None would be a defect of this program: PDUs of this phase are
/// parsed only while there is a session. Then tests fail, and other builds drop the PDU.
pub(super) fn in_full_feature(session: &mut Option<Box<Session>>) -> Option<&mut Session> {
    debug_assert!(session.is_some(), "full feature phase has a session");
    session.as_deref_mut()
}

impl Session {
    pub(super) fn new(
        established: &Established,
        device: Option<Device>,
        live: Arc<LiveSession>,
        limits: &ArrayLimits,
    ) -> Self {
        let params = established.params;
        Self {
            params,
            framer: Framer { header_digest: params.header_digest, data_digest: params.data_digest },
            window: TargetWindow::new(established.cmd_sn, established.stat_sn, limits.commands_per_session),
            text: TargetText::new(limits.text_bytes),
            device,
            discovers_as: established.is_discovery().then(|| established.initiator_name.clone()),
            cid: established.cid,
            tsih: established.tsih,
            staged: Vec::new(),
            asked_to_log_out: false,
            next_ping: 0,
            counters: SessionCounters::default(),
            live,
        }
    }

    pub(super) fn digests_data(&self) -> bool {
        self.params.data_digest == DigestKind::Crc32c
    }

    pub(super) fn tsih(&self) -> u16 {
        self.tsih
    }

    /// Reports to the units the end of writes that will never finish.
    pub(super) fn end(&self, tasks: &mut Tasks) {
        // A discovery session has no device.
        let Some(device) = &self.device else { return };
        for entry in tasks.entries_mut().filter(|entry| !entry.is_busy()) {
            if let TaskWork::MemoryWrite(extent) | TaskWork::BufferedWrite(extent) = &entry.work {
                device.nexus.end_write(entry.lun, extent);
                entry.work = TaskWork::Drain(linerate_scsi::Reply::good());
            }
        }
    }
}
