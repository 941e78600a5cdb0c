//! From a CDB to a plan: the full path, for every command except an undisturbed READ or WRITE.
//!
//! Order of checks (SAM-5 5.1, SPC-4 4.5.6): does the command exist, is a unit attention pending, is the port in
//! standby or worse, does a reservation forbid the command, is the unit ready, are all bits outside the command's usage
//! mask zero. Then its handler runs.

mod table;
mod usage;

pub(crate) use table::{CommandRow, find, visible};
pub(crate) use usage::report_opcodes;

use crate::{
    Expected, Inventory, Plan, Reply,
    answer::{inquiry, luns::report_luns},
    fast_path,
    nexus::Itl,
    plan::Refusal,
    reservation::Access,
    unit::access,
};
use linerate_scsi_proto::opcode::{INQUIRY, REPORT_LUNS, REQUEST_SENSE};
use linerate_scsi_proto::sense::{Sense, SenseKey, code};
use std::sync::Arc;

/// A command for its handler.
#[derive(Clone, Copy)]
pub(crate) struct CommandRequest<'a> {
    pub(crate) cdb: &'a [u8; 16],
    pub(crate) expected: Expected,
}

pub(crate) type Handler = fn(&Arc<Itl>, &CommandRequest<'_>) -> Result<Plan, Refusal>;

pub(crate) fn begin(itl: &Arc<Itl>, cdb: &[u8; 16], expected: Expected) -> Plan {
    dispatch(itl, cdb, expected).unwrap_or_else(|refusal| Plan::Reply(itl.refuse(refusal)))
}

fn dispatch(itl: &Arc<Itl>, cdb: &[u8; 16], expected: Expected) -> Result<Plan, Refusal> {
    // A unit attention has priority over an unknown opcode, but not over these three (SAM-5 5.14.1).
    let reports_anyway = matches!(cdb[0], INQUIRY | REPORT_LUNS | REQUEST_SENSE);
    if !reports_anyway
        && itl.fast_path() & fast_path::ATTENTION != 0
        && let Some(attention) = itl.unit().change(|state| state.take_attention(itl.id()))
    {
        return Err(Sense::new(SenseKey::UnitAttention, attention).into());
    }
    let command = find(itl.unit().config(), cdb)?;
    if itl.fast_path() & fast_path::NO_ACCESS != 0 {
        let state = itl.access();
        if let Some(code) = state.not_ready_code().filter(|_| !access::allows(state, cdb)) {
            return Err(Sense::new(SenseKey::NotReady, code).into());
        }
    }
    let access = match command.access {
        Access::Stop if cdb[4] & 1 != 0 => Access::Always,
        access => access,
    };
    if itl.unit().lock().reservations.conflicts(itl.id(), itl.port(), access) {
        return Err(Refusal::Conflict);
    }
    if command.needs_medium && itl.fast_path() & fast_path::STOPPED != 0 {
        return Err(Sense::new(SenseKey::NotReady, code::START_REQUIRED).into());
    }
    command.check_usage(cdb)?;
    (command.handler)(itl, &CommandRequest { cdb, expected })
}

/// The answer of a LUN that does not exist (SPC-4 6.6.2, 6.33, 6.39; SAM-5 5.13.4).
pub(crate) fn missing_lun(inventory: &Inventory, cdb: &[u8; 16]) -> Reply {
    let unsupported = Sense::illegal(code::LUN_NOT_SUPPORTED);
    let answer = match cdb[0] {
        INQUIRY => inquiry::missing_lun(cdb),
        REPORT_LUNS => report_luns(inventory, cdb),
        REQUEST_SENSE => {
            let mut sense = unsupported.encode(cdb[1] & 1 != 0);
            sense.truncate(usize::from(cdb[4]));
            Ok(sense)
        }
        _ => Err(unsupported),
    };
    answer.map_or_else(|sense| Refusal::Sense(sense).into_reply(false), Reply::data)
}
