//! Framing: a byte stream cut into PDUs, and headers and trailers for PDUs to be sent (RFC 7143 section 11.2).
//!
//! On the wire a PDU is: header (48 bytes), additional header segments, header digest (if negotiated), data segment,
//! zero to three bytes of padding, data digest (if negotiated and the data segment is not empty).
//!
//! [`Receiver::next`] gets received bytes and returns one [`Step`]: how many bytes it used, and their meaning. Headers
//! are kept in the receiver ([`Receiver::bhs`], [`Receiver::ahs`]) because they may arrive in pieces. Payload is never
//! copied; it is reported as a range of the caller's input. A caller that knows the destination of payload can receive
//! it directly: [`Receiver::direct_remaining`] returns how many bytes may be received there, and
//! [`Receiver::advance_direct`] reports them. The result is the same PDUs, however the stream is split.
//!
//! The length of a data segment is checked against the limit when its header is complete, before any allocation.

use crate::digest::Crc32c;
use crate::params::DigestKind;
use crate::pdu::{BHS_BYTES, Bhs, data_len, total_ahs_len};
use std::ops::Range;

/// Most bytes of additional header segments that a header can announce (`TotalAHSLength` is one byte of words).
const AHS_BYTES_MAX: usize = 255 * 4;
const DIGEST_BYTES: usize = 4;

/// A header in its own cache line. Its fields are read directly after it was copied here. A core cannot forward such
/// bytes across the border of two lines before all earlier writes are complete.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Header(Bhs);

/// Cuts a byte stream into PDUs. See the module text.
#[derive(Clone, Debug)]
pub struct Receiver {
    header_digest: DigestKind,
    data_digest: DigestKind,
    data_len_max: u32,
    phase: Phase,
    /// Bytes of the current phase that have arrived (header with AHS and digest, or trailer).
    filled: usize,
    /// Data segment: announced length and bytes that have arrived.
    data_len: u32,
    data_offset: u32,
    crc: Crc32c,
    header: Header,
    /// AHS, header digest; later the trailer (padding, data digest).
    extra: Box<[u8; AHS_BYTES_MAX + DIGEST_BYTES]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Header,
    Data,
    Trailer,
}

/// The result of [`Receiver::next`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Bytes of the input that were used; pass the rest to the next call.
    pub consumed: usize,
    /// Their meaning.
    pub event: Event,
}

/// See [`Step`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The whole input was used, and there is no event yet.
    NeedMore,
    /// A header is complete: read it with [`Receiver::bhs`] and [`Receiver::ahs`]. If `data_len` is 0 the PDU is
    /// complete, else [`Event::Data`] follows.
    Header {
        /// Bytes of data that will follow.
        data_len: u32,
    },
    /// Payload. The last event of a data segment has `complete` set and may be empty; only then has the data digest
    /// been checked.
    Data {
        /// The payload's range in the input of this call.
        payload: Range<usize>,
        /// Offset of its first byte in the data segment.
        offset: u32,
        /// The data segment has ended and its digest is right: the PDU is complete.
        complete: bool,
    },
}

impl Receiver {
    /// A receiver for the login phase: no digests, data segments up to `data_len_max` bytes.
    pub fn new(data_len_max: u32) -> Self {
        Receiver {
            header_digest: DigestKind::None,
            data_digest: DigestKind::None,
            data_len_max,
            phase: Phase::Header,
            filled: 0,
            data_len: 0,
            data_offset: 0,
            crc: Crc32c::EMPTY,
            header: Header([0; BHS_BYTES]),
            extra: Box::new([0; AHS_BYTES_MAX + DIGEST_BYTES]),
        }
    }

    /// Switches to full feature phase. Call between PDUs, before the first byte after the login is handed in.
    pub fn negotiated(&mut self, header_digest: DigestKind, data_digest: DigestKind, data_len_max: u32) {
        debug_assert!(self.at_boundary(), "digests change between PDUs");
        self.header_digest = header_digest;
        self.data_digest = data_digest;
        self.data_len_max = data_len_max;
    }

    /// True between PDUs: here a peer may close the connection without cutting a PDU.
    pub fn at_boundary(&self) -> bool {
        self.phase == Phase::Header && self.filled == 0
    }

    /// The header of the current PDU, valid after [`Event::Header`] until the next header begins.
    pub fn bhs(&self) -> &Bhs {
        &self.header.0
    }

    /// The additional header segments of the current PDU, valid from [`Event::Header`] until the next call of
    /// [`Self::next`].
    pub fn ahs(&self) -> &[u8] {
        &self.extra[..total_ahs_len(&self.header.0)]
    }

    /// Payload bytes of the current data segment that have not arrived yet: they may be received directly into their
    /// destination. Zero outside a data segment.
    pub fn direct_remaining(&self) -> u32 {
        if self.phase == Phase::Data { self.data_len - self.data_offset } else { 0 }
    }

    /// Reports that `len` payload bytes (at most [`Self::direct_remaining`]) were received directly into their
    /// destination. `crc` is called only if a data digest is in use; it must run the given checksum over those bytes.
    /// Then continue with [`Self::next`], with empty input if nothing else arrived: it reports the end of the segment.
    pub fn advance_direct(&mut self, len: u32, crc: impl FnOnce(Crc32c) -> Crc32c) {
        debug_assert!(len <= self.direct_remaining(), "more bytes than the data segment has");
        if self.data_digest == DigestKind::Crc32c {
            self.crc = crc(self.crc);
        }
        self.data_offset += len;
    }

    /// Accepts received bytes up to the next event. After an error the stream cannot be parsed further: end the
    /// connection.
    #[inline]
    pub fn next(&mut self, input: &[u8]) -> Result<Step, FrameError> {
        match self.phase {
            Phase::Header => self.header(input),
            Phase::Data => self.data(input),
            Phase::Trailer => self.trailer(input, 0, 0..0),
        }
    }

    fn header(&mut self, input: &[u8]) -> Result<Step, FrameError> {
        let mut used = 0;
        if self.filled < BHS_BYTES {
            if self.filled == 0 && input.len() >= BHS_BYTES {
                self.header.0.copy_from_slice(&input[..BHS_BYTES]);
                used = BHS_BYTES;
            } else {
                used = (BHS_BYTES - self.filled).min(input.len());
                self.header.0[self.filled..self.filled + used].copy_from_slice(&input[..used]);
            }
            self.filled += used;
            if self.filled < BHS_BYTES {
                return Ok(Step { consumed: used, event: Event::NeedMore });
            }
            let announced = data_len(&self.header.0);
            // With a header digest the length cannot be trusted before the digest has been checked.
            if self.header_digest == DigestKind::None && announced > self.data_len_max {
                return Err(FrameError::TooLong { announced, limit: self.data_len_max });
            }
        }
        let ahs = total_ahs_len(&self.header.0);
        let extra = ahs + self.header_digest_bytes();
        if extra != 0 {
            let have = self.filled - BHS_BYTES;
            let take = (extra - have).min(input.len() - used);
            self.extra[have..have + take].copy_from_slice(&input[used..used + take]);
            self.filled += take;
            used += take;
            if have + take < extra {
                return Ok(Step { consumed: used, event: Event::NeedMore });
            }
            self.check_header_digest(ahs)?;
        }
        self.filled = 0;
        self.data_len = data_len(&self.header.0);
        self.data_offset = 0;
        self.crc = Crc32c::EMPTY;
        if self.data_len > 0 {
            self.phase = Phase::Data;
        }
        Ok(Step { consumed: used, event: Event::Header { data_len: self.data_len } })
    }

    fn header_digest_bytes(&self) -> usize {
        if self.header_digest == DigestKind::Crc32c { DIGEST_BYTES } else { 0 }
    }

    fn check_header_digest(&self, ahs: usize) -> Result<(), FrameError> {
        if self.header_digest == DigestKind::None {
            return Ok(());
        }
        let computed = Crc32c::EMPTY.update(&self.header.0).update(&self.extra[..ahs]).to_wire();
        if computed != self.extra[ahs..ahs + DIGEST_BYTES] {
            return Err(FrameError::HeaderDigest);
        }
        let announced = data_len(&self.header.0);
        if announced > self.data_len_max {
            return Err(FrameError::TooLong { announced, limit: self.data_len_max });
        }
        Ok(())
    }

    fn data(&mut self, input: &[u8]) -> Result<Step, FrameError> {
        let offset = self.data_offset;
        let take = ((self.data_len - offset) as usize).min(input.len());
        let payload = 0..take;
        if self.data_digest == DigestKind::Crc32c {
            self.crc = self.crc.update(&input[..take]);
        }
        self.data_offset += take as u32;
        if self.data_offset < self.data_len {
            let event =
                if take == 0 { Event::NeedMore } else { Event::Data { payload, offset, complete: false } };
            return Ok(Step { consumed: take, event });
        }
        self.phase = Phase::Trailer;
        self.trailer(input, take, payload)
    }

    /// Padding and data digest; `used` bytes of the input were payload.
    fn trailer(&mut self, input: &[u8], used: usize, payload: Range<usize>) -> Result<Step, FrameError> {
        let padding = padding_len(self.data_len);
        let digest = if self.data_digest == DigestKind::Crc32c { DIGEST_BYTES } else { 0 };
        let wanted = padding + digest;
        let take = (wanted - self.filled).min(input.len() - used);
        self.extra[self.filled..self.filled + take].copy_from_slice(&input[used..used + take]);
        self.filled += take;
        let offset = self.data_len - payload.len() as u32;
        let consumed = used + take;
        if self.filled < wanted {
            let event = if payload.is_empty() {
                Event::NeedMore
            } else {
                Event::Data { payload, offset, complete: false }
            };
            return Ok(Step { consumed, event });
        }
        self.filled = 0;
        self.phase = Phase::Header;
        if digest != 0 {
            let computed = self.crc.update(&self.extra[..padding]).to_wire();
            if computed != self.extra[padding..wanted] {
                return Err(FrameError::DataDigest);
            }
        }
        Ok(Step { consumed, event: Event::Data { payload, offset, complete: true } })
    }
}

/// Bytes of padding after a data segment: it is filled up to a multiple of four.
pub fn padding_len(data_len: u32) -> usize {
    (data_len.wrapping_neg() & 3) as usize
}

/// Adds the bytes around a header and a data segment for sending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Framer {
    /// Put a digest after each header.
    pub header_digest: DigestKind,
    /// Put a digest after each data segment.
    pub data_digest: DigestKind,
}

/// A few bytes to send, held inline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inline<const N: usize> {
    bytes: [u8; N],
    len: u8,
}

impl<const N: usize> std::ops::Deref for Inline<N> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl Framer {
    /// A header without AHS as sent: 48 bytes, or 52 with its digest.
    #[inline]
    pub fn header(&self, bhs: &Bhs) -> Inline<52> {
        let mut bytes = [0; BHS_BYTES + DIGEST_BYTES];
        bytes[..BHS_BYTES].copy_from_slice(bhs);
        if self.header_digest == DigestKind::None {
            return Inline { bytes, len: BHS_BYTES as u8 };
        }
        bytes[BHS_BYTES..].copy_from_slice(&crate::digest::digest(bhs));
        Inline { bytes, len: (BHS_BYTES + DIGEST_BYTES) as u8 }
    }

    /// The bytes after the header of a PDU with additional header segments: `ahs` itself is sent first, then this
    /// (empty without header digest). Use it instead of [`Self::header`]'s digest: send the bare 48 bytes, `ahs`, this.
    pub fn ahs_digest(&self, bhs: &Bhs, ahs: &[u8]) -> Inline<4> {
        if self.header_digest == DigestKind::None {
            return Inline { bytes: [0; 4], len: 0 };
        }
        Inline { bytes: Crc32c::EMPTY.update(bhs).update(ahs).to_wire(), len: 4 }
    }

    /// The bytes after a data segment of `data_len` bytes (not zero): padding and digest. `crc` is called only if a
    /// data digest is in use; it must return the checksum of the data.
    #[inline]
    pub fn trailer(&self, data_len: u32, crc: impl FnOnce() -> Crc32c) -> Inline<7> {
        let padding = padding_len(data_len);
        let mut bytes = [0; 7];
        if self.data_digest == DigestKind::None || data_len == 0 {
            return Inline { bytes, len: padding as u8 };
        }
        let digest = crc().update(&bytes[..padding]).to_wire();
        bytes[padding..padding + DIGEST_BYTES].copy_from_slice(&digest);
        Inline { bytes, len: (padding + DIGEST_BYTES) as u8 }
    }

    /// Appends a whole PDU with its data to `out`: for login, text and other rare PDUs.
    pub fn write(&self, bhs: &Bhs, data: &[u8], out: &mut Vec<u8>) {
        debug_assert_eq!(data_len(bhs) as usize, data.len(), "the header announces its data");
        out.extend_from_slice(&self.header(bhs));
        out.extend_from_slice(data);
        out.extend_from_slice(&self.trailer(data.len() as u32, || Crc32c::EMPTY.update(data)));
    }
}

/// The stream cannot be parsed any further (fault: peer or network). Drop the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// A header announced more data than was allowed.
    #[error("peer announced a data segment of {announced} bytes, the limit is {limit}")]
    TooLong {
        /// The announced length.
        announced: u32,
        /// Our limit.
        limit: u32,
    },
    /// The header's digest is wrong: its contents cannot be used.
    #[error("header digest of a received PDU is wrong")]
    HeaderDigest,
    /// The data segment's digest is wrong: its payload must not be used. The stream itself can still be parsed, so a
    /// Reject (reason 2) can be sent before the connection is dropped.
    #[error("data digest of a received PDU is wrong")]
    DataDigest,
}
