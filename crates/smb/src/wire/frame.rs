//! Framing: a byte stream cut into messages (MS-SMB2 2.1: four bytes with the length, then the message).
//!
//! [`MessageReader::next`] gets received bytes and returns their meaning. The head of a message, its header and the
//! fixed part of a READ response, is kept in the reader, because it may arrive in pieces. The rest is never copied; it is
//! reported as a range of the caller's input. A caller that knows the destination of the rest can receive it directly:
//! [`MessageReader::direct_remaining`] returns how many bytes may be received there, and
//! [`MessageReader::advance_direct`] reports them. The result is the same messages, however the stream is split.

use super::WireError;
use super::header::{SEALED_HEADER_BYTES, SEALED_PROTOCOL_ID};
use std::ops::Range;

/// Bytes before a message.
pub const PREFIX_BYTES: usize = 4;
/// Most bytes of a head: a header and the fixed part of a READ or WRITE response.
pub const HEAD_BYTES: usize = 80;
/// The prefix of a negative session response, which has one byte more: the code of the error (RFC 1002 4.3.4).
const NO_SESSION: u32 = 0x8300_0001;
/// The longest message that four bytes can announce.
const LENGTH_MAX: u32 = (1 << 24) - 1;

/// The prefix of a message. None: the message is too long for it.
pub fn prefix(message_bytes: usize) -> Option<[u8; PREFIX_BYTES]> {
    u32::try_from(message_bytes).ok().filter(|len| *len <= LENGTH_MAX).map(u32::to_be_bytes)
}

/// Cuts a byte stream into messages. See the module text.
#[derive(Clone, Debug)]
pub struct MessageReader {
    length_max: u32,
    /// Bytes of prefix and head that have arrived.
    filled: usize,
    /// Prefix and head, in cache lines of their own.
    head: Head,
    /// Bytes after the head, and those that have arrived.
    rest_len: u32,
    rest_offset: u32,
}

#[derive(Clone, Debug)]
#[repr(align(64))]
struct Head([u8; PREFIX_BYTES + HEAD_BYTES]);

/// The meaning of received bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessagePart {
    /// The whole input was used, and there is nothing to report yet.
    NeedMore,
    /// A head is complete: see [`MessageReader::head`]. If `rest_len` is 0 the message is complete, else
    /// [`MessagePart::Rest`] follows.
    Head {
        /// Bytes that will follow.
        rest_len: u32,
    },
    /// Bytes after the head. The last part has `complete` set and may be empty.
    Rest {
        /// Their range in the input of this call.
        bytes: Range<usize>,
        /// Offset of the first one from the end of the head.
        offset: u32,
        /// The message is complete.
        complete: bool,
    },
}

impl MessageReader {
    /// A reader of messages of at most `length_max` bytes.
    pub fn new(length_max: u32) -> Self {
        let head = Head([0; PREFIX_BYTES + HEAD_BYTES]);
        Self { length_max, filled: 0, head, rest_len: 0, rest_offset: 0 }
    }

    /// Permits messages of other lengths from the next one on.
    pub fn set_length_max(&mut self, length_max: u32) {
        self.length_max = length_max;
    }

    /// The head of the current message, valid from [`MessagePart::Head`] until the next message begins.
    pub fn head(&self) -> &[u8] {
        &self.head.0[PREFIX_BYTES..PREFIX_BYTES + self.head_len()]
    }

    /// Bytes of the rest that have not arrived yet: they may be received directly into their destination.
    pub fn direct_remaining(&self) -> u32 {
        self.rest_len - self.rest_offset
    }

    /// Reports that `len` bytes of the rest (at most [`Self::direct_remaining`]) were received directly. Then continue
    /// with [`Self::next`], with empty input if nothing else arrived.
    pub fn advance_direct(&mut self, len: u32) {
        assert!(len <= self.direct_remaining(), "more bytes than the message has");
        self.rest_offset += len;
    }

    /// Accepts received bytes up to the next event; returns how many of them it used. After an error the stream cannot
    /// be parsed further: end the connection.
    #[inline]
    pub fn next(&mut self, input: &[u8]) -> Result<(usize, MessagePart), WireError> {
        if self.rest_len > 0 { Ok(self.rest(input)) } else { self.start(input) }
    }

    fn start(&mut self, input: &[u8]) -> Result<(usize, MessagePart), WireError> {
        let mut used = 0;
        if self.filled < PREFIX_BYTES {
            used = self.fill(PREFIX_BYTES, input);
            if self.filled < PREFIX_BYTES {
                return Ok((used, MessagePart::NeedMore));
            }
            self.check_length()?;
        }
        let head_len = self.head_len();
        used += self.fill(PREFIX_BYTES + head_len, &input[used..]);
        if self.filled < PREFIX_BYTES + head_len {
            return Ok((used, MessagePart::NeedMore));
        }
        self.filled = 0;
        self.rest_len = self.length() - head_len as u32;
        self.rest_offset = 0;
        Ok((used, MessagePart::Head { rest_len: self.rest_len }))
    }

    /// Copies input until `until` bytes of prefix and head are there. Returns how many bytes it used.
    fn fill(&mut self, until: usize, input: &[u8]) -> usize {
        let take = (until - self.filled).min(input.len());
        self.head.0[self.filled..self.filled + take].copy_from_slice(&input[..take]);
        self.filled += take;
        take
    }

    fn rest(&mut self, input: &[u8]) -> (usize, MessagePart) {
        let offset = self.rest_offset;
        let take = ((self.rest_len - offset) as usize).min(input.len());
        self.rest_offset += take as u32;
        let complete = self.rest_offset == self.rest_len;
        if complete {
            (self.rest_len, self.rest_offset) = (0, 0);
        }
        if take == 0 && !complete {
            return (0, MessagePart::NeedMore);
        }
        (take, MessagePart::Rest { bytes: 0..take, offset, complete })
    }

    fn length(&self) -> u32 {
        let [a, b, c, d] = *self.head.0.first_chunk().unwrap_or(&[0; PREFIX_BYTES]);
        u32::from_be_bytes([a, b, c, d])
    }

    fn head_len(&self) -> usize {
        HEAD_BYTES.min(self.length() as usize)
    }

    /// The first byte of the prefix is zero (MS-SMB2 2.1), so a greater one is a length that is not permitted.
    fn check_length(&self) -> Result<(), WireError> {
        let (announced, least) = (self.length(), super::HEADER_BYTES as u32);
        if (least..=self.length_max.min(LENGTH_MAX)).contains(&announced) {
            return Ok(());
        }
        if announced == NO_SESSION {
            return Err(WireError::NoSession);
        }
        Err(WireError::Length { announced, least, most: self.length_max })
    }
}

/// Whether a head is that of an encrypted message.
pub fn is_sealed(head: &[u8]) -> bool {
    head.len() >= SEALED_HEADER_BYTES && head.starts_with(&SEALED_PROTOCOL_ID)
}
