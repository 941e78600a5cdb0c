//! Executes a copy: reads a piece from one unit, writes it to another, until all segments are done.

use super::{
    list::{self, Amount, CopyList, CopyTarget, Segment},
    results::CopyResult,
};
use crate::plan::Refusal;
use crate::{
    MEDIUM_CHUNK_BYTES, MediumError, MediumOp, Plan, Reply, TaskStep,
    answer::vpd::naa,
    command::CommandRequest,
    fast_path,
    nexus::Itl,
    task::{Entry, StepEvent, Steps, out_of_turn, plan},
};
use linerate_scsi_proto::sense::{Sense, SenseKey, code};
use linerate_scsi_proto::wire::be32;
use std::sync::Arc;

/// Header, all descriptors, and some space, so that a list that is too long is refused with a better reason.
const MAX_LIST_BYTES: u32 = 64 << 10;

pub(crate) fn extended_copy(itl: &Arc<Itl>, request: &CommandRequest<'_>) -> Result<Plan, Refusal> {
    let asked_bytes = be32(request.cdb, 10);
    if asked_bytes > MAX_LIST_BYTES {
        return Err(Sense::illegal(code::PARAMETER_LIST_LENGTH).into());
    }
    if request.expected.out_bytes < asked_bytes {
        return Err(Refusal::DataOutLength { asked_bytes });
    }
    let job = Job { list_id: None, moves: Vec::new(), next: 0, done_bytes: 0, total_bytes: 0 };
    Ok(plan(itl, asked_bytes, Copy { asked_bytes, job, piece: None, entry: None }))
}

/// A segment with its units, and with a checked range.
struct Move {
    source: Arc<Itl>,
    destination: Arc<Itl>,
    from_bytes: u64,
    to_bytes: u64,
    len_bytes: u64,
}

struct Job {
    list_id: Option<u8>,
    moves: Vec<Move>,
    next: usize,
    /// Position in the current move.
    done_bytes: u64,
    total_bytes: u64,
}

struct Copy {
    asked_bytes: u32,
    job: Job,
    /// Read, not yet written.
    piece: Option<Vec<u8>>,
    entry: Option<Entry>,
}

impl Steps for Copy {
    fn step(&mut self, itl: &Arc<Itl>, event: StepEvent) -> Result<TaskStep, Refusal> {
        let step = match (event, &self.piece) {
            (StepEvent::Start, _) => return Ok(TaskStep::DataOut { len_bytes: self.asked_bytes }),
            (StepEvent::Bytes(list), None) if self.job.moves.is_empty() => self.accept(itl, &list),
            (StepEvent::Bytes(piece), None) => {
                self.piece = Some(piece);
                self.write_piece()
            }
            (StepEvent::Resume, Some(_)) => self.write_piece(),
            (StepEvent::Done, None) => {
                self.entry = None;
                self.read_piece()
            }
            _ => return out_of_turn(),
        };
        if let Err(_) | Ok(TaskStep::Done(_)) = &step {
            self.job.record(itl, step.is_ok());
        }
        step
    }

    fn medium_failed(&mut self, itl: &Arc<Itl>, _: MediumError) -> Refusal {
        self.job.record(itl, false);
        aborted(code::THIRD_PARTY_DEVICE_FAILURE).into()
    }
}

impl Copy {
    fn accept(&mut self, itl: &Itl, bytes: &[u8]) -> Result<TaskStep, Refusal> {
        if bytes.is_empty() {
            return Ok(TaskStep::Done(Reply::good()));
        }
        let list = list::parse(bytes)?;
        self.job.list_id = list.list_id;
        self.job.moves = resolve(itl, &list)?;
        self.read_piece()
    }

    fn read_piece(&mut self) -> Result<TaskStep, Refusal> {
        self.job.skip_finished();
        let Some(current) = self.job.current() else { return Ok(TaskStep::Done(Reply::good())) };
        may(&current.source, fast_path::STOPS_READ)?;
        let offset_bytes = current.from_bytes + self.job.done_bytes;
        let len_bytes = (current.len_bytes - self.job.done_bytes).min(u64::from(MEDIUM_CHUNK_BYTES)) as u32;
        Ok(TaskStep::Medium { lun: current.source.lun(), op: MediumOp::Read { offset_bytes, len_bytes } })
    }

    fn write_piece(&mut self) -> Result<TaskStep, Refusal> {
        let (Some(current), Some(piece)) = (self.job.current(), self.piece.take()) else {
            return out_of_turn();
        };
        may(&current.destination, fast_path::STOPS_WRITE)?;
        let offset_bytes = current.to_bytes + self.job.done_bytes;
        self.entry = Entry::enter(current.destination.unit(), offset_bytes, piece.len() as u64);
        if self.entry.is_none() {
            self.piece = Some(piece);
            return Ok(TaskStep::Wait);
        }
        let (lun, durable) = (current.destination.lun(), current.destination.must_be_durable(0));
        self.job.done_bytes += piece.len() as u64;
        self.job.total_bytes += piece.len() as u64;
        Ok(TaskStep::Medium { lun, op: MediumOp::Write { offset_bytes, data: piece, durable } })
    }
}

impl Job {
    /// The current move, if there is one.
    fn current(&self) -> Option<&Move> {
        self.moves.get(self.next)
    }

    /// Continues with the next move that is not empty.
    fn skip_finished(&mut self) {
        while self.current().is_some_and(|current| current.len_bytes == self.done_bytes) {
            self.next += 1;
            self.done_bytes = 0;
        }
    }

    fn record(&self, itl: &Itl, succeeded: bool) {
        // The list requested no results.
        let Some(list_id) = self.list_id else { return };
        let (segments_done, copied_bytes) = (self.next as u16, self.total_bytes);
        let result = CopyResult { nexus: itl.id(), list_id, succeeded, segments_done, copied_bytes };
        itl.unit().change(|state| state.copies.keep(result));
    }
}

const fn aborted(code: u16) -> Sense {
    Sense::new(SenseKey::CopyAborted, code)
}

/// Whether the copying nexus may access this unit in this way now. Its own unit attentions are ignored here.
fn may(itl: &Itl, stops: u32) -> Result<(), Sense> {
    if itl.fast_path() & stops & !fast_path::ATTENTION == 0 {
        Ok(())
    } else {
        Err(aborted(code::COPY_TARGET_NOT_REACHABLE))
    }
}

/// Finds the units and checks the ranges of all segments before the first byte is copied.
fn resolve(itl: &Itl, list: &CopyList) -> Result<Vec<Move>, Sense> {
    let units = list.targets.iter().map(|target| find_unit(itl, target)).collect::<Result<Vec<_>, _>>()?;
    list.segments.iter().map(|segment| resolve_segment(segment, &units)).collect()
}

/// A unit that the nexus of `itl` sees, by NAA designator.
fn find_unit(itl: &Itl, target: &CopyTarget) -> Result<Arc<Itl>, Sense> {
    let nexus = itl.nexus().ok_or(aborted(code::COPY_TARGET_NOT_REACHABLE))?;
    match nexus.find(|unit| naa(unit.config()) == target.naa) {
        Some(found) if target.block_bytes == 0 || target.block_bytes == found.block_bytes() => {
            Ok(found.clone())
        }
        _ => Err(aborted(code::COPY_TARGET_NOT_REACHABLE)),
    }
}

fn resolve_segment(segment: &Segment, units: &[Arc<Itl>]) -> Result<Move, Sense> {
    let unit = |index: u16| units.get(usize::from(index)).ok_or(aborted(code::UNREACHABLE_COPY_TARGET));
    let (source, destination) = (unit(segment.source)?, unit(segment.destination)?);
    let len_bytes = match segment.amount {
        Amount::Bytes(bytes) => u64::from(bytes),
        Amount::Blocks { count, of_destination } => {
            let counted = if of_destination { destination } else { source };
            u64::from(count) * u64::from(counted.block_bytes())
        }
    };
    Ok(Move {
        from_bytes: range_start(source, segment.source_lba, len_bytes)?,
        to_bytes: range_start(destination, segment.destination_lba, len_bytes)?,
        source: source.clone(),
        destination: destination.clone(),
        len_bytes,
    })
}

fn range_start(itl: &Itl, lba: u64, len_bytes: u64) -> Result<u64, Sense> {
    let block_bytes = u64::from(itl.block_bytes());
    if !len_bytes.is_multiple_of(block_bytes) {
        return Err(aborted(code::NONE));
    }
    itl.offset(lba, len_bytes / block_bytes).map_err(|_| aborted(code::NONE))
}
