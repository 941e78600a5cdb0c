//! Requests that are sent again after their connection was lost (MS-SMB2 3.2.4.1, 3.2.5.1, 3.2.7.1; dialects 3.x).
//!
//! Each loss raises the `ChannelSequence` in the headers. The server then refuses a write that it receives late from the
//! lost connection. A request that is sent again says so. The server refuses it while an earlier one is still in work there
//! (MS-SMB2 3.3.5.2.10), because the earlier one might overwrite it or a later write. It is then tried again.
//!
//! The server compares a request only with sequences that it knows. So the first request of a file that was claimed back
//! is a `QUERY_INFO`: it makes the new sequence known, and changes nothing.

use super::RemoteFile;
use super::parts::IoPart;
use crate::wire::negotiate::Dialect;
use linerate_io::Nanos;

/// See the module text.
#[derive(Debug, Default)]
pub(super) struct Replays {
    pub(super) sequence: u16,
    /// Requests that the server refuses for now.
    refused: Vec<IoPart>,
    /// When a refusal becomes an error.
    until: Nanos,
}

impl RemoteFile {
    /// Whether the dialect has a `ChannelSequence`.
    #[inline]
    pub(super) fn has_channel_sequence(&self) -> bool {
        self.negotiated.is_some_and(|chosen| chosen.dialect >= Dialect::Smb300)
    }

    /// A connection was lost that requests of the open file may be on.
    pub(super) fn raise_channel_sequence(&mut self) {
        self.replays.sequence = self.replays.sequence.wrapping_add(1);
    }

    /// Requests are sent again from now on.
    pub(super) fn start_replays(&mut self, now: Nanos) {
        self.replays.until = now + self.command_timeout_ns;
    }

    /// The server refused a request because earlier ones are still in work; false: that lasts too long.
    pub(super) fn keep_refused(&mut self, part: IoPart, now: Nanos) -> bool {
        let keeps = self.has_channel_sequence() && now < self.replays.until;
        if keeps {
            self.replays.refused.push(part.again());
        }
        keeps
    }

    /// Refused requests become the first of the queue, in their order.
    pub(super) fn queue_refused(&mut self) {
        while let Some(part) = self.replays.refused.pop() {
            self.queue.push_front(part);
        }
    }
}
