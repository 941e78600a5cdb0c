//! The initiator's side of data sequences.

use crate::params::SessionParams;
use crate::pdu::{DataIn, R2t, RESERVED_TAG};

/// A write on the initiator's side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InitiatorWrite {
    total: u32,
    immediate: u32,
    unsolicited: u32,
    r2t_sn: u32,
    /// All bytes below this offset have been sent or requested.
    asked: u32,
    segment_max: u32,
    max_burst: u32,
    /// R2Ts whose data has not been sent.
    outstanding: u16,
    max_outstanding: u16,
}

/// A run of Data-Out PDUs that answers one R2T, or carries the unsolicited data. Iterate over it for the PDUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Burst {
    /// Target transfer tag for all of them.
    pub ttt: u32,
    offset: u32,
    end: u32,
    data_sn: u32,
    segment_max: u32,
}

/// One Data-Out PDU to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Its number in the burst.
    pub data_sn: u32,
    /// Offset in bytes of its data in the command's data.
    pub buffer_offset: u32,
    /// Bytes of data.
    pub len: u32,
    /// It ends the burst.
    pub final_pdu: bool,
}

impl InitiatorWrite {
    /// For a command that sends `total` bytes.
    pub fn new(total: u32, params: &SessionParams) -> Self {
        let segment_max = params.peer_max_recv_data_segment_length;
        let first_burst = total.min(params.first_burst_length);
        let immediate = if params.immediate_data { first_burst.min(segment_max) } else { 0 };
        let unsolicited = if params.initial_r2t { 0 } else { first_burst - immediate };
        InitiatorWrite {
            total,
            immediate,
            unsolicited,
            r2t_sn: 0,
            asked: immediate + unsolicited,
            segment_max,
            max_burst: params.max_burst_length,
            outstanding: 0,
            max_outstanding: params.max_outstanding_r2t,
        }
    }

    /// Bytes of immediate data, from offset 0, in the command PDU.
    pub fn immediate_len(&self) -> u32 {
        self.immediate
    }

    /// The F bit of the command PDU: no unsolicited Data-Out follows.
    pub fn command_final(&self) -> bool {
        self.unsolicited == 0
    }

    /// The unsolicited Data-Out PDUs that must be sent directly after the command.
    pub fn unsolicited(&self) -> Option<Burst> {
        let end = self.immediate + self.unsolicited;
        (self.unsolicited > 0).then_some(Burst {
            ttt: RESERVED_TAG,
            offset: self.immediate,
            end,
            data_sn: 0,
            segment_max: self.segment_max,
        })
    }

    /// Checks an R2T and returns the Data-Out PDUs that answer it. It is outstanding until [`Self::answered`].
    pub fn accept(&mut self, r2t: &R2t) -> Result<Burst, R2tError> {
        if r2t.r2t_sn != self.r2t_sn {
            return Err(R2tError::Number { expected: self.r2t_sn, got: r2t.r2t_sn });
        }
        if self.outstanding >= self.max_outstanding {
            return Err(R2tError::TooMany { limit: self.max_outstanding });
        }
        if r2t.desired_len > self.max_burst {
            return Err(R2tError::TooLong { asked: r2t.desired_len, limit: self.max_burst });
        }
        let end = r2t.buffer_offset.checked_add(r2t.desired_len).filter(|end| *end <= self.total);
        let Some(end) = end.filter(|_| r2t.buffer_offset == self.asked) else {
            return Err(R2tError::Range { offset: r2t.buffer_offset, len: r2t.desired_len });
        };
        self.r2t_sn += 1;
        self.asked = end;
        self.outstanding += 1;
        Ok(Burst { ttt: r2t.ttt, offset: r2t.buffer_offset, end, data_sn: 0, segment_max: self.segment_max })
    }

    /// All data of one R2T has been sent.
    pub fn answered(&mut self) {
        self.outstanding = self.outstanding.saturating_sub(1);
    }
}

impl Iterator for Burst {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        if self.offset == self.end {
            return None;
        }
        let len = self.segment_max.min(self.end - self.offset);
        let piece = Piece {
            data_sn: self.data_sn,
            buffer_offset: self.offset,
            len,
            final_pdu: self.offset + len == self.end,
        };
        self.offset += len;
        self.data_sn += 1;
        Some(piece)
    }
}

/// A read on the initiator's side: Data-In PDUs must arrive in order and cover the data without gaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InitiatorRead {
    total: u32,
    received: u32,
    data_sn: u32,
}

/// How a Data-In PDU leaves its command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadEnd {
    /// More PDUs follow.
    Open,
    /// The PDU carries the status: once its data has arrived the command is done.
    Status(crate::pdu::DataInStatus),
}

impl InitiatorRead {
    /// For a command that expects `total` bytes.
    pub fn new(total: u32) -> Self {
        InitiatorRead { total, received: 0, data_sn: 0 }
    }

    /// Bytes that have arrived.
    pub fn received(&self) -> u32 {
        self.received
    }

    /// Checks the header of a Data-In PDU before its data is stored at `pdu.buffer_offset`. On success the data is
    /// inside the command's `total` bytes.
    pub fn accept(&mut self, pdu: &DataIn) -> Result<ReadEnd, DataInError> {
        if pdu.data_sn != self.data_sn {
            return Err(DataInError::DataSn { expected: self.data_sn, got: pdu.data_sn });
        }
        if pdu.buffer_offset != self.received {
            return Err(DataInError::Offset { expected: self.received, got: pdu.buffer_offset });
        }
        let room = self.total - self.received;
        if pdu.data_len > room {
            return Err(DataInError::TooLong { sent: pdu.data_len, room });
        }
        // A sequence longer than MaxBurstLength is accepted: tgt sends such sequences, and they are harmless.
        self.data_sn = self.data_sn.wrapping_add(1);
        self.received += pdu.data_len;
        Ok(pdu.status.map_or(ReadEnd::Open, ReadEnd::Status))
    }

    /// Checks `ExpDataSN` of the SCSI Response that ends the command: all Data-In PDUs must have arrived.
    pub fn finish(&self, exp_data_sn: u32) -> Result<(), DataInError> {
        if exp_data_sn == self.data_sn {
            return Ok(());
        }
        Err(DataInError::DataSn { expected: self.data_sn, got: exp_data_sn })
    }
}

/// The error of a target's R2T: drop the session, because its state is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum R2tError {
    /// An R2T is missing or repeated.
    #[error("target sent R2TSN {got} where {expected} was due")]
    Number {
        /// The expected value.
        expected: u32,
        /// The received value.
        got: u32,
    },
    /// More R2Ts at a time than the negotiated `MaxOutstandingR2T`.
    #[error("target sent more than {limit} R2Ts of one command without waiting for data")]
    TooMany {
        /// The negotiated value.
        limit: u16,
    },
    /// More than the agreed `MaxBurstLength`.
    #[error("target asked for {asked} bytes in one R2T, the limit is {limit}")]
    TooLong {
        /// The requested length.
        asked: u32,
        /// The negotiated value.
        limit: u32,
    },
    /// Data outside the command, already sent, or out of order.
    #[error("target asked for {len} bytes at offset {offset}, which are not due")]
    Range {
        /// First requested byte.
        offset: u32,
        /// Requested bytes.
        len: u32,
    },
}

/// The error of a target's read data: drop the session, because its state is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DataInError {
    /// A PDU is missing or repeated.
    #[error("target sent DataSN {got} where {expected} was due")]
    DataSn {
        /// The expected value.
        expected: u32,
        /// The received value.
        got: u32,
    },
    /// Data at a wrong offset.
    #[error("target sent data for offset {got} where {expected} was due")]
    Offset {
        /// The expected value.
        expected: u32,
        /// The received value.
        got: u32,
    },
    /// More data than the command expects.
    #[error("target sent {sent} bytes where {room} were left")]
    TooLong {
        /// The sent length.
        sent: u32,
        /// The remaining length.
        room: u32,
    },
}
