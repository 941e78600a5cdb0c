//! Sense data: why a command failed (SPC-4 4.5).
//!
//! The device server builds a [`Sense`] and the initiator parses it, in fixed and in descriptor format. The table in
//! this file has each additional sense code once, with its name in code and its text for messages.

use std::fmt;

/// Sense keys (SPC-4 table 47).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum SenseKey {
    /// Nothing to report.
    #[default]
    NoSense = 0x0,
    /// Completed, after the device recovered from an error.
    RecoveredError = 0x1,
    /// The unit cannot be used now.
    NotReady = 0x2,
    /// A flaw of the medium or of the recorded data.
    MediumError = 0x3,
    /// Any other failure of the device.
    HardwareError = 0x4,
    /// The CDB or its parameters are wrong.
    IllegalRequest = 0x5,
    /// Something happened that every initiator must learn.
    UnitAttention = 0x6,
    /// The blocks are protected.
    DataProtect = 0x7,
    /// A blank or unexpected medium.
    BlankCheck = 0x8,
    /// Defined by the vendor.
    VendorSpecific = 0x9,
    /// EXTENDED COPY ended early.
    CopyAborted = 0xA,
    /// The device aborted the command; it may be sent again.
    AbortedCommand = 0xB,
    /// Reserved.
    Reserved = 0xC,
    /// The end of the medium was reached with data left.
    VolumeOverflow = 0xD,
    /// The data compared do not match.
    Miscompare = 0xE,
    /// Completed, with sense data on a GOOD status.
    Completed = 0xF,
}

/// Every key in order, with its name in SPC-4.
const KEYS: [(SenseKey, &str); 16] = [
    (SenseKey::NoSense, "NO SENSE"),
    (SenseKey::RecoveredError, "RECOVERED ERROR"),
    (SenseKey::NotReady, "NOT READY"),
    (SenseKey::MediumError, "MEDIUM ERROR"),
    (SenseKey::HardwareError, "HARDWARE ERROR"),
    (SenseKey::IllegalRequest, "ILLEGAL REQUEST"),
    (SenseKey::UnitAttention, "UNIT ATTENTION"),
    (SenseKey::DataProtect, "DATA PROTECT"),
    (SenseKey::BlankCheck, "BLANK CHECK"),
    (SenseKey::VendorSpecific, "VENDOR SPECIFIC"),
    (SenseKey::CopyAborted, "COPY ABORTED"),
    (SenseKey::AbortedCommand, "ABORTED COMMAND"),
    (SenseKey::Reserved, "RESERVED"),
    (SenseKey::VolumeOverflow, "VOLUME OVERFLOW"),
    (SenseKey::Miscompare, "MISCOMPARE"),
    (SenseKey::Completed, "COMPLETED"),
];

impl SenseKey {
    /// The key in the low four bits of a byte.
    pub fn from_nibble(byte: u8) -> Self {
        KEYS[usize::from(byte & 0x0F)].0
    }
}

impl fmt::Display for SenseKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(KEYS[usize::from(*self as u8)].1)
    }
}

/// Defines the additional sense codes and the table of their texts.
macro_rules! additional_sense_codes {
    ($($name:ident = $code:literal, $text:literal;)*) => {
        /// Additional sense codes (SPC-4 annex D): ASC in the high byte, ASCQ in the low byte.
        pub mod code {
            $(
                #[allow(clippy::doc_markdown, reason = "the texts of the standard")]
                #[doc = $text]
                pub const $name: u16 = $code;
            )*
        }

        const TEXTS: &[(u16, &str)] = &[$(($code, $text),)*];
    };
}

additional_sense_codes! {
    NONE = 0x0000, "no additional sense information";
    NOT_READY = 0x0400, "logical unit not ready";
    BECOMING_READY = 0x0401, "logical unit is becoming ready";
    START_REQUIRED = 0x0402, "initializing command required";
    ACCESS_STATE_TRANSITION = 0x040A, "asymmetric access state transition";
    PORT_IN_STANDBY = 0x040B, "target port in standby state";
    PORT_UNAVAILABLE = 0x040C, "target port in unavailable state";
    UNREACHABLE_COPY_TARGET = 0x0804, "unreachable copy target";
    WRITE_ERROR = 0x0C00, "write error";
    UNEXPECTED_UNSOLICITED_DATA = 0x0C0C, "write error, unexpected unsolicited data";
    NOT_ENOUGH_UNSOLICITED_DATA = 0x0C0D, "write error, not enough unsolicited data";
    THIRD_PARTY_DEVICE_FAILURE = 0x0D01, "third party device failure";
    COPY_TARGET_NOT_REACHABLE = 0x0D02, "copy target device not reachable";
    INVALID_FIELD_IN_COMMAND_IU = 0x0E03, "invalid field in command information unit";
    UNRECOVERED_READ = 0x1100, "unrecovered read error";
    PARAMETER_LIST_LENGTH = 0x1A00, "parameter list length error";
    MISCOMPARE = 0x1D00, "miscompare during verify operation";
    INVALID_OPCODE = 0x2000, "invalid command operation code";
    LBA_OUT_OF_RANGE = 0x2100, "logical block address out of range";
    INVALID_FIELD_IN_CDB = 0x2400, "invalid field in CDB";
    LUN_NOT_SUPPORTED = 0x2500, "logical unit not supported";
    INVALID_FIELD_IN_PARAMETERS = 0x2600, "invalid field in parameter list";
    INVALID_RELEASE = 0x2604, "invalid release of persistent reservation";
    TOO_MANY_TARGETS = 0x2606, "too many target descriptors";
    UNSUPPORTED_TARGET_TYPE = 0x2607, "unsupported target descriptor type code";
    TOO_MANY_SEGMENTS = 0x2608, "too many segment descriptors";
    UNSUPPORTED_SEGMENT_TYPE = 0x2609, "unsupported segment descriptor type code";
    WRITE_PROTECTED = 0x2700, "write protected";
    HARDWARE_WRITE_PROTECTED = 0x2701, "hardware write protected";
    SOFTWARE_WRITE_PROTECTED = 0x2702, "logical unit software write protected";
    SPACE_ALLOCATION_FAILED = 0x2707, "space allocation failed, write protect";
    MEDIUM_MAY_HAVE_CHANGED = 0x2800, "medium may have changed";
    POWER_ON = 0x2900, "power on or reset occurred";
    LUN_RESET = 0x2903, "bus device reset function occurred";
    NEXUS_LOSS = 0x2907, "I_T nexus loss occurred";
    MODE_PARAMETERS_CHANGED = 0x2A01, "mode parameters changed";
    RESERVATIONS_PREEMPTED = 0x2A03, "reservations preempted";
    RESERVATIONS_RELEASED = 0x2A04, "reservations released";
    REGISTRATIONS_PREEMPTED = 0x2A05, "registrations preempted";
    ACCESS_STATE_CHANGED = 0x2A06, "asymmetric access state changed";
    CAPACITY_CHANGED = 0x2A09, "capacity data has changed";
    COMMANDS_CLEARED = 0x2F00, "commands cleared by another initiator";
    SOFT_THRESHOLD_REACHED = 0x3807, "thin provisioning soft threshold reached";
    SAVING_NOT_SUPPORTED = 0x3900, "saving parameters not supported";
    MEDIUM_NOT_PRESENT = 0x3A00, "medium not present";
    REPORTED_LUNS_CHANGED = 0x3F0E, "reported LUNs data has changed";
    INTERNAL_TARGET_FAILURE = 0x4400, "internal target failure";
    PROTOCOL_SERVICE_CRC_ERROR = 0x4705, "protocol service CRC error";
    DATA_PHASE_ERROR = 0x4B00, "data phase error";
    INSUFFICIENT_REGISTRATION_RESOURCES = 0x5504, "insufficient registration resources";
}

/// The cause: a sense key and an additional sense code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenseCode {
    /// The sense key.
    pub key: SenseKey,
    /// Additional sense code in the high byte, qualifier in the low byte: see [`code`].
    pub code: u16,
}

impl SenseCode {
    /// A key with an additional sense code.
    pub const fn new(key: SenseKey, code: u16) -> Self {
        Self { key, code }
    }

    /// Additional sense code.
    pub const fn asc(self) -> u8 {
        (self.code >> 8) as u8
    }

    /// Additional sense code qualifier.
    pub const fn ascq(self) -> u8 {
        self.code as u8
    }
}

/// "ILLEGAL REQUEST, logical block address out of range (5/21/00)". Codes outside the table show as numbers.
impl fmt::Display for SenseCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.key)?;
        let text = TEXTS.iter().find(|(code, _)| *code == self.code && self.code != code::NONE);
        if let Some((_, text)) = text {
            write!(f, ", {text}")?;
        }
        write!(f, " ({:x}/{:02x}/{:02x})", self.key as u8, self.asc(), self.ascq())
    }
}

/// Offset in bytes of the wrong field in a CDB or parameter list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldPointer {
    /// In the CDB.
    Cdb(u16),
    /// In the parameter list.
    Parameter(u16),
}

impl FieldPointer {
    /// Sense key specific bytes: SKSV, C/D and the field pointer (SPC-4 4.5.2.4.2).
    fn encode(self) -> [u8; 3] {
        let (is_cdb, byte) = match self {
            Self::Cdb(byte) => (IN_CDB, byte),
            Self::Parameter(byte) => (0, byte),
        };
        let [high, low] = byte.to_be_bytes();
        [VALID | is_cdb, high, low]
    }

    fn parse(bytes: [u8; 3]) -> Option<Self> {
        let byte = u16::from_be_bytes([bytes[1], bytes[2]]);
        let pointer = if bytes[0] & IN_CDB != 0 { Self::Cdb(byte) } else { Self::Parameter(byte) };
        (bytes[0] & VALID != 0).then_some(pointer)
    }
}

/// Sense data of a current error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sense {
    /// Key and additional sense code.
    pub code: SenseCode,
    /// INFORMATION: for most block commands the LBA of the error.
    pub information: Option<u64>,
    /// The offending field of an ILLEGAL REQUEST.
    pub field: Option<FieldPointer>,
}

/// VALID of the information field, SKSV of the field pointer.
const VALID: u8 = 0x80;
const IN_CDB: u8 = 0x40;
const INFORMATION_DESCRIPTOR: u8 = 0x00;
const SENSE_KEY_SPECIFIC_DESCRIPTOR: u8 = 0x02;

impl Sense {
    /// Key and code alone.
    pub const fn new(key: SenseKey, code: u16) -> Self {
        Self { code: SenseCode::new(key, code), information: None, field: None }
    }

    /// ILLEGAL REQUEST with an additional sense code.
    pub const fn illegal(code: u16) -> Self {
        Self::new(SenseKey::IllegalRequest, code)
    }

    /// INVALID FIELD IN CDB, pointing at a byte.
    pub const fn cdb(byte: u16) -> Self {
        Self { field: Some(FieldPointer::Cdb(byte)), ..Self::illegal(code::INVALID_FIELD_IN_CDB) }
    }

    /// INVALID FIELD IN PARAMETER LIST, pointing at a byte.
    pub const fn parameter(byte: u16) -> Self {
        Self {
            field: Some(FieldPointer::Parameter(byte)),
            ..Self::illegal(code::INVALID_FIELD_IN_PARAMETERS)
        }
    }

    /// With an information field.
    #[must_use]
    pub const fn with_information(self, information: u64) -> Self {
        Self { information: Some(information), ..self }
    }

    /// LBA OUT OF RANGE with the first offending LBA.
    pub const fn lba(lba: u64) -> Self {
        Self::illegal(code::LBA_OUT_OF_RANGE).with_information(lba)
    }

    /// Encodes in descriptor or fixed format. The fixed format has 32 bits for the information; a larger value is left
    /// out.
    pub fn encode(self, descriptor_format: bool) -> Vec<u8> {
        if descriptor_format { self.encode_descriptor() } else { self.encode_fixed() }
    }

    fn encode_fixed(self) -> Vec<u8> {
        let mut out = vec![0; 18];
        out[0] = 0x70;
        out[2] = self.code.key as u8;
        if let Some(information) = self.information.and_then(|value| u32::try_from(value).ok()) {
            out[0] |= VALID;
            out[3..7].copy_from_slice(&information.to_be_bytes());
        }
        out[7] = 10;
        out[12..14].copy_from_slice(&self.code.code.to_be_bytes());
        if let Some(field) = self.field {
            out[15..18].copy_from_slice(&field.encode());
        }
        out
    }

    fn encode_descriptor(self) -> Vec<u8> {
        let mut out = vec![0x72, self.code.key as u8, self.code.asc(), self.code.ascq(), 0, 0, 0, 0];
        if let Some(information) = self.information {
            out.extend_from_slice(&[INFORMATION_DESCRIPTOR, 0x0A, VALID, 0]);
            out.extend_from_slice(&information.to_be_bytes());
        }
        if let Some(field) = self.field {
            let [flags, high, low] = field.encode();
            out.extend_from_slice(&[SENSE_KEY_SPECIFIC_DESCRIPTOR, 0x06, 0, 0, flags, high, low, 0]);
        }
        out[7] = (out.len() - 8) as u8;
        out
    }

    /// Reads sense data of either format, current or deferred (SPC-4 4.5.2, 4.5.3); None if the bytes end before the
    /// sense key.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        match bytes.first()? & 0x7F {
            0x70 | 0x71 => Self::parse_fixed(bytes),
            0x72 | 0x73 => Self::parse_descriptor(bytes),
            _ => None,
        }
    }

    fn parse_fixed(bytes: &[u8]) -> Option<Self> {
        let at = |index: usize| bytes.get(index).copied().unwrap_or(0);
        let key = SenseKey::from_nibble(*bytes.get(2)?);
        let information = u64::from(u32::from_be_bytes([at(3), at(4), at(5), at(6)]));
        Some(Self {
            code: SenseCode::new(key, u16::from_be_bytes([at(12), at(13)])),
            information: (at(0) & VALID != 0 && bytes.len() > 6).then_some(information),
            field: FieldPointer::parse([at(15), at(16), at(17)])
                .filter(|_| key == SenseKey::IllegalRequest && bytes.len() > 17),
        })
    }

    fn parse_descriptor(bytes: &[u8]) -> Option<Self> {
        let at = |index: usize| bytes.get(index).copied().unwrap_or(0);
        let key = SenseKey::from_nibble(*bytes.get(1)?);
        let mut sense = Self::new(key, u16::from_be_bytes([at(2), at(3)]));
        let mut rest = bytes.get(8..).unwrap_or_default();
        while let [kind, len, value @ ..] = rest {
            let value = &value[..usize::from(*len).min(value.len())];
            match (*kind, value) {
                (INFORMATION_DESCRIPTOR, [flags, _, information @ ..]) if flags & VALID != 0 => {
                    sense.information = information.first_chunk().copied().map(u64::from_be_bytes);
                }
                (SENSE_KEY_SPECIFIC_DESCRIPTOR, [_, _, a, b, c, ..]) if key == SenseKey::IllegalRequest => {
                    sense.field = FieldPointer::parse([*a, *b, *c]);
                }
                _ => {}
            }
            rest = &rest[2 + value.len()..];
        }
        Some(sense)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_in_the_order_of_their_numbers() {
        for (number, (key, _)) in KEYS.iter().enumerate() {
            assert_eq!(*key as usize, number);
        }
    }

    #[test]
    fn each_additional_code_is_listed_once_in_ascending_order() {
        assert!(TEXTS.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }

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

    #[test]
    fn both_formats_are_read_as_far_as_they_go() {
        let code = |bytes: &[u8]| Sense::parse(bytes).map(|sense| sense.code);
        let fixed = [0x70, 0, 5, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x21, 1];
        assert_eq!(code(&fixed), Some(SenseCode::new(SenseKey::IllegalRequest, 0x2101)));
        let descriptor = [0x72, 6, 0x29, 7];
        assert_eq!(code(&descriptor), Some(SenseCode::new(SenseKey::UnitAttention, code::NEXUS_LOSS)));
        assert_eq!(code(&fixed[..3]), Some(SenseCode::new(SenseKey::IllegalRequest, code::NONE)));
        for short in [&[][..], &[0x70], &[0x70, 0], &[0x72], &[0x11, 2, 3]] {
            assert_eq!(Sense::parse(short), None);
        }
    }

    #[test]
    fn codes_with_and_without_a_text() {
        let lba = SenseCode::new(SenseKey::IllegalRequest, code::LBA_OUT_OF_RANGE);
        assert_eq!(lba.to_string(), "ILLEGAL REQUEST, logical block address out of range (5/21/00)");
        let vendor = SenseCode::new(SenseKey::HardwareError, 0xFF12);
        assert_eq!(vendor.to_string(), "HARDWARE ERROR (4/ff/12)");
        assert_eq!(SenseCode::default().to_string(), "NO SENSE (0/00/00)");
    }
}
