//! RAID sets: disks made of disks. Open this file first.
//!
//! A set ([`RaidSet`]) is striped over groups, or is one group. A group ([`group`]) keeps copies, or data with parity
//! ([`parity`]), and everything that makes it safe: superblocks, flags of regions, a journal, checksums. RAID 0 is striped
//! over groups of one disk, RAID 10, 50 and 60 over copies and parity groups.

mod config;
mod group;
mod label;
mod pages;
pub mod parity;
mod set;
mod status;
mod striping;

pub use config::{CHUNK_BYTES, Initialise, JournalUse, RaidConfig, RaidError, RaidLevel};
pub use group::ScrubReport;
pub use label::{Label, MemberLabel, PlaceLabel, label};
pub use pages::{PageRun, StripedPages};
pub use set::RaidSet;
pub use status::{MemberState, MemberStatus, RaidCounters, RaidState, RaidStatus, RaidTask, TaskKind};
