//! The command table: every command of this device server, one row each.
//!
//! REPORT SUPPORTED OPERATION CODES returns a row's usage mask, and CDBs are checked against it: a bit that is set may
//! be used, a bit that is clear must be zero. So protection fields, ANCHOR, NACA and others are refused because they
//! are not in the mask.

use super::{Handler, report_opcodes};
use crate::{
    Plan, Reply, UnitConfig,
    answer::{control, inquiry, luns, ports, report},
    copy,
    reservation::Access::{self, Always, Read, Stop, UnlessReserved, Write},
    task,
};
use linerate_scsi_proto::opcode as op;
use linerate_scsi_proto::sense::{Sense, code};

/// One row.
pub(crate) struct CommandRow {
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

const fn command(opcode: u8, usage: &'static [u8], access: Access, handler: Handler) -> CommandRow {
    let (needs_medium, needs_thin) = (false, false);
    CommandRow { opcode, service_action: None, usage, access, needs_medium, needs_thin, handler }
}

/// A command that needs the medium.
const fn medium(opcode: u8, usage: &'static [u8], access: Access, handler: Handler) -> CommandRow {
    CommandRow { needs_medium: true, ..command(opcode, usage, access, handler) }
}

impl CommandRow {
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
pub(crate) fn visible(config: &UnitConfig) -> impl Iterator<Item = &'static CommandRow> {
    let thin = config.thin;
    COMMANDS.iter().filter(move |command| thin || !command.needs_thin)
}

/// The row for a CDB. An unknown service action of a known opcode is a bad field, not a bad opcode.
pub(crate) fn find(config: &UnitConfig, cdb: &[u8; 16]) -> Result<&'static CommandRow, Sense> {
    let mut rows = visible(config).filter(|command| command.opcode == cdb[0]).peekable();
    if rows.peek().is_none() {
        return Err(Sense::illegal(code::INVALID_OPCODE));
    }
    rows.find(|row| row.service_action.is_none_or(|action| action == cdb[1] & 0x1F)).ok_or(Sense::cdb(1))
}

/// A reply that depends only on the CDB, or a refusal.
macro_rules! data {
    ($function:path) => {
        |itl, request| Ok(Plan::Reply(Reply::data($function(itl, request.cdb)?)))
    };
}

/// A reply that depends only on the CDB and is never refused.
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

/// PERSISTENT RESERVE IN with a service action.
const fn reserve_in(action: u8) -> CommandRow {
    command(op::PERSISTENT_RESERVE_IN, RESERVE_IN, UnlessReserved, always!(control::reserve_in))
        .action(action)
}

/// PERSISTENT RESERVE OUT with a service action.
const fn reserve_out(action: u8) -> CommandRow {
    command(op::PERSISTENT_RESERVE_OUT, RESERVE_OUT, UnlessReserved, task::reserve_out).action(action)
}

/// Ascending by opcode and service action.
static COMMANDS: &[CommandRow] = &[
    medium(op::TEST_UNIT_READY, &[0; 6], UnlessReserved, |_, _| Ok(Plan::Reply(Reply::good()))),
    command(op::REQUEST_SENSE, &[0, 0x01, 0, 0, 0xFF, 0], Always, always!(report::request_sense)),
    medium(op::READ_6, &[0, 0x1F, 0xFF, 0xFF, 0xFF, 0], Read, task::read),
    medium(op::WRITE_6, &[0, 0x1F, 0xFF, 0xFF, 0xFF, 0], Write, task::write),
    command(op::INQUIRY, &[0, 0x01, 0xFF, 0xFF, 0xFF, 0], Always, data!(inquiry::inquiry)),
    command(op::MODE_SELECT_6, &[0, 0x10, 0, 0, 0xFF, 0], Write, task::mode_select),
    command(op::RESERVE_6, &[0; 6], UnlessReserved, control::reserve),
    command(op::RELEASE_6, &[0; 6], Always, control::release),
    command(op::MODE_SENSE_6, &[0, 0x08, 0xFF, 0xFF, 0xFF, 0], Read, data!(control::mode_sense)),
    command(op::START_STOP_UNIT, &[0, 0x01, 0, 0x0F, 0xF5, 0], Stop, |itl, request| {
        Ok(control::start_stop(itl, request))
    }),
    command(op::SEND_DIAGNOSTIC, &[0, 0x04, 0, 0, 0, 0], Write, |_, _| Ok(Plan::Reply(Reply::good()))),
    medium(op::READ_CAPACITY_10, &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0], Always, always!(report::read_capacity_10)),
    medium(op::READ_10, LBA_10, Read, task::read),
    medium(op::WRITE_10, LBA_10, Write, task::write),
    medium(op::WRITE_AND_VERIFY_10, CHECK_10, Write, task::write_and_verify),
    medium(op::VERIFY_10, CHECK_10, Read, task::verify),
    medium(op::PRE_FETCH_10, IMMED_10, Read, task::prefetch),
    medium(op::SYNCHRONIZE_CACHE_10, IMMED_10, Write, task::synchronize_cache),
    medium(
        op::READ_DEFECT_DATA_10,
        &[0, 0, 0x1F, 0, 0, 0, 0, 0xFF, 0xFF, 0],
        Read,
        always!(report::defect_data_10),
    ),
    medium(op::WRITE_SAME_10, SAME_10, Write, task::write_same),
    medium(op::UNMAP, &[0, 0, 0, 0, 0, 0, 0x1F, 0xFF, 0xFF, 0], Write, task::unmap).thin(),
    command(
        op::LOG_SENSE,
        &[0, 0, 0xFF, 0xFF, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0],
        Always,
        data!(report::log_sense),
    ),
    command(op::MODE_SELECT_10, &[0, 0x10, 0, 0, 0, 0, 0, 0xFF, 0xFF, 0], Write, task::mode_select),
    command(op::RESERVE_10, &[0; 10], UnlessReserved, control::reserve),
    command(op::RELEASE_10, &[0; 10], Always, control::release),
    command(
        op::MODE_SENSE_10,
        &[0, 0x18, 0xFF, 0xFF, 0, 0, 0, 0xFF, 0xFF, 0],
        Read,
        data!(control::mode_sense),
    ),
    reserve_in(0x00),  // READ KEYS
    reserve_in(0x01),  // READ RESERVATION
    reserve_in(0x02),  // REPORT CAPABILITIES
    reserve_in(0x03),  // READ FULL STATUS
    reserve_out(0x00), // REGISTER
    reserve_out(0x01), // RESERVE
    reserve_out(0x02), // RELEASE
    reserve_out(0x03), // CLEAR
    reserve_out(0x04), // PREEMPT
    reserve_out(0x05), // PREEMPT AND ABORT
    reserve_out(0x06), // REGISTER AND IGNORE EXISTING KEY
    reserve_out(0x07), // REGISTER AND MOVE
    command(op::EXTENDED_COPY, COPY_STATUS_OUT, Write, copy::extended_copy).action(0x00).medium(),
    command(op::RECEIVE_COPY_RESULTS, COPY_STATUS, Read, data!(copy::copy_status)).action(0x00),
    command(op::RECEIVE_COPY_RESULTS, COPY_STATUS, Read, always!(copy::operating_parameters)).action(0x03),
    medium(op::READ_16, LBA_16, Read, task::read),
    medium(op::COMPARE_AND_WRITE, COMPARE_16, Write, task::compare_and_write),
    medium(op::WRITE_16, LBA_16, Write, task::write),
    medium(op::OR_WRITE_16, LBA_16, Write, task::or_write),
    medium(op::WRITE_AND_VERIFY_16, CHECK_16, Write, task::write_and_verify),
    medium(op::VERIFY_16, CHECK_16, Read, task::verify),
    medium(op::PRE_FETCH_16, IMMED_16, Read, task::prefetch),
    medium(op::SYNCHRONIZE_CACHE_16, IMMED_16, Write, task::synchronize_cache),
    medium(op::WRITE_SAME_16, SAME_16, Write, task::write_same),
    command(op::SERVICE_ACTION_IN_16, ALLOCATION_16, Always, always!(report::read_capacity_16))
        .action(op::READ_CAPACITY_16)
        .medium(),
    command(op::SERVICE_ACTION_IN_16, ALLOCATION_16, Read, task::lba_status)
        .action(op::GET_LBA_STATUS)
        .medium()
        .thin(),
    command(op::REPORT_LUNS, &[0, 0, 0xFF, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0], Always, report_luns),
    command(op::MAINTENANCE_IN, PORT_GROUPS, Always, data!(ports::target_port_groups))
        .action(op::REPORT_TARGET_PORT_GROUPS),
    command(op::MAINTENANCE_IN, OPCODES, Always, data!(report_opcodes)).action(op::REPORT_SUPPORTED_OPCODES),
    medium(op::READ_12, LBA_12, Read, task::read),
    medium(op::WRITE_12, LBA_12, Write, task::write),
    medium(op::WRITE_AND_VERIFY_12, CHECK_12, Write, task::write_and_verify),
    medium(op::VERIFY_12, CHECK_12, Read, task::verify),
    medium(
        op::READ_DEFECT_DATA_12,
        &[0, 0x1F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0],
        Read,
        DEFECTS_12,
    ),
];

const COPY_STATUS_OUT: &[u8] = &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0];
/// PARAMETER DATA FORMAT.
const PORT_GROUPS: &[u8] = &[0, 0xE0, 0, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0];
/// RCTD, REPORTING OPTIONS, requested opcode and service action.
const OPCODES: &[u8] = &[0, 0, 0x87, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0];
const DEFECTS_12: Handler = always!(report::defect_data_12);

fn report_luns(
    itl: &std::sync::Arc<crate::nexus::Itl>,
    request: &super::CommandRequest<'_>,
) -> Result<Plan, crate::plan::Refusal> {
    let nexus = itl.nexus().ok_or(Sense::illegal(code::LUN_NOT_SUPPORTED))?;
    Ok(Plan::Reply(Reply::data(luns::report_luns(nexus.inventory(), request.cdb)?)))
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
