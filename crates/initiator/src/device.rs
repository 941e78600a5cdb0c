//! A device: one LUN, reached over paths.

use crate::address::LunAddress;
use crate::commands::{self, Question, Transfer};
use crate::event::{Blame, Failure, IoError};

use crate::path::Path;
use crate::request::{IoOp, IoRequest, ReadInto, SubmitError};
use crate::session::tasks::{Footprint, NewTask, Owner, Payload};
use crate::session::{Answer, Regions};
use linerate_io::Seg;
use linerate_iscsi::pdu::Lun;

/// Names a device of one [`crate::Initiator`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DeviceId(pub(crate) u32);

impl DeviceId {
    /// Devices are numbered from 0 in the order they were opened.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Whether a device takes I/O.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceState {
    /// Its session logs in or its facts are being read.
    Opening,
    /// It takes I/O.
    Ready,
    /// It could not be opened or was given up.
    Failed(Failure),
}

/// What a LUN says about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceFacts {
    /// The LUN.
    pub lun: u16,
    /// READ CAPACITY: number of logical blocks.
    pub capacity_blocks: u64,
    /// READ CAPACITY: logical block length in bytes.
    pub block_bytes: u32,
    /// READ CAPACITY (16): physical block length in bytes.
    pub physical_block_bytes: u32,
    /// INQUIRY, byte 0: peripheral qualifier and device type (0 = a disk that is there).
    pub peripheral: u8,
    /// INQUIRY: vendor.
    pub vendor: String,
    /// INQUIRY: product.
    pub product: String,
    /// INQUIRY: revision.
    pub revision: String,
    /// VPD 80: unit serial number; empty when the target has no such page.
    pub serial: String,
    /// VPD B0: MAXIMUM TRANSFER LENGTH in blocks; 0 = not limited.
    pub max_transfer_blocks: u32,
    /// READ CAPACITY (16): thin provisioned (LBPME).
    pub thin: bool,
    /// VPD B2: UNMAP is supported (LBPU), so discard works.
    pub unmap: bool,
    /// It knows READ CAPACITY (16), so it is sent 16-byte CDBs.
    pub long_commands: bool,
    /// REPORT LUNS; only read when a target is asked for its LUNs.
    pub luns: Vec<u16>,
}

impl DeviceFacts {
    /// Capacity in bytes.
    pub fn capacity_bytes(&self) -> u64 {
        self.capacity_blocks * u64::from(self.block_bytes)
    }
}

/// A LUN, the paths to it and the questions that are still to be asked.
#[derive(Debug)]
pub(crate) struct Device {
    pub(crate) address: LunAddress,
    pub(crate) state: DeviceState,
    pub(crate) facts: DeviceFacts,
    pub(crate) paths: Vec<Path>,
    questions: &'static [Question],
    next: usize,
    /// What the LUN says after a new login, while it is being asked.
    again: Option<DeviceFacts>,
    lun: Lun,
    block_shift: u32,
}

impl Device {
    pub(crate) fn new(address: LunAddress, path: Path, questions: &'static [Question]) -> Self {
        Self {
            facts: DeviceFacts { lun: address.lun, ..DeviceFacts::default() },
            lun: Lun::from_number(address.lun),
            address,
            state: DeviceState::Opening,
            paths: vec![path],
            questions,
            next: 0,
            again: None,
            block_shift: 0,
        }
    }

    /// The next question as a task; none when all are answered.
    pub(crate) fn ask(&mut self, device: u32) -> Option<NewTask> {
        let facts = self.again.as_ref().unwrap_or(&self.facts);
        while self.questions.get(self.next).is_some_and(|question| question.is_answered(facts)) {
            self.next += 1;
        }
        let (cdb, len_bytes) = self.questions.get(self.next)?.cdb();
        let payload = if len_bytes > 0 { Payload::Kept } else { Payload::None };
        let footprint = Footprint { start: 0, end: 0, changes: false };
        let owner = if self.is_confirming() { Owner::Check { device } } else { Owner::Script { device } };
        Some(NewTask { owner, lun: self.lun, cdb, len_bytes, payload, footprint })
    }

    /// Takes in the answer to the question that was asked last.
    pub(crate) fn hear(&mut self, answer: Answer, reply: &[u8]) -> Result<(), Failure> {
        /// LOGICAL UNIT NOT SUPPORTED.
        const NO_SUCH_LUN: u8 = 0x25;
        let Some(question) = self.questions.get(self.next) else { return Ok(()) };
        self.next += 1;
        match answer {
            Answer::Good => {
                let result = question.learn(reply, self.again.as_mut().unwrap_or(&mut self.facts));
                result.map_err(|problem| self.failure(Blame::Peer, problem))
            }
            Answer::Failed(IoError::CheckCondition(sense)) if sense.asc == NO_SUCH_LUN => {
                Err(self.failure(Blame::User, "the target has no such LUN; `discover` lists those it has"))
            }
            Answer::Failed(IoError::CheckCondition(_)) if question.may_be_refused() => Ok(()),
            Answer::Failed(error) => Err(self.failure(Blame::Peer, &format!("{question:?}: {error}"))),
        }
    }

    /// The session has logged in again: starts to ask anew. False if nobody relies on the old answers.
    pub(crate) fn start_confirming(&mut self) -> bool {
        let needed = self.state == DeviceState::Ready && self.questions == Question::DISK;
        self.again = needed.then(|| DeviceFacts { lun: self.facts.lun, ..DeviceFacts::default() });
        if needed {
            self.next = 0;
        }
        needed
    }

    /// It is being asked again who it is.
    pub(crate) fn is_confirming(&self) -> bool {
        self.again.is_some()
    }

    /// As [`Self::hear`]; whatever is wrong now is the target's doing, for it was right before.
    pub(crate) fn hear_again(&mut self, answer: Answer, reply: &[u8]) -> Result<(), Failure> {
        self.hear(answer, reply).map_err(|failure| {
            self.again = None;
            Failure { blame: Blame::Peer, message: format!("after a new login, {}", failure.message) }
        })
    }

    /// All questions are answered again: is it the same disk? It may have grown.
    pub(crate) fn confirm(&mut self) -> Result<(), Failure> {
        let Some(now) = self.again.take() else { return Ok(()) };
        let old = &self.facts;
        let who = |facts: &DeviceFacts| {
            let DeviceFacts { vendor, product, serial, block_bytes, peripheral, .. } = facts;
            format!(
                "{vendor} {product} serial \"{serial}\", device type {peripheral:#x}, {block_bytes}-byte blocks"
            )
        };
        let (before, after) = (who(old), who(&now));
        if before != after {
            let problem = format!("after a new login this is another LUN: {after}; it was {before}");
            return Err(self.failure(Blame::Peer, &problem));
        }
        if now.capacity_blocks < old.capacity_blocks {
            let (before, after) = (old.capacity_blocks, now.capacity_blocks);
            let problem = format!("after a new login the LUN has {after} blocks; it had {before}");
            return Err(self.failure(Blame::Peer, &problem));
        }
        Ok(())
    }

    /// All questions are answered: is this a disk that I/O can go to?
    pub(crate) fn settle(&mut self) -> Result<(), Failure> {
        /// Peripheral qualifier: the target could have a device here, or could not, and has none.
        const NOT_CONNECTED: u8 = 0xe0;
        if self.questions != Question::DISK {
            return Ok(());
        }
        let facts = &self.facts;
        if facts.peripheral & NOT_CONNECTED != 0 {
            return Err(
                self.failure(Blame::User, "the target has no such LUN; `discover` lists those it has")
            );
        }
        if facts.peripheral != 0 {
            return Err(
                self.failure(Blame::User, &format!("not a disk (SCSI device type {})", facts.peripheral))
            );
        }
        if !facts.block_bytes.is_power_of_two() || facts.block_bytes < 512 {
            let problem = format!("blocks of {} bytes are not supported", facts.block_bytes);
            return Err(self.failure(Blame::Peer, &problem));
        }
        self.block_shift = facts.block_bytes.trailing_zeros();
        Ok(())
    }

    fn failure(&self, blame: Blame, problem: &str) -> Failure {
        Failure { blame, message: format!("{}: {problem}", self.address) }
    }

    /// An I/O as a task.
    #[inline]
    pub(crate) fn task(
        &self,
        device: u32,
        request: &IoRequest,
        regions: &Regions,
    ) -> Result<NewTask, SubmitError> {
        if self.state != DeviceState::Ready {
            return Err(SubmitError::NotReady);
        }
        let owner = Owner::Io { device, slot: request.slot };
        if request.op == IoOp::Sync {
            let (cdb, footprint) = (commands::synchronize_cache(), Footprint::ALL);
            return Ok(NewTask {
                owner,
                lun: self.lun,
                cdb,
                len_bytes: 0,
                payload: Payload::None,
                footprint,
            });
        }
        let (start, blocks) = self.blocks(request)?;
        let end = start + u64::from(blocks);
        let long = self.facts.long_commands || end > 1 << 32 || blocks > 0xffff;
        let len_bytes = request.len_bytes;
        let (cdb, payload, changes, len_bytes) = match request.op {
            IoOp::Read(into) => {
                if let ReadInto::Segment(seg) = into {
                    check_segment(seg, len_bytes, regions)?;
                }
                let cdb = commands::transfer(Transfer::Read, long, start, blocks);
                (cdb, Payload::In(into), false, len_bytes)
            }
            IoOp::Write(seg) | IoOp::WriteDurable(seg) => {
                check_segment(seg, len_bytes, regions)?;
                let mut cdb = commands::transfer(Transfer::Write, long, start, blocks);
                if matches!(request.op, IoOp::WriteDurable(_)) {
                    cdb[1] |= commands::FUA;
                }
                (cdb, Payload::Out(seg), true, len_bytes)
            }
            IoOp::Discard if !self.facts.unmap => return Err(SubmitError::NoDiscard),
            IoOp::Discard | IoOp::Sync => {
                let (cdb, list) = commands::unmap(start, blocks);
                (cdb, Payload::List(list), true, list.len() as u32)
            }
        };
        let footprint = Footprint { start, end, changes };
        Ok(NewTask { owner, lun: self.lun, cdb, len_bytes, payload, footprint })
    }

    /// First block and number of blocks of an I/O, checked.
    #[inline]
    fn blocks(&self, request: &IoRequest) -> Result<(u64, u32), SubmitError> {
        let mask = (1u64 << self.block_shift) - 1;
        let len = u64::from(request.len_bytes);
        if (request.offset_bytes | len) & mask != 0 || len == 0 {
            return Err(SubmitError::Alignment);
        }
        let (start, blocks) =
            (request.offset_bytes >> self.block_shift, request.len_bytes >> self.block_shift);
        // No sum here can wrap: offset and length have lost at least nine bits each.
        if start + u64::from(blocks) > self.facts.capacity_blocks {
            return Err(SubmitError::OutOfRange);
        }
        if self.facts.max_transfer_blocks != 0 && blocks > self.facts.max_transfer_blocks {
            return Err(SubmitError::TooLong);
        }
        Ok((start, blocks))
    }
}

#[inline]
fn check_segment(seg: Seg, len_bytes: u32, regions: &Regions) -> Result<(), SubmitError> {
    match regions.get(seg.region) {
        None => Err(SubmitError::UnknownRegion),
        Some(region) if seg.len < len_bytes || !region.contains(seg.offset, u64::from(seg.len)) => {
            Err(SubmitError::Segment)
        }
        Some(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::initiator::SessionId;

    fn disk() -> Device {
        let (address, _) = LunAddress::parse("iscsi://127.0.0.1/iqn.2026-11.lab.linerate:t/0").unwrap();
        let mut device = Device::new(address, Path::new(SessionId(0)), Question::DISK);
        device.facts.block_bytes = 4096;
        device.facts.capacity_blocks = 16;
        device.settle().unwrap();
        device.state = DeviceState::Ready;
        device
    }

    fn read(offset_bytes: u64, len_bytes: u32) -> Result<NewTask, SubmitError> {
        let request = IoRequest { slot: 0, op: IoOp::Read(ReadInto::Nothing), offset_bytes, len_bytes };
        disk().task(0, &request, &Regions::default())
    }

    #[test]
    fn ranges_are_checked_against_block_and_capacity() {
        assert_eq!(read(8192, 4096).unwrap().cdb[..10], [0x28, 0, 0, 0, 0, 2, 0, 0, 1, 0]);
        assert!(read(15 * 4096, 4096).is_ok());
        for (offset, len, error) in [
            (0, 0, SubmitError::Alignment),
            (512, 4096, SubmitError::Alignment),
            (0, 512, SubmitError::Alignment),
            (15 * 4096, 8192, SubmitError::OutOfRange),
            (u64::MAX << 12, 4096, SubmitError::OutOfRange),
        ] {
            assert_eq!(read(offset, len).unwrap_err(), error);
        }
    }

    #[test]
    fn discard_needs_a_target_that_can() {
        let mut device = disk();
        let request = IoRequest { slot: 0, op: IoOp::Discard, offset_bytes: 0, len_bytes: 4096 };
        assert_eq!(device.task(0, &request, &Regions::default()).unwrap_err(), SubmitError::NoDiscard);
        device.facts.unmap = true;
        assert_eq!(device.task(0, &request, &Regions::default()).unwrap().len_bytes, 24);
    }

    #[test]
    fn a_short_segment_and_a_strange_region_are_refused() {
        let mut regions = Regions::default();
        let known = linerate_io::RegionId::new(0);
        regions.insert(known, linerate_io::Region::anonymous(8192).unwrap());
        let write = |region, offset, len| {
            let op = IoOp::Write(Seg { region, offset, len });
            disk().task(0, &IoRequest { slot: 0, op, offset_bytes: 0, len_bytes: 4096 }, &regions).map(|_| ())
        };
        assert_eq!(write(known, 4096, 4096), Ok(()));
        assert_eq!(write(known, 0, 512), Err(SubmitError::Segment));
        assert_eq!(write(known, 8192, 4096), Err(SubmitError::Segment));
        assert_eq!(write(linerate_io::RegionId::new(1), 0, 4096), Err(SubmitError::UnknownRegion));
    }
}
