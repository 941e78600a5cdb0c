//! Third-party copy: EXTENDED COPY (LID1) and its reports (SPC-4 6.4, 6.18).
//!
//! A parameter list names units by NAA designator and the blocks to copy between them. Units are looked up among those
//! that the sender's nexus sees, so a copy cannot reach data that its sender could not read or write itself.
//! Reservations, write protection and stopped units are checked for every unit of the copy, before every piece.

mod list;
mod reports;
mod results;
mod run;

pub(crate) use reports::{copy_status, operating_parameters, third_party_copy_page};
pub(crate) use results::CopyResults;
pub(crate) use run::extended_copy;

/// Published by RECEIVE COPY RESULTS (operating parameters).
mod limits {
    pub(super) const MAX_TARGETS: usize = 16;
    pub(super) const MAX_SEGMENTS: usize = 64;
    /// Target and segment descriptors together.
    pub(super) const MAX_DESCRIPTOR_BYTES: usize = 2560;
    pub(super) const MAX_SEGMENT_BYTES: u32 = 64 << 20;
    /// Finished copies whose status is kept.
    pub(super) const HELD_RESULTS: usize = 32;
}
