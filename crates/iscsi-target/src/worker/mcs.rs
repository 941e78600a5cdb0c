//! Sessions of several connections: requests between their connections, and connections that change workers.

use super::Worker;
use crate::{
    connection::Connection,
    mcs::{ConnectionSlot, McsAction, McsRequest, McsSession},
    shared::{Arrival, WorkerMessage},
};
use linerate_io::Driver;

impl<D: Driver> Worker<D> {
    /// Executes the requests of connections that have just acted.
    #[cold]
    pub(super) fn settle(&mut self) {
        while let Some(id) = self.context.mcs_sessions.next_unsettled() {
            while let Some(action) = self.context.mcs_sessions.get_mut(id).and_then(McsSession::next_action) {
                if !self.perform(id, action) {
                    break;
                }
            }
            self.context.mcs_sessions.settled(id);
        }
    }

    /// False if it has to wait.
    fn perform(&mut self, id: u32, action: McsAction) -> bool {
        match action {
            McsAction::Close(slot) => {
                self.act_on(slot, Connection::close);
                if let Some(mcs) = self.context.mcs_sessions.get_mut(id) {
                    mcs.remove(slot);
                }
            }
            McsAction::CarryOut(request) => self.carry_out(id, request),
            McsAction::Answer { request, found } => {
                self.act_on(request.from, |connection, context| {
                    connection.answer_mcs_request(context, &request, found);
                });
            }
            McsAction::Run(slot, command) => {
                let mut runs = false;
                if let Some(mcs) = self.context.mcs_sessions.get_mut(id)
                    && self.slots.get(slot as usize).is_some_and(|slot| {
                        slot.connection
                            .as_ref()
                            .is_some_and(|connection| connection.may_run(&self.context.answers))
                    })
                {
                    mcs.begin(command.cmd_sn);
                    runs = true;
                }
                if runs {
                    self.act_on(slot, |connection, context| connection.run_kept(context, &command));
                }
                return runs;
            }
            McsAction::Resume(slot) => self.act_on(slot, Connection::resume_stalled),
        }
        true
    }

    fn carry_out(&mut self, id: u32, request: McsRequest) {
        let others: Vec<ConnectionSlot> = match self.context.mcs_sessions.get(id) {
            Some(mcs) => mcs.others(request.from).map(|(slot, _)| slot).collect(),
            None => return,
        };
        let (mut found, mut waits) = (false, Vec::new());
        for slot in others {
            self.act_on(slot, |connection, context| {
                let (did, unacknowledged) = connection.handle_mcs_request(context, &request);
                found |= did;
                waits.extend(unacknowledged.map(|sn| (slot, sn)));
            });
        }
        if let Some(mcs) = self.context.mcs_sessions.get_mut(id) {
            mcs.fence(request, found, waits);
        }
    }

    /// Moves a connection to the worker of the session that it joins.
    pub(super) fn hand_over(&mut self, index: u32, to: usize) {
        let Some(slot) = self.slots.get_mut(index as usize) else {
            unreachable!("slots are never removed");
        };
        // It was closed in the turn in which it asked to move.
        let Some(connection) = &mut slot.connection else { return };
        let Ok(socket) = self.context.driver.release(connection.stream()) else {
            return self.act_on(index, Connection::close);
        };
        let arrival = Arrival {
            socket,
            peer: connection.peer(),
            ticket: connection.ticket(),
            group: connection.group(),
            received: connection.take_received(),
        };
        slot.connection = None;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(index);
        self.context.shared.connections().leaves(arrival.ticket);
        self.context.shared.connection_moves(self.context.index, to);
        if let Some(mailbox) = self.context.shared.mailboxes().get(to) {
            mailbox.post(WorkerMessage::Adopt(arrival));
        }
    }

    /// Checks sessions whose commands wait for a missing one.
    pub(super) fn look_for_gaps(&mut self) {
        let limit_ns = (self.context.limits.stall_timeout_s * 1e9) as u64;
        let ended = self.context.mcs_sessions.end_overdue(self.context.now, limit_ns);
        if ended > 0 {
            self.context.counters.timeouts += ended;
            tracing::warn!(
                event = "connection_dropped",
                ended,
                "sessions are closed in which a command did not come in time (limits.stall_timeout_s)"
            );
            self.settle();
        }
    }
}
