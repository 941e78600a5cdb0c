//! How a server verifies the `ChannelSequence` of requests (MS-SMB2 3.3.5.2.10).

#![allow(dead_code, reason = "every test file uses its own part")]

use super::Asked;

/// Of an open file.
#[derive(Debug, Default)]
pub(crate) struct OpenSequence {
    sequence: u16,
    /// Requests in work with this sequence, and with earlier ones.
    in_work: u32,
    in_work_before: u32,
}

impl OpenSequence {
    /// Whether the server does a request; a refused one that changes the file ends with `FILE_NOT_AVAILABLE`.
    pub(crate) fn begin(&mut self, asked: &Asked) -> bool {
        let (sequence, is_replay) = (asked.header.channel_sequence(), asked.header.is_replay());
        let is_next = sequence != self.sequence;
        if is_next && sequence.wrapping_sub(self.sequence) > 0x7FFF || is_replay && self.in_work_before > 0 {
            return false;
        }
        if is_next {
            self.in_work_before += std::mem::take(&mut self.in_work);
            self.sequence = sequence;
        }
        self.in_work += 1;
        true
    }

    /// A request that began has ended.
    pub(crate) fn end(&mut self, asked: &Asked) {
        let is_current = asked.header.channel_sequence() == self.sequence;
        let count = if is_current { &mut self.in_work } else { &mut self.in_work_before };
        *count -= 1;
    }
}
