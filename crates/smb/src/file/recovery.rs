//! A lost connection is restored: TCP, logon, share and file, while I/Os wait.
//!
//! The server has kept the file open if it granted a durable handle, and closes the lost session when the new one names it
//! (MS-SMB2 3.3.5.5.3). If it has not, the file is opened again. Requests without an answer are sent again: a READ, a
//! WRITE, a FLUSH and a change of the length have the same effect twice.

use super::steps::{FileOpening, SmbStep, random};
use super::{CONTROL_BYTES_MAX, Credits, FileContext, FileLoss, Incoming, MessageReader, Protection};
use super::{RECEIVE_BYTES, RemoteFile, SmbFileState};
use crate::event::{SmbEventKind, SmbIoError, SmbSink};
use crate::options::nanos;
use crate::wire::body::{OpenId, OplockBreak};
use crate::wire::durable::{DurableContext, DurableVersion, is_granted};
use crate::wire::header::SmbCommand;
use crate::wire::negotiate::Dialect;
use crate::wire::{WireError, body_of, files};
use linerate_io::{Buffer, Driver, Handle, Nanos, SocketOptions};

/// From a failed attempt to the next one.
const RETRY_NS: Nanos = 250_000_000;
/// The longest time that servers keep a handle.
const KEEP_MS_MAX: u32 = 300_000;

/// A connection that is being restored.
#[derive(Debug)]
pub(super) struct Recovery {
    lost_at: Nanos,
    /// When it is given up.
    until: Nanos,
    /// When the next attempt starts; None: one is in progress.
    retry_at: Option<Nanos>,
    reason: String,
    /// Requests that are sent again.
    requests: u32,
}

/// What the server promised about the open file.
#[derive(Debug, Default)]
pub(super) struct DurableHandle {
    pub(super) granted: Option<DurableVersion>,
    create_guid: [u8; 16],
    /// The CREATE in flight claims it back.
    pub(super) is_reclaim: bool,
    /// The file was claimed back, and not opened again.
    pub(super) is_same: bool,
}

impl RemoteFile {
    /// Starts to restore the connection; false: this loss ends the file.
    pub(super) fn start_recovery<D: Driver, S: SmbSink>(
        &mut self,
        driver: &mut D,
        loss: &FileLoss,
        cx: &mut FileContext<'_, S>,
    ) -> bool {
        let is_open = matches!(self.state, SmbFileState::Ready | SmbFileState::Reconnecting);
        let limit_ns = nanos(self.options.replacement_timeout_s);
        if !is_open || limit_ns == 0 || !loss.is_temporary(self.recovery.is_some()) {
            return false;
        }
        self.hang_up(driver);
        self.queue_refused();
        let requests = self.requeue(cx);
        if let Some(recovery) = &mut self.recovery {
            recovery.retry_at = Some(cx.now + RETRY_NS);
            return true;
        }
        self.raise_channel_sequence();
        let (lost_at, reason) = (cx.now, loss.to_string());
        self.report(SmbEventKind::ConnectionLost { reason: reason.clone() }, cx);
        let (until, retry_at) = (lost_at + limit_ns, Some(lost_at.max(self.next_attempt_at)));
        self.recovery = Some(Recovery { lost_at, until, retry_at, reason, requests });
        self.state = SmbFileState::Reconnecting;
        true
    }

    /// I/Os in flight become the first of the queue, in their order. One that was late already ends.
    pub(super) fn requeue<S: SmbSink>(&mut self, cx: &mut FileContext<'_, S>) -> u32 {
        let mut requests = 0;
        for task in self.tasks.take_all().into_iter().rev() {
            let Some(part) = task.io_part() else { continue };
            if task.is_cancelled {
                cx.splits.end(part, Err(SmbIoError::Timeout), cx.sink);
            } else {
                self.queue.push_front(part.again());
                requests += 1;
            }
        }
        requests
    }

    /// Whether the time of the recovery, or of an attempt, is over.
    pub(super) fn check_recovery(&self, now: Nanos) -> Result<(), FileLoss> {
        let Some(recovery) = &self.recovery else { return Ok(()) };
        if now >= recovery.until {
            let timeout_s = self.options.replacement_timeout_s;
            return Err(FileLoss::NotRestored { reason: recovery.reason.clone(), timeout_s });
        }
        if recovery.retry_at.is_none() && now >= self.deadline {
            return Err(FileLoss::Silence("the file was not open again within login_timeout_s"));
        }
        Ok(())
    }

    /// Starts an attempt that is due. Returns its stream.
    pub(crate) fn retry<D: Driver>(&mut self, driver: &mut D, now: Nanos) -> Option<Handle> {
        let recovery = self.recovery.as_mut()?;
        recovery.retry_at.filter(|at| *at <= now)?;
        let Ok(stream) = driver.connect(self.peer, &SocketOptions::default()) else {
            recovery.retry_at = Some(now + RETRY_NS);
            return None;
        };
        recovery.retry_at = None;
        self.next_attempt_at = now + RETRY_NS;
        self.stream = Some(stream);
        self.deadline = now + nanos(self.options.login_timeout_s);
        self.forget_connection();
        Some(stream)
    }

    /// Nothing of the lost connection is valid on the next one but the names of client, session and file.
    fn forget_connection(&mut self) {
        let client_guid = self.opening.offer.client_guid;
        self.opening = FileOpening::new(&self.options, self.credentials.clone(), &self.address.host);
        self.opening.offer.client_guid = client_guid;
        self.step = SmbStep::Connecting;
        self.related = None;
        self.heard = false;
        self.reader = MessageReader::new(CONTROL_BYTES_MAX);
        // The driver may still have the memory of the lost stream.
        self.buffer = Some(Buffer::new(RECEIVE_BYTES));
        self.outgoing = Some(Box::default());
        self.direct = None;
        self.incoming = Incoming::Ignored;
        self.verifying = None;
        self.protection = Protection::default();
        self.credits = Credits::new();
        self.has_asked_for_credits = false;
        self.loss = None;
        self.break_to = None;
        (self.session_id, self.tree_id, self.is_guest) = (0, 0, false);
    }

    /// Reports a connection that has been restored.
    pub(super) fn end_recovery<S: SmbSink>(&mut self, cx: &mut FileContext<'_, S>) {
        if self.state != SmbFileState::Ready {
            return;
        }
        if let Some(recovery) = self.recovery.take() {
            self.start_replays(cx.now);
            let kind = SmbEventKind::ConnectionRestored {
                after_ns: cx.now - recovery.lost_at,
                requests: recovery.requests,
                is_same_handle: self.durable.is_same,
            };
            self.report(kind, cx);
        }
    }

    /// What the next CREATE says about a durable handle.
    pub(super) fn durable_context(&mut self) -> Option<DurableContext> {
        let kept = self.durable.granted.filter(|_| self.recovery.is_some());
        self.durable.is_reclaim = kept.is_some();
        if let Some(version) = kept {
            let (create_guid, file_id) = (self.durable.create_guid, self.file_id);
            return Some(DurableContext::Reclaim { version, create_guid, file_id });
        }
        if !self.options.durable || self.options.replacement_timeout_s == 0.0 {
            return None;
        }
        let version = self.durable_version()?;
        self.durable.create_guid = random();
        let timeout_ms = (self.options.replacement_timeout_s * 1e3).min(KEEP_MS_MAX.into()) as u32;
        Some(DurableContext::Request { version, create_guid: self.durable.create_guid, timeout_ms })
    }

    fn durable_version(&self) -> Option<DurableVersion> {
        let dialect = self.negotiated.as_ref()?.dialect;
        Some(if dialect == Dialect::Smb210 { DurableVersion::V1 } else { DurableVersion::V2 })
    }

    /// Whether a refused CREATE claimed a handle back. The file is then opened again.
    pub(super) fn is_refused_reclaim(&mut self) -> bool {
        let is_reclaim = std::mem::take(&mut self.durable.is_reclaim);
        if is_reclaim {
            self.durable.granted = None;
        }
        is_reclaim
    }

    /// The file is open.
    pub(super) fn note_durable(&mut self, message: &[u8]) -> Result<(), WireError> {
        self.durable.is_same = std::mem::take(&mut self.durable.is_reclaim);
        let version = self.durable_version().filter(|_| self.options.durable);
        let is_granted = match version {
            Some(version) => self.durable.is_same || is_granted(message, version)?,
            None => false,
        };
        self.durable.granted = version.filter(|_| is_granted);
        Ok(())
    }

    /// The server wants the oplock back.
    pub(crate) fn is_asked_for_oplock(&self) -> bool {
        self.break_to.is_some()
    }

    /// The server keeps the file open no more when all connections are lost.
    pub(crate) fn forget_durable(&mut self) {
        self.durable.granted = None;
    }

    /// Another client opens the file: the server waits until the oplock is given up, and the handle is not durable any
    /// more.
    pub(super) fn unsolicited(&mut self, message: &[u8]) -> Result<(), FileLoss> {
        let body: &OplockBreak = body_of(message)?;
        if body.file_id == self.file_id {
            self.break_to = Some(body.oplock_level);
            self.durable.granted = None;
        }
        Ok(())
    }

    /// Gives the oplock up once there is a credit for it.
    pub(super) fn give_up_oplock(&mut self, now: Nanos) -> Result<(), FileLoss> {
        let Some(level) = self.break_to else { return Ok(()) };
        if self.credits.has_any() && self.tasks.has_space(self.credits.next_message_id()) {
            self.break_to = None;
            let file_id: OpenId = self.file_id;
            self.send_control(SmbCommand::OplockBreak, now, |_, header| {
                files::give_up_oplock(&header, file_id, level)
            })?;
        }
        Ok(())
    }
}
