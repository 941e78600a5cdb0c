//! PDUs as one line of text, for traces.
//!
//! A line has the name of the PDU and then `field value` pairs in the order of RFC 7143. Flags are in brackets, tags in
//! hexadecimal, lengths in bytes. Data segments are never shown: those of login PDUs may contain secrets.

use super::{
    AsyncMessage, Bhs, DataIn, DataOut, LoginRequest, LoginResponse, LogoutRequest, LogoutResponse, Lun,
    NopIn, NopOut, R2t, RESERVED_TAG, Reject, Request, Residual, Response, ScsiCommand, ScsiResponse, Snack,
    Stage, StatusNumbers, TaskManagement, TaskManagementResponse, TextRequest, TextResponse, header::code,
};
use linerate_scsi_proto::{cdb::lba_and_blocks, opcode, status::Status};
use std::fmt::{Display, Formatter, Result};

/// A header of either direction; one that cannot be parsed prints its error.
#[derive(Clone, Copy, Debug)]
pub struct Header<'a>(pub &'a Bhs);

impl Display for Header<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        /// The lowest opcode of a target (RFC 7143 section 11.2.1.2).
        const FIRST_RESPONSE: u8 = 0x20;
        let parsed = if code(self.0) < FIRST_RESPONSE {
            Request::parse(self.0).map(|pdu| pdu.fmt(f))
        } else {
            Response::parse(self.0).map(|pdu| pdu.fmt(f))
        };
        parsed.unwrap_or_else(|error| write!(f, "not a PDU: {error}"))
    }
}

/// Writes `[a b]`: the names of the flags that are set; nothing if none is.
fn flags(f: &mut Formatter<'_>, all: &[(bool, &str)]) -> Result {
    let set: Vec<&str> = all.iter().filter(|(on, _)| *on).map(|(_, name)| *name).collect();
    if set.is_empty() { Ok(()) } else { write!(f, " [{}]", set.join(" ")) }
}

/// Writes a tag, unless it is the reserved one.
fn tag(f: &mut Formatter<'_>, name: &str, tag: u32) -> Result {
    if tag == RESERVED_TAG { Ok(()) } else { write!(f, " {name} {tag:#x}") }
}

fn lun(f: &mut Formatter<'_>, lun: Lun) -> Result {
    match lun.number() {
        Some(number) => write!(f, " lun {number}"),
        None => write!(f, " lun {:#018x}", lun.0),
    }
}

fn numbers(f: &mut Formatter<'_>, sn: StatusNumbers) -> Result {
    write!(f, " StatSN {} ExpCmdSN {} MaxCmdSN {}", sn.stat_sn, sn.exp_cmd_sn, sn.max_cmd_sn)
}

fn data(f: &mut Formatter<'_>, data_len: u32) -> Result {
    if data_len == 0 { Ok(()) } else { write!(f, " data {data_len} bytes") }
}

fn status(f: &mut Formatter<'_>, byte: u8) -> Result {
    match Status::from_code(byte) {
        Some(status) => write!(f, " {status}"),
        None => write!(f, " status {byte:#04x}"),
    }
}

fn residual(f: &mut Formatter<'_>, residual: Residual) -> Result {
    match residual {
        Residual::None => Ok(()),
        Residual::Underflow(bytes) => write!(f, " underflow {bytes} bytes"),
        Residual::Overflow(bytes) => write!(f, " overflow {bytes} bytes"),
    }
}

/// The name of a command; of a transfer also LBA and block count.
fn command(f: &mut Formatter<'_>, cdb: &[u8; 16]) -> Result {
    match opcode::name(cdb[0]) {
        Some(name) => write!(f, " {name}")?,
        None => write!(f, " opcode {:#04x}", cdb[0])?,
    }
    match cdb[0] {
        opcode::READ_6
        | opcode::READ_10
        | opcode::READ_12
        | opcode::READ_16
        | opcode::WRITE_6
        | opcode::WRITE_10
        | opcode::WRITE_12
        | opcode::WRITE_16 => {
            let (lba, blocks) = lba_and_blocks(cdb);
            write!(f, " lba {lba} blocks {blocks}")
        }
        _ => Ok(()),
    }
}

fn stages(f: &mut Formatter<'_>, current: Stage, next: Stage, transit: bool) -> Result {
    if transit { write!(f, " {current:?} -> {next:?}") } else { write!(f, " {current:?}") }
}

/// ISID as hexadecimal digits without separators.
fn isid(f: &mut Formatter<'_>, isid: [u8; 6]) -> Result {
    f.write_str(" isid ")?;
    isid.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

impl Display for Request {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Request::NopOut(pdu) => pdu.fmt(f),
            Request::ScsiCommand(pdu) => pdu.fmt(f),
            Request::TaskManagement(pdu) => pdu.fmt(f),
            Request::Login(pdu) => pdu.fmt(f),
            Request::Text(pdu) => pdu.fmt(f),
            Request::DataOut(pdu) => pdu.fmt(f),
            Request::Logout(pdu) => pdu.fmt(f),
            Request::Snack(pdu) => pdu.fmt(f),
        }
    }
}

impl Display for Response {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Response::NopIn(pdu) => pdu.fmt(f),
            Response::Scsi(pdu) => pdu.fmt(f),
            Response::TaskManagement(pdu) => pdu.fmt(f),
            Response::Login(pdu) => pdu.fmt(f),
            Response::Text(pdu) => pdu.fmt(f),
            Response::DataIn(pdu) => pdu.fmt(f),
            Response::Logout(pdu) => pdu.fmt(f),
            Response::R2t(pdu) => pdu.fmt(f),
            Response::Async(pdu) => pdu.fmt(f),
            Response::Reject(pdu) => pdu.fmt(f),
        }
    }
}

impl Display for ScsiCommand {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str("SCSI Command")?;
        let set = [(self.immediate, "I"), (self.final_pdu, "F"), (self.read, "R"), (self.write, "W")];
        flags(f, &set)?;
        tag(f, "ITT", self.itt)?;
        lun(f, self.lun)?;
        command(f, &self.cdb)?;
        write!(
            f,
            " expects {} bytes CmdSN {} ExpStatSN {}",
            self.expected_len, self.cmd_sn, self.exp_stat_sn
        )?;
        data(f, self.data_len)
    }
}

impl Display for DataOut {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str("Data-Out")?;
        flags(f, &[(self.final_pdu, "F")])?;
        tag(f, "ITT", self.itt)?;
        tag(f, "TTT", self.ttt)?;
        write!(f, " DataSN {} offset {} ExpStatSN {}", self.data_sn, self.buffer_offset, self.exp_stat_sn)?;
        data(f, self.data_len)
    }
}

impl Display for NopOut {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str("NOP-Out")?;
        flags(f, &[(self.immediate, "I")])?;
        tag(f, "ITT", self.itt)?;
        tag(f, "TTT", self.ttt)?;
        write!(f, " CmdSN {} ExpStatSN {}", self.cmd_sn, self.exp_stat_sn)?;
        data(f, self.data_len)
    }
}

impl Display for TaskManagement {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str("Task Management Request")?;
        flags(f, &[(self.immediate, "I")])?;
        write!(f, " {:?}", self.function)?;
        tag(f, "ITT", self.itt)?;
        tag(f, "referenced ITT", self.referenced_itt)?;
        lun(f, self.lun)?;
        write!(f, " RefCmdSN {} CmdSN {} ExpStatSN {}", self.ref_cmd_sn, self.cmd_sn, self.exp_stat_sn)
    }
}

impl Display for LoginRequest {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str("Login Request")?;
        flags(f, &[(self.transit, "T"), (self.cont, "C")])?;
        stages(f, self.current, self.next, self.transit)?;
        tag(f, "ITT", self.itt)?;
        isid(f, self.isid)?;
        let Self { tsih, cid, cmd_sn, exp_stat_sn, .. } = self;
        write!(f, " TSIH {tsih} CID {cid} CmdSN {cmd_sn} ExpStatSN {exp_stat_sn}")?;
        data(f, self.data_len)
    }
}

impl Display for TextRequest {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str("Text Request")?;
        flags(f, &[(self.immediate, "I"), (self.final_pdu, "F"), (self.cont, "C")])?;
        tag(f, "ITT", self.itt)?;
        tag(f, "TTT", self.ttt)?;
        write!(f, " CmdSN {} ExpStatSN {}", self.cmd_sn, self.exp_stat_sn)?;
        data(f, self.data_len)
    }
}

impl Display for LogoutRequest {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str("Logout Request")?;
        flags(f, &[(self.immediate, "I")])?;
        write!(f, " {:?} CID {}", self.reason, self.cid)?;
        tag(f, "ITT", self.itt)?;
        write!(f, " CmdSN {} ExpStatSN {}", self.cmd_sn, self.exp_stat_sn)
    }
}

impl Display for Snack {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "SNACK Request {:?}", self.kind)?;
        tag(f, "ITT", self.itt)?;
        tag(f, "TTT", self.ttt)?;
        write!(f, " begins {} length {} ExpStatSN {}", self.begin_run, self.run_len, self.exp_stat_sn)
    }
}

impl Display for ScsiResponse {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str("SCSI Response")?;
        tag(f, "ITT", self.itt)?;
        match self.response {
            0 => status(f, self.status)?,
            response => write!(f, " response {response:#04x}")?,
        }
        residual(f, self.residual)?;
        write!(f, " ExpDataSN {}", self.exp_data_sn)?;
        numbers(f, self.sn)?;
        data(f, self.data_len)
    }
}

impl Display for DataIn {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str("Data-In")?;
        flags(f, &[(self.final_pdu, "F"), (self.acknowledge, "A"), (self.status.is_some(), "S")])?;
        tag(f, "ITT", self.itt)?;
        tag(f, "TTT", self.ttt)?;
        if let Some(end) = self.status {
            status(f, end.status)?;
            residual(f, end.residual)?;
        }
        write!(f, " DataSN {} offset {}", self.data_sn, self.buffer_offset)?;
        numbers(f, self.sn)?;
        data(f, self.data_len)
    }
}

impl Display for R2t {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str("R2T")?;
        tag(f, "ITT", self.itt)?;
        tag(f, "TTT", self.ttt)?;
        write!(f, " R2TSN {} offset {} wants {} bytes", self.r2t_sn, self.buffer_offset, self.desired_len)?;
        numbers(f, self.sn)
    }
}

impl Display for NopIn {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str("NOP-In")?;
        tag(f, "ITT", self.itt)?;
        tag(f, "TTT", self.ttt)?;
        numbers(f, self.sn)?;
        data(f, self.data_len)
    }
}

impl Display for TaskManagementResponse {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "Task Management Response {:?}", self.result)?;
        tag(f, "ITT", self.itt)?;
        numbers(f, self.sn)
    }
}

impl Display for LoginResponse {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str("Login Response")?;
        flags(f, &[(self.transit, "T"), (self.cont, "C")])?;
        stages(f, self.current, self.next, self.transit)?;
        tag(f, "ITT", self.itt)?;
        isid(f, self.isid)?;
        write!(f, " TSIH {} status {:02x}{:02x}", self.tsih, self.status.class, self.status.detail)?;
        numbers(f, self.sn)?;
        data(f, self.data_len)
    }
}

impl Display for TextResponse {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str("Text Response")?;
        flags(f, &[(self.final_pdu, "F"), (self.cont, "C")])?;
        tag(f, "ITT", self.itt)?;
        tag(f, "TTT", self.ttt)?;
        numbers(f, self.sn)?;
        data(f, self.data_len)
    }
}

impl Display for LogoutResponse {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "Logout Response {:?}", self.result)?;
        tag(f, "ITT", self.itt)?;
        numbers(f, self.sn)
    }
}

impl Display for AsyncMessage {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "Asynchronous Message {:?}", self.event)?;
        lun(f, self.lun)?;
        numbers(f, self.sn)?;
        data(f, self.data_len)
    }
}

impl Display for Reject {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "Reject {:?}", self.reason)?;
        numbers(f, self.sn)?;
        data(f, self.data_len)
    }
}
