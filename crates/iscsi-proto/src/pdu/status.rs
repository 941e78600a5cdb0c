//! Common parts of target PDUs: sequence numbers and residual counts.

use super::header::Wire;

/// The three sequence numbers of every target PDU (RFC 7143 section 4.2.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatusNumbers {
    /// Number of this status, or of the next one if the PDU carries none (R2T, NOP-In ping).
    pub stat_sn: u32,
    /// Next command sequence number the target expects.
    pub exp_cmd_sn: u32,
    /// Highest command sequence number the target accepts.
    pub max_cmd_sn: u32,
}

impl StatusNumbers {
    pub(super) fn read(wire: &Wire) -> Self {
        StatusNumbers { stat_sn: wire.word(1), exp_cmd_sn: wire.word(2), max_cmd_sn: wire.word(3) }
    }

    pub(super) fn write(self, wire: &mut Wire) {
        wire.set_word(1, self.stat_sn);
        wire.set_word(2, self.exp_cmd_sn);
        wire.set_word(3, self.max_cmd_sn);
    }
}

const OVERFLOW: u8 = 0x04;
const UNDERFLOW: u8 = 0x02;

/// The difference between the moved data and the data that the initiator expected (RFC 7143 section 11.4.5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Residual {
    /// Not at all.
    #[default]
    None,
    /// This many bytes fewer were moved than expected.
    Underflow(u32),
    /// This many bytes more were available than expected.
    Overflow(u32),
}

impl Residual {
    /// The residual of moving `available` bytes when `expected` were announced.
    pub fn of(expected: u32, available: u64) -> Self {
        match available.cmp(&u64::from(expected)) {
            std::cmp::Ordering::Equal => Residual::None,
            std::cmp::Ordering::Less => Residual::Underflow(expected - available as u32),
            std::cmp::Ordering::Greater => {
                Residual::Overflow(u32::try_from(available - u64::from(expected)).unwrap_or(u32::MAX))
            }
        }
    }

    pub(super) fn read(wire: &Wire) -> Self {
        match (wire.flag(OVERFLOW), wire.flag(UNDERFLOW)) {
            (true, _) => Residual::Overflow(wire.word(6)),
            (false, true) => Residual::Underflow(wire.word(6)),
            (false, false) => Residual::None,
        }
    }

    pub(super) fn flags_and_count(self) -> (u8, u32) {
        match self {
            Residual::None => (0, 0),
            Residual::Underflow(bytes) => (UNDERFLOW, bytes),
            Residual::Overflow(bytes) => (OVERFLOW, bytes),
        }
    }
}
