//! MODE SENSE and MODE SELECT. The pages themselves are in `linerate_scsi_proto::mode`.
//!
//! Initiators may change WCE (caching page), `D_SENSE` and SWP (control page). All initiators share the pages; they are
//! not saved.

mod select;
mod sense;

pub(crate) use select::select;
pub(crate) use sense::{Medium, mode_sense};
