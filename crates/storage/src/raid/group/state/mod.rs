//! The state of a group in memory. The operations are in the files beside this folder.

mod commits;
mod locks;
mod regions;
mod slots;
mod space;

pub(super) use commits::{Commits, Settling};
pub(super) use locks::{Guard, Hold, Locks};
pub(super) use regions::{IntentRegion, WriteIntent};
pub(super) use slots::{Slot, SlotState};
pub(super) use space::{LOOK_FOR_SPACE_NS, Space};
