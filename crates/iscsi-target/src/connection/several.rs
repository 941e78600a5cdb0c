//! A connection as one of several of its session: waiting for its turn, what others ordered, leaving. See `joint.rs`.

use super::{Connection, Phase, inbound::Sink};
use crate::{
    context::Core,
    joint::{Joints, Order, Victims, What},
    memory::budget::Budget,
};
use linerate_io::Driver;
use linerate_iscsi_proto::{
    pdu::{
        Bhs, LogoutRequest, LogoutResponse, LogoutResult, Request, ScsiCommand, TaskFunction, TaskManagement,
        data_len,
    },
    window::before,
};

/// `ExpStatSN`, which every request has at the same place.
fn exp_stat_sn(bhs: &Bhs) -> u32 {
    u32::from_be_bytes([bhs[28], bhs[29], bhs[30], bhs[31]])
}

impl Connection {
    /// Takes the session's window of commands over, as the other connections left it.
    #[inline]
    pub(crate) fn begin_turn(&mut self, joints: &Joints) {
        if let Some(id) = self.joint
            && let (Some(session), Some(joint)) = (&mut self.session, joints.get(id))
        {
            session.window.lend(joint.commands());
        }
    }

    /// Gives the window back, and calls the worker if there may be something to do for others.
    #[inline]
    pub(crate) fn end_turn(&mut self, joints: &mut Joints) {
        if let Some(id) = self.joint
            && let (Some(session), Some(joint)) = (&mut self.session, joints.get_mut(id))
        {
            joint.take_back(session.window.commands());
            joint.acknowledged(self.key.index, self.acknowledged);
            if joint.is_busy() {
                joints.unsettle(id);
            }
        }
    }

    /// Whether a command that another one made wait may run now.
    pub(crate) fn may_run(&self, answers: &Budget) -> bool {
        self.waits == 0 && self.phase == Phase::Full && !self.outbound.is_full(answers.share_bytes())
    }

    /// Whether a request has to wait for commands on other connections. Then it is kept, or left where it is.
    pub(super) fn must_wait_its_turn<D: Driver>(
        &mut self,
        core: &mut Core<D>,
        id: u32,
        request: &Request,
    ) -> bool {
        self.acknowledged = exp_stat_sn(self.receiver.bhs());
        let (Some(session), Some(joint)) = (&self.session, core.joints.get_mut(id)) else { return false };
        let window = session.window.commands();
        let early = match request {
            // A function that ends many tasks ends all those that were sent before it (RFC 7143 section 4.2.3.2).
            Request::TaskManagement(request) if request.function != TaskFunction::AbortTask => {
                Some(request.cmd_sn).filter(|number| window.is_early_immediate(*number))
            }
            request => request.cmd_sn().filter(|number| window.is_early(*number)),
        };
        let Some(cmd_sn) = early else { return false };
        match request {
            Request::ScsiCommand(command) if command.data_len == 0 && command.final_pdu => {
                joint.keep(self.key.index, command);
            }
            _ => {
                self.stalled = true;
                joint.stall(self.key.index, cmd_sn);
            }
        }
        true
    }

    /// It is the turn of a command that was kept.
    pub(crate) fn run_kept<D: Driver>(&mut self, core: &mut Core<D>, command: &ScsiCommand) {
        self.scsi_command(core, command);
        self.flush(core);
    }

    /// It is the turn of the request whose header was received last.
    pub(crate) fn go_on<D: Driver>(&mut self, core: &mut Core<D>) {
        self.stalled = false;
        if self.phase == Phase::Full {
            self.sink = Sink::Discard;
            self.full_header(core, data_len(self.receiver.bhs()));
        }
        self.resume(core);
    }

    /// Leaves an order for the other connections, if there are any. The answer follows when they have obeyed.
    pub(super) fn order_others<D: Driver>(&mut self, core: &mut Core<D>, what: What) -> bool {
        let Some(joint) = self.joint.and_then(|id| core.joints.get_mut(id)) else { return false };
        if joint.others(self.key.index).next().is_none() {
            return false;
        }
        joint.order(Order { from: self.key.index, what });
        true
    }

    /// Whether so many orders wait for acknowledgements that no more are taken.
    pub(super) fn has_too_many_orders<D: Driver>(&self, core: &Core<D>) -> bool {
        self.joint.and_then(|id| core.joints.get(id)).is_some_and(|joint| !joint.takes_orders())
    }

    /// A task to be aborted is none that this connection has begun: it may be waiting for its turn, or on its way. Returns
    /// whether it will not run now.
    pub(super) fn abort_elsewhere<D: Driver>(
        &mut self,
        core: &mut Core<D>,
        request: &TaskManagement,
    ) -> bool {
        let (Some(session), Some(joint)) = (&self.session, self.joint.and_then(|id| core.joints.get_mut(id)))
        else {
            return false;
        };
        joint.take_back(session.window.commands());
        joint.abort_early(request.referenced_itt)
            || (before(request.ref_cmd_sn, request.cmd_sn) && joint.forbid(request.ref_cmd_sn))
    }

    /// Does what another connection of the session has ordered. Returns whether there was anything to do, and the status
    /// that the initiator has yet to acknowledge before the order may be answered.
    pub(crate) fn obey<D: Driver>(&mut self, core: &mut Core<D>, order: &Order) -> (bool, Option<u32>) {
        match &order.what {
            What::Abort { victims: Victims::One(itt), hold, .. } => {
                let task = self.tasks.find(*itt);
                if let Some(task) = task {
                    self.abort(core, task, [hold]);
                }
                (task.is_some(), None)
            }
            What::Abort { victims, hold, .. } => {
                self.abort_all(core, *victims, hold);
                (true, self.ask_for_acknowledgement(core))
            }
            What::LogOut { cid, .. } => {
                let is_it = self.session.as_ref().is_some_and(|session| session.cid == *cid);
                if is_it {
                    self.take_leave(core);
                    self.close(core);
                }
                (is_it, None)
            }
        }
    }

    /// What was sent before may still be on its way, and must be there before the initiator hears of the function.
    fn ask_for_acknowledgement<D: Driver>(&mut self, core: &mut Core<D>) -> Option<u32> {
        let due = self.session.as_ref()?.window.peek().stat_sn;
        if !before(self.acknowledged, due) {
            return None;
        }
        self.pinged.get_or_insert(core.now);
        self.send_ping();
        self.flush(core);
        Some(due)
    }

    /// An order has been obeyed by all. What it holds back is due when the worker drops it.
    pub(crate) fn answer_order<D: Driver>(&mut self, core: &mut Core<D>, order: &Order, found: bool) {
        match order.what {
            What::Abort { victims: Victims::One(_), due, .. } if found => self.task_was_found(due),
            What::Abort { .. } => {}
            What::LogOut { itt, .. } => {
                let result = if found { LogoutResult::Closed } else { LogoutResult::NoSuchCid };
                self.answer_logout(itt, result);
            }
        }
        self.resume(core);
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

    /// This connection is logged out. If others are left, the session goes on with them.
    pub(super) fn log_out_here<D: Driver>(&mut self, core: &mut Core<D>, request: &LogoutRequest) {
        let joint = self.joint.and_then(|id| core.joints.get(id));
        if joint.is_some_and(|joint| joint.others(self.key.index).next().is_some()) {
            self.take_leave(core);
        }
        self.answer_logout(request.itt, LogoutResult::Closed);
        self.say_farewell();
    }

    /// Ends the connection's tasks, so that their places in the window are free for the others.
    fn take_leave<D: Driver>(&mut self, core: &mut Core<D>) {
        self.abort_where(core, &[], |_| true);
        self.departs = true;
    }

    /// The part of closing that the session has to know.
    pub(super) fn leave_session<D: Driver>(&mut self, core: &mut Core<D>, tsih: u16) {
        let joint = self.joint.take().and_then(|id| Some((id, core.joints.get_mut(id)?)));
        let Some((id, joint)) = joint else { return core.service.end_session(tsih) };
        if let Some(session) = &self.session {
            joint.take_back(session.window.commands());
        }
        let stays = self.departs && joint.others(self.key.index).next().is_some();
        joint.remove(self.key.index);
        if stays {
            core.service.leave_session(tsih, core.index, self.key);
        } else {
            // Error recovery level 0: a connection that is lost takes its session with it.
            joint.end();
            core.service.end_session(tsih);
        }
        core.joints.unsettle(id);
    }
}
