//! Standard INQUIRY data (SPC-4 6.6.2).

use crate::wire::{field, padded, text};

/// Length of the data that [`StandardInquiry::encode`] builds; an initiator requests this much.
pub const STANDARD_BYTES: usize = 96;

/// Peripheral qualifier and device type of a connected disk.
pub const DISK: u8 = 0x00;
/// Qualifier 3, device type 1Fh: the target has no such LUN.
pub const NO_SUCH_LUN: u8 = 0x7F;

const SPC_4: u8 = 0x06;
const HISUP: u8 = 0x10;
const RESPONSE_DATA_FORMAT: u8 = 0x02;
const THIRD_PARTY_COPY: u8 = 0x08;
const MULTIP: u8 = 0x10;
const CMDQUE: u8 = 0x02;
/// SAM-5, SPC-4, SBC-3, iSCSI; no version claimed of each (SPC-4 table 143).
const VERSION_DESCRIPTORS: [u16; 4] = [0x00A0, 0x0460, 0x04C0, 0x0960];

/// How a unit changes the access states of its port groups (TPGS, SPC-4 table 145): bit 0 implicit, bit 1 explicit.
pub type Tpgs = u8;
/// Only the unit itself changes states.
pub const IMPLICIT_ALUA: Tpgs = 1;

/// The identity of a logical unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StandardInquiry {
    /// Peripheral qualifier (bits 7 to 5) and device type (bits 4 to 0).
    pub peripheral: u8,
    /// Asymmetric access; 0 = none.
    pub tpgs: Tpgs,
    /// 3PC: EXTENDED COPY works.
    pub third_party_copy: bool,
    /// MULTIP: the target has several ports.
    pub multi_port: bool,
    /// T10 VENDOR IDENTIFICATION, up to 8 characters.
    pub vendor: String,
    /// PRODUCT IDENTIFICATION, up to 16 characters.
    pub product: String,
    /// PRODUCT REVISION LEVEL, up to 4 characters.
    pub revision: String,
}

impl StandardInquiry {
    /// The data of a unit that follows SPC-4 and queues commands.
    pub fn encode(&self) -> Vec<u8> {
        let copy = if self.third_party_copy { THIRD_PARTY_COPY } else { 0 };
        let ports = if self.multi_port { MULTIP } else { 0 };
        let mut out =
            vec![self.peripheral, 0, SPC_4, HISUP | RESPONSE_DATA_FORMAT, (STANDARD_BYTES - 5) as u8];
        out.extend_from_slice(&[(self.tpgs & 3) << 4 | copy, ports, CMDQUE]);
        out.extend_from_slice(&padded(&self.vendor, 8));
        out.extend_from_slice(&padded(&self.product, 16));
        out.extend_from_slice(&padded(&self.revision, 4));
        out.resize(58, 0);
        out.extend(VERSION_DESCRIPTORS.iter().flat_map(|version| version.to_be_bytes()));
        out.resize(STANDARD_BYTES, 0);
        out
    }

    /// Reads standard data; the first 36 bytes are enough.
    pub fn parse(reply: &[u8]) -> Option<Self> {
        let header: [u8; 36] = field(reply, 0)?;
        Some(Self {
            peripheral: header[0],
            tpgs: header[5] >> 4 & 3,
            third_party_copy: header[5] & THIRD_PARTY_COPY != 0,
            multi_port: header[6] & MULTIP != 0,
            vendor: text(&header[8..16]),
            product: text(&header[16..32]),
            revision: text(&header[32..36]),
        })
    }
}

/// The data of a LUN that does not exist: blank, 36 bytes (SPC-4 6.6.2).
pub fn no_such_lun() -> Vec<u8> {
    let mut out = vec![NO_SUCH_LUN, 0, SPC_4, RESPONSE_DATA_FORMAT, 31];
    out.resize(8, 0);
    out.resize(36, b' ');
    out
}
