//! What a group must remember, as it stands in the store's table.

use super::{AnsweredVolume, Point};
use serde::{Deserialize, Serialize};

/// Who writes a group's volumes on this array.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Hosts do.
    Primary,
    /// The partner does; hosts must not even read, what they would see is half a transfer.
    Replica,
    /// On the way from replica to primary: the volumes are being made what they were at this point. Hosts wait.
    Promoting {
        /// The point's name.
        point: String,
    },
}

/// One group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct GroupState {
    pub(super) role: Role,
    pub(super) partner: Option<String>,
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
    /// The snapshots exist and will not change. Before that nobody else has heard of the point.
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
    pub(super) fn new(role: Role, volumes: Vec<String>, keep: usize) -> Self {
        let keep = keep.max(1);
        Self { role, partner: None, volumes, keep, points: Vec::new(), outgoing: None, incoming: None }
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
