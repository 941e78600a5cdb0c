//! PDUs of a target.

use super::header::{Bhs, CONTINUE, FINAL, Wire, bit, code};
use super::request::{isid, parse_stages, session_id, stage_flags};
use super::status::{Residual, StatusNumbers};
use super::{
    AsyncEvent, LoginStatus, LogoutResult, Lun, NopOut, PduError, RESERVED_TAG, RejectReason, Stage,
    TaskResult, opcode,
};
use zerocopy::byteorder::big_endian::U64;

/// Any PDU that a target may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each variant is its struct")]
pub enum Response {
    NopIn(NopIn),
    Scsi(ScsiResponse),
    TaskManagement(TaskManagementResponse),
    Login(LoginResponse),
    Text(TextResponse),
    DataIn(DataIn),
    Logout(LogoutResponse),
    R2t(R2t),
    Async(AsyncMessage),
    Reject(Reject),
}

impl Response {
    /// Parses the header of any target PDU.
    pub fn parse(bhs: &Bhs) -> Result<Self, PduError> {
        match code(bhs) {
            opcode::SCSI_RESPONSE => Ok(Response::Scsi(ScsiResponse::parse(bhs)?)),
            opcode::DATA_IN => Ok(Response::DataIn(DataIn::parse(bhs)?)),
            opcode::R2T => Ok(Response::R2t(R2t::parse(bhs)?)),
            opcode::NOP_IN => Ok(Response::NopIn(NopIn::parse(bhs)?)),
            opcode::TASK_MANAGEMENT_RESPONSE => {
                Ok(Response::TaskManagement(TaskManagementResponse::parse(bhs)?))
            }
            opcode::LOGIN_RESPONSE => Ok(Response::Login(LoginResponse::parse(bhs)?)),
            opcode::TEXT_RESPONSE => Ok(Response::Text(TextResponse::parse(bhs)?)),
            opcode::LOGOUT_RESPONSE => Ok(Response::Logout(LogoutResponse::parse(bhs)?)),
            opcode::ASYNC_MESSAGE => Ok(Response::Async(AsyncMessage::parse(bhs)?)),
            opcode::REJECT => Ok(Response::Reject(Reject::parse(bhs)?)),
            other => Err(PduError::Opcode(other)),
        }
    }

    /// Writes the whole header.
    pub fn emit(&self, out: &mut Bhs) {
        match self {
            Response::NopIn(pdu) => pdu.emit(out),
            Response::Scsi(pdu) => pdu.emit(out),
            Response::TaskManagement(pdu) => pdu.emit(out),
            Response::Login(pdu) => pdu.emit(out),
            Response::Text(pdu) => pdu.emit(out),
            Response::DataIn(pdu) => pdu.emit(out),
            Response::Logout(pdu) => pdu.emit(out),
            Response::R2t(pdu) => pdu.emit(out),
            Response::Async(pdu) => pdu.emit(out),
            Response::Reject(pdu) => pdu.emit(out),
        }
    }
}

fn expect(bhs: &Bhs, wanted: u8) -> Result<Wire, PduError> {
    if code(bhs) == wanted { Ok(Wire::read(bhs)) } else { Err(PduError::Opcode(code(bhs))) }
}

/// SCSI Response (RFC 7143 section 11.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScsiResponse {
    /// 0 = command completed at target; 1 = target failure; 0x80..=0xff vendor specific.
    pub response: u8,
    /// SCSI status; valid if `response` is 0.
    pub status: u8,
    /// Tag of the command.
    pub itt: u32,
    /// Sequence numbers; this PDU consumes its `stat_sn`.
    pub sn: StatusNumbers,
    /// Number of Data-In and R2T PDUs sent for the command.
    pub exp_data_sn: u32,
    /// Residual count.
    pub residual: Residual,
    /// Bytes that follow: sense length (2 bytes), sense data, response data.
    pub data_len: u32,
}

impl ScsiResponse {
    /// Parses the header.
    pub fn parse(bhs: &Bhs) -> Result<Self, PduError> {
        let wire = expect(bhs, opcode::SCSI_RESPONSE)?;
        Ok(ScsiResponse {
            response: wire.byte2,
            status: wire.byte3,
            itt: wire.itt.get(),
            sn: StatusNumbers::read(&wire),
            exp_data_sn: wire.word(4),
            residual: Residual::read(&wire),
            data_len: wire.data_len(),
        })
    }

    /// Writes the whole header.
    pub fn emit(&self, out: &mut Bhs) {
        let (flags, count) = self.residual.flags_and_count();
        let mut wire = Wire::new(opcode::SCSI_RESPONSE, FINAL | flags, self.itt, self.data_len);
        wire.byte2 = self.response;
        wire.byte3 = self.status;
        self.sn.write(&mut wire);
        wire.set_word(4, self.exp_data_sn);
        wire.set_word(6, count);
        wire.write(out);
    }
}

/// The sense data in the data segment of a SCSI Response (RFC 7143 section 11.4.7). Its first two bytes are its length.
/// If a target announces more than it sent, the result is what arrived; nothing beyond the segment is read.
pub fn sense_data(segment: &[u8]) -> &[u8] {
    let Some((length, rest)) = segment.split_first_chunk::<2>() else { return &[] };
    &rest[..rest.len().min(usize::from(u16::from_be_bytes(*length)))]
}

/// Status carried by the last Data-In of a command (phase collapse, the S bit).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataInStatus {
    /// SCSI status; only GOOD and the like, never one that needs sense data.
    pub status: u8,
    /// Residual count.
    pub residual: Residual,
}

/// SCSI Data-In (RFC 7143 section 11.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataIn {
    /// Last PDU of its sequence.
    pub final_pdu: bool,
    /// Requests a data acknowledgement (error recovery level above 0).
    pub acknowledge: bool,
    /// Status, if this PDU ends the command. Requires `final_pdu`.
    pub status: Option<DataInStatus>,
    /// Logical unit; 0 unless `acknowledge`.
    pub lun: Lun,
    /// Tag of the command.
    pub itt: u32,
    /// [`RESERVED_TAG`] unless `acknowledge`.
    pub ttt: u32,
    /// Sequence numbers; `stat_sn` is consumed with `status`, and meaningless (0) without.
    pub sn: StatusNumbers,
    /// Number of this PDU among the command's Data-In PDUs.
    pub data_sn: u32,
    /// Offset in bytes of this PDU's data within the command's data.
    pub buffer_offset: u32,
    /// Bytes of data that follow.
    pub data_len: u32,
}

impl DataIn {
    const ACKNOWLEDGE: u8 = 0x40;
    const STATUS: u8 = 0x01;

    /// Parses the header; S without F is refused (RFC 7143 section 11.7.3).
    pub fn parse(bhs: &Bhs) -> Result<Self, PduError> {
        let wire = expect(bhs, opcode::DATA_IN)?;
        let final_pdu = wire.flag(FINAL);
        let status = wire
            .flag(Self::STATUS)
            .then(|| DataInStatus { status: wire.byte3, residual: Residual::read(&wire) });
        if status.is_some() && !final_pdu {
            return Err(PduError::Field { opcode: opcode::DATA_IN, field: "S", value: 1 });
        }
        Ok(DataIn {
            final_pdu,
            acknowledge: wire.flag(Self::ACKNOWLEDGE),
            status,
            lun: Lun(wire.lun.get()),
            itt: wire.itt.get(),
            ttt: wire.word(0),
            sn: StatusNumbers::read(&wire),
            data_sn: wire.word(4),
            buffer_offset: wire.word(5),
            data_len: wire.data_len(),
        })
    }

    /// Writes the whole header.
    pub fn emit(&self, out: &mut Bhs) {
        debug_assert!(self.status.is_none() || self.final_pdu, "status needs the final bit");
        let mut flags = bit(self.final_pdu, FINAL) | bit(self.acknowledge, Self::ACKNOWLEDGE);
        let (mut scsi_status, mut count) = (0, 0);
        if let Some(end) = self.status {
            let (residual_flags, residual) = end.residual.flags_and_count();
            flags |= Self::STATUS | residual_flags;
            (scsi_status, count) = (end.status, residual);
        }
        let mut wire = Wire::new(opcode::DATA_IN, flags, self.itt, self.data_len);
        wire.byte3 = scsi_status;
        wire.lun = U64::new(self.lun.0);
        wire.set_word(0, self.ttt);
        self.sn.write(&mut wire);
        wire.set_word(4, self.data_sn);
        wire.set_word(5, self.buffer_offset);
        wire.set_word(6, count);
        wire.write(out);
    }
}

/// Ready To Transfer (RFC 7143 section 11.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct R2t {
    /// Logical unit of the command.
    pub lun: Lun,
    /// Tag of the command.
    pub itt: u32,
    /// Tag that the Data-Out PDUs must carry; never [`RESERVED_TAG`].
    pub ttt: u32,
    /// Sequence numbers; `stat_sn` is the next one and not consumed.
    pub sn: StatusNumbers,
    /// Number of this R2T within the command.
    pub r2t_sn: u32,
    /// Offset in bytes of the wanted data.
    pub buffer_offset: u32,
    /// Bytes wanted; never 0.
    pub desired_len: u32,
}

impl R2t {
    /// Parses the header; refuses a reserved tag and an empty request (RFC 7143 sections 11.8.4 and 11.8.5).
    pub fn parse(bhs: &Bhs) -> Result<Self, PduError> {
        let wire = expect(bhs, opcode::R2T)?;
        let pdu = R2t {
            lun: Lun(wire.lun.get()),
            itt: wire.itt.get(),
            ttt: wire.word(0),
            sn: StatusNumbers::read(&wire),
            r2t_sn: wire.word(4),
            buffer_offset: wire.word(5),
            desired_len: wire.word(6),
        };
        let field = |field, value| PduError::Field { opcode: opcode::R2T, field, value };
        if pdu.ttt == RESERVED_TAG {
            return Err(field("Target Transfer Tag", pdu.ttt));
        }
        if pdu.desired_len == 0 {
            return Err(field("Desired Data Transfer Length", 0));
        }
        Ok(pdu)
    }

    /// Writes the whole header.
    pub fn emit(&self, out: &mut Bhs) {
        let mut wire = Wire::new(opcode::R2T, FINAL, self.itt, 0);
        wire.lun = U64::new(self.lun.0);
        wire.set_word(0, self.ttt);
        self.sn.write(&mut wire);
        wire.set_word(4, self.r2t_sn);
        wire.set_word(5, self.buffer_offset);
        wire.set_word(6, self.desired_len);
        wire.write(out);
    }
}

/// NOP-In (RFC 7143 section 11.19): the answer to a ping, or the target's own ping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NopIn {
    /// Logical unit, for a ping with an answer; any value, to be copied.
    pub lun: Lun,
    /// Tag of the answered NOP-Out, else [`RESERVED_TAG`].
    pub itt: u32,
    /// [`RESERVED_TAG`] unless an answer is wanted.
    pub ttt: u32,
    /// Sequence numbers; `stat_sn` is consumed only when answering.
    pub sn: StatusNumbers,
    /// Bytes of ping data that follow.
    pub data_len: u32,
}

impl NopIn {
    /// The NOP-Out that answers a ping, with LUN and tag copied as the target requires (RFC 7143 section 11.18); `None`
    /// if no answer is requested. `cmd_sn` is the next command's number; an immediate PDU does not use it up.
    pub fn answer(&self, cmd_sn: u32, exp_stat_sn: u32) -> Option<NopOut> {
        (self.ttt != RESERVED_TAG).then_some(NopOut {
            immediate: true,
            lun: self.lun,
            itt: RESERVED_TAG,
            ttt: self.ttt,
            cmd_sn,
            exp_stat_sn,
            data_len: 0,
        })
    }

    /// Parses the header.
    pub fn parse(bhs: &Bhs) -> Result<Self, PduError> {
        let wire = expect(bhs, opcode::NOP_IN)?;
        Ok(NopIn {
            lun: Lun(wire.lun.get()),
            itt: wire.itt.get(),
            ttt: wire.word(0),
            sn: StatusNumbers::read(&wire),
            data_len: wire.data_len(),
        })
    }

    /// Writes the whole header.
    pub fn emit(&self, out: &mut Bhs) {
        let mut wire = Wire::new(opcode::NOP_IN, FINAL, self.itt, self.data_len);
        wire.lun = U64::new(self.lun.0);
        wire.set_word(0, self.ttt);
        self.sn.write(&mut wire);
        wire.write(out);
    }
}

/// Task Management Function Response (RFC 7143 section 11.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskManagementResponse {
    /// The result of the request.
    pub result: TaskResult,
    /// Tag of the request.
    pub itt: u32,
    /// Sequence numbers; this PDU consumes its `stat_sn`.
    pub sn: StatusNumbers,
}

impl TaskManagementResponse {
    /// Parses the header.
    pub fn parse(bhs: &Bhs) -> Result<Self, PduError> {
        let wire = expect(bhs, opcode::TASK_MANAGEMENT_RESPONSE)?;
        Ok(TaskManagementResponse {
            result: TaskResult::from_code(wire.byte2),
            itt: wire.itt.get(),
            sn: StatusNumbers::read(&wire),
        })
    }

    /// Writes the whole header.
    pub fn emit(&self, out: &mut Bhs) {
        let mut wire = Wire::new(opcode::TASK_MANAGEMENT_RESPONSE, FINAL, self.itt, 0);
        wire.byte2 = self.result.code();
        self.sn.write(&mut wire);
        wire.write(out);
    }
}

/// Login Response (RFC 7143 section 11.13).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoginResponse {
    /// The target agrees to move to `next`.
    pub transit: bool,
    /// The text continues in the next login response.
    pub cont: bool,
    /// Current stage.
    pub current: Stage,
    /// Next stage; meaningful only with `transit`. [`Stage::Security`] otherwise.
    pub next: Stage,
    /// Highest protocol version the target supports.
    pub version_max: u8,
    /// Protocol version in use.
    pub version_active: u8,
    /// Initiator session ID, as received.
    pub isid: [u8; 6],
    /// Target session identifying handle; set in the final response of a new session.
    pub tsih: u16,
    /// Tag of the login.
    pub itt: u32,
    /// Sequence numbers.
    pub sn: StatusNumbers,
    /// Status class and detail.
    pub status: LoginStatus,
    /// Bytes of text that follow.
    pub data_len: u32,
}

impl LoginResponse {
    /// Parses the header. In a response with an error status the stage bits have no meaning and are not checked.
    pub fn parse(bhs: &Bhs) -> Result<Self, PduError> {
        let wire = expect(bhs, opcode::LOGIN_RESPONSE)?;
        let [class, detail, ..] = wire.word(4).to_be_bytes();
        let failed = class != 0;
        let (current, next) = match parse_stages(&wire, opcode::LOGIN_RESPONSE) {
            Ok(stages) => stages,
            Err(_) if failed => (Stage::Security, Stage::Security),
            Err(error) => return Err(error),
        };
        let transit = wire.flag(FINAL) && next != Stage::Security;
        Ok(LoginResponse {
            transit,
            cont: wire.flag(CONTINUE) && !transit,
            current,
            next,
            version_max: wire.byte2,
            version_active: wire.byte3,
            isid: isid(&wire),
            tsih: wire.lun.get() as u16,
            itt: wire.itt.get(),
            sn: StatusNumbers::read(&wire),
            status: LoginStatus { class, detail },
            data_len: wire.data_len(),
        })
    }

    /// Writes the whole header.
    pub fn emit(&self, out: &mut Bhs) {
        let flags = stage_flags(self.transit, self.cont, self.current, self.next);
        let mut wire = Wire::new(opcode::LOGIN_RESPONSE, flags, self.itt, self.data_len);
        wire.byte2 = self.version_max;
        wire.byte3 = self.version_active;
        wire.lun = session_id(self.isid, self.tsih);
        self.sn.write(&mut wire);
        wire.set_word(4, u32::from_be_bytes([self.status.class, self.status.detail, 0, 0]));
        wire.write(out);
    }
}

/// Text Response (RFC 7143 section 11.11).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextResponse {
    /// The target has no more to send.
    pub final_pdu: bool,
    /// The text continues in the next response. Excludes `final_pdu`.
    pub cont: bool,
    /// Logical unit, to be copied by the initiator.
    pub lun: Lun,
    /// Tag of the exchange.
    pub itt: u32,
    /// [`RESERVED_TAG`] if `final_pdu`, else the tag that continues the exchange.
    pub ttt: u32,
    /// Sequence numbers; this PDU consumes its `stat_sn`.
    pub sn: StatusNumbers,
    /// Bytes of text that follow.
    pub data_len: u32,
}

impl TextResponse {
    /// Parses the header; refuses C with F, and F with a transfer tag or the reverse (RFC 7143 section 11.11).
    pub fn parse(bhs: &Bhs) -> Result<Self, PduError> {
        let wire = expect(bhs, opcode::TEXT_RESPONSE)?;
        let (final_pdu, cont, ttt) = (wire.flag(FINAL), wire.flag(CONTINUE), wire.word(0));
        let field = |field, value| PduError::Field { opcode: opcode::TEXT_RESPONSE, field, value };
        if final_pdu && cont {
            return Err(field("C", 1));
        }
        if final_pdu != (ttt == RESERVED_TAG) {
            return Err(field("Target Transfer Tag", ttt));
        }
        Ok(TextResponse {
            final_pdu,
            cont,
            lun: Lun(wire.lun.get()),
            itt: wire.itt.get(),
            ttt,
            sn: StatusNumbers::read(&wire),
            data_len: wire.data_len(),
        })
    }

    /// Writes the whole header.
    pub fn emit(&self, out: &mut Bhs) {
        let flags = bit(self.final_pdu, FINAL) | bit(self.cont, CONTINUE);
        let mut wire = Wire::new(opcode::TEXT_RESPONSE, flags, self.itt, self.data_len);
        wire.lun = U64::new(self.lun.0);
        wire.set_word(0, self.ttt);
        self.sn.write(&mut wire);
        wire.write(out);
    }
}

/// Logout Response (RFC 7143 section 11.15).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogoutResponse {
    /// The result of the request.
    pub result: LogoutResult,
    /// Tag of the request.
    pub itt: u32,
    /// Sequence numbers; this PDU consumes its `stat_sn`.
    pub sn: StatusNumbers,
    /// Seconds to wait before connecting again.
    pub time2wait_s: u16,
    /// Seconds that tasks are kept after that.
    pub time2retain_s: u16,
}

impl LogoutResponse {
    /// Parses the header.
    pub fn parse(bhs: &Bhs) -> Result<Self, PduError> {
        let wire = expect(bhs, opcode::LOGOUT_RESPONSE)?;
        Ok(LogoutResponse {
            result: LogoutResult::from_code(wire.byte2),
            itt: wire.itt.get(),
            sn: StatusNumbers::read(&wire),
            time2wait_s: (wire.word(5) >> 16) as u16,
            time2retain_s: wire.word(5) as u16,
        })
    }

    /// Writes the whole header.
    pub fn emit(&self, out: &mut Bhs) {
        let mut wire = Wire::new(opcode::LOGOUT_RESPONSE, FINAL, self.itt, 0);
        wire.byte2 = self.result.code();
        self.sn.write(&mut wire);
        wire.set_word(5, (u32::from(self.time2wait_s) << 16) | u32::from(self.time2retain_s));
        wire.write(out);
    }
}

/// Asynchronous Message (RFC 7143 section 11.9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AsyncMessage {
    /// The event.
    pub event: AsyncEvent,
    /// Vendor code, with [`AsyncEvent::Vendor`].
    pub vendor_code: u8,
    /// Logical unit, with a SCSI event.
    pub lun: Lun,
    /// Sequence numbers; this PDU consumes its `stat_sn`.
    pub sn: StatusNumbers,
    /// `Parameter1`: CID for a dropped connection.
    pub parameter1: u16,
    /// `Parameter2`: `Time2Wait` in seconds.
    pub parameter2: u16,
    /// `Parameter3`: `Time2Retain`, or seconds until the logout is due.
    pub parameter3: u16,
    /// Bytes that follow: sense data, or vendor data.
    pub data_len: u32,
}

impl AsyncMessage {
    /// Parses the header.
    pub fn parse(bhs: &Bhs) -> Result<Self, PduError> {
        let wire = expect(bhs, opcode::ASYNC_MESSAGE)?;
        let [event, vendor_code, p1_hi, p1_lo] = wire.word(4).to_be_bytes();
        Ok(AsyncMessage {
            event: AsyncEvent::from_code(event),
            vendor_code,
            lun: Lun(wire.lun.get()),
            sn: StatusNumbers::read(&wire),
            parameter1: u16::from_be_bytes([p1_hi, p1_lo]),
            parameter2: (wire.word(5) >> 16) as u16,
            parameter3: wire.word(5) as u16,
            data_len: wire.data_len(),
        })
    }

    /// Writes the whole header.
    pub fn emit(&self, out: &mut Bhs) {
        let mut wire = Wire::new(opcode::ASYNC_MESSAGE, FINAL, RESERVED_TAG, self.data_len);
        wire.lun = U64::new(self.lun.0);
        self.sn.write(&mut wire);
        let [p1_hi, p1_lo] = self.parameter1.to_be_bytes();
        wire.set_word(4, u32::from_be_bytes([self.event.code(), self.vendor_code, p1_hi, p1_lo]));
        wire.set_word(5, (u32::from(self.parameter2) << 16) | u32::from(self.parameter3));
        wire.write(out);
    }
}

/// Reject (RFC 7143 section 11.17); its data segment is the refused header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reject {
    /// Why.
    pub reason: RejectReason,
    /// Sequence numbers; this PDU consumes its `stat_sn`.
    pub sn: StatusNumbers,
    /// `DataSN` or `R2TSN` the target expects next, after a data digest error or a SNACK.
    pub data_sn: u32,
    /// Bytes that follow: the refused header.
    pub data_len: u32,
}

impl Reject {
    /// Parses the header.
    pub fn parse(bhs: &Bhs) -> Result<Self, PduError> {
        let wire = expect(bhs, opcode::REJECT)?;
        Ok(Reject {
            reason: RejectReason::from_code(wire.byte2),
            sn: StatusNumbers::read(&wire),
            data_sn: wire.word(4),
            data_len: wire.data_len(),
        })
    }

    /// Writes the whole header.
    pub fn emit(&self, out: &mut Bhs) {
        let mut wire = Wire::new(opcode::REJECT, FINAL, RESERVED_TAG, self.data_len);
        wire.byte2 = self.reason.code();
        self.sn.write(&mut wire);
        wire.set_word(4, self.data_sn);
        wire.write(out);
    }
}
