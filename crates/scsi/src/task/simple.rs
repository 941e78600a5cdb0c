//! READ outside the fast path, PRE-FETCH and SYNCHRONIZE CACHE.

use super::{StepEvent, Steps, out_of_turn, plan};
use crate::plan::Refusal;
use crate::{Extent, MediumOp, Plan, Reply, TaskStep, command::CommandRequest, nexus::Itl};
use linerate_scsi_proto::cdb::lba_and_blocks;
use linerate_scsi_proto::sense::Sense;
use std::sync::Arc;

/// READ (6), (10), (12), (16).
pub(crate) fn read(itl: &Arc<Itl>, request: &CommandRequest<'_>) -> Result<Plan, Refusal> {
    let (lba, blocks) = lba_and_blocks(request.cdb);
    let extent = itl.extent(lba, blocks)?;
    Ok(Plan::Read(Extent { len_bytes: extent.asked_bytes.min(request.expected.in_bytes), ..extent }))
}

/// LBA and length of commands where a length of 0 means up to the last block, as offset and bytes.
fn range_to_end(itl: &Itl, cdb: &[u8; 16]) -> Result<(u64, u64), Sense> {
    let (lba, blocks) = lba_and_blocks(cdb);
    let capacity = itl.unit().capacity_blocks();
    let blocks = if blocks == 0 { capacity.saturating_sub(lba).max(1) } else { u64::from(blocks) };
    Ok((itl.offset(lba, blocks)?, blocks * u64::from(itl.block_bytes())))
}

/// PRE-FETCH (10), (16): the host's page cache is the only cache, and it reads ahead itself. GOOD, not CONDITION MET:
/// the blocks may be removed from the cache again.
pub(crate) fn prefetch(itl: &Arc<Itl>, request: &CommandRequest<'_>) -> Result<Plan, Refusal> {
    range_to_end(itl, request.cdb)?;
    Ok(Plan::Reply(Reply::good()))
}

/// SYNCHRONIZE CACHE (10), (16). Also with IMMED the answer is sent after the sync.
pub(crate) fn synchronize_cache(itl: &Arc<Itl>, request: &CommandRequest<'_>) -> Result<Plan, Refusal> {
    let (offset_bytes, len_bytes) = range_to_end(itl, request.cdb)?;
    Ok(plan(itl, 0, Sync { offset_bytes, len_bytes, then: |_| {} }))
}

/// Syncs the whole medium, runs a function, and returns GOOD.
pub(crate) fn sync_then(itl: &Arc<Itl>, then: fn(&Itl)) -> Plan {
    let len_bytes = itl.unit().capacity_blocks() * u64::from(itl.block_bytes());
    plan(itl, 0, Sync { offset_bytes: 0, len_bytes, then })
}

struct Sync {
    offset_bytes: u64,
    len_bytes: u64,
    then: fn(&Itl),
}

impl Steps for Sync {
    fn step(&mut self, itl: &Arc<Itl>, event: StepEvent) -> Result<TaskStep, Refusal> {
        match event {
            StepEvent::Start => {
                let op = MediumOp::Sync { offset_bytes: self.offset_bytes, len_bytes: self.len_bytes };
                Ok(TaskStep::Medium { lun: itl.lun(), op })
            }
            StepEvent::Done => {
                (self.then)(itl);
                Ok(TaskStep::Done(Reply::good()))
            }
            _ => out_of_turn(),
        }
    }
}
