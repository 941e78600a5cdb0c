//! The command table: everything this device server can do, one row per command.
//!
//! A row's usage mask is what REPORT SUPPORTED OPERATION CODES shows and also what a CDB is checked against:
//! a one bit may be used, a zero bit must be zero. So protection fields, ANCHOR, NACA and the like are
//! refused by not being here.

use super::{Handler, report_opcodes};
use crate::{
    Plan, Reply, UnitConfig,
    answer::{control, inquiry, ports, report},
    copy, inventory,
    reservation::Access::{self, Always, Read, Stop, UnlessReserved, Write},
    sense::{Sense, code},
    task,
};

/// One row.
pub(crate) struct Command {
    pub(crate) opcode: u8,
    pub(crate) service_action: Option<u8>,
    /// CDB usage data without opcode and service action; its length is the CDB's.
    pub(crate) usage: &'static [u8],
    pub(crate) access: Access,
    /// Refused while the unit is stopped.
    pub(crate) needs_medium: bool,
    /// Exists on thin units only.
    needs_thin: bool,
    pub(crate) handler: Handler,
}

const fn command(opcode: u8, usage: &'static [u8], access: Access, handler: Handler) -> Command {
    let (needs_medium, needs_thin) = (false, false);
    Command { opcode, service_action: None, usage, access, needs_medium, needs_thin, handler }
}

/// A command that needs the medium.
const fn medium(opcode: u8, usage: &'static [u8], access: Access, handler: Handler) -> Command {
    Command { needs_medium: true, ..command(opcode, usage, access, handler) }
}

impl Command {
    const fn action(self, service_action: u8) -> Self {
        Self { service_action: Some(service_action), ..self }
    }

    const fn medium(self) -> Self {
        Self { needs_medium: true, ..self }
    }

    const fn thin(self) -> Self {
        Self { needs_thin: true, ..self }
    }

    /// Usage byte as reported: the opcode, the service action, then the mask.
    pub(crate) fn usage_byte(&self, index: usize) -> u8 {
        match (index, self.service_action) {
            (0, _) => self.opcode,
            (1, Some(action)) => self.usage[1] | action,
            _ => self.usage[index],
        }
    }

    /// Refuses a CDB with a bit set that this command does not use.
    pub(crate) fn check_usage(&self, cdb: &[u8; 16]) -> Result<(), Sense> {
        for (index, mask) in self.usage.iter().enumerate().skip(1) {
            let mut allowed = *mask;
            if index == 1 && self.service_action.is_some() {
                allowed |= 0x1F;
            }
            // These bits held the LUN before SCSI-3; old initiators still set them in six-byte CDBs.
            if index == 1 && self.usage.len() == 6 {
                allowed |= 0xE0;
            }
            if cdb[index] & !allowed != 0 {
                return Err(Sense::cdb(index as u16));
            }
        }
        Ok(())
    }
}

/// The commands that this unit has.
pub(crate) fn visible(config: &UnitConfig) -> impl Iterator<Item = &'static Command> {
    let thin = config.thin;
    COMMANDS.iter().filter(move |command| thin || !command.needs_thin)
}

/// The row for a CDB. An unknown service action of a known opcode is a bad field, not a bad opcode.
pub(crate) fn find(config: &UnitConfig, cdb: &[u8; 16]) -> Result<&'static Command, Sense> {
    let mut rows = visible(config).filter(|command| command.opcode == cdb[0]).peekable();
    if rows.peek().is_none() {
        return Err(Sense::illegal(code::INVALID_OPCODE));
    }
    rows.find(|row| row.service_action.is_none_or(|action| action == cdb[1] & 0x1F)).ok_or(Sense::cdb(1))
}

/// A reply that needs nothing but the CDB, or a refusal.
macro_rules! data {
    ($function:path) => {
        |itl, request| Ok(Plan::Reply(Reply::data($function(itl, request.cdb)?)))
    };
}

/// A reply that needs nothing but the CDB and is never refused.
macro_rules! always {
    ($function:path) => {
        |itl, request| Ok(Plan::Reply(Reply::data($function(itl, request.cdb))))
    };
}

const LBA_10: &[u8] = &[0, 0x18, 0xFF, 0xFF, 0xFF, 0xFF, 0x1F, 0xFF, 0xFF, 0];
const LBA_12: &[u8] = &[0, 0x18, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x1F, 0];
const LBA_16: &[u8] =
    &[0, 0x18, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x1F, 0];
/// DPO and BYTCHK instead of DPO and FUA.
const CHECK_10: &[u8] = &[0, 0x16, 0xFF, 0xFF, 0xFF, 0xFF, 0x1F, 0xFF, 0xFF, 0];
const CHECK_12: &[u8] = &[0, 0x16, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x1F, 0];
const CHECK_16: &[u8] =
    &[0, 0x16, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x1F, 0];
/// IMMED only.
const IMMED_10: &[u8] = &[0, 0x02, 0xFF, 0xFF, 0xFF, 0xFF, 0x1F, 0xFF, 0xFF, 0];
const IMMED_16: &[u8] =
    &[0, 0x02, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x1F, 0];
/// UNMAP without ANCHOR, and with NDOB.
const SAME_10: &[u8] = &[0, 0x08, 0xFF, 0xFF, 0xFF, 0xFF, 0x1F, 0xFF, 0xFF, 0];
const SAME_16: &[u8] =
    &[0, 0x09, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x1F, 0];
/// DPO, FUA, one byte of block count.
const COMPARE_16: &[u8] = &[0, 0x18, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0xFF, 0x1F, 0];
const RESERVE_IN: &[u8] = &[0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 0];
const RESERVE_OUT: &[u8] = &[0, 0, 0xFF, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0];
const COPY_STATUS: &[u8] = &[0, 0, 0xFF, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0];
const ALLOCATION_16: &[u8] =
    &[0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0];

/// Ascending by opcode and service action.
static COMMANDS: &[Command] = &[
    medium(0x00, &[0; 6], UnlessReserved, |_, _| Ok(Plan::Reply(Reply::good()))), // TEST UNIT READY
    command(0x03, &[0, 0x01, 0, 0, 0xFF, 0], Always, always!(report::request_sense)),
    medium(0x08, &[0, 0x1F, 0xFF, 0xFF, 0xFF, 0], Read, task::read), // READ (6)
    medium(0x0A, &[0, 0x1F, 0xFF, 0xFF, 0xFF, 0], Write, task::write), // WRITE (6)
    command(0x12, &[0, 0x01, 0xFF, 0xFF, 0xFF, 0], Always, data!(inquiry::inquiry)),
    command(0x15, &[0, 0x10, 0, 0, 0xFF, 0], Write, task::mode_select), // MODE SELECT (6)
    command(0x16, &[0; 6], UnlessReserved, control::reserve),           // RESERVE (6)
    command(0x17, &[0; 6], Always, control::release),                   // RELEASE (6)
    command(0x1A, &[0, 0x08, 0xFF, 0xFF, 0xFF, 0], Read, data!(control::mode_sense)),
    command(0x1B, &[0, 0x01, 0, 0x0F, 0xF5, 0], Stop, |itl, request| Ok(control::start_stop(itl, request))),
    command(0x1D, &[0, 0x04, 0, 0, 0, 0], Write, |_, _| Ok(Plan::Reply(Reply::good()))), // SEND DIAGNOSTIC
    medium(0x25, &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0], Always, always!(report::read_capacity_10)),
    medium(0x28, LBA_10, Read, task::read),
    medium(0x2A, LBA_10, Write, task::write),
    medium(0x2E, CHECK_10, Write, task::write_and_verify),
    medium(0x2F, CHECK_10, Read, task::verify),
    medium(0x34, IMMED_10, Read, task::prefetch),
    medium(0x35, IMMED_10, Write, task::synchronize_cache),
    medium(0x37, &[0, 0, 0x1F, 0, 0, 0, 0, 0xFF, 0xFF, 0], Read, always!(report::defect_data_10)),
    medium(0x41, SAME_10, Write, task::write_same),
    medium(0x42, &[0, 0, 0, 0, 0, 0, 0x1F, 0xFF, 0xFF, 0], Write, task::unmap).thin(),
    command(0x4D, &[0, 0, 0xFF, 0xFF, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0], Always, data!(report::log_sense)),
    command(0x55, &[0, 0x10, 0, 0, 0, 0, 0, 0xFF, 0xFF, 0], Write, task::mode_select),
    command(0x56, &[0; 10], UnlessReserved, control::reserve), // RESERVE (10)
    command(0x57, &[0; 10], Always, control::release),         // RELEASE (10)
    command(0x5A, &[0, 0x18, 0xFF, 0xFF, 0, 0, 0, 0xFF, 0xFF, 0], Read, data!(control::mode_sense)),
    command(0x5E, RESERVE_IN, UnlessReserved, always!(control::reserve_in)).action(0x00), // READ KEYS
    command(0x5E, RESERVE_IN, UnlessReserved, always!(control::reserve_in)).action(0x01), // READ RESERVATION
    command(0x5E, RESERVE_IN, UnlessReserved, always!(control::reserve_in)).action(0x02), // CAPABILITIES
    command(0x5E, RESERVE_IN, UnlessReserved, always!(control::reserve_in)).action(0x03), // READ FULL STATUS
    command(0x5F, RESERVE_OUT, UnlessReserved, task::reserve_out).action(0x00),           // REGISTER
    command(0x5F, RESERVE_OUT, UnlessReserved, task::reserve_out).action(0x01),           // RESERVE
    command(0x5F, RESERVE_OUT, UnlessReserved, task::reserve_out).action(0x02),           // RELEASE
    command(0x5F, RESERVE_OUT, UnlessReserved, task::reserve_out).action(0x03),           // CLEAR
    command(0x5F, RESERVE_OUT, UnlessReserved, task::reserve_out).action(0x04),           // PREEMPT
    command(0x5F, RESERVE_OUT, UnlessReserved, task::reserve_out).action(0x05),           // PREEMPT AND ABORT
    command(0x5F, RESERVE_OUT, UnlessReserved, task::reserve_out).action(0x06), // REGISTER AND IGNORE
    command(0x5F, RESERVE_OUT, UnlessReserved, task::reserve_out).action(0x07), // REGISTER AND MOVE
    command(0x83, COPY_STATUS_OUT, Write, copy::extended_copy).action(0x00).medium(),
    command(0x84, COPY_STATUS, Read, data!(copy::copy_status)).action(0x00),
    command(0x84, COPY_STATUS, Read, always!(copy::operating_parameters)).action(0x03),
    medium(0x88, LBA_16, Read, task::read),
    medium(0x89, COMPARE_16, Write, task::compare_and_write),
    medium(0x8A, LBA_16, Write, task::write),
    medium(0x8B, LBA_16, Write, task::or_write),
    medium(0x8E, CHECK_16, Write, task::write_and_verify),
    medium(0x8F, CHECK_16, Read, task::verify),
    medium(0x90, IMMED_16, Read, task::prefetch),
    medium(0x91, IMMED_16, Write, task::synchronize_cache),
    medium(0x93, SAME_16, Write, task::write_same),
    command(0x9E, ALLOCATION_16, Always, always!(report::read_capacity_16)).action(0x10).medium(),
    command(0x9E, ALLOCATION_16, Read, task::lba_status).action(0x12).medium().thin(),
    command(0xA0, &[0, 0, 0xFF, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0], Always, report_luns),
    command(0xA3, PORT_GROUPS, Always, data!(ports::target_port_groups)).action(0x0A),
    command(0xA3, OPCODES, Always, data!(report_opcodes)).action(0x0C),
    medium(0xA8, LBA_12, Read, task::read),
    medium(0xAA, LBA_12, Write, task::write),
    medium(0xAE, CHECK_12, Write, task::write_and_verify),
    medium(0xAF, CHECK_12, Read, task::verify),
    medium(0xB7, &[0, 0x1F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0], Read, DEFECTS_12),
];

const COPY_STATUS_OUT: &[u8] = &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0];
/// PARAMETER DATA FORMAT.
const PORT_GROUPS: &[u8] = &[0, 0xE0, 0, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0];
/// RCTD, REPORTING OPTIONS, requested opcode and service action.
const OPCODES: &[u8] = &[0, 0, 0x87, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0];
const DEFECTS_12: Handler = always!(report::defect_data_12);

fn report_luns(
    itl: &std::sync::Arc<crate::itl::Itl>,
    request: &super::Request<'_>,
) -> Result<Plan, crate::sense::Refusal> {
    let nexus = itl.nexus().ok_or(Sense::illegal(code::LUN_NOT_SUPPORTED))?;
    Ok(Plan::Reply(Reply::data(inventory::report_luns(nexus.inventory(), request.cdb)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_sorted_unique_and_of_the_length_their_group_code_says() {
        for pair in COMMANDS.windows(2) {
            assert!((pair[0].opcode, pair[0].service_action) < (pair[1].opcode, pair[1].service_action));
        }
        for row in COMMANDS {
            let expected = match row.opcode >> 5 {
                0 => 6,
                1 | 2 => 10,
                4 => 16,
                _ => 12,
            };
            assert_eq!(row.usage.len(), expected, "opcode {:#04x}", row.opcode);
            assert_eq!(row.usage[expected - 1], 0, "NACA and vendor bits of {:#04x}", row.opcode);
        }
    }

    #[test]
    fn every_command_that_changes_the_medium_conflicts_under_every_reservation_type() {
        let writers = [
            0x0A, 0x2A, 0xAA, 0x8A, 0x2E, 0xAE, 0x8E, 0x41, 0x93, 0x42, 0x89, 0x8B, 0x83, 0x35, 0x91, 0x15,
            0x55,
        ];
        for opcode in writers {
            let rows: Vec<_> = COMMANDS.iter().filter(|row| row.opcode == opcode).collect();
            assert!(!rows.is_empty() && rows.iter().all(|row| row.access == Write), "opcode {opcode:#04x}");
        }
    }
}
