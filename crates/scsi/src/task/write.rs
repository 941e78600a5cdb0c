//! WRITE outside the fast path: unusual forms, and writes that wait for a read-modify-write section.

use super::{Entry, StepEvent, Steps, out_of_turn, plan};
use crate::plan::Refusal;
use crate::{Extent, MediumOp, Plan, Reply, TaskStep, command::CommandRequest, fast_path, nexus::Itl};
use linerate_scsi_proto::cdb::lba_and_blocks;
use linerate_scsi_proto::sense::{Sense, SenseKey, code};
use std::sync::Arc;

/// WRITE (6), (10), (12), (16).
pub(crate) fn write(itl: &Arc<Itl>, request: &CommandRequest<'_>) -> Result<Plan, Refusal> {
    let (lba, blocks) = lba_and_blocks(request.cdb);
    check_protection(itl)?;
    let extent = itl.extent(lba, blocks)?;
    let len_bytes = itl.data_out_len(extent.asked_bytes, request.expected)?;
    // Byte 1 of the six-byte CDB holds LBA bits, not flags.
    let flags = if request.cdb[0] >> 5 == 0 { 0 } else { request.cdb[1] };
    let extent = Extent { len_bytes, durable: itl.must_be_durable(flags), ..extent };
    if itl.enter(&extent) {
        return Ok(Plan::Write(extent));
    }
    Ok(plan(itl, extent.asked_bytes, Write { extent, data: None, entry: None }))
}

/// DATA PROTECT if the unit, or an initiator by SWP, forbids writing.
pub(crate) fn check_protection(itl: &Itl) -> Result<(), Sense> {
    if itl.fast_path() & fast_path::PROTECTED == 0 {
        return Ok(());
    }
    let by_config = itl.unit().config().read_only;
    let code = if by_config { code::HARDWARE_WRITE_PROTECTED } else { code::SOFTWARE_WRITE_PROTECTED };
    Err(Sense::new(SenseKey::DataProtect, code))
}

struct Write {
    extent: Extent,
    data: Option<Vec<u8>>,
    entry: Option<Entry>,
}

impl Steps for Write {
    fn step(&mut self, itl: &Arc<Itl>, event: StepEvent) -> Result<TaskStep, Refusal> {
        let Extent { offset_bytes, len_bytes, durable, .. } = self.extent;
        match event {
            StepEvent::Start => return Ok(TaskStep::DataOut { len_bytes }),
            StepEvent::Bytes(data) => self.data = Some(data),
            StepEvent::Resume => {}
            StepEvent::Done => return Ok(TaskStep::Done(Reply::good())),
            StepEvent::Mapped { .. } => return out_of_turn(),
        }
        self.entry = Entry::enter(itl.unit(), offset_bytes, u64::from(len_bytes));
        if self.entry.is_none() {
            return Ok(TaskStep::Wait);
        }
        match self.data.take() {
            Some(data) if data.is_empty() => Ok(TaskStep::Done(Reply::good())),
            Some(data) => {
                let op = MediumOp::Write { offset_bytes, data, durable };
                Ok(TaskStep::Medium { lun: itl.lun(), op })
            }
            None => out_of_turn(),
        }
    }
}
