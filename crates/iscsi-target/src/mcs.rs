//! The state that the connections of one session share, if a session may have several (MC/S, `MaxConnections` above 1).
//!
//! The worker of the first connection serves all of them, so nothing here is locked. A connection holds the session's
//! command window while it acts: its worker lends it before and takes it back after (`worker/mcs.rs`). A request of a
//! connection to the others (end tasks, close a connection) is stored here as a [`McsRequest`]. The worker executes it
//! as soon as the connection has acted.
//!
//! Commands run in the order of their numbers, on any connection. An early command waits: if it is only a header, it is
//! stored here; otherwise it stays in its receive buffer, and its connection is not read meanwhile. So a peer can make
//! the target store at most one header per place in the window.

use crate::completion_guard::CompletionGuard;
use linerate_io::Nanos;
use linerate_iscsi_proto::{
    params::SessionParams,
    pdu::ScsiCommand,
    window::{CommandWindow, before},
};
use std::collections::VecDeque;

/// Requests of one session that may wait for acknowledgements of other connections.
const REQUESTS_MAX: usize = 64;

/// The index of a connection in the worker's table.
pub(crate) type ConnectionSlot = u32;

/// Which tasks are to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AbortScope {
    /// The one with this tag, on any connection.
    One(u32),
    /// All on this LUN.
    OnLun([u8; 8]),
    /// All.
    All,
}

/// A request of a connection to the other connections of its session, and the receiver of the result.
#[derive(Clone, Debug)]
pub(crate) struct McsRequest {
    pub(crate) from: ConnectionSlot,
    pub(crate) kind: McsRequestKind,
}

/// See [`McsRequest`].
#[derive(Clone, Debug)]
pub(crate) enum McsRequestKind {
    /// A task management function ends tasks. `due`: number of its answer at the requesting connection; `hold` delays
    /// the answer.
    Abort { scope: AbortScope, due: usize, guard: CompletionGuard },
    /// The connection with this ID is logged out over another one. `itt`: tag of the request.
    LogOut { itt: u32, cid: u16 },
}

/// The next action of the worker.
#[derive(Clone, Debug)]
pub(crate) enum McsAction {
    /// The session has ended: close this connection.
    Close(ConnectionSlot),
    /// Carry an order out.
    CarryOut(McsRequest),
    /// All connections have executed and acknowledged the request: answer. `found` says whether it had an effect.
    Answer { request: McsRequest, found: bool },
    /// This command may run now.
    Run(ConnectionSlot, ScsiCommand),
    /// The received bytes of this connection may be handled now.
    Resume(ConnectionSlot),
}

/// A number that was used before its turn.
#[derive(Debug)]
struct EarlyCommand {
    cmd_sn: u32,
    /// None: there is nothing to run (aborted, or its connection has closed); the number is only counted.
    command: Option<(ConnectionSlot, ScsiCommand)>,
}

/// An executed request, and the statuses that others must acknowledge before it is answered: the response fence of RFC
/// 7143 section 4.2.2.3.
#[derive(Debug)]
struct Fence {
    request: McsRequest,
    found: bool,
    waits: Vec<(ConnectionSlot, u32)>,
}

/// One session.
#[derive(Debug)]
pub(crate) struct McsSession {
    tsih: u16,
    pub(crate) params: SessionParams,
    commands: CommandWindow,
    /// Connections in full feature phase, and their IDs.
    members: Vec<(ConnectionSlot, u16)>,
    early: Vec<EarlyCommand>,
    /// Connections that are not read until the command with this number is expected.
    stalled: Vec<(ConnectionSlot, u32)>,
    requests: VecDeque<McsRequest>,
    fences: Vec<Fence>,
    /// The session has ended; close the remaining connections.
    over: bool,
    /// The missing number, and the time since which it is missing.
    gap: Option<(u32, Nanos)>,
}

impl McsSession {
    pub(crate) fn new(tsih: u16, params: SessionParams, commands: CommandWindow) -> Self {
        Self {
            tsih,
            params,
            commands,
            members: Vec::new(),
            early: Vec::new(),
            stalled: Vec::new(),
            requests: VecDeque::new(),
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

    pub(crate) fn add(&mut self, slot: ConnectionSlot, cid: u16) {
        self.members.push((slot, cid));
    }

    /// The session is over.
    pub(crate) fn end(&mut self) {
        self.over = true;
    }

    /// A connection is closed. Its early commands will not run, but their numbers are used.
    pub(crate) fn remove(&mut self, slot: ConnectionSlot) {
        self.members.retain(|(member, _)| *member != slot);
        self.stalled.retain(|(member, _)| *member != slot);
        self.requests.retain(|request| request.from != slot);
        self.fences.retain(|fence| fence.request.from != slot);
        for fence in &mut self.fences {
            fence.waits.retain(|(member, _)| *member != slot);
        }
        for early in &mut self.early {
            early.command.take_if(|(member, _)| *member == slot);
        }
    }

    /// All connections except this one.
    pub(crate) fn others(&self, slot: ConnectionSlot) -> impl Iterator<Item = (ConnectionSlot, u16)> {
        self.members.iter().copied().filter(move |(member, _)| *member != slot)
    }

    /// Whether a connection waits with received bytes.
    pub(crate) fn is_stalled(&self) -> bool {
        !self.stalled.is_empty()
    }

    /// Stores a command until its turn. A number is used once: a second command with it is dropped.
    pub(crate) fn keep_early(&mut self, slot: ConnectionSlot, command: &ScsiCommand) {
        self.keep_number(command.cmd_sn, Some((slot, *command)));
    }

    fn keep_number(&mut self, cmd_sn: u32, command: Option<(ConnectionSlot, ScsiCommand)>) {
        if self.early.iter().all(|early| early.cmd_sn != cmd_sn) {
            self.early.push(EarlyCommand { cmd_sn, command });
        }
    }

    /// A connection is not read until `cmd_sn` is expected.
    pub(crate) fn stall(&mut self, slot: ConnectionSlot, cmd_sn: u32) {
        self.stalled.push((slot, cmd_sn));
    }

    /// Ends a command that waits for its turn. Returns whether there was one.
    pub(crate) fn abort_early(&mut self, itt: u32) -> bool {
        let is_it = |early: &&mut EarlyCommand| early.command.is_some_and(|(_, command)| command.itt == itt);
        self.early.iter_mut().find(is_it).is_some_and(|early| early.command.take().is_some())
    }

    /// Aborts a command that has not arrived, so that it must not run when it arrives (RFC 7143 section 11.6.1).
    /// Returns whether its number can still arrive.
    pub(crate) fn skip(&mut self, cmd_sn: u32) -> bool {
        let may_come = cmd_sn == self.commands.exp_cmd_sn() || self.commands.is_early(cmd_sn);
        if may_come {
            self.keep_number(cmd_sn, None);
        }
        may_come
    }

    /// Whether another order can be taken.
    pub(crate) fn accepts_requests(&self) -> bool {
        self.requests.len() + self.fences.len() < REQUESTS_MAX
    }

    pub(crate) fn request(&mut self, request: McsRequest) {
        self.requests.push_back(request);
    }

    /// A request has been executed; it is answered when all statuses in `waits` are acknowledged.
    pub(crate) fn fence(&mut self, request: McsRequest, found: bool, waits: Vec<(ConnectionSlot, u32)>) {
        self.fences.push(Fence { request, found, waits });
    }

    /// A connection's initiator expects status `exp_stat_sn` next.
    pub(crate) fn acknowledged(&mut self, slot: ConnectionSlot, exp_stat_sn: u32) {
        for fence in &mut self.fences {
            fence.waits.retain(|(member, sn)| *member != slot || before(exp_stat_sn, *sn));
        }
    }

    /// Whether there may be work.
    pub(crate) fn is_busy(&self) -> bool {
        self.over
            || !self.early.is_empty()
            || !self.stalled.is_empty()
            || !self.requests.is_empty()
            || !self.fences.is_empty()
    }

    /// The next action now. Commands are kept until [`McsSession::begin`].
    pub(crate) fn next_action(&mut self) -> Option<McsAction> {
        if self.over {
            return self.members.first().map(|(slot, _)| McsAction::Close(*slot));
        }
        if let Some(request) = self.requests.pop_front() {
            return Some(McsAction::CarryOut(request));
        }
        if let Some(at) = self.fences.iter().position(|fence| fence.waits.is_empty()) {
            let Fence { request, found, .. } = self.fences.remove(at);
            return Some(McsAction::Answer { request, found });
        }
        let expected = self.commands.exp_cmd_sn();
        // A number that another connection has repeated, and that has run.
        self.early.retain(|early| !before(early.cmd_sn, expected));
        if let Some(at) = self.stalled.iter().position(|(_, cmd_sn)| !before(expected, *cmd_sn)) {
            return Some(McsAction::Resume(self.stalled.swap_remove(at).0));
        }
        while let Some(at) = self.due() {
            if let Some((slot, command)) = self.early[at].command {
                return Some(McsAction::Run(slot, command));
            }
            let passed = self.early.swap_remove(at);
            self.commands.admit(passed.cmd_sn, false);
            self.commands.release();
        }
        None
    }

    /// The command that [`McsAction::Run`] named begins.
    pub(crate) fn begin(&mut self, cmd_sn: u32) {
        self.early.retain(|early| early.cmd_sn != cmd_sn);
    }

    fn due(&self) -> Option<usize> {
        let expected = self.commands.exp_cmd_sn();
        self.early.iter().position(|early| early.cmd_sn == expected)
    }

    /// Whether commands have waited for the same missing one longer than `limit_ns`.
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
pub(crate) struct McsSessions {
    list: Vec<Option<McsSession>>,
    /// Those that may have work for the worker.
    unsettled: Vec<u32>,
}

impl McsSessions {
    /// Adds a session; returns its number.
    pub(crate) fn insert(&mut self, mcs: McsSession) -> u32 {
        let at = self.list.iter().position(Option::is_none).unwrap_or_else(|| {
            self.list.push(None);
            self.list.len() - 1
        });
        self.list[at] = Some(mcs);
        at as u32
    }

    pub(crate) fn get(&self, id: u32) -> Option<&McsSession> {
        self.list.get(id as usize)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, id: u32) -> Option<&mut McsSession> {
        self.list.get_mut(id as usize)?.as_mut()
    }

    /// The session with this handle, unless it has ended.
    pub(crate) fn find(&self, tsih: u16) -> Option<(u32, &McsSession)> {
        let is_it = |(_, mcs): &(u32, &McsSession)| mcs.tsih == tsih && !mcs.over;
        let mcs_sessions = (0..).zip(&self.list).filter_map(|(id, mcs)| Some((id, mcs.as_ref()?)));
        { mcs_sessions }.find(is_it)
    }

    /// The worker must check this session once its connection has acted.
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

    /// Nothing more can be done for a session now; one without connections is removed.
    pub(crate) fn settled(&mut self, id: u32) {
        self.unsettled.retain(|other| *other != id);
        if let Some(entry) = self.list.get_mut(id as usize) {
            entry.take_if(|mcs| mcs.members.is_empty());
        }
    }

    /// Ends the sessions in which commands have waited too long for a missing one. Returns how many.
    pub(crate) fn end_overdue(&mut self, now: Nanos, limit_ns: Nanos) -> u64 {
        let mut ended = 0;
        for id in 0..self.list.len() as u32 {
            if let Some(mcs) = self.get_mut(id)
                && mcs.waits_too_long(now, limit_ns)
            {
                mcs.end();
                self.unsettle(id);
                ended += 1;
            }
        }
        ended
    }
}
