//! Plain READ and WRITE commands: planned without a lock when no bit of the fast-path word stops them.

use crate::{
    Expected, Extent, Plan,
    fast_path::{STOPS_READ, STOPS_WRITE, WRITE_THROUGH},
    nexus::Itl,
};
use linerate_scsi_proto::cdb::{DPO, FUA, lba_and_blocks};
use linerate_scsi_proto::opcode::{READ_6, READ_10, READ_12, READ_16, WRITE_6, WRITE_10, WRITE_12, WRITE_16};

impl Itl {
    /// The plan of a plain READ or WRITE if no bit of the word stops it; None: take the full path.
    pub(crate) fn begin_plain(&self, cdb: &[u8; 16], expected: Expected) -> Option<Plan> {
        // Byte 1 of a six-byte CDB holds LBA bits, not flags.
        let (flags, control) = match cdb[0] {
            READ_6 | WRITE_6 => (0, cdb[5]),
            READ_10 | WRITE_10 => (cdb[1], cdb[9]),
            READ_12 | WRITE_12 => (cdb[1], cdb[11]),
            READ_16 | WRITE_16 => (cdb[1], cdb[15]),
            _ => return None,
        };
        if flags & !(DPO | FUA) != 0 || control != 0 {
            return None;
        }
        let (lba, blocks) = lba_and_blocks(cdb);
        let extent = self.extent(lba, blocks).ok()?;
        let word = self.fast_path();
        // The opcode of a READ ends in 8, that of a WRITE in A.
        if cdb[0] & 0x0F == 0x08 {
            let len_bytes = extent.asked_bytes.min(expected.in_bytes);
            return (word & STOPS_READ == 0).then_some(Plan::Read(Extent { len_bytes, ..extent }));
        }
        let len_bytes = extent.asked_bytes.min(expected.out_bytes);
        let partial_block = !len_bytes.is_multiple_of(self.block_bytes());
        let durable = flags & FUA != 0 || word & WRITE_THROUGH != 0;
        let extent = Extent { len_bytes, durable, ..extent };
        (word & STOPS_WRITE == 0 && !partial_block && self.enter(&extent)).then_some(Plan::Write(extent))
    }
}

#[cfg(test)]
mod tests {
    use crate::{Expected, Identity, InitiatorPort, Inventory, LogicalUnit, Plan, UnitConfig};

    /// The test holds the unit's lock: a plain command that took the lock would block here for ever.
    #[test]
    fn a_plain_read_or_write_of_any_size_takes_no_lock() {
        let unit = LogicalUnit::new(UnitConfig {
            identity: Identity {
                vendor: String::new(),
                product: String::new(),
                revision: String::new(),
                serial: String::new(),
                naa: [0x60; 16],
            },
            capacity_blocks: 1024,
            block_bytes: 512,
            physical_block_bytes: 512,
            write_cache: true,
            read_only: false,
            thin: false,
            unmap_bytes: 0,
            keeps_reservations: false,
            tag: 0,
            ports: Vec::new(),
        });
        let inventory = Inventory::new(vec![(0, unit.unwrap())]).unwrap();
        let initiator = InitiatorPort { name: "iqn.2026-11.lab.linerate:a".into(), isid: [0; 6] };
        let nexus = inventory.login(initiator, 1);
        let expected = Expected { in_bytes: 1024, out_bytes: 1024 };
        let cdb = |opcode: u8, at: usize| {
            let mut cdb = [0; 16];
            (cdb[0], cdb[at]) = (opcode, 2);
            cdb
        };
        let attention = nexus.begin([0; 8], &cdb(0x28, 8), expected);
        assert!(matches!(attention, Plan::Reply(_)), "power on");
        let unit = inventory.unit(0).unwrap();
        let held = unit.lock();
        for (opcode, at) in [(0x08, 4), (0x28, 8), (0xA8, 9), (0x88, 13)] {
            let read = nexus.begin([0; 8], &cdb(opcode, at), expected);
            assert!(matches!(read, Plan::Read(extent) if extent.len_bytes == 1024), "{opcode:#x}: {read:?}");
            let write = nexus.begin([0; 8], &cdb(opcode | 2, at), expected);
            let Plan::Write(extent) = write else { panic!("{opcode:#x}: {write:?}") };
            assert_eq!(extent.len_bytes, 1024);
            nexus.end_write([0; 8], &extent);
        }
        drop(held);
    }
}
