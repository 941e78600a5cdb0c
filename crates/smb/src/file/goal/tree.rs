//! Files and folders of a share by single requests: the caller makes each one, and takes its answer as it is.
//!
//! READ and WRITE go the way of every I/O, on the open file that the caller has named.

use super::super::{FileLoss, RemoteFile, SmbFileState};
use super::{GoalProgress, TreeAnswer};
use crate::wire::body::OpenId;
use crate::wire::header::{MessageHeader, SmbCommand};
use crate::wire::status::Status;
use linerate_io::Nanos;

impl RemoteFile {
    /// Queues a request of the share. The one before has its answer.
    pub(crate) fn call(
        &mut self,
        command: SmbCommand,
        now: Nanos,
        make: impl FnOnce(&MessageHeader) -> Vec<u8>,
    ) -> Result<(), FileLoss> {
        self.send_control(command, now, |_, header| make(&header))
    }

    /// The answer to the last request; None: it has not arrived.
    pub(crate) fn take_answer(&mut self) -> Option<TreeAnswer> {
        if let GoalProgress::Tree(answer) = &mut self.goal { answer.take() } else { None }
    }

    /// Names the file of the I/Os that are submitted next. None is in flight.
    pub(crate) fn use_open(&mut self, file_id: OpenId) {
        debug_assert!(self.tasks.is_empty() && self.queue.is_empty(), "an I/O of another file is in flight");
        self.file_id = file_id;
    }

    /// Whether the answer to a request of this command is for the caller.
    pub(in super::super) fn is_of_caller(&self, command: SmbCommand) -> bool {
        let is_own = matches!(command, SmbCommand::Echo | SmbCommand::OplockBreak);
        matches!(self.goal, GoalProgress::Tree(_)) && self.state == SmbFileState::Ready && !is_own
    }

    /// Keeps the answer for the caller.
    pub(in super::super) fn keep_answer(&mut self, status: Status, message: &[u8]) {
        if let GoalProgress::Tree(answer) = &mut self.goal {
            *answer = Some(TreeAnswer { status, message: message.to_vec() });
        }
    }
}
