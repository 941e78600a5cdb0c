//! The slots of a group, and the disks in them.

use super::super::superblock::{SlotRecord, SlotRecordState};
use crate::disk::Disk;
use std::rc::Rc;

/// A slot of the group.
pub(in super::super) struct Slot {
    pub(in super::super) name: String,
    /// The generation in which the disk got this slot. It distinguishes the disk from earlier disks of the slot.
    pub(in super::super) id: u64,
    pub(in super::super) disk: Option<Rc<dyn Disk>>,
    pub(in super::super) state: SlotState,
    /// During a rebuild: stripes before this one survive a power cut.
    pub(in super::super) saved: u64,
    /// Reads in progress.
    pub(in super::super) reads: usize,
}

/// The state of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum SlotState {
    InSync,
    /// Stripes before this one are rebuilt.
    Rebuilding(u64),
    /// It has failed, and the superblocks still say this of it. They change when the group has settled. Until then it may
    /// come back after a power cut, and is needed for what was being written.
    Failing(SlotRecordState),
    Failed,
    Missing,
}

impl Slot {
    /// Whether it is written to, at least in part.
    pub(in super::super) fn is_alive(&self) -> bool {
        matches!(self.state, SlotState::InSync | SlotState::Rebuilding(_))
    }

    pub(in super::super) fn to_meta(&self) -> SlotRecord {
        let state = match self.state {
            SlotState::InSync => SlotRecordState::InSync,
            SlotState::Rebuilding(_) => SlotRecordState::Rebuilding(self.saved),
            SlotState::Failing(before) => before,
            SlotState::Failed | SlotState::Missing => SlotRecordState::Out,
        };
        SlotRecord { name: self.name.clone(), id: self.id, state }
    }

    /// It has failed; superblocks do not say so yet.
    pub(in super::super) fn fail(&mut self) {
        self.state = SlotState::Failing(self.to_meta().state);
    }

    /// Everything that other members were to hold is on them: the next superblock records the failure.
    pub(in super::super) fn settle(&mut self) {
        if matches!(self.state, SlotState::Failing(_)) {
            self.state = SlotState::Failed;
        }
    }
}
