//! Full feature phase apart from SCSI commands: pings, text, logout, rejects, and the clock.

use super::{Connection, Phase, inbound::Sink, session::in_full_feature};
use crate::{context::WorkerContext, mcs::McsRequestKind, target::IscsiTarget};
use linerate_io::{Driver, Nanos};
use linerate_iscsi_proto::{
    pdu::{
        AsyncEvent, AsyncMessage, BHS_BYTES, LogoutReason, LogoutRequest, LogoutResult, Lun, NopIn, NopOut,
        RESERVED_TAG, Reject, RejectReason, Request, TextRequest,
    },
    send_targets::write_targets,
    window::Admission,
};

/// Largest ping that is echoed; a longer one is cut (RFC 7143 section 11.18.3 lets the target do so).
const PING_BYTES_MAX: u32 = 8192;

impl Connection {
    /// A header in full feature phase.
    pub(super) fn full_header<D: Driver>(&mut self, context: &mut WorkerContext<D>, data_len: u32) {
        let request = Request::parse(self.receiver.bhs());
        if let Some(mcs) = self.mcs
            && let Ok(request) = &request
            && self.must_wait_its_turn(context, mcs, request)
        {
            return;
        }
        match request {
            Ok(Request::ScsiCommand(command)) => self.scsi_command(context, &command),
            Ok(Request::DataOut(pdu)) => self.data_out(context, &pdu),
            Ok(Request::NopOut(_) | Request::Text(_)) => {
                self.sink = Sink::Whole;
                if data_len == 0 {
                    self.whole_pdu(context);
                }
            }
            Ok(Request::TaskManagement(request)) => self.task_management(context, &request),
            Ok(Request::Logout(request)) => self.logout(context, &request),
            Ok(Request::Login(_)) => self.protocol_error(context, "a login in full feature phase"),
            Ok(Request::Snack(_)) => self.reject(context, RejectReason::Snack),
            Err(error) => self.reject(context, error.reject_reason()),
        }
    }

    /// Payload of the current data segment.
    pub(super) fn payload<D: Driver>(
        &mut self,
        context: &mut WorkerContext<D>,
        payload: &[u8],
        offset: u32,
        complete: bool,
    ) {
        match (self.sink, self.phase) {
            (Sink::Task { task, base }, _) => {
                self.task_payload(context, task, base + offset, payload, complete);
            }
            (Sink::Whole, Phase::Login) => self.login_payload(context, payload, complete),
            (Sink::Whole, _) => {
                self.stage(context, payload);
                if complete {
                    self.whole_pdu(context);
                }
            }
            (Sink::Discard, _) => {}
        }
    }

    /// Collects the data of a ping or a text request, as much of it as is used.
    fn stage<D: Driver>(&mut self, context: &mut WorkerContext<D>, payload: &[u8]) {
        let Some(session) = in_full_feature(&mut self.session) else { return };
        let room =
            context.limits.text_bytes.max(PING_BYTES_MAX as usize).saturating_sub(session.staged.len());
        context.stage(&mut session.staged, &payload[..payload.len().min(room)]);
    }

    /// A ping or a text request is complete.
    fn whole_pdu<D: Driver>(&mut self, context: &mut WorkerContext<D>) {
        let Some(session) = in_full_feature(&mut self.session) else { return };
        let data = std::mem::take(&mut session.staged);
        match Request::parse(self.receiver.bhs()) {
            Ok(Request::NopOut(request)) => self.ping(context, &request, &data),
            Ok(Request::Text(request)) => self.text(context, &request, &data),
            _ => {}
        }
        context.keep_staging(data);
    }

    /// Whether a request other than a SCSI command may run now. It ends at once, so its place is free again.
    pub(super) fn admit<D: Driver>(
        &mut self,
        context: &mut WorkerContext<D>,
        cmd_sn: u32,
        immediate: bool,
    ) -> bool {
        let Some(session) = in_full_feature(&mut self.session) else { return false };
        match session.window.admit(cmd_sn, immediate) {
            Admission::Run => {
                if !immediate {
                    session.window.release();
                }
                true
            }
            Admission::Ignore => false,
            Admission::Gap => {
                self.protocol_error(context, "a gap in CmdSN");
                false
            }
        }
    }

    fn ping<D: Driver>(&mut self, context: &mut WorkerContext<D>, request: &NopOut, data: &[u8]) {
        if request.ttt != RESERVED_TAG {
            self.pinged = None;
        }
        if !self.admit(context, request.cmd_sn, request.immediate) || request.itt == RESERVED_TAG {
            return;
        }
        let Some(mut answers) = self.answers() else { return };
        let limit = answers.session.params.peer_max_recv_data_segment_length.min(PING_BYTES_MAX);
        let echo = &data[..data.len().min(limit as usize)];
        let pdu = NopIn {
            lun: Lun(0),
            itt: request.itt,
            ttt: RESERVED_TAG,
            sn: answers.status_numbers(),
            data_len: echo.len() as u32,
        };
        answers.header(|bhs| pdu.emit(bhs));
        answers.data(echo);
    }

    fn text<D: Driver>(&mut self, context: &mut WorkerContext<D>, request: &TextRequest, data: &[u8]) {
        if !self.admit(context, request.cmd_sn, request.immediate) {
            return;
        }
        let Some(session) = in_full_feature(&mut self.session) else { return };
        let own = session.device.as_ref().map(|device| device.target.name.clone());
        let addresses = context.shared.portals().addresses(self.local);
        let shared = &context.shared;
        let discovers_as = session.discovers_as.as_deref();
        let answer = |wanted: &str| {
            let named = |name: &str| match (wanted, &own) {
                ("All", None) => true,
                // In a session with a target, the initiator gets no information about others.
                ("All" | "", Some(own)) => own == name,
                (wanted, Some(own)) => own == name && wanted.eq_ignore_ascii_case(name),
                (wanted, None) => wanted.eq_ignore_ascii_case(name),
            };
            let may_see =
                |target: &IscsiTarget| discovers_as.is_none_or(|initiator| target.admits(initiator));
            let targets = shared.targets.iter().filter(|target| named(&target.name) && may_see(target));
            Some(write_targets(targets.map(|target| (target.name.as_str(), addresses.as_slice()))))
        };
        let limit = session.params.peer_max_recv_data_segment_length;
        match session.text.receive(request, data, limit, answer) {
            Ok((mut response, text)) => {
                let Some(mut answers) = self.answers() else { return };
                response.sn = answers.status_numbers();
                response.data_len = text.len() as u32;
                answers.header(|bhs| response.emit(bhs));
                answers.data(&text);
            }
            Err(error) => {
                tracing::info!(event = "protocol_error", peer = %self.peer, %error, "a text request is rejected");
                session.text.reset();
                self.reject(context, RejectReason::ProtocolError);
            }
        }
    }

    fn logout<D: Driver>(&mut self, context: &mut WorkerContext<D>, request: &LogoutRequest) {
        if !self.admit(context, request.cmd_sn, request.immediate) {
            return;
        }
        let Some(session) = in_full_feature(&mut self.session) else { return };
        let result = match request.reason {
            LogoutReason::CloseSession => LogoutResult::Closed,
            LogoutReason::CloseConnection if request.cid == session.cid => {
                return self.log_out_here(context, request);
            }
            LogoutReason::CloseConnection => {
                if self.has_too_many_mcs_requests(context) {
                    return self.reject(context, RejectReason::TooManyImmediate);
                }
                if self
                    .request_of_others(context, McsRequestKind::LogOut { itt: request.itt, cid: request.cid })
                {
                    return;
                }
                LogoutResult::NoSuchCid
            }
            _ => LogoutResult::RecoveryNotSupported,
        };
        self.answer_logout(request.itt, result);
        if result == LogoutResult::Closed {
            self.close_when_sent();
        }
    }

    /// Rejects the PDU whose header has just been received; its data, if any, is received and dropped.
    pub(super) fn reject<D: Driver>(&mut self, context: &mut WorkerContext<D>, reason: RejectReason) {
        context.counters.rejects += 1;
        let bhs = *self.receiver.bhs();
        let Some(mut answers) = self.answers() else { return };
        let pdu = Reject { reason, sn: answers.status_numbers(), data_sn: 0, data_len: BHS_BYTES as u32 };
        answers.header(|out| pdu.emit(out));
        answers.data(&bhs);
    }

    /// Checks the time limits: slow logins, silent initiators, pings, stalled peers.
    pub(crate) fn check_time<D: Driver>(&mut self, context: &mut WorkerContext<D>) {
        self.check_login_delay(context);
        let limits = &context.limits;
        let over = |since: Nanos, limit_s: f64| {
            limit_s > 0.0 && context.now.saturating_sub(since) as f64 > limit_s * 1e9
        };
        let overdue = match self.phase {
            Phase::Closed => None,
            Phase::Login | Phase::Closing => {
                over(self.opened.max(self.heard_in_full()), limits.login_timeout_s).then_some((
                    "login_timeout",
                    "a connection did not log in, or close, in time (limits.login_timeout_s)",
                ))
            }
            Phase::Full if over(self.heard, limits.idle_timeout_s) => {
                Some(("connection_dropped", "an initiator was silent (limits.idle_timeout_s)"))
            }
            Phase::Full if self.pinged.is_some_and(|since| over(since, limits.nop_timeout_s)) => {
                Some(("connection_dropped", "an initiator did not answer a ping (limits.nop_timeout_s)"))
            }
            Phase::Full => self.owed_since().filter(|since| over(*since, limits.stall_timeout_s)).map(|_| {
                ("connection_dropped", "an initiator owed data, or room for answers (limits.stall_timeout_s)")
            }),
        };
        if let Some((event, message)) = overdue {
            context.counters.timeouts += 1;
            tracing::warn!(event, peer = %self.peer, "{message}");
            return self.close(context);
        }
        if let Some(session) = &self.session {
            session.live.publish(&session.counters, self.tasks.len(), self.heard);
        }
        if self.phase == Phase::Full && self.pinged.is_none() && over(self.heard, limits.nop_interval_s) {
            self.pinged = Some(context.now);
            self.send_ping();
            self.flush(context);
        }
    }

    /// The time of the last message after the login. Messages during the login do not extend its limit.
    fn heard_in_full(&self) -> Nanos {
        if self.session.is_some() { self.heard } else { 0 }
    }

    pub(super) fn send_ping(&mut self) {
        let Some(mut answers) = self.answers() else { return };
        let ttt = answers.session.next_ping;
        answers.session.next_ping = (ttt + 1) & 0x7fff_ffff;
        let sn = answers.session.window.peek();
        let pdu = NopIn { lun: Lun(0), itt: RESERVED_TAG, ttt, sn, data_len: 0 };
        answers.header(|bhs| pdu.emit(bhs));
    }

    /// The array stops: a logout is requested from a session, everything else is closed.
    pub(crate) fn ask_to_log_out<D: Driver>(&mut self, context: &mut WorkerContext<D>, grace_ns: Nanos) {
        if self.session.as_ref().is_none_or(|session| session.asked_to_log_out) {
            return self.close(context);
        }
        let Some(mut answers) = self.answers() else { return };
        answers.session.asked_to_log_out = true;
        let pdu = AsyncMessage {
            event: AsyncEvent::LogoutRequest,
            vendor_code: 0,
            lun: Lun(0),
            sn: answers.status_numbers(),
            parameter1: 0,
            parameter2: 0,
            parameter3: grace_ns.div_ceil(1_000_000_000) as u16,
            data_len: 0,
        };
        answers.header(|bhs| pdu.emit(bhs));
        self.flush(context);
    }
}
