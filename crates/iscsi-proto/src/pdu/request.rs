//! PDUs of an initiator.

use super::header::{Bhs, CONTINUE, FINAL, Wire, bit, code, request_opcode};
use super::{
    LogoutReason, Lun, PduError, RESERVED_TAG, SnackKind, Stage, TaskAttribute, TaskFunction, opcode,
};
use zerocopy::byteorder::big_endian::U64;

/// Any PDU that an initiator may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each variant is its struct")]
pub enum Request {
    NopOut(NopOut),
    ScsiCommand(ScsiCommand),
    TaskManagement(TaskManagement),
    Login(LoginRequest),
    Text(TextRequest),
    DataOut(DataOut),
    Logout(LogoutRequest),
    Snack(Snack),
}

impl Request {
    /// Parses the header of any initiator PDU.
    pub fn parse(bhs: &Bhs) -> Result<Self, PduError> {
        match code(bhs) {
            opcode::SCSI_COMMAND => Ok(Request::ScsiCommand(ScsiCommand::parse(bhs)?)),
            opcode::DATA_OUT => Ok(Request::DataOut(DataOut::parse(bhs)?)),
            opcode::NOP_OUT => Ok(Request::NopOut(NopOut::parse(bhs)?)),
            opcode::TASK_MANAGEMENT => Ok(Request::TaskManagement(TaskManagement::parse(bhs)?)),
            opcode::LOGIN_REQUEST => Ok(Request::Login(LoginRequest::parse(bhs)?)),
            opcode::TEXT_REQUEST => Ok(Request::Text(TextRequest::parse(bhs)?)),
            opcode::LOGOUT_REQUEST => Ok(Request::Logout(LogoutRequest::parse(bhs)?)),
            opcode::SNACK => Ok(Request::Snack(Snack::parse(bhs)?)),
            other => Err(PduError::Opcode(other)),
        }
    }

    /// The number of the request in the order of the session's commands. None for immediate requests, for requests that
    /// belong to a command, and for requests before there is a session.
    pub fn cmd_sn(&self) -> Option<u32> {
        let (immediate, cmd_sn) = match self {
            Request::NopOut(pdu) => (pdu.immediate, pdu.cmd_sn),
            Request::ScsiCommand(pdu) => (pdu.immediate, pdu.cmd_sn),
            Request::TaskManagement(pdu) => (pdu.immediate, pdu.cmd_sn),
            Request::Text(pdu) => (pdu.immediate, pdu.cmd_sn),
            Request::Logout(pdu) => (pdu.immediate, pdu.cmd_sn),
            Request::Login(_) | Request::DataOut(_) | Request::Snack(_) => return None,
        };
        (!immediate).then_some(cmd_sn)
    }

    /// Writes the whole header.
    pub fn emit(&self, out: &mut Bhs) {
        match self {
            Request::NopOut(pdu) => pdu.emit(out),
            Request::ScsiCommand(pdu) => pdu.emit(out),
            Request::TaskManagement(pdu) => pdu.emit(out),
            Request::Login(pdu) => pdu.emit(out),
            Request::Text(pdu) => pdu.emit(out),
            Request::DataOut(pdu) => pdu.emit(out),
            Request::Logout(pdu) => pdu.emit(out),
            Request::Snack(pdu) => pdu.emit(out),
        }
    }
}

/// Refuses a header of another opcode: `parse` of one struct is public, so the caller may pass any header.
fn expect(bhs: &Bhs, wanted: u8) -> Result<Wire, PduError> {
    if code(bhs) == wanted { Ok(Wire::read(bhs)) } else { Err(PduError::Opcode(code(bhs))) }
}

/// SCSI Command (RFC 7143 section 11.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScsiCommand {
    /// Deliver at once, without a number in the command order.
    pub immediate: bool,
    /// No unsolicited Data-Out follows this PDU.
    pub final_pdu: bool,
    /// The command may return data.
    pub read: bool,
    /// The command sends data.
    pub write: bool,
    /// Task attribute.
    pub attribute: TaskAttribute,
    /// Logical unit.
    pub lun: Lun,
    /// Initiator task tag.
    pub itt: u32,
    /// Expected data transfer length in bytes.
    pub expected_len: u32,
    /// Command sequence number.
    pub cmd_sn: u32,
    /// Next status sequence number that the initiator expects.
    pub exp_stat_sn: u32,
    /// The first 16 bytes of the command descriptor block; the rest of a longer one is in an AHS.
    pub cdb: [u8; 16],
    /// Bytes of additional header segments that follow; a multiple of 4.
    pub ahs_len: u16,
    /// Bytes of immediate data that follow.
    pub data_len: u32,
}

impl ScsiCommand {
    const READ: u8 = 0x40;
    const WRITE: u8 = 0x20;

    /// Parses the header.
    pub fn parse(bhs: &Bhs) -> Result<Self, PduError> {
        let wire = expect(bhs, opcode::SCSI_COMMAND)?;
        let mut cdb = [0; 16];
        cdb.copy_from_slice(&bhs[32..48]);
        Ok(ScsiCommand {
            immediate: wire.immediate(),
            final_pdu: wire.flag(FINAL),
            read: wire.flag(Self::READ),
            write: wire.flag(Self::WRITE),
            attribute: TaskAttribute::from_code(wire.flags & 7),
            lun: Lun(wire.lun.get()),
            itt: wire.itt.get(),
            expected_len: wire.word(0),
            cmd_sn: wire.word(1),
            exp_stat_sn: wire.word(2),
            cdb,
            ahs_len: u16::from(wire.ahs_words) * 4,
            data_len: wire.data_len(),
        })
    }

    /// Writes the whole header.
    pub fn emit(&self, out: &mut Bhs) {
        debug_assert!(self.ahs_len.is_multiple_of(4) && self.ahs_len <= 1020);
        let flags = bit(self.final_pdu, FINAL)
            | bit(self.read, Self::READ)
            | bit(self.write, Self::WRITE)
            | (self.attribute.code() & 7);
        let op = request_opcode(opcode::SCSI_COMMAND, self.immediate);
        let mut wire = Wire::new(op, flags, self.itt, self.data_len);
        wire.ahs_words = (self.ahs_len / 4) as u8;
        wire.lun = U64::new(self.lun.0);
        wire.set_word(0, self.expected_len);
        wire.set_word(1, self.cmd_sn);
        wire.set_word(2, self.exp_stat_sn);
        wire.write(out);
        out[32..48].copy_from_slice(&self.cdb);
    }
}

/// SCSI Data-Out (RFC 7143 section 11.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataOut {
    /// Last PDU of its sequence (burst).
    pub final_pdu: bool,
    /// Copied from the R2T; otherwise 0 or that of the command.
    pub lun: Lun,
    /// Tag of the command.
    pub itt: u32,
    /// Copied from the R2T; [`RESERVED_TAG`] for unsolicited data.
    pub ttt: u32,
    /// Next status sequence number that the initiator expects.
    pub exp_stat_sn: u32,
    /// Number of this PDU within its sequence.
    pub data_sn: u32,
    /// Offset in bytes of this PDU's data within the command's data.
    pub buffer_offset: u32,
    /// Bytes of data that follow.
    pub data_len: u32,
}

impl DataOut {
    /// Parses the header.
    pub fn parse(bhs: &Bhs) -> Result<Self, PduError> {
        let wire = expect(bhs, opcode::DATA_OUT)?;
        Ok(DataOut {
            final_pdu: wire.flag(FINAL),
            lun: Lun(wire.lun.get()),
            itt: wire.itt.get(),
            ttt: wire.word(0),
            exp_stat_sn: wire.word(2),
            data_sn: wire.word(4),
            buffer_offset: wire.word(5),
            data_len: wire.data_len(),
        })
    }

    /// Writes the whole header.
    pub fn emit(&self, out: &mut Bhs) {
        let mut wire = Wire::new(opcode::DATA_OUT, bit(self.final_pdu, FINAL), self.itt, self.data_len);
        wire.lun = U64::new(self.lun.0);
        wire.set_word(0, self.ttt);
        wire.set_word(2, self.exp_stat_sn);
        wire.set_word(4, self.data_sn);
        wire.set_word(5, self.buffer_offset);
        wire.write(out);
    }
}

/// NOP-Out (RFC 7143 section 11.18): a ping, or the answer to the target's ping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NopOut {
    /// Deliver at once, without a number in the command order.
    pub immediate: bool,
    /// Copied from the answered NOP-In.
    pub lun: Lun,
    /// [`RESERVED_TAG`] if no answer is wanted.
    pub itt: u32,
    /// Copied from the answered NOP-In, else [`RESERVED_TAG`].
    pub ttt: u32,
    /// Command sequence number.
    pub cmd_sn: u32,
    /// Next status sequence number that the initiator expects.
    pub exp_stat_sn: u32,
    /// Bytes of ping data that follow.
    pub data_len: u32,
}

impl NopOut {
    /// Parses the header. A NOP-Out without initiator tag must be immediate (RFC 7143 section 11.18.1).
    pub fn parse(bhs: &Bhs) -> Result<Self, PduError> {
        let wire = expect(bhs, opcode::NOP_OUT)?;
        let pdu = NopOut {
            immediate: wire.immediate(),
            lun: Lun(wire.lun.get()),
            itt: wire.itt.get(),
            ttt: wire.word(0),
            cmd_sn: wire.word(1),
            exp_stat_sn: wire.word(2),
            data_len: wire.data_len(),
        };
        if pdu.itt == RESERVED_TAG && !pdu.immediate {
            return Err(PduError::Field { opcode: opcode::NOP_OUT, field: "I", value: 0 });
        }
        Ok(pdu)
    }

    /// Writes the whole header.
    pub fn emit(&self, out: &mut Bhs) {
        let op = request_opcode(opcode::NOP_OUT, self.immediate);
        let mut wire = Wire::new(op, FINAL, self.itt, self.data_len);
        wire.lun = U64::new(self.lun.0);
        wire.set_word(0, self.ttt);
        wire.set_word(1, self.cmd_sn);
        wire.set_word(2, self.exp_stat_sn);
        wire.write(out);
    }
}

/// Task Management Function Request (RFC 7143 section 11.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskManagement {
    /// Deliver at once, without a number in the command order.
    pub immediate: bool,
    /// The function.
    pub function: TaskFunction,
    /// Logical unit, for functions that need one.
    pub lun: Lun,
    /// Tag of this request.
    pub itt: u32,
    /// Tag of the task to abort or reassign, else [`RESERVED_TAG`].
    pub referenced_itt: u32,
    /// Command sequence number.
    pub cmd_sn: u32,
    /// Next status sequence number that the initiator expects.
    pub exp_stat_sn: u32,
    /// `CmdSN` of the task to abort.
    pub ref_cmd_sn: u32,
    /// Next data sequence number, for reassignment.
    pub exp_data_sn: u32,
}

impl TaskManagement {
    /// Parses the header.
    pub fn parse(bhs: &Bhs) -> Result<Self, PduError> {
        let wire = expect(bhs, opcode::TASK_MANAGEMENT)?;
        Ok(TaskManagement {
            immediate: wire.immediate(),
            function: TaskFunction::from_code(wire.flags & 0x7f),
            lun: Lun(wire.lun.get()),
            itt: wire.itt.get(),
            referenced_itt: wire.word(0),
            cmd_sn: wire.word(1),
            exp_stat_sn: wire.word(2),
            ref_cmd_sn: wire.word(3),
            exp_data_sn: wire.word(4),
        })
    }

    /// Writes the whole header.
    pub fn emit(&self, out: &mut Bhs) {
        let op = request_opcode(opcode::TASK_MANAGEMENT, self.immediate);
        let mut wire = Wire::new(op, FINAL | (self.function.code() & 0x7f), self.itt, 0);
        wire.lun = U64::new(self.lun.0);
        wire.set_word(0, self.referenced_itt);
        wire.set_word(1, self.cmd_sn);
        wire.set_word(2, self.exp_stat_sn);
        wire.set_word(3, self.ref_cmd_sn);
        wire.set_word(4, self.exp_data_sn);
        wire.write(out);
    }
}

/// Login Request (RFC 7143 section 11.12). Always immediate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoginRequest {
    /// Ready to move to `next`.
    pub transit: bool,
    /// The text continues in the next login request.
    pub cont: bool,
    /// Current stage.
    pub current: Stage,
    /// Next stage; meaningful only with `transit`, and then never `Security`. [`Stage::Security`] otherwise.
    pub next: Stage,
    /// Highest protocol version the initiator supports.
    pub version_max: u8,
    /// Lowest protocol version the initiator supports.
    pub version_min: u8,
    /// Initiator session ID.
    pub isid: [u8; 6],
    /// Target session identifying handle; 0: a new session.
    pub tsih: u16,
    /// Tag of the whole login.
    pub itt: u32,
    /// Connection ID, chosen by the initiator.
    pub cid: u16,
    /// The session's first command sequence number.
    pub cmd_sn: u32,
    /// Next status sequence number that the initiator expects.
    pub exp_stat_sn: u32,
    /// Bytes of text that follow.
    pub data_len: u32,
}

impl LoginRequest {
    /// Parses the header. [`crate::login`] checks stage rules that depend on earlier PDUs.
    pub fn parse(bhs: &Bhs) -> Result<Self, PduError> {
        let wire = expect(bhs, opcode::LOGIN_REQUEST)?;
        let (current, next) = parse_stages(&wire, opcode::LOGIN_REQUEST)?;
        Ok(LoginRequest {
            transit: wire.flag(FINAL),
            cont: wire.flag(CONTINUE),
            current,
            next,
            version_max: wire.byte2,
            version_min: wire.byte3,
            isid: isid(&wire),
            tsih: wire.lun.get() as u16,
            itt: wire.itt.get(),
            cid: (wire.word(0) >> 16) as u16,
            cmd_sn: wire.word(1),
            exp_stat_sn: wire.word(2),
            data_len: wire.data_len(),
        })
    }

    /// Writes the whole header.
    pub fn emit(&self, out: &mut Bhs) {
        let flags = stage_flags(self.transit, self.cont, self.current, self.next);
        let op = request_opcode(opcode::LOGIN_REQUEST, true);
        let mut wire = Wire::new(op, flags, self.itt, self.data_len);
        wire.byte2 = self.version_max;
        wire.byte3 = self.version_min;
        wire.lun = session_id(self.isid, self.tsih);
        wire.set_word(0, u32::from(self.cid) << 16);
        wire.set_word(1, self.cmd_sn);
        wire.set_word(2, self.exp_stat_sn);
        wire.write(out);
    }
}

/// Current and next stage of a login PDU. NSG is valid only with T; without it reads as `Security` (zero).
pub(super) fn parse_stages(wire: &Wire, op: u8) -> Result<(Stage, Stage), PduError> {
    let field = |field, value: u8| PduError::Field { opcode: op, field, value: u32::from(value) };
    let csg = (wire.flags >> 2) & 3;
    let nsg = wire.flags & 3;
    let current = Stage::from_code(csg).filter(|stage| *stage != Stage::FullFeature);
    let current = current.ok_or(field("CSG", csg))?;
    if !wire.flag(FINAL) {
        return Ok((current, Stage::Security));
    }
    let next = Stage::from_code(nsg).ok_or(field("NSG", nsg))?;
    if next <= current || wire.flag(CONTINUE) {
        return Err(field("NSG", nsg));
    }
    Ok((current, next))
}

/// Byte 1 of a login PDU.
pub(super) fn stage_flags(transit: bool, cont: bool, current: Stage, next: Stage) -> u8 {
    let nsg = if transit { next as u8 } else { 0 };
    bit(transit, FINAL) | bit(cont, CONTINUE) | ((current as u8) << 2) | nsg
}

/// The ISID of a login PDU (bytes 8 to 13).
pub(super) fn isid(wire: &Wire) -> [u8; 6] {
    let mut isid = [0; 6];
    isid.copy_from_slice(&wire.lun.get().to_be_bytes()[..6]);
    isid
}

/// Bytes 8 to 15 of a login PDU: ISID and TSIH.
pub(super) fn session_id(isid: [u8; 6], tsih: u16) -> U64 {
    let mut bytes = [0; 8];
    bytes[..6].copy_from_slice(&isid);
    bytes[6..].copy_from_slice(&tsih.to_be_bytes());
    U64::new(u64::from_be_bytes(bytes))
}

/// Text Request (RFC 7143 section 11.10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextRequest {
    /// Deliver at once, without a number in the command order.
    pub immediate: bool,
    /// The initiator has no more to send.
    pub final_pdu: bool,
    /// The text continues in the next request. Excludes `final_pdu`.
    pub cont: bool,
    /// Copied from the text response that is continued.
    pub lun: Lun,
    /// Tag of the exchange.
    pub itt: u32,
    /// Copied from the text response that is continued, else [`RESERVED_TAG`].
    pub ttt: u32,
    /// Command sequence number.
    pub cmd_sn: u32,
    /// Next status sequence number that the initiator expects.
    pub exp_stat_sn: u32,
    /// Bytes of text that follow.
    pub data_len: u32,
}

impl TextRequest {
    /// Parses the header; C together with F is refused (RFC 7143 section 11.10.2).
    pub fn parse(bhs: &Bhs) -> Result<Self, PduError> {
        let wire = expect(bhs, opcode::TEXT_REQUEST)?;
        let (final_pdu, cont) = (wire.flag(FINAL), wire.flag(CONTINUE));
        if final_pdu && cont {
            return Err(PduError::Field { opcode: opcode::TEXT_REQUEST, field: "C", value: 1 });
        }
        Ok(TextRequest {
            immediate: wire.immediate(),
            final_pdu,
            cont,
            lun: Lun(wire.lun.get()),
            itt: wire.itt.get(),
            ttt: wire.word(0),
            cmd_sn: wire.word(1),
            exp_stat_sn: wire.word(2),
            data_len: wire.data_len(),
        })
    }

    /// Writes the whole header.
    pub fn emit(&self, out: &mut Bhs) {
        let flags = bit(self.final_pdu, FINAL) | bit(self.cont, CONTINUE);
        let op = request_opcode(opcode::TEXT_REQUEST, self.immediate);
        let mut wire = Wire::new(op, flags, self.itt, self.data_len);
        wire.lun = U64::new(self.lun.0);
        wire.set_word(0, self.ttt);
        wire.set_word(1, self.cmd_sn);
        wire.set_word(2, self.exp_stat_sn);
        wire.write(out);
    }
}

/// Logout Request (RFC 7143 section 11.14).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogoutRequest {
    /// Deliver at once, without a number in the command order.
    pub immediate: bool,
    /// The connections to close.
    pub reason: LogoutReason,
    /// Tag of this request.
    pub itt: u32,
    /// Connection to close, unless the whole session closes.
    pub cid: u16,
    /// Command sequence number.
    pub cmd_sn: u32,
    /// Next status sequence number that the initiator expects.
    pub exp_stat_sn: u32,
}

impl LogoutRequest {
    /// Parses the header.
    pub fn parse(bhs: &Bhs) -> Result<Self, PduError> {
        let wire = expect(bhs, opcode::LOGOUT_REQUEST)?;
        Ok(LogoutRequest {
            immediate: wire.immediate(),
            reason: LogoutReason::from_code(wire.flags & 0x7f),
            itt: wire.itt.get(),
            cid: (wire.word(0) >> 16) as u16,
            cmd_sn: wire.word(1),
            exp_stat_sn: wire.word(2),
        })
    }

    /// Writes the whole header.
    pub fn emit(&self, out: &mut Bhs) {
        let op = request_opcode(opcode::LOGOUT_REQUEST, self.immediate);
        let mut wire = Wire::new(op, FINAL | (self.reason.code() & 0x7f), self.itt, 0);
        wire.set_word(0, u32::from(self.cid) << 16);
        wire.set_word(1, self.cmd_sn);
        wire.set_word(2, self.exp_stat_sn);
        wire.write(out);
    }
}

/// SNACK Request (RFC 7143 section 11.16): parsed so that it can be rejected at error recovery level 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snack {
    /// The PDUs to repeat.
    pub kind: SnackKind,
    /// Logical unit.
    pub lun: Lun,
    /// Tag of the task, or [`RESERVED_TAG`].
    pub itt: u32,
    /// Target transfer tag, or [`RESERVED_TAG`].
    pub ttt: u32,
    /// Next status sequence number that the initiator expects.
    pub exp_stat_sn: u32,
    /// First number of the missing run.
    pub begin_run: u32,
    /// Numbers in the missing run; 0 = all.
    pub run_len: u32,
}

impl Snack {
    /// Parses the header.
    pub fn parse(bhs: &Bhs) -> Result<Self, PduError> {
        let wire = expect(bhs, opcode::SNACK)?;
        Ok(Snack {
            kind: SnackKind::from_code(wire.flags & 0x0f),
            lun: Lun(wire.lun.get()),
            itt: wire.itt.get(),
            ttt: wire.word(0),
            exp_stat_sn: wire.word(2),
            begin_run: wire.word(5),
            run_len: wire.word(6),
        })
    }

    /// Writes the whole header.
    pub fn emit(&self, out: &mut Bhs) {
        let mut wire = Wire::new(opcode::SNACK, FINAL | (self.kind.code() & 0x0f), self.itt, 0);
        wire.lun = U64::new(self.lun.0);
        wire.set_word(0, self.ttt);
        wire.set_word(2, self.exp_stat_sn);
        wire.set_word(5, self.begin_run);
        wire.set_word(6, self.run_len);
        wire.write(out);
    }
}
