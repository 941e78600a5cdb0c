//! A device: one LUN, its facts, and the tasks for its I/Os.

use crate::event::Failure;
use crate::facts::{DeviceFacts, DeviceState};
use crate::options::address::LunAddress;
use crate::probe::{self, Probe, Problem};
use crate::probe_command::ProbeCommand;
use crate::request::{IoOp, IoRequest, ReadInto, SubmitError};
use crate::task::{Footprint, NewTask, Owner, Payload};
use linerate_io::{AttachedRegions, Seg};
use linerate_iscsi_proto::pdu::Lun;
use linerate_scsi_proto::cdb::{self, Cdb, Transfer};
use linerate_scsi_proto::unmap;

/// A LUN and what is known about it.
#[derive(Debug)]
pub(crate) struct Device {
    pub(crate) address: LunAddress,
    pub(crate) state: DeviceState,
    pub(crate) facts: DeviceFacts,
    pub(crate) lun: Lun,
    commands: &'static [ProbeCommand],
    block_shift: u32,
}

impl Device {
    pub(crate) fn new(address: LunAddress, commands: &'static [ProbeCommand]) -> Self {
        Self {
            facts: DeviceFacts { lun: address.lun, ..DeviceFacts::default() },
            lun: Lun::from_number(address.lun),
            address,
            state: DeviceState::Opening,
            commands,
            block_shift: 0,
        }
    }

    /// The probe that identifies the LUN.
    pub(crate) fn probe(&self) -> Probe {
        Probe::new(self.commands, self.address.lun)
    }

    /// Accepts these facts, if I/O can go to such a disk. A target that is only asked for its LUNs has no disk.
    pub(crate) fn accept(&mut self, facts: DeviceFacts) -> Result<(), Problem> {
        if self.commands != ProbeCommand::TARGET {
            probe::check_disk(&facts)?;
            self.block_shift = facts.block_bytes.trailing_zeros();
        }
        self.facts = facts;
        Ok(())
    }

    pub(crate) fn failure(&self, problem: &Problem) -> Failure {
        let message = format!("{}: {}", self.address, problem.words);
        Failure { remedy: problem.remedy, ..Failure::new(problem.blame, message) }
    }

    /// An I/O as a task.
    #[inline]
    pub(crate) fn task(
        &self,
        device: u32,
        request: &IoRequest,
        regions: &AttachedRegions,
    ) -> Result<NewTask, SubmitError> {
        if self.state != DeviceState::Ready {
            return Err(SubmitError::NotReady);
        }
        let owner = Owner::Io { device, slot: request.slot };
        if request.op == IoOp::Sync {
            let (cdb, footprint) = (cdb::synchronize_cache(), Footprint::ALL);
            return Ok(NewTask { lun: self.lun, cdb, footprint, ..NewTask::control(owner) });
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
                let cdb = transfer(Transfer::Read, long, start, blocks);
                (cdb, Payload::In(into), false, len_bytes)
            }
            IoOp::Write(seg) | IoOp::WriteDurable(seg) => {
                check_segment(seg, len_bytes, regions)?;
                let mut cdb = transfer(Transfer::Write, long, start, blocks);
                if matches!(request.op, IoOp::WriteDurable(_)) {
                    cdb[1] |= cdb::FUA;
                }
                (cdb, Payload::Out(seg), true, len_bytes)
            }
            IoOp::Discard if !self.facts.unmap => return Err(SubmitError::NoDiscard),
            IoOp::Discard | IoOp::Sync => {
                let payload = Payload::UnmapList { block: start, blocks };
                (cdb::unmap(unmap::ONE_RANGE_BYTES as u16), payload, true, unmap::ONE_RANGE_BYTES as u32)
            }
        };
        let footprint = Footprint { start, end, changes };
        Ok(NewTask {
            owner,
            lun: self.lun,
            cdb,
            len_bytes,
            payload,
            footprint,
            order: 0,
            requeued: false,
            losses: 0,
        })
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
        // No sum here can wrap: offset and length were divided by at least 512.
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
fn check_segment(seg: Seg, len_bytes: u32, regions: &AttachedRegions) -> Result<(), SubmitError> {
    match regions.get(seg.region) {
        None => Err(SubmitError::UnknownRegion),
        Some(region) if seg.len < len_bytes || !region.contains(seg.offset, u64::from(seg.len)) => {
            Err(SubmitError::Segment)
        }
        Some(_) => Ok(()),
    }
}

/// READ (16) or WRITE (16) if `long`, else READ (10) or WRITE (10), whose fields hold the range.
#[inline]
fn transfer(kind: Transfer, long: bool, lba: u64, blocks: u32) -> Cdb {
    if long {
        return cdb::transfer_16(kind, lba, blocks);
    }
    debug_assert!(u32::try_from(lba).is_ok() && u16::try_from(blocks).is_ok(), "the range needs 16 bytes");
    cdb::transfer_10(kind, lba as u32, blocks as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk() -> Device {
        let (address, _) = LunAddress::parse("iscsi://127.0.0.1/iqn.2026-11.lab.linerate:t/0").unwrap();
        let mut device = Device::new(address, ProbeCommand::DISK);
        let facts = DeviceFacts { block_bytes: 4096, capacity_blocks: 16, ..DeviceFacts::default() };
        device.accept(facts).unwrap();
        device.state = DeviceState::Ready;
        device
    }

    fn read(offset_bytes: u64, len_bytes: u32) -> Result<NewTask, SubmitError> {
        let request = IoRequest { slot: 0, op: IoOp::Read(ReadInto::Nothing), offset_bytes, len_bytes };
        disk().task(0, &request, &AttachedRegions::default())
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
        assert_eq!(
            device.task(0, &request, &AttachedRegions::default()).unwrap_err(),
            SubmitError::NoDiscard
        );
        device.facts.unmap = true;
        assert_eq!(device.task(0, &request, &AttachedRegions::default()).unwrap().len_bytes, 24);
    }

    #[test]
    fn a_short_segment_and_a_strange_region_are_refused() {
        let mut regions = AttachedRegions::default();
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
