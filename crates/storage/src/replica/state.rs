//! The persistent state of a group, as in the store's table.

use super::{AnsweredVolume, Point};
use serde::{Deserialize, Serialize};

/// Version of the record. Others are refused.
pub(super) const FORMAT: u32 = 2;

/// Who writes a group's volumes on this array.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Hosts do.
    Primary,
    /// The partner does; hosts must not even read, what they would see is half a transfer.
    Replica,
    /// On the way from replica to primary. Hosts wait.
    Promoting {
        /// Name of the point that the volumes become.
        point: String,
        /// The claim under which the partner must pass the token first; none = nothing is asked of the partner.
        claim: Option<String>,
    },
}

/// Where the right to be primary is, as far as this array knows. See `role.rs`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Token {
    /// Here. A replica has it after it was demoted.
    Held,
    /// The partner may take it under this claim. Until then neither array can become primary with it.
    Offered(String),
    /// The partner took it under this claim.
    Passed(String),
    /// Not here.
    Absent,
}

/// The two arrays of a group, by their identities. Only they exchange its copies and its role.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pair {
    /// This array.
    pub here: String,
    /// Its partner.
    pub partner: String,
}

/// One group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GroupState {
    pub(super) format: u32,
    /// Random, made with the group, the same on both arrays: groups that only share a name do not mix.
    pub(super) id: String,
    pub(super) pair: Pair,
    pub(super) role: Role,
    pub(super) token: Token,
    /// How often role or token have changed here.
    pub(super) changes: u64,
    pub(super) volumes: Vec<String>,
    /// How many points stay.
    pub(super) keep: usize,
    /// Points that both arrays have had, oldest first. Whether one is still there is the store's to say.
    pub(super) points: Vec<Point>,
    pub(super) outgoing: Option<Outgoing>,
    pub(super) incoming: Option<Incoming>,
}

/// A point on its way to the partner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Outgoing {
    pub(super) point: Point,
    /// The snapshots exist and will not change. Before that the point is known to this array only.
    pub(super) is_taken: bool,
    /// The preparation of the partner's volumes that `cursor` belongs to.
    pub(super) incarnation: Option<u64>,
    /// All before it survives a power cut at the partner.
    pub(super) cursor: Cursor,
    pub(super) is_copied: bool,
}

/// A place in a transfer: volumes in the order of the group, each from its beginning to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Cursor {
    pub(super) volume: usize,
    pub(super) offset_bytes: u64,
}

/// A point on its way from the partner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Incoming {
    pub(super) point: Point,
    pub(super) volumes: Vec<AnsweredVolume>,
    /// None while the volumes are still being made what the answer says they are.
    pub(super) incarnation: Option<u64>,
}

impl GroupState {
    /// A group that begins on this array, which is its primary.
    pub(super) fn primary(id: String, pair: Pair, volumes: Vec<String>) -> Self {
        Self::new(id, pair, Role::Primary, Token::Held, volumes, 1)
    }

    /// A group that the partner offers for the first time.
    pub(super) fn replica(id: String, pair: Pair, volumes: Vec<String>, keep: usize) -> Self {
        Self::new(id, pair, Role::Replica, Token::Absent, volumes, keep)
    }

    fn new(id: String, pair: Pair, role: Role, token: Token, volumes: Vec<String>, keep: usize) -> Self {
        let (keep, points) = (keep.max(1), Vec::new());
        let (outgoing, incoming) = (None, None);
        Self { format: FORMAT, id, pair, role, token, changes: 0, volumes, keep, points, outgoing, incoming }
    }

    /// A new role, and where the token is then.
    pub(super) fn become_role(&mut self, role: Role, token: Token) {
        self.role = role;
        self.token = token;
        self.changes += 1;
    }

    /// Ends the outgoing transfer. If the partner may have its point, it is a good one to start from.
    pub(super) fn retire_outgoing(&mut self) {
        if let Some(outgoing) = self.outgoing.take().filter(|outgoing| outgoing.is_copied) {
            self.keep = self.keep.max(2);
            self.add_point(outgoing.point);
        }
    }

    /// Adds a point that both arrays have, and lets the oldest ones go.
    pub(super) fn add_point(&mut self, point: Point) {
        self.points.retain(|old| old.name != point.name);
        self.points.push(point);
        let surplus = self.points.len().saturating_sub(self.keep);
        self.points.drain(..surplus);
    }
}
