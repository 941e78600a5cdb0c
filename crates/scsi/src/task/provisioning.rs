//! WRITE SAME, UNMAP and GET LBA STATUS (SBC-3 5.50, 5.28, 5.6).

use super::{Entry, StepEvent, Steps, out_of_turn, plan, write::check_protection};
use crate::plan::Refusal;
use crate::{
    MEDIUM_CHUNK_BYTES, MediumOp, Plan, Reply, TaskStep,
    command::CommandRequest,
    limits::{MAX_UNMAP_BLOCKS, MAX_UNMAP_DESCRIPTORS, MAX_WRITE_SAME_BLOCKS},
    nexus::Itl,
};
use linerate_scsi_proto::cdb::lba_and_blocks;
use linerate_scsi_proto::sense::{Sense, code};
use linerate_scsi_proto::unmap;
use linerate_scsi_proto::wire::{be16, be32, be64};
use std::sync::Arc;

const UNMAP_BIT: u8 = 0x08;
const NDOB: u8 = 0x01;

/// WRITE SAME (10), (16).
pub(crate) fn write_same(itl: &Arc<Itl>, request: &CommandRequest<'_>) -> Result<Plan, Refusal> {
    let cdb = request.cdb;
    let (lba, blocks) = lba_and_blocks(cdb);
    let unmap = cdb[1] & UNMAP_BIT != 0;
    if unmap && !itl.unit().config().thin {
        return Err(Sense::cdb(1).into());
    }
    check_protection(itl)?;
    let offset_bytes = itl.offset(lba, u64::from(blocks))?;
    // WSNZ: a length of 0 does not mean "to the end".
    if blocks == 0 || blocks > MAX_WRITE_SAME_BLOCKS {
        return Err(Sense::cdb(if cdb[0] == 0x41 { 7 } else { 10 }).into());
    }
    let asked_bytes = if cdb[1] & NDOB != 0 { 0 } else { itl.block_bytes() };
    if request.expected.out_bytes != asked_bytes {
        return Err(Refusal::DataOutLength { asked_bytes });
    }
    let len_bytes = u64::from(blocks) * u64::from(itl.block_bytes());
    let durable = itl.must_be_durable(0);
    let spread = Spread { at_bytes: offset_bytes, end_bytes: offset_bytes + len_bytes, durable };
    let block = Vec::new();
    Ok(plan(itl, asked_bytes, WriteSame { spread, unmap, asked_bytes, block, entry: None }))
}

/// A range that is filled piece by piece.
struct Spread {
    at_bytes: u64,
    end_bytes: u64,
    durable: bool,
}

impl Spread {
    fn next_fill(&mut self, pattern: &[u8]) -> Option<MediumOp> {
        let len_bytes = (self.end_bytes - self.at_bytes).min(u64::from(MEDIUM_CHUNK_BYTES)) as u32;
        let offset_bytes = self.at_bytes;
        self.at_bytes += u64::from(len_bytes);
        let durable = self.durable;
        (len_bytes > 0).then(|| MediumOp::Fill {
            offset_bytes,
            len_bytes,
            pattern: pattern.to_vec(),
            durable,
        })
    }

    fn discard(&mut self) -> Option<MediumOp> {
        let (offset_bytes, len_bytes) = (self.at_bytes, self.end_bytes - self.at_bytes);
        self.at_bytes = self.end_bytes;
        (len_bytes > 0).then_some(MediumOp::Discard { offset_bytes, len_bytes })
    }
}

struct WriteSame {
    spread: Spread,
    unmap: bool,
    asked_bytes: u32,
    block: Vec<u8>,
    entry: Option<Entry>,
}

impl Steps for WriteSame {
    fn step(&mut self, itl: &Arc<Itl>, event: StepEvent) -> Result<TaskStep, Refusal> {
        match event {
            StepEvent::Start => return Ok(TaskStep::DataOut { len_bytes: self.asked_bytes }),
            StepEvent::Bytes(data) => {
                let zeros = data.iter().all(|byte| *byte == 0);
                // Deallocated blocks read as zeros, so only zeros may be deallocated (SBC-3 4.7.3.4.4).
                self.unmap &= zeros;
                self.block = if data.is_empty() { vec![0; itl.block_bytes() as usize] } else { data };
            }
            StepEvent::Resume | StepEvent::Done => {}
            StepEvent::Mapped { .. } => return out_of_turn(),
        }
        if self.entry.is_none() {
            let Spread { at_bytes, end_bytes, .. } = self.spread;
            self.entry = Entry::enter(itl.unit(), at_bytes, end_bytes - at_bytes);
            if self.entry.is_none() {
                return Ok(TaskStep::Wait);
            }
        }
        let op = if self.unmap { self.spread.discard() } else { self.spread.next_fill(&self.block) };
        Ok(match op {
            Some(op) => TaskStep::Medium { lun: itl.lun(), op },
            None => TaskStep::Done(Reply::good()),
        })
    }
}

/// UNMAP.
pub(crate) fn unmap(itl: &Arc<Itl>, request: &CommandRequest<'_>) -> Result<Plan, Refusal> {
    check_protection(itl)?;
    let asked_bytes = u32::from(be16(request.cdb, 7));
    if request.expected.out_bytes < asked_bytes {
        return Err(Refusal::DataOutLength { asked_bytes });
    }
    Ok(plan(itl, asked_bytes, Unmap { asked_bytes, ranges: Vec::new(), entry: None }))
}

struct Unmap {
    asked_bytes: u32,
    /// Offset and length in bytes, last one first.
    ranges: Vec<(u64, u64)>,
    entry: Option<Entry>,
}

impl Unmap {
    fn next(&mut self, itl: &Itl) -> TaskStep {
        let Some((offset_bytes, len_bytes)) = self.ranges.last().copied() else {
            return TaskStep::Done(Reply::good());
        };
        self.entry = Entry::enter(itl.unit(), offset_bytes, len_bytes);
        if self.entry.is_none() {
            return TaskStep::Wait;
        }
        self.ranges.pop();
        TaskStep::Medium { lun: itl.lun(), op: MediumOp::Discard { offset_bytes, len_bytes } }
    }
}

impl Steps for Unmap {
    fn step(&mut self, itl: &Arc<Itl>, event: StepEvent) -> Result<TaskStep, Refusal> {
        match event {
            StepEvent::Start => Ok(TaskStep::DataOut { len_bytes: self.asked_bytes }),
            StepEvent::Bytes(list) => {
                self.ranges = parse_unmap(itl, &list)?;
                Ok(self.next(itl))
            }
            StepEvent::Done => {
                self.entry = None;
                Ok(self.next(itl))
            }
            StepEvent::Resume => Ok(self.next(itl)),
            StepEvent::Mapped { .. } => out_of_turn(),
        }
    }
}

/// Checks every descriptor before any is applied. The ranges are returned last first.
fn parse_unmap(itl: &Itl, list: &[u8]) -> Result<Vec<(u64, u64)>, Sense> {
    if list.is_empty() {
        return Ok(Vec::new());
    }
    let listed = unmap::ranges(list).ok_or(Sense::illegal(code::PARAMETER_LIST_LENGTH))?;
    if listed.len() > MAX_UNMAP_DESCRIPTORS as usize {
        return Err(Sense::parameter(2));
    }
    let (mut ranges, mut total) = (Vec::new(), 0_u64);
    for unmap::Range { lba, blocks } in listed {
        let offset_bytes = itl.offset(lba, u64::from(blocks))?;
        total += u64::from(blocks);
        if blocks > 0 {
            ranges.push((offset_bytes, u64::from(blocks) * u64::from(itl.block_bytes())));
        }
    }
    if total > u64::from(MAX_UNMAP_BLOCKS) {
        return Err(Sense::parameter(unmap::HEADER_BYTES as u16));
    }
    ranges.reverse();
    Ok(ranges)
}

/// GET LBA STATUS.
pub(crate) fn lba_status(itl: &Arc<Itl>, request: &CommandRequest<'_>) -> Result<Plan, Refusal> {
    /// A very fragmented volume needs several commands.
    const MAX_DESCRIPTORS: usize = 64;
    let start_bytes = itl.offset(be64(request.cdb, 2), 1)?;
    let allocation_bytes = be32(request.cdb, 10) as usize;
    let room = (allocation_bytes.saturating_sub(8) / 16).clamp(1, MAX_DESCRIPTORS);
    let steps = LbaStatus { at_bytes: start_bytes, room, allocation_bytes, runs: Vec::new() };
    Ok(plan(itl, 0, steps))
}

/// A run of blocks in one state.
struct Run {
    start_bytes: u64,
    len_bytes: u64,
    mapped: bool,
}

struct LbaStatus {
    at_bytes: u64,
    room: usize,
    allocation_bytes: usize,
    runs: Vec<Run>,
}

impl LbaStatus {
    /// Adds a run, or extends the last one; false if there is no space.
    fn push(&mut self, mapped: bool, len_bytes: u64) -> bool {
        let start_bytes = self.at_bytes;
        let full = self.runs.len() == self.room;
        match self.runs.last_mut() {
            Some(last) if last.mapped == mapped => last.len_bytes += len_bytes,
            _ if full => return false,
            _ => self.runs.push(Run { start_bytes, len_bytes, mapped }),
        }
        self.at_bytes += len_bytes;
        true
    }

    fn reply(&self, itl: &Itl) -> Reply {
        const DEALLOCATED: u8 = 1;
        let block_bytes = u64::from(itl.block_bytes());
        let mut out = ((4 + self.runs.len() * 16) as u32).to_be_bytes().to_vec();
        out.extend_from_slice(&[0; 4]);
        for run in &self.runs {
            let blocks = u32::try_from(run.len_bytes / block_bytes).unwrap_or(u32::MAX);
            out.extend_from_slice(&(run.start_bytes / block_bytes).to_be_bytes());
            out.extend_from_slice(&blocks.to_be_bytes());
            out.extend_from_slice(&[if run.mapped { 0 } else { DEALLOCATED }, 0, 0, 0]);
        }
        out.truncate(self.allocation_bytes);
        Reply::data(out)
    }
}

impl Steps for LbaStatus {
    fn step(&mut self, itl: &Arc<Itl>, event: StepEvent) -> Result<TaskStep, Refusal> {
        let end_bytes = itl.unit().capacity_blocks() * u64::from(itl.block_bytes());
        let more = match event {
            StepEvent::Start => true,
            StepEvent::Mapped { len_bytes: 0, .. } => return out_of_turn(),
            StepEvent::Mapped { mapped, len_bytes } => self.push(mapped, len_bytes),
            _ => return out_of_turn(),
        };
        if !more || self.at_bytes >= end_bytes {
            return Ok(TaskStep::Done(self.reply(itl)));
        }
        let op = MediumOp::Mapped { offset_bytes: self.at_bytes, len_bytes: end_bytes - self.at_bytes };
        Ok(TaskStep::Medium { lun: itl.lun(), op })
    }
}
