//! A connection of an MC/S session: commands that wait for their turn, requests of the other connections, logout. See
//! `mcs.rs` of the crate.

use super::{Connection, Phase, inbound::Sink};
use crate::{
    buffers::budget::Budget,
    context::WorkerContext,
    mcs::{AbortScope, McsRequest, McsRequestKind, McsSessions},
};
use linerate_io::Driver;
use linerate_iscsi_proto::{
    pdu::{
        Bhs, LogoutRequest, LogoutResponse, LogoutResult, Request, ScsiCommand, TaskFunction, TaskManagement,
        data_len,
    },
    window::before,
};

/// `ExpStatSN`, which is at the same place in every request.
fn exp_stat_sn(bhs: &Bhs) -> u32 {
    u32::from_be_bytes([bhs[28], bhs[29], bhs[30], bhs[31]])
}

impl Connection {
    /// Takes the session's command window, as the other connections left it.
    #[inline]
    pub(crate) fn begin_turn(&mut self, mcs_sessions: &McsSessions) {
        if let Some(id) = self.mcs
            && let (Some(session), Some(mcs)) = (&mut self.session, mcs_sessions.get(id))
        {
            session.window.lend(mcs.commands());
        }
    }

    /// Returns the window, and calls the worker if other connections may have work.
    #[inline]
    pub(crate) fn end_turn(&mut self, mcs_sessions: &mut McsSessions) {
        if let Some(id) = self.mcs
            && let (Some(session), Some(mcs)) = (&mut self.session, mcs_sessions.get_mut(id))
        {
            mcs.take_back(session.window.commands());
            mcs.acknowledged(self.key.index, self.acknowledged);
            if mcs.is_busy() {
                mcs_sessions.unsettle(id);
            }
        }
    }

    /// Whether a command that waited for another one may run now.
    pub(crate) fn may_run(&self, answers: &Budget) -> bool {
        self.waits == 0 && self.phase == Phase::Full && !self.outbound.is_full(answers.share_bytes())
    }

    /// Whether a request must wait for commands on other connections. Then it is stored, or left in its buffer.
    pub(super) fn must_wait_its_turn<D: Driver>(
        &mut self,
        context: &mut WorkerContext<D>,
        id: u32,
        request: &Request,
    ) -> bool {
        self.acknowledged = exp_stat_sn(self.receiver.bhs());
        let (Some(session), Some(mcs)) = (&self.session, context.mcs_sessions.get_mut(id)) else {
            return false;
        };
        let window = session.window.commands();
        let early = match request {
            // A function that ends many tasks ends all those that were sent before it (RFC 7143 section 4.2.3.2).
            Request::TaskManagement(request) if request.function != TaskFunction::AbortTask => {
                Some(request.cmd_sn).filter(|number| window.is_early_immediate(*number))
            }
            request => request.cmd_sn().filter(|number| window.is_early(*number)),
        };
        // It is its turn.
        let Some(cmd_sn) = early else { return false };
        match request {
            Request::ScsiCommand(command) if command.data_len == 0 && command.final_pdu => {
                mcs.keep_early(self.key.index, command);
            }
            _ => {
                self.stalled = true;
                mcs.stall(self.key.index, cmd_sn);
            }
        }
        true
    }

    /// A stored command may run now.
    pub(crate) fn run_kept<D: Driver>(&mut self, context: &mut WorkerContext<D>, command: &ScsiCommand) {
        self.scsi_command(context, command);
        self.flush(context);
    }

    /// The request whose header was received last may run now.
    pub(crate) fn resume_stalled<D: Driver>(&mut self, context: &mut WorkerContext<D>) {
        self.stalled = false;
        if self.phase == Phase::Full {
            self.sink = Sink::Discard;
            self.full_header(context, data_len(self.receiver.bhs()));
        }
        self.resume(context);
    }

    /// Stores a request for the other connections, if there are any. The answer follows when they have executed it.
    pub(super) fn request_of_others<D: Driver>(
        &mut self,
        context: &mut WorkerContext<D>,
        kind: McsRequestKind,
    ) -> bool {
        // A session of one connection has no others.
        let Some(mcs) = self.mcs.and_then(|id| context.mcs_sessions.get_mut(id)) else { return false };
        if mcs.others(self.key.index).next().is_none() {
            return false;
        }
        mcs.request(McsRequest { from: self.key.index, kind });
        true
    }

    /// Whether too many requests wait for acknowledgements, so that no more are accepted.
    pub(super) fn has_too_many_mcs_requests<D: Driver>(&self, context: &WorkerContext<D>) -> bool {
        self.mcs.and_then(|id| context.mcs_sessions.get(id)).is_some_and(|mcs| !mcs.accepts_requests())
    }

    /// This connection has not begun the task to be aborted: it may be waiting for its turn, or be in transit. Returns
    /// whether it will not run now.
    pub(super) fn abort_early_command<D: Driver>(
        &mut self,
        context: &mut WorkerContext<D>,
        request: &TaskManagement,
    ) -> bool {
        let (Some(session), Some(mcs)) =
            (&self.session, self.mcs.and_then(|id| context.mcs_sessions.get_mut(id)))
        else {
            return false;
        };
        mcs.take_back(session.window.commands());
        mcs.abort_early(request.referenced_itt)
            || (before(request.ref_cmd_sn, request.cmd_sn) && mcs.skip(request.ref_cmd_sn))
    }

    /// Executes a request of another connection of the session. Returns whether it had any effect, and the status that
    /// the initiator must acknowledge before the request may be answered.
    pub(crate) fn handle_mcs_request<D: Driver>(
        &mut self,
        context: &mut WorkerContext<D>,
        request: &McsRequest,
    ) -> (bool, Option<u32>) {
        match &request.kind {
            McsRequestKind::Abort { scope: AbortScope::One(itt), guard, .. } => {
                let task = self.tasks.find(*itt);
                if let Some(task) = task {
                    self.abort(context, task, [guard]);
                }
                (task.is_some(), None)
            }
            McsRequestKind::Abort { scope, guard, .. } => {
                self.abort_all(context, *scope, guard);
                (true, self.ask_for_acknowledgement(context))
            }
            McsRequestKind::LogOut { cid, .. } => {
                let is_it = self.session.as_ref().is_some_and(|session| session.cid == *cid);
                if is_it {
                    self.depart(context);
                    self.close(context);
                }
                (is_it, None)
            }
        }
    }

    /// Earlier answers may still be in transit. The initiator must have them before it gets the answer to the function.
    fn ask_for_acknowledgement<D: Driver>(&mut self, context: &mut WorkerContext<D>) -> Option<u32> {
        let due = self.session.as_ref()?.window.peek().stat_sn;
        if !before(self.acknowledged, due) {
            return None;
        }
        self.pinged.get_or_insert(context.now);
        self.send_ping();
        self.flush(context);
        Some(due)
    }

    /// All connections have executed a request. Its answer is due when the worker drops it.
    pub(crate) fn answer_mcs_request<D: Driver>(
        &mut self,
        context: &mut WorkerContext<D>,
        request: &McsRequest,
        found: bool,
    ) {
        match request.kind {
            McsRequestKind::Abort { scope: AbortScope::One(_), due, .. } if found => self.task_was_found(due),
            McsRequestKind::Abort { .. } => {}
            McsRequestKind::LogOut { itt, .. } => {
                let result = if found { LogoutResult::Closed } else { LogoutResult::NoSuchCid };
                self.answer_logout(itt, result);
            }
        }
        self.resume(context);
    }

    pub(super) fn answer_logout(&mut self, itt: u32, result: LogoutResult) {
        let Some(mut answers) = self.answers() else { return };
        let pdu = LogoutResponse {
            result,
            itt,
            sn: answers.status_numbers(),
            time2wait_s: answers.session.params.default_time2wait_s,
            time2retain_s: 0,
        };
        answers.header(|bhs| pdu.emit(bhs));
    }

    /// This connection is logged out. If others are left, the session continues with them.
    pub(super) fn log_out_here<D: Driver>(
        &mut self,
        context: &mut WorkerContext<D>,
        request: &LogoutRequest,
    ) {
        let mcs = self.mcs.and_then(|id| context.mcs_sessions.get(id));
        if mcs.is_some_and(|mcs| mcs.others(self.key.index).next().is_some()) {
            self.depart(context);
        }
        self.answer_logout(request.itt, LogoutResult::Closed);
        self.close_when_sent();
    }

    /// Ends the connection's tasks, so that their places in the window are free for the others.
    fn depart<D: Driver>(&mut self, context: &mut WorkerContext<D>) {
        self.abort_where(context, &[], |_| true);
        self.logged_out_alone = true;
    }

    /// The part of closing that concerns the session.
    pub(super) fn leave_session<D: Driver>(&mut self, context: &mut WorkerContext<D>, tsih: u16) {
        let mcs = self.mcs.take().and_then(|id| Some((id, context.mcs_sessions.get_mut(id)?)));
        let Some((id, mcs)) = mcs else { return context.shared.end_session(tsih) };
        if let Some(session) = &self.session {
            mcs.take_back(session.window.commands());
        }
        let stays = self.logged_out_alone && mcs.others(self.key.index).next().is_some();
        mcs.remove(self.key.index);
        if stays {
            context.shared.leave_session(tsih, context.index, self.key);
        } else {
            // Error recovery level 0: a lost connection ends its session.
            mcs.end();
            context.shared.end_session(tsih);
        }
        context.mcs_sessions.unsettle(id);
    }
}
