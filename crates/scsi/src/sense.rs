//! Sense data: why a command failed (SPC-4 4.5).
//!
//! A refusal starts as a small [`Sense`] value and is encoded once, in the format that `D_SENSE` of the
//! unit's control mode page asks for. [`Refusal`] adds the statuses that carry no sense data, so that a
//! handler can use `?` for all.

use crate::plan::{Reply, Status};

/// Sense keys that this device server uses (SPC-4 table 47).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Key {
    NoSense = 0x0,
    NotReady = 0x2,
    MediumError = 0x3,
    HardwareError = 0x4,
    IllegalRequest = 0x5,
    UnitAttention = 0x6,
    DataProtect = 0x7,
    CopyAborted = 0xA,
    Miscompare = 0xE,
}

/// Where in a CDB or parameter list the offending field starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    Cdb(u16),
    Parameter(u16),
}

/// Sense data before encoding: key, additional sense code and qualifier as one number, and what goes with
/// them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sense {
    pub(crate) key: Key,
    /// Additional sense code in the high byte, qualifier in the low byte.
    pub(crate) code: u16,
    pub(crate) information: Option<u64>,
    pub(crate) field: Option<Field>,
}

/// Additional sense codes (SPC-4 annex D).
pub(crate) mod code {
    pub(crate) const NONE: u16 = 0x0000;
    pub(crate) const START_REQUIRED: u16 = 0x0402;
    pub(crate) const ACCESS_STATE_TRANSITION: u16 = 0x040A;
    pub(crate) const PORT_IN_STANDBY: u16 = 0x040B;
    pub(crate) const PORT_UNAVAILABLE: u16 = 0x040C;
    pub(crate) const UNREACHABLE_COPY_TARGET: u16 = 0x0804;
    pub(crate) const WRITE_ERROR: u16 = 0x0C00;
    pub(crate) const THIRD_PARTY_DEVICE_FAILURE: u16 = 0x0D01;
    pub(crate) const COPY_TARGET_NOT_REACHABLE: u16 = 0x0D02;
    pub(crate) const INVALID_FIELD_IN_COMMAND_IU: u16 = 0x0E03;
    pub(crate) const UNRECOVERED_READ: u16 = 0x1100;
    pub(crate) const PARAMETER_LIST_LENGTH: u16 = 0x1A00;
    pub(crate) const MISCOMPARE: u16 = 0x1D00;
    pub(crate) const INVALID_OPCODE: u16 = 0x2000;
    pub(crate) const LBA_OUT_OF_RANGE: u16 = 0x2100;
    pub(crate) const INVALID_FIELD_IN_CDB: u16 = 0x2400;
    pub(crate) const LUN_NOT_SUPPORTED: u16 = 0x2500;
    pub(crate) const INVALID_FIELD_IN_PARAMETERS: u16 = 0x2600;
    pub(crate) const INVALID_RELEASE: u16 = 0x2604;
    pub(crate) const TOO_MANY_TARGETS: u16 = 0x2606;
    pub(crate) const UNSUPPORTED_TARGET_TYPE: u16 = 0x2607;
    pub(crate) const TOO_MANY_SEGMENTS: u16 = 0x2608;
    pub(crate) const UNSUPPORTED_SEGMENT_TYPE: u16 = 0x2609;
    pub(crate) const SPACE_ALLOCATION_FAILED: u16 = 0x2707;
    pub(crate) const HARDWARE_WRITE_PROTECTED: u16 = 0x2701;
    pub(crate) const SOFTWARE_WRITE_PROTECTED: u16 = 0x2702;
    pub(crate) const POWER_ON: u16 = 0x2900;
    pub(crate) const LUN_RESET: u16 = 0x2903;
    pub(crate) const MODE_PARAMETERS_CHANGED: u16 = 0x2A01;
    pub(crate) const RESERVATIONS_PREEMPTED: u16 = 0x2A03;
    pub(crate) const RESERVATIONS_RELEASED: u16 = 0x2A04;
    pub(crate) const REGISTRATIONS_PREEMPTED: u16 = 0x2A05;
    pub(crate) const ACCESS_STATE_CHANGED: u16 = 0x2A06;
    pub(crate) const CAPACITY_CHANGED: u16 = 0x2A09;
    pub(crate) const COMMANDS_CLEARED: u16 = 0x2F00;
    pub(crate) const SOFT_THRESHOLD_REACHED: u16 = 0x3807;
    pub(crate) const SAVING_NOT_SUPPORTED: u16 = 0x3900;
    pub(crate) const REPORTED_LUNS_CHANGED: u16 = 0x3F0E;
    pub(crate) const INTERNAL_TARGET_FAILURE: u16 = 0x4400;
    pub(crate) const INSUFFICIENT_REGISTRATION_RESOURCES: u16 = 0x5504;
}

impl Sense {
    pub(crate) const fn new(key: Key, code: u16) -> Self {
        Self { key, code, information: None, field: None }
    }

    pub(crate) const fn illegal(code: u16) -> Self {
        Self::new(Key::IllegalRequest, code)
    }

    /// INVALID FIELD IN CDB, pointing at a byte.
    pub(crate) const fn cdb(byte: u16) -> Self {
        Self { field: Some(Field::Cdb(byte)), ..Self::illegal(code::INVALID_FIELD_IN_CDB) }
    }

    /// INVALID FIELD IN PARAMETER LIST, pointing at a byte.
    pub(crate) const fn parameter(byte: u16) -> Self {
        Self { field: Some(Field::Parameter(byte)), ..Self::illegal(code::INVALID_FIELD_IN_PARAMETERS) }
    }

    pub(crate) const fn with_information(self, information: u64) -> Self {
        Self { information: Some(information), ..self }
    }

    /// LBA OUT OF RANGE with the first offending LBA.
    pub(crate) const fn lba(lba: u64) -> Self {
        Self::illegal(code::LBA_OUT_OF_RANGE).with_information(lba)
    }

    /// Sense key specific bytes: SKSV, C/D and the field pointer (SPC-4 4.5.2.4.2).
    fn key_specific(self) -> Option<[u8; 3]> {
        let (is_cdb, byte) = match self.field? {
            Field::Cdb(byte) => (0x40, byte),
            Field::Parameter(byte) => (0, byte),
        };
        let pointer = byte.to_be_bytes();
        Some([0x80 | is_cdb, pointer[0], pointer[1]])
    }

    /// Encodes as current-error sense data, descriptor or fixed format.
    pub(crate) fn encode(self, descriptor_format: bool) -> Vec<u8> {
        if descriptor_format { self.encode_descriptor() } else { self.encode_fixed() }
    }

    fn encode_fixed(self) -> Vec<u8> {
        let mut out = vec![0; 18];
        out[0] = 0x70;
        out[2] = self.key as u8;
        // Fixed format has room for 32 bits; a larger value is left out rather than cut.
        if let Some(information) = self.information.and_then(|value| u32::try_from(value).ok()) {
            out[0] |= 0x80;
            out[3..7].copy_from_slice(&information.to_be_bytes());
        }
        out[7] = 10;
        out[12..14].copy_from_slice(&self.code.to_be_bytes());
        if let Some(specific) = self.key_specific() {
            out[15..18].copy_from_slice(&specific);
        }
        out
    }

    fn encode_descriptor(self) -> Vec<u8> {
        let code = self.code.to_be_bytes();
        let mut out = vec![0x72, self.key as u8, code[0], code[1], 0, 0, 0, 0];
        if let Some(information) = self.information {
            out.extend_from_slice(&[0x00, 0x0A, 0x80, 0]);
            out.extend_from_slice(&information.to_be_bytes());
        }
        if let Some(specific) = self.key_specific() {
            out.extend_from_slice(&[0x02, 0x06, 0, 0, specific[0], specific[1], specific[2], 0]);
        }
        out[7] = (out.len() - 8) as u8;
        out
    }
}

/// Why a handler does not do what it was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// CHECK CONDITION.
    Sense(Sense),
    /// CHECK CONDITION because the data-out is of the wrong length; the CDB asked for this many bytes.
    DataOutLength { asked_bytes: u32 },
    /// RESERVATION CONFLICT.
    Conflict,
}

impl From<Sense> for Refusal {
    fn from(sense: Sense) -> Self {
        Self::Sense(sense)
    }
}

impl Refusal {
    pub(crate) fn into_reply(self, descriptor_format: bool) -> Reply {
        let (sense, asked_out_bytes) = match self {
            Self::Conflict => return Reply::status(Status::ReservationConflict),
            Self::Sense(sense) => (sense, 0),
            Self::DataOutLength { asked_bytes } => {
                (Sense::illegal(code::INVALID_FIELD_IN_COMMAND_IU), asked_bytes)
            }
        };
        Reply {
            sense: sense.encode(descriptor_format),
            asked_out_bytes,
            ..Reply::status(Status::CheckCondition)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_format_carries_field_pointer_and_information() {
        let sense = Sense::cdb(0x0102).with_information(0x1122_3344).encode(false);
        assert_eq!(sense, [0xF0, 0, 5, 0x11, 0x22, 0x33, 0x44, 10, 0, 0, 0, 0, 0x24, 0, 0, 0xC0, 1, 2]);
    }

    #[test]
    fn information_that_does_not_fit_fixed_format_is_left_out() {
        let sense = Sense::lba(1 << 32).encode(false);
        assert_eq!(sense[0], 0x70);
        assert_eq!(sense[3..7], [0; 4]);
    }

    #[test]
    fn descriptor_format_counts_its_descriptors() {
        let sense = Sense::lba(1 << 32).encode(true);
        assert_eq!(sense[..4], [0x72, 5, 0x21, 0]);
        assert_eq!(usize::from(sense[7]), sense.len() - 8);
        assert_eq!(sense[12..20], (1_u64 << 32).to_be_bytes());
    }
}
