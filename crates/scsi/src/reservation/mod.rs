//! Reservations: which nexuses may use the unit while another one has reserved it.
//!
//! There are two independent kinds. SCSI-2 RESERVE/RELEASE belongs to one `I_T` nexus and ends with it. Persistent
//! reservations belong to registered initiator ports and survive logout. They survive power loss if the volume keeps
//! them and the initiator requests this (APTPL). While any port is registered, RESERVE and RELEASE conflict (SPC-2
//! 5.5.1), so the two kinds never overlap.
//!
//! The rules are data: every row of the command table has an [`Access`], and [`Reservations::conflicts`] evaluates it
//! (SPC-4 table 65, SBC-3 table 13).

mod full_status;
mod persistent;
mod transport_id;

pub(crate) use full_status::{full_status, read_keys, read_reservation, report_capabilities, restored};
pub(crate) use persistent::{Changes, Kind, Persistent};
pub(crate) use transport_id::TransportId;

use crate::port::PortPair;

/// How a command behaves under another nexus's reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Always allowed (INQUIRY, REPORT LUNS, READ CAPACITY ...).
    Always,
    /// Conflicts with a SCSI-2 reservation only (TEST UNIT READY, PERSISTENT RESERVE ...).
    UnlessReserved,
    /// Allowed under the write exclusive types.
    Read,
    /// Conflicts under every type, unless this nexus holds the reservation or the type permits registrants.
    Write,
    /// START STOP UNIT: a stop is treated like a write, a start is always permitted.
    Stop,
}

/// The reservation state of one unit.
#[derive(Debug, Default)]
pub(crate) struct Reservations {
    /// The nexus that holds a SCSI-2 reservation.
    pub(crate) scsi2: Option<u64>,
    pub(crate) persistent: Persistent,
}

impl Reservations {
    /// Whether a command of this nexus conflicts.
    pub(crate) fn conflicts(&self, nexus: u64, port: &PortPair, access: Access) -> bool {
        if access == Access::Always {
            return false;
        }
        if self.scsi2.is_some_and(|holder| holder != nexus) {
            return true;
        }
        match access {
            Access::Always | Access::UnlessReserved => false,
            Access::Read => !self.persistent.may_read(port),
            Access::Write | Access::Stop => !self.persistent.may_write(port),
        }
    }

    /// RESERVE (6) and (10): reserves the unit for this nexus, or conflicts.
    pub(crate) fn reserve(&mut self, nexus: u64) -> bool {
        let free = self.scsi2.is_none_or(|holder| holder == nexus) && self.persistent.is_empty();
        if free {
            self.scsi2 = Some(nexus);
        }
        free
    }

    /// RELEASE (6) and (10): a release by another nexus than the holder does nothing and is GOOD (SPC-2 7.17).
    pub(crate) fn release(&mut self, nexus: u64) -> bool {
        if !self.persistent.is_empty() {
            return false;
        }
        self.drop_nexus(nexus);
        true
    }

    /// `I_T` nexus loss ends its SCSI-2 reservation.
    pub(crate) fn drop_nexus(&mut self, nexus: u64) {
        if self.scsi2 == Some(nexus) {
            self.scsi2 = None;
        }
    }
}
