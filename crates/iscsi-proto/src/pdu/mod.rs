//! Protocol data units (RFC 7143 section 11): one plain struct per opcode.
//!
//! Open this file first. A PDU starts with a 48-byte basic header segment (BHS). Each struct here represents one valid
//! BHS: `parse` takes the 48 bytes and checks them, `emit` writes all 48 bytes, and `parse(emit(x)) == x` for every
//! value (a property test checks this). Reserved bits are written as zero and ignored when read. Data segments and
//! additional header segments (AHS) are not part of the structs: their lengths are, and [`crate::frame`] moves their
//! bytes.
//!
//! - [`Request`]: PDUs of an initiator (`request.rs`).
//! - [`Response`]: PDUs of a target (`response.rs`).
//! - `fields.rs`: small enumerations of both; `header.rs`: the wire layout that all of them share.
//!
//! Cost: parse and emit are a few loads, byte swaps and stores; nothing is allocated.

mod display;
mod fields;
mod header;
mod request;
mod response;
mod status;

pub use display::Header;
pub use fields::{
    AsyncEvent, LoginStatus, LogoutReason, LogoutResult, Lun, RejectReason, SnackKind, Stage, TaskAttribute,
    TaskFunction, TaskResult,
};
pub use header::{Bhs, data_len, total_ahs_len};
pub use request::{
    DataOut, LoginRequest, LogoutRequest, NopOut, Request, ScsiCommand, Snack, TaskManagement, TextRequest,
};
pub use response::{
    AsyncMessage, DataIn, DataInStatus, LoginResponse, LogoutResponse, NopIn, R2t, Reject, Response,
    ScsiResponse, TaskManagementResponse, TextResponse, sense_data,
};
pub use status::{Residual, StatusNumbers};

/// Length in bytes of a basic header segment.
pub const BHS_BYTES: usize = 48;

/// The tag value that means "no tag" in Initiator and Target Task Tag fields (RFC 7143 section 11.2.1.8).
pub const RESERVED_TAG: u32 = 0xffff_ffff;

/// Operation codes (RFC 7143 section 11.2.1.2).
pub mod opcode {
    #![allow(missing_docs, reason = "the names are those of the RFC's table")]
    pub const NOP_OUT: u8 = 0x00;
    pub const SCSI_COMMAND: u8 = 0x01;
    pub const TASK_MANAGEMENT: u8 = 0x02;
    pub const LOGIN_REQUEST: u8 = 0x03;
    pub const TEXT_REQUEST: u8 = 0x04;
    pub const DATA_OUT: u8 = 0x05;
    pub const LOGOUT_REQUEST: u8 = 0x06;
    pub const SNACK: u8 = 0x10;
    pub const NOP_IN: u8 = 0x20;
    pub const SCSI_RESPONSE: u8 = 0x21;
    pub const TASK_MANAGEMENT_RESPONSE: u8 = 0x22;
    pub const LOGIN_RESPONSE: u8 = 0x23;
    pub const TEXT_RESPONSE: u8 = 0x24;
    pub const DATA_IN: u8 = 0x25;
    pub const LOGOUT_RESPONSE: u8 = 0x26;
    pub const R2T: u8 = 0x31;
    pub const ASYNC_MESSAGE: u8 = 0x32;
    pub const REJECT: u8 = 0x3f;
}

/// Why a basic header segment is not a PDU that this side may receive (fault: peer).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PduError {
    /// The opcode is unknown, or belongs to the other direction.
    #[error("peer sent opcode {0:#04x}, which this side does not receive")]
    Opcode(u8),
    /// A field holds a value that the RFC does not define.
    #[error("peer sent opcode {opcode:#04x} with an undefined value {value} in field {field}")]
    Field {
        /// The PDU's opcode.
        opcode: u8,
        /// The field's name in RFC 7143.
        field: &'static str,
        /// Its value.
        value: u32,
    },
}

impl PduError {
    /// The reason for the Reject PDU (RFC 7143 section 11.17.1).
    pub fn reject_reason(&self) -> RejectReason {
        match self {
            PduError::Opcode(_) => RejectReason::CommandNotSupported,
            PduError::Field { .. } => RejectReason::InvalidPduField,
        }
    }
}
