//! Receiving: bytes are parsed in the receive buffer.
//!
//! One receive returns as many PDUs as the kernel has. The header of read data is checked before any byte of it is
//! stored. Then the data is skipped, shown, or copied into the caller's segment if it is short. If a long rest is still
//! missing, the next receive puts it directly into that segment.

use super::Session;
use super::connection::{Current, Destination};
use super::events::{Context, ReturnedFrom, SessionEvent};
use super::finish::Outcome;
use super::loss::LossReason;
use super::state::Input;
use super::tasks::{Progress, TaskIndex};
use crate::event::{EventKind, IoSink};
use crate::request::ReadInto;
use crate::task::{Owner, Payload};
use linerate_io::{AttachedRegions, Buffer, Driver, Nanos, Region, Seg};
use linerate_iscsi_proto::frame::Event;
use linerate_iscsi_proto::pdu::{
    AsyncEvent, AsyncMessage, BHS_BYTES, DataIn, Header, NopIn, R2t, RESERVED_TAG, Reject, Request, Residual,
    Response, ScsiResponse, TaskManagementResponse, TaskResult, TextResponse,
};
use linerate_iscsi_proto::send_targets::TextStep;
use linerate_iscsi_proto::transfer::ReadEnd;
use linerate_scsi_proto::sense::Sense;
use std::io;
use std::sync::Arc;

/// A rest of read data at least this long is received straight into the caller's segment; below it, a copy out of the
/// receive buffer costs less than a receive of its own.
const DIRECT_BYTES_MIN: u32 = 16 * 1024;
/// Target pings that may wait for their answers. A target with more has a fault.
const PONGS_MAX: usize = 256;

impl Session {
    /// Returns the buffer to the driver, and the segment for long read data.
    pub(super) fn receive_again<D: Driver>(&mut self, driver: &mut D, at: usize) {
        let connection = &mut self.connections[at];
        // A receive on a socket that cannot connect fails too, with a less useful error.
        if !connection.is_connected() {
            return;
        }
        // The driver has the buffer for a receive.
        let Some(buffer) = connection.buffer.take() else { return };
        connection.direct = match connection.current {
            Current::Read { destination: Destination::Segment(seg), .. } => {
                let rest = connection.receiver.direct_remaining();
                let start = seg.offset + u64::from(seg.len - rest.min(seg.len));
                (rest >= DIRECT_BYTES_MIN).then_some(Seg { offset: start, len: rest, ..seg })
            }
            _ => None,
        };
        driver.recv(connection.stream, connection.direct.as_slice(), buffer);
    }

    /// A receive has ended.
    #[inline]
    pub(crate) fn received_from<D: Driver, S: IoSink>(
        &mut self,
        driver: &mut D,
        at: usize,
        result: io::Result<usize>,
        buffer: Buffer,
        cx: &mut Context<'_, S>,
    ) -> Result<(), LossReason> {
        match result {
            Ok(0) => Err(LossReason::Closed { portal: self.portal_now(at) }),
            Ok(received) => {
                self.received(at, buffer, received, driver, cx)?;
                if self.further.due {
                    self.open_further_connections(driver, cx);
                }
                Ok(())
            }
            Err(error) => Err(LossReason::Broken { portal: self.portal_now(at), error: error.to_string() }),
        }
    }

    /// Handles `received` bytes: direct ones first, the rest in `buffer`.
    fn received<D: Driver, S: IoSink>(
        &mut self,
        at: usize,
        buffer: Buffer,
        received: usize,
        driver: &D,
        cx: &mut Context<'_, S>,
    ) -> Result<(), LossReason> {
        let connection = &mut self.connections[at];
        connection.heard = true;
        let mut len = received;
        if let Some(seg) = connection.direct.take() {
            let direct = (seg.len as usize).min(len);
            let part = Seg { len: direct as u32, ..seg };
            connection
                .receiver
                .advance_direct(direct as u32, |crc| super::send::segment_crc(cx.regions, part, crc));
            len -= direct;
        }
        let result = self.parse(at, &buffer.as_slice()[..len], driver, cx);
        self.connections[at].buffer = Some(buffer);
        result
    }

    fn parse<D: Driver, S: IoSink>(
        &mut self,
        at: usize,
        bytes: &[u8],
        driver: &D,
        cx: &mut Context<'_, S>,
    ) -> Result<(), LossReason> {
        let now = driver.now();
        let connection = &self.connections[at];
        if !connection.is_target && connection.receiver.at_boundary() && is_text(bytes) {
            return Err(LossReason::Text);
        }
        let mut rest = bytes;
        loop {
            let connection = &mut self.connections[at];
            let step = connection.receiver.next(rest)?;
            match step.event {
                Event::NeedMore => return Ok(()),
                Event::Header { data_len } => {
                    self.header(at)?;
                    if data_len == 0 {
                        self.complete(at, now, cx)?;
                    }
                }
                Event::Data { payload, offset, complete } => {
                    self.data(at, &rest[payload], offset, cx);
                    if complete {
                        self.complete(at, now, cx)?;
                    }
                }
            }
            rest = &rest[step.consumed..];
        }
    }

    /// Checks a header and determines the owner of its data.
    #[inline]
    fn header(&mut self, at: usize) -> Result<(), LossReason> {
        let connection = &mut self.connections[at];
        tracing::trace!(event = "pdu", "received {}", Header(connection.receiver.bhs()));
        let response = Response::parse(connection.receiver.bhs())?;
        if !connection.is_full() {
            if !matches!(response, Response::Login(_)) {
                return Err(LossReason::Protocol(
                    "it sent something else than a login response during login",
                ));
            }
            connection.is_target = true;
            connection.current = Current::Whole(response);
            return Ok(());
        }
        let current = match &response {
            Response::DataIn(pdu) => self.data_in(at, pdu)?,
            Response::R2t(pdu) => {
                self.ready_to_transfer(at, pdu)?;
                Current::Nothing
            }
            Response::Login(_) => {
                return Err(LossReason::Protocol("it sent a login response after the login"));
            }
            // A target's own ping does not consume its StatSN.
            Response::NopIn(pdu) if pdu.itt == RESERVED_TAG => {
                self.window.observe(&pdu.sn);
                Current::Whole(response)
            }
            Response::NopIn(NopIn { sn, .. })
            | Response::Scsi(ScsiResponse { sn, .. })
            | Response::TaskManagement(TaskManagementResponse { sn, .. })
            | Response::Text(TextResponse { sn, .. })
            | Response::Async(AsyncMessage { sn, .. })
            | Response::Reject(Reject { sn, .. }) => {
                connection.expected.take(sn)?;
                self.window.observe(sn);
                Current::Whole(response)
            }
            Response::Logout(pdu) => {
                connection.expected.take(&pdu.sn)?;
                self.window.observe(&pdu.sn);
                Current::Whole(response)
            }
        };
        self.connections[at].current = current;
        Ok(())
    }

    /// The task of a tag that arrived over a connection, if it was sent over it.
    #[inline]
    fn find_on(&self, at: usize, itt: u32) -> Option<TaskIndex> {
        self.tasks.find(itt).filter(|index| usize::from(self.tasks[*index].connection) == at)
    }

    #[inline]
    fn data_in(&mut self, at: usize, pdu: &DataIn) -> Result<Current, LossReason> {
        if pdu.status.is_some() {
            self.connections[at].expected.take(&pdu.sn)?;
        }
        self.window.observe(&pdu.sn);
        let stranger = LossReason::Protocol("it sent data for a command that is not in flight");
        let index = self.find_on(at, pdu.itt).ok_or(stranger)?;
        let task = &mut self.tasks[index];
        let Progress::Read(read) = &mut task.progress else {
            return Err(LossReason::Protocol("it sent data for a command that reads nothing"));
        };
        let status = match read.accept(pdu)? {
            ReadEnd::Open => None,
            ReadEnd::Status(status) => Some(status),
        };
        let destination = match (task.payload, task.owner) {
            (Payload::Kept, _) => Destination::Kept,
            (Payload::In(ReadInto::Shown), Owner::Io { device, slot }) => {
                Destination::Shown { device, slot, base: pdu.buffer_offset }
            }
            (Payload::In(ReadInto::Segment(seg)), _) => {
                let offset = seg.offset + u64::from(pdu.buffer_offset);
                Destination::Segment(Seg { offset, len: pdu.data_len, ..seg })
            }
            _ => Destination::Nowhere,
        };
        Ok(Current::Read { task: index, destination, status })
    }

    /// An R2T is answered with the next flush.
    fn ready_to_transfer(&mut self, at: usize, pdu: &R2t) -> Result<(), LossReason> {
        self.window.observe(&pdu.sn);
        let stranger = LossReason::Protocol("it asked for data of a command that is not in flight");
        let index = self.find_on(at, pdu.itt).ok_or(stranger)?;
        let Progress::Write(write) = &mut self.tasks[index].progress else {
            return Err(LossReason::Protocol("it asked for data of a command that writes nothing"));
        };
        let burst = write.accept(pdu)?;
        self.connections[at].bursts.push_back((pdu.itt, burst));
        Ok(())
    }

    #[inline]
    fn data<S: IoSink>(&mut self, at: usize, bytes: &[u8], offset: u32, cx: &mut Context<'_, S>) {
        let connection = &mut self.connections[at];
        match &connection.current {
            Current::Nothing | Current::Read { destination: Destination::Nowhere, .. } => {}
            Current::Read { destination: Destination::Shown { device, slot, base }, .. } => {
                if !bytes.is_empty() {
                    cx.sink.read_data(crate::DeviceId(*device), *slot, base + offset, bytes);
                }
            }
            Current::Read { destination: Destination::Segment(seg), .. } => {
                copy_in(cx.regions, *seg, offset, bytes);
            }
            Current::Read { destination: Destination::Kept, task, .. } => {
                self.tasks[*task].reply.extend_from_slice(bytes);
            }
            // Bounded: the receiver refuses segments longer than we declared.
            Current::Whole(_) => connection.scratch.extend_from_slice(bytes),
        }
    }

    /// The PDU is complete, its digests are right.
    #[inline]
    fn complete<S: IoSink>(
        &mut self,
        at: usize,
        now: Nanos,
        cx: &mut Context<'_, S>,
    ) -> Result<(), LossReason> {
        let connection = &mut self.connections[at];
        match std::mem::take(&mut connection.current) {
            Current::Nothing | Current::Read { status: None, .. } => Ok(()),
            Current::Read { task, status: Some(status), .. } => {
                let outcome = Outcome { status: status.status, residual: status.residual, sense: None };
                self.finish(task, &outcome, now, cx);
                Ok(())
            }
            Current::Whole(response) => {
                let mut data = std::mem::take(&mut connection.scratch);
                let result = self.whole(at, &response, &data, now, cx);
                data.clear();
                self.connections[at].scratch = data;
                result
            }
        }
    }

    /// Everything but Data-In and R2T.
    fn whole<S: IoSink>(
        &mut self,
        at: usize,
        response: &Response,
        data: &[u8],
        now: Nanos,
        cx: &mut Context<'_, S>,
    ) -> Result<(), LossReason> {
        match response {
            Response::Scsi(pdu) => self.scsi_response(at, pdu, data, now, cx),
            Response::Login(pdu) => self.login_response(at, pdu, data, now, cx),
            Response::NopIn(pdu) => self.nop_in(at, pdu),
            Response::TaskManagement(pdu) => self.abort_answered(pdu, cx),
            Response::Text(pdu) => self.text_response(at, pdu, data, cx),
            Response::Logout(_) => self.logged_out(),
            Response::Async(pdu) => self.async_message(pdu, now, cx),
            Response::Reject(pdu) => self.rejected(pdu, data, cx),
            Response::DataIn(_) | Response::R2t(_) => Ok(()),
        }
    }

    fn scsi_response<S: IoSink>(
        &mut self,
        at: usize,
        pdu: &ScsiResponse,
        data: &[u8],
        now: Nanos,
        cx: &mut Context<'_, S>,
    ) -> Result<(), LossReason> {
        let stranger = LossReason::Protocol("it answered a command that is not in flight");
        let index = self.find_on(at, pdu.itt).ok_or(stranger)?;
        if pdu.response != 0 {
            self.no_longer_in_flight(index);
            self.finish_failed(index, crate::IoError::Protocol("target failure"), cx);
            return Ok(());
        }
        // Two bytes of length, then sense data: the length is limited to the received bytes.
        let sense = match data {
            [hi, lo, rest @ ..] => &rest[..usize::from(u16::from_be_bytes([*hi, *lo])).min(rest.len())],
            _ => &[],
        };
        let outcome = Outcome {
            status: pdu.status,
            residual: pdu.residual,
            sense: Sense::parse(sense).map(|sense| sense.code),
        };
        self.finish(index, &outcome, now, cx);
        Ok(())
    }

    fn nop_in(&mut self, at: usize, pdu: &NopIn) -> Result<(), LossReason> {
        let connection = &mut self.connections[at];
        if pdu.ttt != RESERVED_TAG {
            if connection.pongs.len() == PONGS_MAX {
                return Err(LossReason::Protocol("it pings without end"));
            }
            connection.pongs.push(*pdu);
        }
        if pdu.itt != RESERVED_TAG {
            connection.pinging = false;
            let stranger = LossReason::Protocol("it answered a ping that was not sent");
            let index = self.find_on(at, pdu.itt).ok_or(stranger)?;
            self.tasks.remove(index);
        }
        Ok(())
    }

    fn abort_answered<S: IoSink>(
        &mut self,
        pdu: &TaskManagementResponse,
        cx: &mut Context<'_, S>,
    ) -> Result<(), LossReason> {
        let stranger = LossReason::Protocol("it answered a task management request that was not sent");
        let index = self.tasks.find(pdu.itt).ok_or(stranger)?;
        let Owner::Abort { itt } = self.tasks[index].owner else {
            return Err(LossReason::Protocol("mixed-up tags"));
        };
        self.tasks.remove(index);
        // The command may have been answered while it was being aborted.
        let Some(victim) = self.tasks.find(itt) else { return Ok(()) };
        self.no_longer_in_flight(victim);
        match pdu.result {
            // It is dead, so another path may try it. If that fails too, the cause is not the path.
            TaskResult::Complete | TaskResult::NoSuchTask
                if self.config.retry.fails_over && self.tasks[victim].is_first_try_of_io() =>
            {
                self.tasks[victim].losses += 1;
                self.hand_back(victim, ReturnedFrom::Queue, cx);
                cx.events.push((self.id, SessionEvent::HandedBack));
                Ok(())
            }
            TaskResult::Complete | TaskResult::NoSuchTask => {
                self.finish_failed(victim, crate::IoError::Timeout, cx);
                Ok(())
            }
            _ => Err(LossReason::Silence("a command timed out and the target would not abort it")),
        }
    }

    fn text_response<S: IoSink>(
        &mut self,
        at: usize,
        pdu: &TextResponse,
        data: &[u8],
        cx: &mut Context<'_, S>,
    ) -> Result<(), LossReason> {
        let stranger = LossReason::Protocol("it sent text that was not asked for");
        let Some((index, exchange)) = self.tasks.find(pdu.itt).zip(self.text.as_mut()) else {
            return Err(stranger);
        };
        match exchange.receive(pdu, data)? {
            TextStep::Done(text) => {
                self.tasks.remove(index);
                cx.events.push((self.id, SessionEvent::Targets(text)));
            }
            TextStep::Send(next) => {
                self.text_next = Some(next);
                self.tasks[index].stage = super::Stage::Queued;
                self.connections[at].urgent.push_back(index);
            }
        }
        Ok(())
    }

    fn logged_out(&mut self) -> Result<(), LossReason> {
        if self.recovery.closing {
            self.step(Input::Ended);
            return Ok(());
        }
        Err(LossReason::Dismissed("the logout that it asked for is done"))
    }

    fn async_message<S: IoSink>(
        &mut self,
        pdu: &AsyncMessage,
        now: Nanos,
        cx: &mut Context<'_, S>,
    ) -> Result<(), LossReason> {
        let words = match pdu.event {
            AsyncEvent::Scsi => "SCSI event",
            AsyncEvent::LogoutRequest => "asks for a logout",
            AsyncEvent::ConnectionDrop => "drops the connection",
            AsyncEvent::SessionDrop => "drops all connections of the session",
            AsyncEvent::Negotiate => "asks for negotiation",
            AsyncEvent::TaskTermination => "ended all tasks of a logical unit",
            AsyncEvent::Vendor | AsyncEvent::Other(_) => "vendor specific event",
        };
        self.emit(cx, now, EventKind::AsyncMessage(words));
        match pdu.event {
            AsyncEvent::LogoutRequest => self.logout_asked(now, pdu.parameter3, cx),
            AsyncEvent::ConnectionDrop | AsyncEvent::SessionDrop => {
                self.recovery.wait_s = self.recovery.wait_s.max(pdu.parameter2);
                return Err(LossReason::Dismissed(words));
            }
            _ => {}
        }
        Ok(())
    }

    /// A Reject contains the refused header; the command of that header ends with an error.
    fn rejected<S: IoSink>(
        &mut self,
        pdu: &Reject,
        data: &[u8],
        cx: &mut Context<'_, S>,
    ) -> Result<(), LossReason> {
        tracing::debug!(session = self.id.0, reason = ?pdu.reason, "rejected");
        let unreadable = LossReason::Protocol("it rejected something that was not sent");
        let Some(Ok(request)) = data.first_chunk::<BHS_BYTES>().map(Request::parse) else {
            return Err(unreadable);
        };
        let itt = match request {
            Request::ScsiCommand(pdu) => pdu.itt,
            Request::DataOut(pdu) => pdu.itt,
            Request::NopOut(pdu) => pdu.itt,
            _ => return Err(LossReason::Protocol("it rejected a request that every target must take")),
        };
        if let Some(index) = self.tasks.find(itt) {
            self.no_longer_in_flight(index);
            self.finish_failed(index, crate::IoError::Protocol("request rejected"), cx);
        }
        Ok(())
    }
}

/// Copies a short piece of read data into its segment.
fn copy_in(regions: &AttachedRegions, seg: Seg, offset: u32, bytes: &[u8]) {
    let region: Option<&Arc<Region>> = regions.get(seg.region);
    if let Some(region) = region
        && !bytes.is_empty()
    {
        region.write(seg.offset + u64::from(offset), bytes);
    }
}

impl Outcome {
    /// Bytes that were not moved, by the target's count.
    pub(super) fn missing_bytes(&self) -> u32 {
        match self.residual {
            Residual::Underflow(bytes) => bytes,
            Residual::None | Residual::Overflow(_) => 0,
        }
    }
}

/// Whether these bytes begin with text. No login response does: its versions, bytes 2 and 3, are 0 (RFC 7143 11.13).
fn is_text(bytes: &[u8]) -> bool {
    bytes.len() >= 4 && bytes[..4].iter().all(|byte| (b' '..=b'~').contains(byte))
}
