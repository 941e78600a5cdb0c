//! What two arrays tell each other about a transfer. They travel as JSON over the partner's control interface; each of them
//! may be lost or sent twice without harm.

use serde::{Deserialize, Serialize};

/// Source to partner: "I have this point, shall we?"
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Offer {
    /// The volumes that are kept at one instant.
    pub group: String,
    /// What the group was named at random when it was made.
    pub id: String,
    /// Identity of the array that offers.
    pub from: String,
    /// Identity of the array that it is offered to; no other accepts it.
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
    /// Older points that the source can tell the difference to, oldest first.
    pub bases: Vec<String>,
}

/// A consistent instant of a group. The array that takes it names it once; the name always means the same
/// bytes wherever a snapshot has this name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Name of the snapshots.
    pub name: String,
    /// When it was taken: seconds since 1970.
    pub at_s: f64,
}

/// Partner to source: "copy this."
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// The group.
    pub group: String,
    /// The point's name.
    pub point: String,
    /// Names this preparation of the partner's volumes. What was copied counts as long as the partner says the same one.
    pub incarnation: u64,
    /// The partner has the point already; only the confirmation got lost.
    pub is_complete: bool,
    /// In the order of the offer.
    pub volumes: Vec<AnsweredVolume>,
}

/// One volume of an [`Answer`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AnsweredVolume {
    /// Its name.
    pub name: String,
    /// The partner's volume is as it was at this point; none: it is full of zeros.
    pub base: Option<String>,
    /// Its size at the point.
    pub size_bytes: u64,
}

/// Source to partner: "all of it has arrived"; partner to source, unchanged: "it is a point now."
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Commit {
    /// The group.
    pub group: String,
    /// The point's name.
    pub point: String,
    /// From the answer.
    pub incarnation: u64,
}
