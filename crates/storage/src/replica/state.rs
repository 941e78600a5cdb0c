//! The persistent state of a group, as stored in the table.

use super::{AnsweredVolume, Point};
use serde::{Deserialize, Serialize};

/// Version of the record. Other versions are refused.
pub(super) const FORMAT: u32 = 2;

/// Which side writes a group's volumes on this array.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Hosts write.
    Primary,
    /// The partner writes. Hosts must not even read, because they would see an incomplete transfer.
    Replica,
    /// From replica to primary. Hosts wait.
    Promoting {
        /// Name of the point to which the volumes are restored.
        point: String,
        /// The claim under which the partner must pass the token first; None: the partner is not asked.
        claim: Option<String>,
    },
}

/// The state of the right to be primary, as far as this array knows. See `role.rs`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Token {
    /// On this array. A replica has it after it was demoted.
    Held,
    /// The partner may take it under this claim. Until then neither array can become primary with it.
    Offered(String),
    /// The partner took it under this claim.
    Passed(String),
    /// Not on this array.
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
    /// Random, made with the group, the same on both arrays: it distinguishes groups of the same name.
    pub(super) id: String,
    pub(super) pair: Pair,
    pub(super) role: Role,
    pub(super) token: Token,
    /// How often role or token has changed here.
    pub(super) changes: u64,
    pub(super) volumes: Vec<String>,
    /// How many points are kept.
    pub(super) keep: usize,
    /// Points that both arrays have had, oldest first. The store knows whether a point still exists.
    pub(super) points: Vec<Point>,
    pub(super) outgoing: Option<Outgoing>,
    pub(super) incoming: Option<Incoming>,
}

/// A point that is being sent to the partner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Outgoing {
    pub(super) point: Point,
    /// The snapshots exist and will not change. Before that only this array knows the point.
    pub(super) is_taken: bool,
    /// The preparation of the partner's volumes that `cursor` belongs to.
    pub(super) incarnation: Option<u64>,
    /// All data before this position survives a power cut at the partner.
    pub(super) cursor: Cursor,
    pub(super) is_copied: bool,
}

/// A position in a transfer: volumes in the order of the group, each from its beginning to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Cursor {
    pub(super) volume: usize,
    pub(super) offset_bytes: u64,
}

/// A point that is being received from the partner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Incoming {
    pub(super) point: Point,
    pub(super) volumes: Vec<AnsweredVolume>,
    /// None while the volumes are being prepared.
    pub(super) incarnation: Option<u64>,
}

impl GroupState {
    /// A group that is created on this array, which is its primary.
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

    /// Sets a new role, and the state of the token.
    pub(super) fn become_role(&mut self, role: Role, token: Token) {
        self.role = role;
        self.token = token;
        self.changes += 1;
    }

    /// Ends the outgoing transfer. If the partner may have its point, the point is kept as a base.
    pub(super) fn retire_outgoing(&mut self) {
        if let Some(outgoing) = self.outgoing.take().filter(|outgoing| outgoing.is_copied) {
            self.keep = self.keep.max(2);
            self.add_point(outgoing.point);
        }
    }

    /// Adds a point that both arrays have, and removes the oldest ones.
    pub(super) fn add_point(&mut self, point: Point) {
        self.points.retain(|old| old.name != point.name);
        self.points.push(point);
        let surplus = self.points.len().saturating_sub(self.keep);
        self.points.drain(..surplus);
    }
}
