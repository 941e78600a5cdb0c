//! The fast path of plain READ and WRITE commands.
//!
//! Every state that could stop a plain READ or WRITE (a reservation of another nexus, a pending unit attention, a stopped
//! or protected unit, a port in standby) is one bit of an atomic word per `I_T_L` nexus. A read costs one load of the
//! word; a write adds one atomic add on the counter of its stripe (`unit/write_exclusion.rs`). If a bit is set, the
//! command takes the full path through the command table, which checks the state.

/// A unit attention is pending.
pub(crate) const ATTENTION: u32 = 1;
/// A reservation of another nexus forbids reading.
pub(crate) const NO_READ: u32 = 1 << 1;
/// A reservation of another nexus forbids writing.
pub(crate) const NO_WRITE: u32 = 1 << 2;
/// The unit is stopped.
pub(crate) const STOPPED: u32 = 1 << 3;
/// The medium is write protected.
pub(crate) const PROTECTED: u32 = 1 << 4;
/// The write cache is off: every write is durable. This bit stops no command.
pub(crate) const WRITE_THROUGH: u32 = 1 << 5;
/// The target port's group is in standby, unavailable or transitioning.
pub(crate) const NO_ACCESS: u32 = 1 << 6;
/// The unit was removed from its target.
pub(crate) const RETIRED: u32 = 1 << 7;

pub(crate) const STOPS_READ: u32 = ATTENTION | NO_READ | STOPPED | NO_ACCESS | RETIRED;
pub(crate) const STOPS_WRITE: u32 = ATTENTION | NO_WRITE | STOPPED | PROTECTED | NO_ACCESS | RETIRED;
