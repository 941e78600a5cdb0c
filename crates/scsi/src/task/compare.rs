//! COMPARE AND WRITE and ORWRITE: read, decide and write as one action (SBC-3 5.2, 5.16).

use super::{StepEvent, Steps, out_of_turn, plan, section::Section, write::check_protection};
use crate::plan::Refusal;
use crate::{MEDIUM_CHUNK_BYTES, MediumOp, Plan, Reply, TaskStep, command::CommandRequest, nexus::Itl};
use linerate_scsi_proto::cdb::lba_and_blocks;
use linerate_scsi_proto::sense::{Sense, SenseKey, code};
use linerate_scsi_proto::wire::be64;
use std::{mem, sync::Arc};

/// COMPARE AND WRITE: data-out is the blocks to compare with, then the blocks to write. It is never shortened.
pub(crate) fn compare_and_write(itl: &Arc<Itl>, request: &CommandRequest<'_>) -> Result<Plan, Refusal> {
    check_protection(itl)?;
    let extent = itl.extent(be64(request.cdb, 2), u32::from(request.cdb[13]))?;
    let asked_bytes = 2 * extent.asked_bytes;
    // The length did not fit into its one byte, but the data is announced.
    if asked_bytes == 0 && request.expected.out_bytes != 0 {
        return Err(Sense::cdb(13).into());
    }
    if request.expected.out_bytes != asked_bytes {
        return Err(Refusal::DataOutLength { asked_bytes });
    }
    let durable = itl.must_be_durable(request.cdb[1]);
    Ok(plan(itl, asked_bytes, ReadModifyWrite::new(extent.offset_bytes, asked_bytes, durable, Rule::Compare)))
}

/// ORWRITE (16): data-out is or-ed into the blocks.
pub(crate) fn or_write(itl: &Arc<Itl>, request: &CommandRequest<'_>) -> Result<Plan, Refusal> {
    check_protection(itl)?;
    let (lba, blocks) = lba_and_blocks(request.cdb);
    let extent = itl.extent(lba, blocks)?;
    let len_bytes = itl.data_out_len(extent.asked_bytes, request.expected)?;
    let durable = itl.must_be_durable(request.cdb[1]);
    let steps = ReadModifyWrite::new(extent.offset_bytes, len_bytes, durable, Rule::Or);
    Ok(plan(itl, extent.asked_bytes, steps))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    Compare,
    Or,
}

/// Where the command is.
enum State {
    Collecting,
    Claiming(Vec<u8>),
    Reading(Vec<u8>),
    Writing(Vec<u8>),
}

/// Processes the blocks in chunks; the section covers all of them from the first read to the last write.
struct ReadModifyWrite {
    rule: Rule,
    offset_bytes: u64,
    out_bytes: u32,
    durable: bool,
    state: State,
    section: Option<Section>,
}

impl ReadModifyWrite {
    fn new(offset_bytes: u64, out_bytes: u32, durable: bool, rule: Rule) -> Self {
        Self { rule, offset_bytes, out_bytes, durable, state: State::Collecting, section: None }
    }

    /// Length on the medium of the rest of `data`, at most one chunk. A comparison is never split: its longest data is
    /// 255 blocks.
    fn chunk_bytes(&self, data: &[u8]) -> usize {
        match self.rule {
            Rule::Compare => data.len() / 2,
            Rule::Or => data.len().min(MEDIUM_CHUNK_BYTES as usize),
        }
    }

    fn claim(&mut self, itl: &Itl, data: Vec<u8>) -> TaskStep {
        let medium_bytes = if self.rule == Rule::Compare { data.len() / 2 } else { data.len() } as u64;
        let section =
            self.section.get_or_insert_with(|| Section::new(itl.unit(), self.offset_bytes, medium_bytes));
        if section.advance() {
            return self.read(itl, data);
        }
        self.state = State::Claiming(data);
        TaskStep::Wait
    }

    fn read(&mut self, itl: &Itl, data: Vec<u8>) -> TaskStep {
        let len_bytes = self.chunk_bytes(&data) as u32;
        if len_bytes == 0 {
            return TaskStep::Done(Reply::good());
        }
        self.state = State::Reading(data);
        TaskStep::Medium { lun: itl.lun(), op: MediumOp::Read { offset_bytes: self.offset_bytes, len_bytes } }
    }

    /// The data to write over `old`, and the data that remains for later chunks.
    fn combine(&self, mut data: Vec<u8>, mut old: Vec<u8>) -> Result<(Vec<u8>, Vec<u8>), Sense> {
        let rest = data.split_off(old.len().min(data.len()));
        match self.rule {
            Rule::Compare => match data.iter().zip(&old).position(|(want, have)| want != have) {
                Some(at) => {
                    Err(Sense::new(SenseKey::Miscompare, code::MISCOMPARE).with_information(at as u64))
                }
                None => Ok((rest, Vec::new())),
            },
            Rule::Or => {
                for (have, more) in old.iter_mut().zip(&data) {
                    *have |= more;
                }
                Ok((old, rest))
            }
        }
    }
}

impl Steps for ReadModifyWrite {
    fn step(&mut self, itl: &Arc<Itl>, event: StepEvent) -> Result<TaskStep, Refusal> {
        match (mem::replace(&mut self.state, State::Collecting), event) {
            (State::Collecting, StepEvent::Start) => Ok(TaskStep::DataOut { len_bytes: self.out_bytes }),
            (State::Collecting, StepEvent::Bytes(data)) | (State::Claiming(data), StepEvent::Resume) => {
                Ok(self.claim(itl, data))
            }
            (State::Reading(data), StepEvent::Bytes(old)) => {
                let (data, rest) = self.combine(data, old)?;
                let offset_bytes = self.offset_bytes;
                self.offset_bytes += data.len() as u64;
                self.state = State::Writing(rest);
                let op = MediumOp::Write { offset_bytes, data, durable: self.durable };
                Ok(TaskStep::Medium { lun: itl.lun(), op })
            }
            (State::Writing(rest), StepEvent::Done) => Ok(self.read(itl, rest)),
            _ => out_of_turn(),
        }
    }
}
