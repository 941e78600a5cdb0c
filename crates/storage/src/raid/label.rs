//! The record on a disk that names the RAID set to which the disk belongs.

use super::{
    RaidLevel,
    group::{Found, SlotRecordState, Superblocks, look},
};
use crate::disk::Disk;

/// What a disk holds in the place of a member's superblocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Label {
    /// Nothing that a RAID set could have written.
    None,
    /// There were superblocks, and none is whole.
    Damaged,
    /// Superblocks of a version that this program does not know.
    Version(u32),
    /// It is, or was, a member or a spare.
    Member(MemberLabel),
}

/// What the newest superblock of a disk says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberLabel {
    /// Tells sets of one name apart.
    pub set: u64,
    /// The set's name.
    pub name: String,
    /// How it stores.
    pub level: RaidLevel,
    /// Groups that the set has.
    pub groups: usize,
    /// Which of them this disk is in.
    pub group: usize,
    /// Grows with each superblock.
    pub generation: u64,
    /// The disk's place in the group, and the id with which it came there; none: a spare.
    pub own: Option<(usize, u64)>,
    /// The group's places, as this superblock knows them.
    pub places: Vec<PlaceLabel>,
    /// What each member has at least.
    pub member_bytes: u64,
    /// Only one of the disk's two superblocks is whole.
    pub is_alone: bool,
}

/// A place in a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlaceLabel {
    /// The disk that has it, or had it last.
    pub disk: String,
    /// The id with which that disk came.
    pub id: u64,
    /// Whether the place is filled, at least in part.
    pub is_filled: bool,
}

/// Reads what a disk says.
pub async fn label(disk: &dyn Disk) -> Label {
    match look(disk).await {
        Superblocks::Absent => Label::None,
        Superblocks::Damaged => Label::Damaged,
        Superblocks::Version(version) => Label::Version(version),
        Superblocks::Whole { found, is_alone } => Label::Member(member(*found, is_alone)),
    }
}

fn member(found: Found, is_alone: bool) -> MemberLabel {
    let Found { meta, own } = found;
    let place = |slot: &super::group::SlotRecord| PlaceLabel {
        disk: slot.name.clone(),
        id: slot.id,
        is_filled: slot.state != SlotRecordState::Out,
    };
    MemberLabel {
        set: meta.set,
        name: meta.name.clone(),
        level: meta.level,
        groups: meta.groups as usize,
        group: meta.group as usize,
        generation: meta.generation,
        own,
        places: meta.slots.iter().map(place).collect(),
        member_bytes: meta.member_bytes(),
        is_alone,
    }
}

impl MemberLabel {
    /// Whether this superblock's group counts that disk as a member.
    pub fn has_member(&self, other: &Self) -> bool {
        let place = other.own.and_then(|(slot, id)| Some((self.places.get(slot)?, id)));
        place.is_some_and(|(place, id)| place.id == id && place.is_filled)
    }
}
