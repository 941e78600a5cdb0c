//! What a group knows in memory, each part with its own rules. The group's operations, in the files beside this folder,
//! change it.

mod commits;
mod regions;
mod slots;
mod space;

pub(super) use commits::{Commits, Settling};
pub(super) use regions::{IntentRegion, WriteIntent};
pub(super) use slots::{Slot, SlotState};
pub(super) use space::{LOOK_FOR_SPACE_NS, Space};
