//! Sessions of several connections: what their connections want of each other, and connections that change workers.

use super::Worker;
use crate::{
    connection::Connection,
    joint::{Joint, Order, Place, Work},
    service::{Arrival, Message},
};
use linerate_io::Driver;

impl<D: Driver> Worker<D> {
    /// Does what connections that have just acted have left to do for others of their session.
    #[cold]
    pub(super) fn settle(&mut self) {
        while let Some(id) = self.core.joints.next_unsettled() {
            while let Some(work) = self.core.joints.get_mut(id).and_then(Joint::next_work) {
                if !self.do_work(id, work) {
                    break;
                }
            }
            self.core.joints.settled(id);
        }
    }

    /// False if it has to wait.
    fn do_work(&mut self, id: u32, work: Work) -> bool {
        match work {
            Work::Close(place) => {
                self.act_on(place, Connection::close);
                if let Some(joint) = self.core.joints.get_mut(id) {
                    joint.remove(place);
                }
            }
            Work::CarryOut(order) => self.carry_out(id, order),
            Work::Answer { order, found } => {
                self.act_on(order.from, |connection, core| connection.answer_order(core, &order, found));
            }
            Work::Run(place, command) => {
                let mut runs = false;
                if let Some(joint) = self.core.joints.get_mut(id)
                    && self.places.get(place as usize).is_some_and(|place| {
                        place
                            .connection
                            .as_ref()
                            .is_some_and(|connection| connection.may_run(&self.core.answers))
                    })
                {
                    joint.begin(command.cmd_sn);
                    runs = true;
                }
                if runs {
                    self.act_on(place, |connection, core| connection.run_kept(core, &command));
                }
                return runs;
            }
            Work::GoOn(place) => self.act_on(place, Connection::go_on),
        }
        true
    }

    fn carry_out(&mut self, id: u32, order: Order) {
        let others: Vec<Place> = match self.core.joints.get(id) {
            Some(joint) => joint.others(order.from).map(|(place, _)| place).collect(),
            None => return,
        };
        let (mut found, mut waits) = (false, Vec::new());
        for place in others {
            self.act_on(place, |connection, core| {
                let (did, unacknowledged) = connection.obey(core, &order);
                found |= did;
                waits.extend(unacknowledged.map(|sn| (place, sn)));
            });
        }
        if let Some(joint) = self.core.joints.get_mut(id) {
            joint.fence(order, found, waits);
        }
    }

    /// Brings a connection to the worker that serves the session it wants to join.
    pub(super) fn hand_over(&mut self, index: u32, to: usize) {
        let Some(place) = self.places.get_mut(index as usize) else { return };
        let Some(connection) = &mut place.connection else { return };
        let Ok(socket) = self.core.driver.release(connection.stream()) else {
            return self.act_on(index, Connection::close);
        };
        let arrival = Arrival {
            socket,
            peer: connection.peer(),
            ticket: connection.ticket(),
            group: connection.group(),
            received: connection.take_received(),
        };
        place.connection = None;
        place.generation = place.generation.wrapping_add(1);
        self.free.push(index);
        self.core.service.connections().leaves(arrival.ticket);
        self.core.service.connection_moves(self.core.index, to);
        if let Some(mailbox) = self.core.service.mailboxes().get(to) {
            mailbox.post(Message::Adopt(arrival));
        }
    }

    /// Looks at sessions whose commands wait for one that does not come.
    pub(super) fn look_for_gaps(&mut self) {
        let limit_ns = (self.core.limits.stall_timeout_s * 1e9) as u64;
        let ended = self.core.joints.end_overdue(self.core.now, limit_ns);
        if ended > 0 {
            self.core.counters.timeouts += ended;
            tracing::warn!(
                event = "connection_dropped",
                ended,
                "sessions are closed in which a command did not come in time (limits.stall_timeout_s)"
            );
            self.settle();
        }
    }
}
