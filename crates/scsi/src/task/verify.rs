//! VERIFY and WRITE AND VERIFY (SBC-3 5.33, 5.49): reads blocks back, and compares them with data-out if BYTCHK
//! requires it.

use super::{Entry, StepEvent, Steps, out_of_turn, plan, write::check_protection};
use crate::plan::Refusal;
use crate::{MEDIUM_CHUNK_BYTES, MediumOp, Plan, Reply, TaskStep, command::CommandRequest, nexus::Itl};
use linerate_scsi_proto::cdb::{FUA, lba_and_blocks};
use linerate_scsi_proto::sense::{Sense, SenseKey, code};
use std::sync::Arc;

/// BYTCHK: the kind of comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ByteCheck {
    /// No comparison: the blocks must only be readable.
    Readable,
    /// Data-out, byte by byte.
    Same,
    /// One block of data-out, repeated.
    Repeated,
}

impl ByteCheck {
    fn from_cdb(cdb: &[u8; 16]) -> Result<Self, Sense> {
        match (cdb[1] >> 1) & 0x03 {
            0 => Ok(Self::Readable),
            1 => Ok(Self::Same),
            3 => Ok(Self::Repeated),
            _ => Err(Sense::cdb(1)),
        }
    }
}

/// VERIFY (10), (12), (16).
pub(crate) fn verify(itl: &Arc<Itl>, request: &CommandRequest<'_>) -> Result<Plan, Refusal> {
    let (lba, blocks) = lba_and_blocks(request.cdb);
    let check = ByteCheck::from_cdb(request.cdb)?;
    let extent = itl.extent(lba, blocks)?;
    let asked_bytes = match check {
        ByteCheck::Readable => 0,
        ByteCheck::Same => extent.asked_bytes,
        ByteCheck::Repeated => extent.asked_bytes.min(itl.block_bytes()),
    };
    let out_bytes = itl.data_out_len(asked_bytes, request.expected)?;
    // Without data-out from the initiator the blocks cannot be compared.
    let verify_bytes = match check {
        ByteCheck::Same => out_bytes,
        ByteCheck::Repeated if out_bytes == 0 => 0,
        _ => extent.asked_bytes,
    };
    Ok(plan(itl, asked_bytes, Verify::new(extent.offset_bytes, verify_bytes, out_bytes, check)))
}

/// WRITE AND VERIFY (10), (12), (16). Always durable, so that the verified data is on the medium.
pub(crate) fn write_and_verify(itl: &Arc<Itl>, request: &CommandRequest<'_>) -> Result<Plan, Refusal> {
    let (lba, blocks) = lba_and_blocks(request.cdb);
    let check = ByteCheck::from_cdb(request.cdb)?;
    if check == ByteCheck::Repeated {
        return Err(Sense::cdb(1).into());
    }
    check_protection(itl)?;
    let extent = itl.extent(lba, blocks)?;
    let out_bytes = itl.data_out_len(extent.asked_bytes, request.expected)?;
    let mut steps = Verify::new(extent.offset_bytes, out_bytes, out_bytes, check);
    steps.durable = itl.must_be_durable(FUA);
    steps.state = State::CollectingToWrite;
    Ok(plan(itl, extent.asked_bytes, steps))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    CollectingToWrite,
    Entering,
    Writing,
    Collecting,
    Reading,
}

struct Verify {
    state: State,
    check: ByteCheck,
    start_bytes: u64,
    len_bytes: u32,
    out_bytes: u32,
    /// How much has been written, and then verified.
    done_bytes: u32,
    durable: bool,
    data: Vec<u8>,
    entry: Option<Entry>,
}

impl Verify {
    fn new(start_bytes: u64, len_bytes: u32, out_bytes: u32, check: ByteCheck) -> Self {
        let (data, entry, state) = (Vec::new(), None, State::Collecting);
        Self { state, check, start_bytes, len_bytes, out_bytes, done_bytes: 0, durable: false, data, entry }
    }

    fn chunk_bytes(&self) -> u32 {
        (self.len_bytes - self.done_bytes).min(MEDIUM_CHUNK_BYTES)
    }

    fn read_next(&mut self, itl: &Itl) -> TaskStep {
        let len_bytes = self.chunk_bytes();
        if len_bytes == 0 {
            return TaskStep::Done(Reply::good());
        }
        self.state = State::Reading;
        let offset_bytes = self.start_bytes + u64::from(self.done_bytes);
        TaskStep::Medium { lun: itl.lun(), op: MediumOp::Read { offset_bytes, len_bytes } }
    }

    /// Writes data-out chunk by chunk, and keeps it for the comparison.
    fn write_next(&mut self, itl: &Itl) -> TaskStep {
        let len_bytes = self.chunk_bytes();
        if len_bytes == 0 {
            self.entry = None;
            self.done_bytes = 0;
            return self.read_next(itl);
        }
        self.state = State::Writing;
        let offset_bytes = self.start_bytes + u64::from(self.done_bytes);
        let at = self.done_bytes as usize;
        let data = self.data[at..at + len_bytes as usize].to_vec();
        self.done_bytes += len_bytes;
        let op = MediumOp::Write { offset_bytes, data, durable: self.durable };
        TaskStep::Medium { lun: itl.lun(), op }
    }

    fn enter(&mut self, itl: &Itl) -> TaskStep {
        self.entry = Entry::enter(itl.unit(), self.start_bytes, u64::from(self.len_bytes));
        if self.entry.is_some() {
            return self.write_next(itl);
        }
        self.state = State::Entering;
        TaskStep::Wait
    }

    fn compare(&self, have: &[u8]) -> Result<(), Sense> {
        let at = self.done_bytes as usize;
        let mismatch = match self.check {
            ByteCheck::Readable => None,
            ByteCheck::Same => have.iter().zip(&self.data[at..]).position(|(have, want)| have != want),
            ByteCheck::Repeated => {
                have.iter().zip(self.data.iter().cycle()).position(|(have, want)| have != want)
            }
        };
        mismatch.map_or(Ok(()), |offset| {
            let information = (at + offset) as u64;
            Err(Sense::new(SenseKey::Miscompare, code::MISCOMPARE).with_information(information))
        })
    }
}

impl Steps for Verify {
    fn step(&mut self, itl: &Arc<Itl>, event: StepEvent) -> Result<TaskStep, Refusal> {
        match (self.state, event) {
            (State::Collecting | State::CollectingToWrite, StepEvent::Start) => {
                Ok(TaskStep::DataOut { len_bytes: self.out_bytes })
            }
            (State::CollectingToWrite, StepEvent::Bytes(data)) => {
                self.data = data;
                Ok(self.enter(itl))
            }
            (State::Entering, StepEvent::Resume) => Ok(self.enter(itl)),
            (State::Writing, StepEvent::Done) => Ok(self.write_next(itl)),
            (State::Collecting, StepEvent::Bytes(data)) => {
                self.data = data;
                Ok(self.read_next(itl))
            }
            (State::Reading, StepEvent::Bytes(have)) => {
                self.compare(&have)?;
                self.done_bytes += have.len() as u32;
                Ok(self.read_next(itl))
            }
            _ => out_of_turn(),
        }
    }
}
