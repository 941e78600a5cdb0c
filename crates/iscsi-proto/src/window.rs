//! Command and status numbers (RFC 7143 section 4.2.2): which ones may be sent, on both sides.
//!
//! Numbers are 32-bit serial numbers (RFC 1982): `a` is before `b` if the distance from `a` up to `b` is less than half
//! of the range. Commands are numbered per session, statuses per connection. On a session's only connection commands
//! arrive in the order of their numbers or not at all; over several connections a command may arrive early and waits
//! for those before it.

use crate::login::Established;
use crate::pdu::StatusNumbers;

/// True if serial number `a` comes before `b`.
pub fn before(a: u32, b: u32) -> bool {
    a != b && b.wrapping_sub(a) < 1 << 31
}

/// The decision about a command with a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Run it; the window moved.
    Run,
    /// Drop it silently: a duplicate, or beyond the window (RFC 7143 section 4.2.2.1).
    Ignore,
    /// Inside the window, but earlier commands are missing. On a session's only connection the gap cannot be filled: a
    /// protocol error that ends the session. If other connections may bring them, the command waits.
    Gap,
}

/// Target side: the commands that the initiator may send, over all connections of the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::struct_field_names, reason = "the RFC's names")]
pub struct CommandWindow {
    exp_cmd_sn: u32,
    max_cmd_sn: u32,
}

impl CommandWindow {
    /// A session whose next command is `exp_cmd_sn`, with space for `depth` commands (at least 1).
    pub fn new(exp_cmd_sn: u32, depth: u32) -> Self {
        debug_assert!((1..1 << 31).contains(&depth));
        CommandWindow { exp_cmd_sn, max_cmd_sn: exp_cmd_sn.wrapping_add(depth).wrapping_sub(1) }
    }

    /// The number of the next command.
    pub fn exp_cmd_sn(&self) -> u32 {
        self.exp_cmd_sn
    }

    /// The last number that the initiator may use.
    pub fn max_cmd_sn(&self) -> u32 {
        self.max_cmd_sn
    }

    /// Checks a command's number. Immediate commands run with any number and do not move the window.
    pub fn admit(&mut self, cmd_sn: u32, immediate: bool) -> Admission {
        if immediate {
            return Admission::Run;
        }
        if cmd_sn == self.exp_cmd_sn && !before(self.max_cmd_sn, cmd_sn) {
            self.exp_cmd_sn = self.exp_cmd_sn.wrapping_add(1);
            return Admission::Run;
        }
        if before(cmd_sn, self.exp_cmd_sn) || before(self.max_cmd_sn, cmd_sn) {
            return Admission::Ignore;
        }
        Admission::Gap
    }

    /// True for a number that may be used and is not the next one.
    pub fn is_early(&self, cmd_sn: u32) -> bool {
        before(self.exp_cmd_sn, cmd_sn) && !before(self.max_cmd_sn, cmd_sn)
    }

    /// The same for an immediate request, whose number is that of the next command: it may be the first one outside the
    /// window (RFC 7143 section 4.2.2.1).
    pub fn is_early_immediate(&self, cmd_sn: u32) -> bool {
        before(self.exp_cmd_sn, cmd_sn) && !before(self.max_cmd_sn.wrapping_add(1), cmd_sn)
    }

    /// A command slot is free again: the initiator may send one more.
    pub fn release(&mut self) {
        self.max_cmd_sn = self.max_cmd_sn.wrapping_add(1);
    }
}

/// Target side of one connection: the session's window of commands, and the numbering of the connection's statuses.
///
/// If a session has several connections, its worker lends the one [`CommandWindow`] to the connection that is
/// acting ([`TargetWindow::lend`]) and takes it back afterwards ([`TargetWindow::commands`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TargetWindow {
    commands: CommandWindow,
    stat_sn: u32,
}

impl TargetWindow {
    /// A session whose next command is `exp_cmd_sn`, next status `stat_sn`, with space for `depth` commands (at least
    /// 1).
    pub fn new(exp_cmd_sn: u32, stat_sn: u32, depth: u32) -> Self {
        TargetWindow { commands: CommandWindow::new(exp_cmd_sn, depth), stat_sn }
    }

    /// The window after a login.
    pub fn after_login(login: &Established) -> Self {
        let commands = CommandWindow { exp_cmd_sn: login.cmd_sn, max_cmd_sn: login.max_cmd_sn };
        TargetWindow { commands, stat_sn: login.stat_sn }
    }

    /// The session's part.
    pub fn commands(&self) -> CommandWindow {
        self.commands
    }

    /// Takes the session's window as other connections have left it.
    pub fn lend(&mut self, commands: CommandWindow) {
        self.commands = commands;
    }

    /// As [`CommandWindow::admit`].
    pub fn admit(&mut self, cmd_sn: u32, immediate: bool) -> Admission {
        self.commands.admit(cmd_sn, immediate)
    }

    /// As [`CommandWindow::release`].
    pub fn release(&mut self) {
        self.commands.release();
    }

    /// Numbers for a PDU with status: uses up a status number.
    pub fn status(&mut self) -> StatusNumbers {
        let sn = self.peek();
        self.stat_sn = self.stat_sn.wrapping_add(1);
        sn
    }

    /// Numbers for a PDU without status (R2T, Data-In without status, ping).
    pub fn peek(&self) -> StatusNumbers {
        let CommandWindow { exp_cmd_sn, max_cmd_sn } = self.commands;
        StatusNumbers { stat_sn: self.stat_sn, exp_cmd_sn, max_cmd_sn }
    }
}

/// Initiator side: numbers for the commands of a session, and what the target has reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::struct_field_names, reason = "the RFC's names")]
pub struct InitiatorWindow {
    cmd_sn: u32,
    max_cmd_sn: u32,
}

impl InitiatorWindow {
    /// Before the first login: no command may be sent.
    pub const CLOSED: Self = InitiatorWindow { cmd_sn: 1, max_cmd_sn: 0 };

    /// The window after a login.
    pub fn after_login(login: &Established) -> Self {
        InitiatorWindow { cmd_sn: login.cmd_sn, max_cmd_sn: login.max_cmd_sn }
    }

    /// True if the window has space for another (non-immediate) command.
    pub fn can_send(&self) -> bool {
        !before(self.max_cmd_sn, self.cmd_sn)
    }

    /// Commands that may still be sent before the target must open the window.
    pub fn room(&self) -> u32 {
        if self.can_send() { self.max_cmd_sn.wrapping_sub(self.cmd_sn).wrapping_add(1) } else { 0 }
    }

    /// Takes the number for a command when it is sent (never earlier: a cancelled command must not leave a gap). Call
    /// only if [`Self::can_send`].
    pub fn take(&mut self) -> u32 {
        debug_assert!(self.can_send(), "the command window is closed");
        let taken = self.cmd_sn;
        self.cmd_sn = self.cmd_sn.wrapping_add(1);
        taken
    }

    /// The number of an immediate command: the next one, not used up.
    pub fn immediate(&self) -> u32 {
        self.cmd_sn
    }

    /// Reads `MaxCmdSN` of any target PDU. An old one, and an impossible pair with `ExpCmdSN`, are ignored (RFC 7143
    /// section 4.2.2.1).
    pub fn observe(&mut self, sn: &StatusNumbers) {
        if before(sn.max_cmd_sn.wrapping_add(1), sn.exp_cmd_sn) {
            return;
        }
        if before(self.max_cmd_sn, sn.max_cmd_sn) {
            self.max_cmd_sn = sn.max_cmd_sn;
        }
    }
}

/// Initiator side: the next status on one connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExpectedStatus(u32);

impl ExpectedStatus {
    /// The first status after a login.
    pub fn after_login(login: &Established) -> Self {
        ExpectedStatus(login.stat_sn)
    }

    /// `ExpStatSN` for a PDU that is sent now.
    pub fn number(self) -> u32 {
        self.0
    }

    /// Handles a PDU with status: its `StatSN` must be the next one. At error recovery level 0 a gap cannot be
    /// repaired: the session must be dropped.
    pub fn take(&mut self, sn: &StatusNumbers) -> Result<(), StatusGap> {
        if sn.stat_sn != self.0 {
            return Err(StatusGap { expected: self.0, got: sn.stat_sn });
        }
        self.0 = self.0.wrapping_add(1);
        Ok(())
    }
}

/// The target skipped or repeated a status number (fault: peer). Drop the session and log in again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("target sent StatSN {got:#x} where {expected:#x} was due")]
pub struct StatusGap {
    /// The expected value.
    pub expected: u32,
    /// The received value.
    pub got: u32,
}
