//! Why a command is refused: sense data, or a status without sense. A handler can use `?` for all of them.

use super::Reply;
use linerate_scsi_proto::sense::{Sense, code};
use linerate_scsi_proto::status::Status;

/// Why a handler refuses a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// CHECK CONDITION.
    Sense(Sense),
    /// CHECK CONDITION because the data-out has the wrong length; the CDB requires this many bytes.
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
