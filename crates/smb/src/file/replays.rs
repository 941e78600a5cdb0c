//! Requests that are sent again after their connection was lost (MS-SMB2 3.2.5.12, 3.2.7.1; dialects 3.x).
//!
//! Each loss raises the `ChannelSequence` in the headers. The server then refuses a write that it receives late from the
//! lost connection. A request that is sent again says so. The server refuses it while an earlier one is still in work there
//! (MS-SMB2 3.3.5.2.10), because the earlier one might overwrite it or a later write. It is then tried again.
//!
//! The server compares a request only with sequences that it knows. So the first request of a file that was claimed back,
//! or of the channel that gets the requests of a lost one, is a `QUERY_INFO`: it makes the new sequence known, and changes
//! nothing.

use super::parts::IoPart;
use super::{FileContext, FileLoss, RemoteFile, SmbFileState};
use crate::event::SmbSink;
use crate::wire::files;
use crate::wire::header::SmbCommand;
use crate::wire::negotiate::Dialect;
use linerate_io::Nanos;

impl RemoteFile {
    /// Whether the dialect has a `ChannelSequence`.
    #[inline]
    pub(super) fn has_channel_sequence(&self) -> bool {
        self.negotiated.is_some_and(|chosen| chosen.dialect >= Dialect::Smb300)
    }

    /// Whether the first request about a file that was claimed back is a `QUERY_INFO`.
    pub(super) fn begins_with_query(&self) -> bool {
        self.has_channel_sequence()
    }

    /// The `ChannelSequence`.
    pub(crate) fn channel_sequence(&self) -> u16 {
        self.replays.sequence
    }

    /// A channel of the session was lost, and its requests are sent again.
    pub(crate) fn set_channel_sequence(&mut self, sequence: u16, now: Nanos) {
        self.replays.sequence = sequence;
        self.start_replays(now);
    }

    /// Gives requests in flight, and those that wait, to another channel of the session. Returns how many are sent again.
    pub(crate) fn move_requests<S: SmbSink>(&mut self, to: &mut Self, cx: &mut FileContext<'_, S>) -> u32 {
        self.queue_refused();
        let requests = self.requeue(cx);
        while let Some(part) = self.queue.pop_back() {
            to.queue.push_front(part);
        }
        to.replays.is_new |= to.has_channel_sequence();
        requests
    }

    /// Makes a new sequence known to the server; false: there is no credit for it yet.
    pub(super) fn tell_sequence(&mut self, now: Nanos) -> Result<bool, FileLoss> {
        if !self.replays.is_new || self.state != SmbFileState::Ready {
            return Ok(true);
        }
        let has_space = self.tasks.has_space(self.credits.next_message_id());
        if has_space && (self.credits.has_any() || self.tasks.is_empty()) {
            self.replays.is_new = false;
            self.send_control(SmbCommand::QueryInfo, now, |file, header| {
                files::query_size(&header, file.file_id)
            })?;
        }
        Ok(!self.replays.is_new)
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
