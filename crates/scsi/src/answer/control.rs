//! RESERVE, RELEASE, PERSISTENT RESERVE IN, MODE SENSE and START STOP UNIT.

use crate::plan::Refusal;
use crate::{
    Plan, Reply,
    command::CommandRequest,
    fast_path,
    mode::{self, Medium},
    nexus::Itl,
    reservation, task,
};
use linerate_scsi_proto::sense::Sense;
use linerate_scsi_proto::wire::be16;
use std::sync::Arc;

pub(crate) fn reserve(itl: &Arc<Itl>, _: &CommandRequest<'_>) -> Result<Plan, Refusal> {
    let done = itl.unit().change(|state| state.reservations.reserve(itl.id()));
    if done { Ok(Plan::Reply(Reply::good())) } else { Err(Refusal::Conflict) }
}

pub(crate) fn release(itl: &Arc<Itl>, _: &CommandRequest<'_>) -> Result<Plan, Refusal> {
    let done = itl.unit().change(|state| state.reservations.release(itl.id()));
    if done { Ok(Plan::Reply(Reply::good())) } else { Err(Refusal::Conflict) }
}

/// PERSISTENT RESERVE IN.
pub(crate) fn reserve_in(itl: &Itl, cdb: &[u8; 16]) -> Vec<u8> {
    let state = itl.unit().lock();
    let persistent = &state.reservations.persistent;
    let mut out = match cdb[1] & 0x1F {
        0 => reservation::read_keys(persistent),
        1 => reservation::read_reservation(persistent),
        2 => reservation::report_capabilities(persistent, itl.unit().config().keeps_reservations),
        _ => reservation::full_status(persistent),
    };
    out.truncate(usize::from(be16(cdb, 7)));
    out
}

/// The medium, for mode parameter headers and block descriptors.
pub(crate) fn medium(itl: &Itl) -> Medium {
    Medium {
        capacity_blocks: itl.unit().capacity_blocks(),
        block_bytes: itl.block_bytes(),
        write_protected: itl.fast_path() & fast_path::PROTECTED != 0,
    }
}

pub(crate) fn mode_sense(itl: &Itl, cdb: &[u8; 16]) -> Result<Vec<u8>, Sense> {
    let current = itl.unit().lock().mode;
    mode::mode_sense(cdb, current, itl.unit().default_mode(), &medium(itl))
}

/// START STOP UNIT. Power conditions other than `START_VALID` change nothing; the medium is synced before a stop.
pub(crate) fn start_stop(itl: &Arc<Itl>, request: &CommandRequest<'_>) -> Plan {
    const NO_FLUSH: u8 = 0x04;
    const START: u8 = 0x01;
    let flags = request.cdb[4];
    if flags & 0xF0 != 0 {
        return Plan::Reply(Reply::good());
    }
    let stop = flags & START == 0;
    if stop && flags & NO_FLUSH == 0 {
        return task::sync_then(itl, set_stopped);
    }
    itl.unit().change(|state| state.stopped = stop);
    Plan::Reply(Reply::good())
}

fn set_stopped(itl: &Itl) {
    itl.unit().change(|state| state.stopped = true);
}
