//! Why replication cannot continue.

use super::{LinkError, StoreError};
use crate::disk::DiskError;
use linerate_blame::Blame;
use thiserror::Error;

/// Why a step of replication failed. After any of them the next attempt repairs the state.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ReplicaError {
    /// There is no such group.
    #[error("there is no replication group \"{0}\" on this array")]
    UnknownGroup(String),
    /// An invalid name or number.
    #[error("{0}")]
    Invalid(String),
    /// The volumes of a group cannot be changed.
    #[error("group \"{group}\" replicates {volumes}; replicate other volumes under another group's name")]
    Membership {
        /// The group.
        group: String,
        /// Its volumes.
        volumes: String,
    },
    /// A volume of that name exists already and is not a replica of this group.
    #[error("group \"{group}\": a volume \"{volume}\" exists here and is no replica; rename or delete it")]
    NameTaken {
        /// The group.
        group: String,
        /// The volume.
        volume: String,
    },
    /// The partner is this array itself.
    #[error("the partner is this array itself ({0})")]
    Itself(String),
    /// The group belongs to another pair of arrays.
    #[error("group \"{group}\" is joined with the array {known}, not with {now}")]
    OtherPartner {
        /// The group.
        group: String,
        /// The identity it is joined with.
        known: String,
        /// The identity of the array that asks, or that is asked.
        now: String,
    },
    /// This array had another identity when the group was joined.
    #[error("group \"{group}\" was joined when this array was {known}; now it is {now}")]
    Renamed {
        /// The group.
        group: String,
        /// The identity at that time.
        known: String,
        /// The current identity.
        now: String,
    },
    /// An offer for other arrays.
    #[error(
        "group \"{group}\" is offered by {from} to {to}; this array is not meant, or the sender is another one"
    )]
    NotMeant {
        /// The group.
        group: String,
        /// The array that offers it.
        from: String,
        /// The array to which it is offered.
        to: String,
    },
    /// Another group of the same name.
    #[error(
        "the receiving array has another replication named \"{0}\"; if that one is over, end it there: linerate array \
         forget --force, and delete its volumes"
    )]
    OtherGroup(String),
    /// A promotion waits for the partner.
    #[error(
        "group \"{0}\" is being promoted on this array; wait for it, or give it up: linerate array demote"
    )]
    Promoting(String),
    /// The right to be primary is not on this array.
    #[error(
        "the right to make group \"{0}\" primary is not on this array: the partner has it, or a promotion by force came in \
         between"
    )]
    NoToken(String),
    /// Role or token has changed since the partner was asked.
    #[error(
        "the role of group \"{0}\" changed in the meantime; look at both arrays and repeat it at one of them"
    )]
    Changed(String),
    /// Hosts write the group's volumes here.
    #[error(
        "group \"{0}\" is primary on this array; to receive it here again, demote it first (what hosts wrote here \
         after the last common point is lost)"
    )]
    IsPrimary(String),
    /// The group is received here.
    #[error("group \"{0}\" is a replica on this array; promote it first, or replicate from the other array")]
    IsReplica(String),
    /// There is no point to promote to.
    #[error("group \"{0}\" has no complete point to promote to; its first copy never finished")]
    NoPoint(String),
    /// There is no such point, or it was deleted.
    #[error("group \"{group}\" has no point \"{point}\" here")]
    UnknownPoint {
        /// The group.
        group: String,
        /// The point's name.
        point: String,
    },
    /// A message of a transfer that has ended or was begun again: start again with a new offer.
    #[error(
        "group \"{group}\": point \"{point}\" is not the transfer under way; it was begun anew since then"
    )]
    Stale {
        /// The group.
        group: String,
        /// The point's name.
        point: String,
    },
    /// A copy is running.
    #[error("group \"{0}\" is being copied; wait for it or stop it")]
    Busy(String),
    /// A copy was stopped.
    #[error("copying group \"{0}\" was stopped; it goes on from where it was when it is started again")]
    Stopped(String),
    /// The partner or the connection to it failed.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The pool failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The record of the group in the table is invalid.
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

impl ReplicaError {
    /// What to do about it, where the message does not say so.
    pub fn way_out(&self) -> Option<String> {
        match self {
            Self::Itself(_) => Some("name another array's certificate and address".to_owned()),
            Self::OtherPartner { group, .. } => {
                Some(format!("if that array takes its place: linerate array rejoin {group}"))
            }
            Self::Renamed { group, .. } => Some(format!(
                "give this array its old identity file, or: linerate array rejoin {group}, at both arrays"
            )),
            _ => None,
        }
    }

    /// Whose fault it is.
    pub fn blame(&self) -> Blame {
        match self {
            Self::Stale { .. } | Self::Link(LinkError::Broken(_) | LinkError::Refused(_)) => Blame::Peer,
            Self::Store(StoreError::Disk(_)) | Self::Record { .. } => Blame::Host,
            _ => Blame::User,
        }
    }
}
