//! The target's side of data sequences.

use crate::params::SessionParams;
use crate::pdu::{DataOut, Lun, R2t, RESERVED_TAG, ScsiCommand, StatusNumbers};

/// Bits of a target transfer tag that number the R2T within its task; the rest is the task's slot.
const R2T_BITS: u32 = 8;

/// The task slot of a target transfer tag, as passed to [`TargetWrite::begin`].
pub fn ttt_slot(ttt: u32) -> u32 {
    ttt >> R2T_BITS
}

/// Collects the data of one write on the target's side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TargetWrite {
    slot: u32,
    itt: u32,
    /// Bytes of the command's data that the device needs.
    wanted: u32,
    /// Bytes that have arrived: all below this offset.
    received: u32,
    /// All bytes below this offset were requested, or may arrive unsolicited.
    granted: u32,
    /// End of the sequence that is arriving now; equal to `received` between sequences.
    sequence_end: u32,
    /// Next `DataSN` of the sequence that is arriving.
    data_sn: u32,
    /// Number of the next R2T to send, and of the one whose data is arriving or next to arrive.
    r2t_next: u32,
    r2t_current: u32,
    /// Waiting for unsolicited Data-Out until one with F has come.
    unsolicited: bool,
    max_burst: u32,
    max_outstanding: u32,
}

/// An R2T to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct R2tGrant {
    /// Its target transfer tag.
    pub ttt: u32,
    /// Its number.
    pub r2t_sn: u32,
    /// Offset in bytes of the wanted data.
    pub buffer_offset: u32,
    /// Bytes wanted.
    pub desired_len: u32,
}

impl R2tGrant {
    /// The PDU: `lun` and `itt` are those of the command, `sn` are the current numbers, which an R2T does not use up.
    pub fn pdu(&self, lun: Lun, itt: u32, sn: StatusNumbers) -> R2t {
        R2t {
            lun,
            itt,
            ttt: self.ttt,
            sn,
            r2t_sn: self.r2t_sn,
            buffer_offset: self.buffer_offset,
            desired_len: self.desired_len,
        }
    }
}

impl TargetWrite {
    /// Starts with a command that sends data; the device needs the first `wanted` bytes (fewer than announced if the
    /// CDB needs fewer, 0 if the command has failed already). No more is requested, but unsolicited data must be
    /// received in any case. `slot` (below 2^23) is part of the transfer tags, see [`ttt_slot`]. The command's
    /// immediate data, `data_len` bytes at offset 0, counts as received.
    pub fn begin(
        command: &ScsiCommand,
        wanted: u32,
        params: &SessionParams,
        slot: u32,
    ) -> Result<Self, WriteError> {
        debug_assert!(
            slot < 1 << 23,
            "slots must leave room for the R2T number and never give the reserved tag"
        );
        debug_assert!(wanted <= command.expected_len, "no more than the initiator announced can come");
        let immediate = command.data_len;
        if immediate > 0 && !params.immediate_data {
            return Err(WriteError::ImmediateForbidden);
        }
        let unsolicited_max = command.expected_len.min(params.first_burst_length);
        if immediate > unsolicited_max {
            return Err(WriteError::TooMuchUnsolicited { sent: immediate, limit: unsolicited_max });
        }
        let unsolicited = !command.final_pdu;
        if unsolicited && params.initial_r2t {
            return Err(WriteError::UnsolicitedForbidden);
        }
        let granted = if unsolicited { unsolicited_max } else { immediate };
        Ok(TargetWrite {
            slot,
            itt: command.itt,
            wanted,
            received: immediate,
            granted,
            sequence_end: if unsolicited { unsolicited_max } else { immediate },
            data_sn: 0,
            r2t_next: 0,
            r2t_current: 0,
            unsolicited,
            max_burst: params.max_burst_length,
            max_outstanding: u32::from(params.max_outstanding_r2t),
        })
    }

    /// Bytes that the device needs.
    pub fn wanted(&self) -> u32 {
        self.wanted
    }

    /// Bytes that have arrived; more than needed if the initiator sent so much unsolicited.
    pub fn received(&self) -> u32 {
        self.received
    }

    /// All needed bytes, and all unsolicited ones, have arrived.
    pub fn is_complete(&self) -> bool {
        self.received >= self.wanted && !self.unsolicited
    }

    /// Number of R2Ts sent so far (for `ExpDataSN` of the response).
    pub fn r2ts(&self) -> u32 {
        self.r2t_next
    }

    /// The next R2T to send, if one may be sent now. Call until `None` after [`Self::begin`] and whenever
    /// [`Self::accept`] has ended a sequence.
    pub fn next_r2t(&mut self) -> Option<R2tGrant> {
        let outstanding = self.r2t_next - self.r2t_current;
        if self.unsolicited || self.granted >= self.wanted || outstanding >= self.max_outstanding {
            return None;
        }
        let desired_len = self.max_burst.min(self.wanted - self.granted);
        let grant = R2tGrant {
            ttt: self.ttt(self.r2t_next),
            r2t_sn: self.r2t_next,
            buffer_offset: self.granted,
            desired_len,
        };
        if outstanding == 0 {
            self.sequence_end = self.granted + desired_len;
        }
        self.granted += desired_len;
        self.r2t_next += 1;
        Some(grant)
    }

    fn ttt(&self, r2t_sn: u32) -> u32 {
        (self.slot << R2T_BITS) | (r2t_sn & ((1 << R2T_BITS) - 1))
    }

    /// Checks the header of a Data-Out PDU of this task before its data is stored at `pdu.buffer_offset`. `true` if it
    /// ends a sequence. After an error the task must fail and none of the PDU's data may be used.
    pub fn accept(&mut self, pdu: &DataOut) -> Result<bool, WriteError> {
        debug_assert_eq!(pdu.itt, self.itt, "the caller looked the task up by its tag");
        self.check_sequence(pdu)?;
        if pdu.data_sn != self.data_sn {
            return Err(WriteError::DataSn { expected: self.data_sn, got: pdu.data_sn });
        }
        if pdu.buffer_offset != self.received {
            return Err(WriteError::Offset { expected: self.received, got: pdu.buffer_offset });
        }
        let room = self.sequence_end - self.received;
        if pdu.data_len > room {
            return Err(WriteError::TooLong { sent: pdu.data_len, room });
        }
        let solicited = !self.unsolicited;
        if solicited && pdu.final_pdu != (pdu.data_len == room) {
            return Err(WriteError::FinalBit);
        }
        if !solicited && !pdu.final_pdu && pdu.data_len == room {
            return Err(WriteError::FinalBit);
        }
        self.received += pdu.data_len;
        self.data_sn = self.data_sn.wrapping_add(1);
        if pdu.final_pdu {
            self.end_sequence();
        }
        Ok(pdu.final_pdu)
    }

    /// A solicited PDU must have the tag of the R2T that is due, an unsolicited one the reserved tag.
    fn check_sequence(&self, pdu: &DataOut) -> Result<(), WriteError> {
        if self.unsolicited {
            return if pdu.ttt == RESERVED_TAG { Ok(()) } else { Err(WriteError::UnknownTag(pdu.ttt)) };
        }
        if pdu.ttt == RESERVED_TAG {
            return Err(WriteError::UnsolicitedForbidden);
        }
        let due = self.r2t_current < self.r2t_next && pdu.ttt == self.ttt(self.r2t_current);
        if due { Ok(()) } else { Err(WriteError::UnknownTag(pdu.ttt)) }
    }

    fn end_sequence(&mut self) {
        self.data_sn = 0;
        if self.unsolicited {
            self.unsolicited = false;
            // Data that the initiator did not send unsolicited is requested by R2T.
            self.granted = self.received;
        } else {
            self.r2t_current += 1;
        }
        self.sequence_end = if self.r2t_current < self.r2t_next {
            self.granted.min(self.received + self.max_burst)
        } else {
            self.received
        };
    }
}

/// Splits the data of a read into Data-In PDUs: at most the initiator's segment length each, and F at the end of every
/// `MaxBurstLength`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataInSplit {
    total: u32,
    sent: u32,
    data_sn: u32,
    burst_left: u32,
    segment_max: u32,
    max_burst: u32,
}

/// One Data-In PDU to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataInPiece {
    /// Its number.
    pub data_sn: u32,
    /// Offset in bytes of its data.
    pub buffer_offset: u32,
    /// Bytes of data.
    pub len: u32,
    /// It ends a sequence.
    pub final_pdu: bool,
    /// It is the last one: it may carry the status.
    pub last: bool,
}

impl DataInSplit {
    /// For `total` bytes of data (already cut to the command's expected length).
    pub fn new(total: u32, params: &SessionParams) -> Self {
        DataInSplit {
            total,
            sent: 0,
            data_sn: 0,
            burst_left: params.max_burst_length,
            segment_max: params.peer_max_recv_data_segment_length,
            max_burst: params.max_burst_length,
        }
    }

    /// Number of PDUs returned so far (for `ExpDataSN` of the response).
    pub fn pdus(&self) -> u32 {
        self.data_sn
    }
}

impl Iterator for DataInSplit {
    type Item = DataInPiece;

    fn next(&mut self) -> Option<DataInPiece> {
        if self.sent == self.total {
            return None;
        }
        let len = self.segment_max.min(self.burst_left).min(self.total - self.sent);
        let last = self.sent + len == self.total;
        let final_pdu = last || len == self.burst_left;
        let piece = DataInPiece { data_sn: self.data_sn, buffer_offset: self.sent, len, final_pdu, last };
        self.sent += len;
        self.data_sn += 1;
        self.burst_left = if final_pdu { self.max_burst } else { self.burst_left - len };
        Some(piece)
    }
}

/// The error of an initiator's write data. The task fails with CHECK CONDITION, ABORTED COMMAND; see
/// [`WriteError::sense`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// `ImmediateData=No` was agreed.
    #[error("initiator sent immediate data although ImmediateData=No")]
    ImmediateForbidden,
    /// Data that no R2T requested.
    #[error("initiator sent unsolicited data that was not allowed")]
    UnsolicitedForbidden,
    /// More unsolicited data than the first burst permits or the command announces.
    #[error("initiator sent {sent} unsolicited bytes, the limit is {limit}")]
    TooMuchUnsolicited {
        /// The sent length.
        sent: u32,
        /// The limit.
        limit: u32,
    },
    /// The target transfer tag does not belong to an R2T that is due.
    #[error("initiator sent Data-Out with target transfer tag {0:#x}, which is not due")]
    UnknownTag(u32),
    /// A PDU is missing or repeated.
    #[error("initiator sent DataSN {got} where {expected} was due")]
    DataSn {
        /// The expected value.
        expected: u32,
        /// The received value.
        got: u32,
    },
    /// Data at a wrong offset.
    #[error("initiator sent data for offset {got} where {expected} was due")]
    Offset {
        /// The expected value.
        expected: u32,
        /// The received value.
        got: u32,
    },
    /// More data than the sequence has left.
    #[error("initiator sent {sent} bytes where its sequence had room for {room}")]
    TooLong {
        /// The sent length.
        sent: u32,
        /// The remaining length.
        room: u32,
    },
    /// F is missing at the end of a sequence, or set before it.
    #[error("initiator set or left out the final bit in the wrong place")]
    FinalBit,
}

impl WriteError {
    /// Additional sense code and qualifier for the response (RFC 7143 section 11.4.7.2).
    pub fn sense(&self) -> (u8, u8) {
        match self {
            WriteError::ImmediateForbidden
            | WriteError::UnsolicitedForbidden
            | WriteError::TooMuchUnsolicited { .. } => (0x0c, 0x0c),
            _ => (0x0c, 0x0d),
        }
    }
}
