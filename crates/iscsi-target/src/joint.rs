//! What the connections of one session share, where a session may have several (MC/S, `MaxConnections` above 1).
//!
//! All of them are served by the worker that serves the first, so nothing here is locked. A connection holds the session's
//! window of commands while it acts: its worker lends it before and takes it back after (`worker/several.rs`). What a
//! connection wants of the others (tasks ended, a connection closed) it leaves here as an [`Order`], which the worker
//! carries out as soon as the connection has acted.
//!
//! Commands run in the order of their numbers whichever connection brings them. One that comes early waits: as a header
//! here if that is all of it, otherwise where it was received, and its connection is not read meanwhile. So what a peer
//! can make us hold is one header per place in the window.

use crate::hold::Hold;
use linerate_io::Nanos;
use linerate_iscsi_proto::{
    params::SessionParams,
    pdu::ScsiCommand,
    window::{CommandWindow, before},
};
use std::collections::VecDeque;

/// Orders of one session that may wait for others to acknowledge what they were sent.
const ORDERS_MAX: usize = 64;

/// A connection's place in the worker's table.
pub(crate) type Place = u32;

/// Which tasks are to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Victims {
    /// The one with this tag, wherever it is.
    One(u32),
    /// All on this LUN.
    OnLun([u8; 8]),
    /// All.
    All,
}

/// What a connection wants of the other connections of its session, and who is told when it is done.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    pub(crate) from: Place,
    pub(crate) what: What,
}

/// See [`Order`].
#[derive(Clone, Debug)]
pub(crate) enum What {
    /// A task management function ends tasks. `due`: number of its answer at the connection that ordered it, which `hold`
    /// keeps back.
    Abort { victims: Victims, due: usize, hold: Hold },
    /// The connection with this ID is logged out over another one. `itt`: tag of the request.
    LogOut { itt: u32, cid: u16 },
}

/// What the worker has to do next.
#[derive(Clone, Debug)]
pub(crate) enum Work {
    /// The session is over: close this connection.
    Close(Place),
    /// Carry an order out.
    CarryOut(Order),
    /// Everyone has done and acknowledged what was ordered: answer. `found` says whether there was anything to do.
    Answer { order: Order, found: bool },
    /// It is this command's turn.
    Run(Place, ScsiCommand),
    /// It is the turn of what this connection has received.
    GoOn(Place),
}

/// A number that was used before its turn.
#[derive(Debug)]
struct Early {
    cmd_sn: u32,
    /// None: nothing is left to run (aborted, or its connection is gone); the number only passes.
    command: Option<(Place, ScsiCommand)>,
}

/// An order that has been carried out, and the statuses that others must acknowledge before it is answered: the response
/// fence of RFC 7143 section 4.2.2.3.
#[derive(Debug)]
struct Fence {
    order: Order,
    found: bool,
    waits: Vec<(Place, u32)>,
}

/// One session.
#[derive(Debug)]
pub(crate) struct Joint {
    tsih: u16,
    pub(crate) params: SessionParams,
    commands: CommandWindow,
    /// Connections in full feature phase, and their IDs.
    members: Vec<(Place, u16)>,
    early: Vec<Early>,
    /// Connections that are not read until the command with this number is expected.
    stalled: Vec<(Place, u32)>,
    orders: VecDeque<Order>,
    fences: Vec<Fence>,
    /// The session is over; the connections that are left are to be closed.
    over: bool,
    /// The number that is missing, and since when.
    gap: Option<(u32, Nanos)>,
}

impl Joint {
    pub(crate) fn new(tsih: u16, params: SessionParams, commands: CommandWindow) -> Self {
        Self {
            tsih,
            params,
            commands,
            members: Vec::new(),
            early: Vec::new(),
            stalled: Vec::new(),
            orders: VecDeque::new(),
            fences: Vec::new(),
            over: false,
            gap: None,
        }
    }

    pub(crate) fn commands(&self) -> CommandWindow {
        self.commands
    }

    pub(crate) fn take_back(&mut self, commands: CommandWindow) {
        self.commands = commands;
    }

    pub(crate) fn add(&mut self, place: Place, cid: u16) {
        self.members.push((place, cid));
    }

    /// The session is over.
    pub(crate) fn end(&mut self) {
        self.over = true;
    }

    /// A connection is closed. What it brought early will not run, but its numbers have been used.
    pub(crate) fn remove(&mut self, place: Place) {
        self.members.retain(|(member, _)| *member != place);
        self.stalled.retain(|(member, _)| *member != place);
        self.orders.retain(|order| order.from != place);
        self.fences.retain(|fence| fence.order.from != place);
        for fence in &mut self.fences {
            fence.waits.retain(|(member, _)| *member != place);
        }
        for early in &mut self.early {
            early.command.take_if(|(member, _)| *member == place);
        }
    }

    /// The connections but one.
    pub(crate) fn others(&self, place: Place) -> impl Iterator<Item = (Place, u16)> {
        self.members.iter().copied().filter(move |(member, _)| *member != place)
    }

    /// Whether a connection waits with what it has received.
    pub(crate) fn is_stalled(&self) -> bool {
        !self.stalled.is_empty()
    }

    /// Keeps a command until its turn. A number comes once: a second command with it is dropped.
    pub(crate) fn keep(&mut self, place: Place, command: &ScsiCommand) {
        self.keep_number(command.cmd_sn, Some((place, *command)));
    }

    fn keep_number(&mut self, cmd_sn: u32, command: Option<(Place, ScsiCommand)>) {
        if self.early.iter().all(|early| early.cmd_sn != cmd_sn) {
            self.early.push(Early { cmd_sn, command });
        }
    }

    /// A connection is read no further until `cmd_sn` is expected.
    pub(crate) fn stall(&mut self, place: Place, cmd_sn: u32) {
        self.stalled.push((place, cmd_sn));
    }

    /// Ends a command that waits for its turn. Returns whether there was one.
    pub(crate) fn abort_early(&mut self, itt: u32) -> bool {
        let is_it = |early: &&mut Early| early.command.is_some_and(|(_, command)| command.itt == itt);
        self.early.iter_mut().find(is_it).is_some_and(|early| early.command.take().is_some())
    }

    /// A command that has not come and, having been aborted, must not run when it comes (RFC 7143 section 11.6.1). Returns
    /// whether its number is one that may still come.
    pub(crate) fn forbid(&mut self, cmd_sn: u32) -> bool {
        let may_come = cmd_sn == self.commands.exp_cmd_sn() || self.commands.is_early(cmd_sn);
        if may_come {
            self.keep_number(cmd_sn, None);
        }
        may_come
    }

    /// Whether another order can be taken.
    pub(crate) fn takes_orders(&self) -> bool {
        self.orders.len() + self.fences.len() < ORDERS_MAX
    }

    pub(crate) fn order(&mut self, order: Order) {
        self.orders.push_back(order);
    }

    /// An order has been carried out; it is answered when everyone has acknowledged the statuses in `waits`.
    pub(crate) fn fence(&mut self, order: Order, found: bool, waits: Vec<(Place, u32)>) {
        self.fences.push(Fence { order, found, waits });
    }

    /// A connection's initiator expects status `exp_stat_sn` next.
    pub(crate) fn acknowledged(&mut self, place: Place, exp_stat_sn: u32) {
        for fence in &mut self.fences {
            fence.waits.retain(|(member, sn)| *member != place || before(exp_stat_sn, *sn));
        }
    }

    /// Whether there may be work.
    pub(crate) fn is_busy(&self) -> bool {
        self.over
            || !self.early.is_empty()
            || !self.stalled.is_empty()
            || !self.orders.is_empty()
            || !self.fences.is_empty()
    }

    /// What is to be done now. Commands stay until [`Joint::begin`].
    pub(crate) fn next_work(&mut self) -> Option<Work> {
        if self.over {
            return self.members.first().map(|(place, _)| Work::Close(*place));
        }
        if let Some(order) = self.orders.pop_front() {
            return Some(Work::CarryOut(order));
        }
        if let Some(at) = self.fences.iter().position(|fence| fence.waits.is_empty()) {
            let Fence { order, found, .. } = self.fences.remove(at);
            return Some(Work::Answer { order, found });
        }
        let expected = self.commands.exp_cmd_sn();
        // A number that another connection has brought again, and run.
        self.early.retain(|early| !before(early.cmd_sn, expected));
        if let Some(at) = self.stalled.iter().position(|(_, cmd_sn)| !before(expected, *cmd_sn)) {
            return Some(Work::GoOn(self.stalled.swap_remove(at).0));
        }
        while let Some(at) = self.due() {
            if let Some((place, command)) = self.early[at].command {
                return Some(Work::Run(place, command));
            }
            let passed = self.early.swap_remove(at);
            self.commands.admit(passed.cmd_sn, false);
            self.commands.release();
        }
        None
    }

    /// The command that [`Work::Run`] named begins.
    pub(crate) fn begin(&mut self, cmd_sn: u32) {
        self.early.retain(|early| early.cmd_sn != cmd_sn);
    }

    fn due(&self) -> Option<usize> {
        let expected = self.commands.exp_cmd_sn();
        self.early.iter().position(|early| early.cmd_sn == expected)
    }

    /// Looks at the clock: whether commands have waited for the same missing one longer than `limit_ns`.
    pub(crate) fn waits_too_long(&mut self, now: Nanos, limit_ns: Nanos) -> bool {
        let waits = !(self.early.is_empty() && self.stalled.is_empty()) && self.due().is_none();
        let expected = self.commands.exp_cmd_sn();
        match self.gap {
            Some((cmd_sn, since)) if waits && cmd_sn == expected => now.saturating_sub(since) > limit_ns,
            _ => {
                self.gap = waits.then_some((expected, now));
                false
            }
        }
    }
}

/// The sessions of one worker that may have several connections.
#[derive(Debug, Default)]
pub(crate) struct Joints {
    list: Vec<Option<Joint>>,
    /// Those that may have work for the worker.
    unsettled: Vec<u32>,
}

impl Joints {
    /// Takes a session in; gives its number here.
    pub(crate) fn insert(&mut self, joint: Joint) -> u32 {
        let at = self.list.iter().position(Option::is_none).unwrap_or_else(|| {
            self.list.push(None);
            self.list.len() - 1
        });
        self.list[at] = Some(joint);
        at as u32
    }

    pub(crate) fn get(&self, id: u32) -> Option<&Joint> {
        self.list.get(id as usize)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, id: u32) -> Option<&mut Joint> {
        self.list.get_mut(id as usize)?.as_mut()
    }

    /// The session with this handle, unless it is over.
    pub(crate) fn find(&self, tsih: u16) -> Option<(u32, &Joint)> {
        let is_it = |(_, joint): &(u32, &Joint)| joint.tsih == tsih && !joint.over;
        let joints = (0..).zip(&self.list).filter_map(|(id, joint)| Some((id, joint.as_ref()?)));
        { joints }.find(is_it)
    }

    /// The worker shall look at this session once its connection has acted.
    pub(crate) fn unsettle(&mut self, id: u32) {
        if !self.unsettled.contains(&id) {
            self.unsettled.push(id);
        }
    }

    pub(crate) fn is_unsettled(&self) -> bool {
        !self.unsettled.is_empty()
    }

    pub(crate) fn next_unsettled(&self) -> Option<u32> {
        self.unsettled.first().copied()
    }

    /// Nothing more can be done for a session now; one without connections is forgotten.
    pub(crate) fn settled(&mut self, id: u32) {
        self.unsettled.retain(|other| *other != id);
        if let Some(entry) = self.list.get_mut(id as usize) {
            entry.take_if(|joint| joint.members.is_empty());
        }
    }

    /// Ends the sessions in which commands have waited too long for a missing one. Returns how many.
    pub(crate) fn end_overdue(&mut self, now: Nanos, limit_ns: Nanos) -> u64 {
        let mut ended = 0;
        for id in 0..self.list.len() as u32 {
            if let Some(joint) = self.get_mut(id)
                && joint.waits_too_long(now, limit_ns)
            {
                joint.end();
                self.unsettle(id);
                ended += 1;
            }
        }
        ended
    }
}
