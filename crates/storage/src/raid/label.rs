//! The record on a disk that names the RAID set to which the disk belongs.

use super::{
    RaidLevel,
    group::{Found, SlotRecordState, Superblocks, look},
};
use crate::disk::Disk;

/// The superblocks of a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Label {
    /// No superblock of a RAID set.
    None,
    /// There were superblocks, but none is valid.
    Damaged,
    /// Superblocks of a version that this program does not know.
    Version(u32),
    /// It is, or was, a member or a spare.
    Member(MemberLabel),
}

/// The newest superblock of a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberLabel {
    /// Distinguishes sets of the same name.
    pub set: u64,
    /// The set's name.
    pub name: String,
    /// The RAID level.
    pub level: RaidLevel,
    /// Groups that the set has.
    pub groups: usize,
    /// The group of this disk.
    pub group: usize,
    /// Grows with each superblock.
    pub generation: u64,
    /// The disk's slot in the group, and the id that it got with the slot; None: a spare.
    pub own: Option<(usize, u64)>,
    /// The slots of the group, by this superblock.
    pub places: Vec<PlaceLabel>,
    /// The size that each member has at least.
    pub member_bytes: u64,
    /// Only one of the disk's two superblocks is valid.
    pub is_alone: bool,
}

/// A slot of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlaceLabel {
    /// The disk that has it, or had it last.
    pub disk: String,
    /// The id that the disk got with the slot.
    pub id: u64,
    /// Whether the slot has data, at least in part.
    pub is_filled: bool,
}

/// Reads the label of a disk.
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
    /// Whether this superblock lists that disk as a member.
    pub fn has_member(&self, other: &Self) -> bool {
        let place = other.own.and_then(|(slot, id)| Some((self.places.get(slot)?, id)));
        place.is_some_and(|(place, id)| place.id == id && place.is_filled)
    }
}
