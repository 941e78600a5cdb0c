//! Status and sense in words (SAM-6 5.3, SPC-6 4.4).

/// Sense data, as far as every device gives it (SPC-6 4.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenseData {
    /// Sense key.
    pub key: u8,
    /// Additional sense code.
    pub asc: u8,
    /// Additional sense code qualifier.
    pub ascq: u8,
}

/// Sense data of either format (SPC-6 4.4.2 and 4.4.3); none if it is too short to say anything.
pub(crate) fn decode(bytes: &[u8]) -> Option<SenseData> {
    let at = |index: usize| bytes.get(index).copied();
    let sense = match at(0)? & 0x7f {
        0x70 | 0x71 => SenseData { key: at(2)? & 0x0f, asc: at(12).unwrap_or(0), ascq: at(13).unwrap_or(0) },
        0x72 | 0x73 => SenseData { key: at(1)? & 0x0f, asc: at(2).unwrap_or(0), ascq: at(3).unwrap_or(0) },
        _ => return None,
    };
    Some(sense)
}

/// "ILLEGAL REQUEST, logical block address out of range (5/21/00)".
pub(crate) fn words(sense: SenseData) -> String {
    let SenseData { key, asc, ascq } = sense;
    let cause = CAUSES.iter().find(|(a, q, _)| (*a, *q) == (asc, ascq)).map_or("", |(_, _, text)| text);
    let comma = if cause.is_empty() { "" } else { ", " };
    format!("{}{comma}{cause} ({key:x}/{asc:02x}/{ascq:02x})", KEYS[usize::from(key & 0x0f)])
}

/// The name of a SCSI status.
pub(crate) fn status_words(status: u8) -> &'static str {
    match status {
        0x00 => "GOOD",
        0x02 => "CHECK CONDITION",
        0x04 => "CONDITION MET",
        0x08 => "BUSY",
        0x18 => "RESERVATION CONFLICT",
        0x28 => "TASK SET FULL",
        0x30 => "ACA ACTIVE",
        0x40 => "TASK ABORTED",
        _ => "unknown status",
    }
}

/// SPC-6 table 28.
const KEYS: [&str; 16] = [
    "NO SENSE",
    "RECOVERED ERROR",
    "NOT READY",
    "MEDIUM ERROR",
    "HARDWARE ERROR",
    "ILLEGAL REQUEST",
    "UNIT ATTENTION",
    "DATA PROTECT",
    "BLANK CHECK",
    "VENDOR SPECIFIC",
    "COPY ABORTED",
    "ABORTED COMMAND",
    "RESERVED",
    "VOLUME OVERFLOW",
    "MISCOMPARE",
    "COMPLETED",
];

/// The causes that disk arrays report; others show as numbers.
const CAUSES: &[(u8, u8, &str)] = &[
    (0x04, 0x00, "logical unit not ready"),
    (0x04, 0x01, "logical unit is becoming ready"),
    (0x04, 0x02, "initializing command required"),
    (0x04, 0x0a, "asymmetric access state transition"),
    (0x04, 0x0b, "target port in standby state"),
    (0x04, 0x0c, "target port in unavailable state"),
    (0x0c, 0x00, "write error"),
    (0x0c, 0x0c, "write error, unexpected unsolicited data"),
    (0x0c, 0x0d, "write error, not enough unsolicited data"),
    (0x11, 0x00, "unrecovered read error"),
    (0x1a, 0x00, "parameter list length error"),
    (0x1d, 0x00, "miscompare during verify operation"),
    (0x20, 0x00, "invalid command operation code"),
    (0x21, 0x00, "logical block address out of range"),
    (0x24, 0x00, "invalid field in CDB"),
    (0x25, 0x00, "logical unit not supported"),
    (0x26, 0x00, "invalid field in parameter list"),
    (0x27, 0x00, "write protected"),
    (0x27, 0x01, "hardware write protected"),
    (0x27, 0x02, "logical unit software write protected"),
    (0x27, 0x07, "space allocation failed, write protect"),
    (0x28, 0x00, "medium may have changed"),
    (0x29, 0x00, "power on or reset occurred"),
    (0x29, 0x03, "bus device reset function occurred"),
    (0x29, 0x07, "I_T nexus loss occurred"),
    (0x2a, 0x01, "mode parameters changed"),
    (0x2a, 0x03, "reservations preempted"),
    (0x2a, 0x04, "reservations released"),
    (0x2a, 0x05, "registrations preempted"),
    (0x2a, 0x06, "asymmetric access state changed"),
    (0x2a, 0x09, "capacity data has changed"),
    (0x2f, 0x00, "commands cleared by another initiator"),
    (0x38, 0x07, "thin provisioning soft threshold reached"),
    (0x3a, 0x00, "medium not present"),
    (0x3f, 0x0e, "reported LUNs data has changed"),
    (0x44, 0x00, "internal target failure"),
    (0x47, 0x05, "protocol service CRC error"),
    (0x4b, 0x00, "data phase error"),
    (0x55, 0x04, "insufficient registration resources"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_formats_at_any_length() {
        let fixed = [0x70, 0, 5, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x21, 1];
        assert_eq!(decode(&fixed), Some(SenseData { key: 5, asc: 0x21, ascq: 1 }));
        assert_eq!(decode(&[0x72, 6, 0x29, 7]), Some(SenseData { key: 6, asc: 0x29, ascq: 7 }));
        assert_eq!(decode(&fixed[..3]), Some(SenseData { key: 5, asc: 0, ascq: 0 }));
        for short in [&[][..], &[0x70], &[0x70, 0], &[0x72], &[0x11, 2, 3]] {
            assert_eq!(decode(short), None);
        }
    }

    #[test]
    fn known_and_unknown_causes() {
        assert_eq!(
            words(SenseData { key: 5, asc: 0x21, ascq: 0 }),
            "ILLEGAL REQUEST, logical block address out of range (5/21/00)"
        );
        assert_eq!(
            words(SenseData { key: 7, asc: 0x27, ascq: 2 }),
            "DATA PROTECT, logical unit software write protected (7/27/02)"
        );
        assert_eq!(words(SenseData { key: 4, asc: 0xff, ascq: 0x12 }), "HARDWARE ERROR (4/ff/12)");
    }
}
