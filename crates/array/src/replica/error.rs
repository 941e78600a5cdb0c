//! Why replication does not go on.

use super::{LinkError, StoreError};
use crate::disk::DiskError;
use thiserror::Error;

/// Why a step of replication failed. None of them leaves anything half done that the next attempt does not mend.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ReplicaError {
    /// There is no such group.
    #[error("there is no replication group \"{0}\" on this array")]
    UnknownGroup(String),
    /// A name or a number that cannot be used.
    #[error("{0}")]
    Invalid(String),
    /// A group's volumes are chosen once.
    #[error("group \"{group}\" replicates {volumes}; replicate other volumes under another group's name")]
    Membership {
        /// The group.
        group: String,
        /// Its volumes.
        volumes: String,
    },
    /// A volume of that name exists already and is no replica of this group.
    #[error("group \"{group}\": a volume \"{volume}\" exists here and is no replica; rename or delete it")]
    NameTaken {
        /// The group.
        group: String,
        /// The volume.
        volume: String,
    },
    /// Hosts write the group's volumes here.
    #[error(
        "group \"{0}\" is primary on this array; to receive it here again, demote it first (what hosts wrote here \
         after the last common point is lost)"
    )]
    IsPrimary(String),
    /// The group is received here.
    #[error("group \"{0}\" is a replica on this array; promote it first, or replicate from the other array")]
    IsReplica(String),
    /// Nothing to promote to.
    #[error("group \"{0}\" has no complete point to promote to; its first copy never finished")]
    NoPoint(String),
    /// There is no such point, or it is gone.
    #[error("group \"{group}\" has no point \"{point}\" here")]
    UnknownPoint {
        /// The group.
        group: String,
        /// The point's name.
        point: String,
    },
    /// A message of a transfer that is over or was begun anew: start again with a new offer.
    #[error(
        "group \"{group}\": point \"{point}\" is not the transfer under way; it was begun anew since then"
    )]
    Stale {
        /// The group.
        group: String,
        /// The point's name.
        point: String,
    },
    /// A copy runs.
    #[error("group \"{0}\" is being copied; wait for it or stop it")]
    Busy(String),
    /// A copy was stopped.
    #[error("copying group \"{0}\" was stopped; it goes on from where it was when it is started again")]
    Stopped(String),
    /// The partner, or the way to it.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The pool below.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// What the table says about the group cannot be understood.
    #[error("replication group \"{group}\": its record cannot be read: {reason}")]
    Record {
        /// The group.
        group: String,
        /// Why.
        reason: String,
    },
}

impl From<DiskError> for ReplicaError {
    fn from(error: DiskError) -> Self {
        Self::Store(error.into())
    }
}

/// Whose fault an error is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// Whoever asked.
    User,
    /// The other array, or the network in between.
    Peer,
    /// This array's disks.
    Host,
}

impl ReplicaError {
    /// Whose fault it is.
    pub fn blame(&self) -> Blame {
        match self {
            Self::Stale { .. } | Self::Link(LinkError::Broken(_) | LinkError::Refused(_)) => Blame::Peer,
            Self::Store(StoreError::Disk(_)) | Self::Record { .. } => Blame::Host,
            _ => Blame::User,
        }
    }
}
