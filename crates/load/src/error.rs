//! Why a run cannot start or continue, and whose fault it is.

use crate::spec::SpecError;
use linerate_blame::Blame;
use linerate_smb::SmbRefusal;
use std::io;
use thiserror::Error;

/// Why a volume takes no write: later writes fail too, and it is known what removes the cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteRefusal {
    /// The file system of a file of this host, or the user's quota on it, is full.
    FullDisk,
    /// The array has no space for a thin volume.
    FullArray,
    /// The array protects the volume from writes.
    Protected,
}

impl WriteRefusal {
    /// The refusal that a failed call on this host is, if it is one.
    pub(crate) fn of_call(kind: io::ErrorKind) -> Option<Self> {
        matches!(kind, io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded).then_some(Self::FullDisk)
    }

    /// Whose fault.
    pub fn blame(self) -> Blame {
        match self {
            Self::FullDisk => Blame::Host,
            Self::FullArray => Blame::Peer,
            Self::Protected => Blame::User,
        }
    }
}

/// A run could not start or continue.
#[derive(Clone, Debug, Error)]
pub enum RunError {
    /// The specification is wrong.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// A volume could not be opened, or died.
    #[error("volume {volume}: {message}")]
    Volume {
        /// Name of the volume.
        volume: String,
        /// What happened and what to do.
        message: String,
        /// Whose fault.
        blame: Blame,
    },
    /// The server of a share refused something for a reason that can be removed there.
    #[error("volume {volume}: {message}")]
    Share {
        /// Name of the volume.
        volume: String,
        /// What happened.
        message: String,
        /// Whose fault.
        blame: Blame,
        /// What the server refused.
        refusal: SmbRefusal,
    },
    /// A volume takes no write any more, for a reason that can be removed.
    #[error("volume {volume}: {message}")]
    NoWrite {
        /// Name of the volume.
        volume: String,
        /// What happened, and of which path or address.
        message: String,
        /// Why.
        refusal: WriteRefusal,
    },
    /// The target of a volume refused user name or secret.
    #[error("volume {volume}: {message}")]
    Credentials {
        /// Name of the volume.
        volume: String,
        /// The target's answer.
        message: String,
    },
    /// The array is up, and its ports do not serve the volume now (ALUA).
    #[error("volume {volume}: {message}")]
    NotActive {
        /// Name of the volume.
        volume: String,
        /// Which access states the ports have.
        message: String,
    },
    /// A block does not contain the data that was written to it.
    #[error("volume {volume}: wrong data: {message}")]
    Miscompare {
        /// Name of the volume.
        volume: String,
        /// Offset, expected and found.
        message: String,
    },
    /// The machine refused something the run needs.
    #[error("{0}")]
    Host(String),
    /// A worker ended unexpectedly: a defect of this program.
    #[error("a worker failed: {0}; please report this")]
    Internal(String),
}

impl RunError {
    /// A volume could not be opened, or died; `refusal` is what the server of its share refused.
    pub(crate) fn of_volume(
        volume: String,
        message: String,
        blame: Blame,
        refusal: Option<SmbRefusal>,
    ) -> Self {
        match refusal {
            Some(refusal) => Self::Share { volume, message, blame, refusal },
            None => Self::Volume { volume, message, blame },
        }
    }

    /// Whose fault it was.
    pub fn blame(&self) -> Blame {
        match self {
            Self::Spec(_) | Self::Credentials { .. } => Blame::User,
            Self::Volume { blame, .. } | Self::Share { blame, .. } => *blame,
            Self::NoWrite { refusal, .. } => refusal.blame(),
            Self::Miscompare { .. } | Self::NotActive { .. } => Blame::Peer,
            Self::Host(_) => Blame::Host,
            Self::Internal(_) => Blame::Us,
        }
    }
}
