//! Receiving: what arrived, parsed in place.
//!
//! One receive brings as many PDUs as the kernel has. Read data is judged by its header before a byte of it is placed;
//! then it is skipped, shown, copied into the caller's segment if it is short, or, if a long rest has yet to come,
//! received straight into that segment by the next receive.

use super::finish::Outcome;
use super::tasks::{Progress, TaskIndex};
use super::{Context, Input, LossReason, ReturnedFrom, Session, SessionEvent};
use crate::event::{EventKind, IoSink};
use crate::request::ReadInto;
use crate::request::Regions;
use crate::task::{Owner, Payload};
use linerate_io::{Buffer, Driver, Nanos, Region, Seg};
use linerate_iscsi_proto::frame::Event;
use linerate_iscsi_proto::pdu::{
    AsyncEvent, AsyncMessage, BHS_BYTES, DataIn, DataInStatus, NopIn, R2t, RESERVED_TAG, Reject, Request,
    Residual, Response, ScsiResponse, TaskManagementResponse, TaskResult, TextResponse,
};
use linerate_iscsi_proto::send_targets::TextStep;
use linerate_iscsi_proto::transfer::ReadEnd;
use std::io;
use std::sync::Arc;

/// A rest of read data at least this long is received straight into the caller's segment; below it, a copy out of the
/// receive buffer costs less than a receive of its own.
const DIRECT_BYTES_MIN: u32 = 16 * 1024;
/// Target pings that may wait for their answers. A target that pings faster than we can send is broken.
const PONGS_MAX: usize = 256;

/// What the data segment that is arriving is for.
#[derive(Debug, Default)]
pub(super) enum Current {
    /// Nobody.
    #[default]
    Nothing,
    /// Read data of a task, which ends with this PDU if it carries status.
    Read { task: TaskIndex, place: Place, status: Option<DataInStatus> },
    /// Kept in the scratch buffer until it is whole.
    Whole(Response),
}

/// Where the bytes of a Data-In PDU go.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    Nowhere,
    /// The caller looks at them; `base` is the PDU's offset in the I/O.
    Shown {
        device: u32,
        slot: u32,
        base: u32,
    },
    /// The PDU's part of the caller's segment.
    Segment(Seg),
    /// The task's reply buffer.
    Kept,
}

impl Session {
    /// Gives the driver the buffer again, and the place where long read data belongs.
    pub(super) fn receive_again<D: Driver>(&mut self, driver: &mut D, at: usize) {
        let Some(link) = self.links.get_mut(at) else { return };
        // A receive on a socket that does not get connected fails too, and with less to say.
        if !link.is_connected() {
            return;
        }
        let Some(buffer) = link.buffer.take() else { return };
        link.direct = match link.current {
            Current::Read { place: Place::Segment(seg), .. } => {
                let rest = link.receiver.direct_remaining();
                let start = seg.offset + u64::from(seg.len - rest.min(seg.len));
                (rest >= DIRECT_BYTES_MIN).then_some(Seg { offset: start, len: rest, ..seg })
            }
            _ => None,
        };
        driver.recv(link.stream, link.direct.as_slice(), buffer);
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
                if self.joining.due {
                    self.open_further(driver, cx);
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
        let Some(link) = self.links.get_mut(at) else { return Ok(()) };
        link.heard = true;
        let mut len = received;
        if let Some(seg) = link.direct.take() {
            let direct = (seg.len as usize).min(len);
            let part = Seg { len: direct as u32, ..seg };
            link.receiver
                .advance_direct(direct as u32, |crc| super::send::segment_crc(cx.regions, part, crc));
            len -= direct;
        }
        let result = self.parse(at, &buffer.as_slice()[..len], driver, cx);
        if let Some(link) = self.links.get_mut(at) {
            link.buffer = Some(buffer);
        }
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
        let mut rest = bytes;
        loop {
            let Some(link) = self.links.get_mut(at) else { return Ok(()) };
            let step = link.receiver.next(rest)?;
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

    /// Judges a header and decides what its data is for.
    #[inline]
    fn header(&mut self, at: usize) -> Result<(), LossReason> {
        let Some(link) = self.links.get_mut(at) else { return Ok(()) };
        let response = Response::parse(link.receiver.bhs())?;
        if !link.is_full() {
            if !matches!(response, Response::Login(_)) {
                return Err(LossReason::Protocol(
                    "it sent something else than a login response during login",
                ));
            }
            link.current = Current::Whole(response);
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
                link.expected.take(sn)?;
                self.window.observe(sn);
                Current::Whole(response)
            }
            Response::Logout(pdu) => {
                link.expected.take(&pdu.sn)?;
                self.window.observe(&pdu.sn);
                Current::Whole(response)
            }
        };
        if let Some(link) = self.links.get_mut(at) {
            link.current = current;
        }
        Ok(())
    }

    /// The task of a tag that came over a connection, if it is one that went over it.
    #[inline]
    fn find_on(&self, at: usize, itt: u32) -> Option<TaskIndex> {
        self.tasks.find(itt).filter(|index| usize::from(self.tasks[*index].link) == at)
    }

    #[inline]
    fn data_in(&mut self, at: usize, pdu: &DataIn) -> Result<Current, LossReason> {
        if pdu.status.is_some() {
            self.links[at].expected.take(&pdu.sn)?;
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
        let place = match (task.payload, task.owner) {
            (Payload::Kept, _) => Place::Kept,
            (Payload::In(ReadInto::Shown), Owner::Io { device, slot }) => {
                Place::Shown { device, slot, base: pdu.buffer_offset }
            }
            (Payload::In(ReadInto::Segment(seg)), _) => {
                let offset = seg.offset + u64::from(pdu.buffer_offset);
                Place::Segment(Seg { offset, len: pdu.data_len, ..seg })
            }
            _ => Place::Nowhere,
        };
        Ok(Current::Read { task: index, place, status })
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
        self.links[at].bursts.push_back((pdu.itt, burst));
        Ok(())
    }

    #[inline]
    fn data<S: IoSink>(&mut self, at: usize, bytes: &[u8], offset: u32, cx: &mut Context<'_, S>) {
        let Some(link) = self.links.get_mut(at) else { return };
        match &link.current {
            Current::Nothing | Current::Read { place: Place::Nowhere, .. } => {}
            Current::Read { place: Place::Shown { device, slot, base }, .. } => {
                if !bytes.is_empty() {
                    cx.sink.read_data(crate::DeviceId(*device), *slot, base + offset, bytes);
                }
            }
            Current::Read { place: Place::Segment(seg), .. } => copy_in(cx.regions, *seg, offset, bytes),
            Current::Read { place: Place::Kept, task, .. } => {
                self.tasks[*task].reply.extend_from_slice(bytes);
            }
            // Bounded: the receiver refuses segments longer than we declared.
            Current::Whole(_) => link.scratch.extend_from_slice(bytes),
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
        let Some(link) = self.links.get_mut(at) else { return Ok(()) };
        match std::mem::take(&mut link.current) {
            Current::Nothing | Current::Read { status: None, .. } => Ok(()),
            Current::Read { task, status: Some(status), .. } => {
                let outcome = Outcome { status: status.status, residual: status.residual, sense: None };
                self.finish(task, &outcome, now, cx);
                Ok(())
            }
            Current::Whole(response) => {
                let mut data = std::mem::take(&mut link.scratch);
                let result = self.whole(at, &response, &data, now, cx);
                data.clear();
                if let Some(link) = self.links.get_mut(at) {
                    link.scratch = data;
                }
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
            self.over(index);
            self.finish_failed(index, crate::IoError::Protocol("target failure"), cx);
            return Ok(());
        }
        // Two bytes of length, then sense data: neither is believed beyond what came.
        let sense = match data {
            [hi, lo, rest @ ..] => &rest[..usize::from(u16::from_be_bytes([*hi, *lo])).min(rest.len())],
            _ => &[],
        };
        let outcome =
            Outcome { status: pdu.status, residual: pdu.residual, sense: crate::sense::decode(sense) };
        self.finish(index, &outcome, now, cx);
        Ok(())
    }

    fn nop_in(&mut self, at: usize, pdu: &NopIn) -> Result<(), LossReason> {
        let link = &mut self.links[at];
        if pdu.ttt != RESERVED_TAG {
            if link.pongs.len() == PONGS_MAX {
                return Err(LossReason::Protocol("it pings without end"));
            }
            link.pongs.push(*pdu);
        }
        if pdu.itt != RESERVED_TAG {
            link.pinging = false;
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
        self.over(victim);
        match pdu.result {
            // It is dead, so another path may try; whatever fails there too is not the path's fault.
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
                self.links[at].urgent.push_back(index);
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

    /// A Reject carries the header it refuses; the command behind that header ends with an error.
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
            self.over(index);
            self.finish_failed(index, crate::IoError::Protocol("request rejected"), cx);
        }
        Ok(())
    }
}

/// Copies a short piece of read data to its place.
fn copy_in(regions: &Regions, seg: Seg, offset: u32, bytes: &[u8]) {
    let region: Option<&Arc<Region>> = regions.get(seg.region);
    if let Some(region) = region
        && !bytes.is_empty()
    {
        region.write(seg.offset + u64::from(offset), bytes);
    }
}

impl Outcome {
    /// Bytes that the target says did not move.
    pub(super) fn missing_bytes(&self) -> u32 {
        match self.residual {
            Residual::Underflow(bytes) => bytes,
            Residual::None | Residual::Overflow(_) => 0,
        }
    }
}
