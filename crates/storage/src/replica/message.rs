//! The messages of two arrays about a transfer. They are JSON over the partner's control interface. Each may be lost or
//! sent twice without harm.

use serde::{Deserialize, Serialize};

/// Source to partner: offers to copy a point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Offer {
    /// The volumes that are copied as of one instant.
    pub group: String,
    /// The random id of the group.
    pub id: String,
    /// Identity of the array that offers.
    pub from: String,
    /// Identity of the array for which the offer is; no other array accepts it.
    pub to: String,
    /// The point to copy.
    pub point: Point,
    /// Its volumes.
    pub volumes: Vec<OfferedVolume>,
    /// How many points the partner keeps, this one included; at least 1.
    pub keep: usize,
}

/// One volume of an [`Offer`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OfferedVolume {
    /// Its name, on both arrays.
    pub name: String,
    /// Its size at the point.
    pub size_bytes: u64,
    /// Older points to which the source can compute the difference, oldest first.
    pub bases: Vec<String>,
}

/// A consistent instant of a group. The array that takes it names it once. The name always means the same bytes on
/// every array with a snapshot of this name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Name of the snapshots.
    pub name: String,
    /// When it was taken: seconds since 1970.
    pub at_s: f64,
}

/// Partner to source: requests the copy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// The group.
    pub group: String,
    /// The point's name.
    pub point: String,
    /// Names this preparation of the partner's volumes. Copied data is valid as long as the partner reports the same
    /// one.
    pub incarnation: u64,
    /// The partner has the point already; only the confirmation was lost.
    pub is_complete: bool,
    /// In the order of the offer.
    pub volumes: Vec<AnsweredVolume>,
}

/// One volume of an [`Answer`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AnsweredVolume {
    /// Its name.
    pub name: String,
    /// The partner's volume has the contents of this point; None: it is full of zeros.
    pub base: Option<String>,
    /// Its size at the point.
    pub size_bytes: u64,
}

/// Source to partner: all data has arrived. Partner to source, unchanged: the point exists.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Commit {
    /// The group.
    pub group: String,
    /// The point's name.
    pub point: String,
    /// From the answer.
    pub incarnation: u64,
}
