//! Command descriptor blocks. Shorter ones are padded with zeros to the 16 bytes of a SCSI Command PDU.

use crate::{
    opcode,
    wire::{be16, be24, be32, be64},
};

/// A command descriptor block.
pub type Cdb = [u8; 16];

/// Disable page out: bit of byte 1 of READ and WRITE (10, 12, 16).
pub const DPO: u8 = 0x10;
/// Force unit access: bit of byte 1 of READ and WRITE (10, 12, 16).
pub const FUA: u8 = 0x08;

/// Direction of a transfer command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transfer {
    /// READ.
    Read,
    /// WRITE.
    Write,
}

/// READ (10) or WRITE (10) (SBC-3 5.8, 5.35).
#[inline]
pub fn transfer_10(kind: Transfer, lba: u32, blocks: u16) -> Cdb {
    let mut cdb = [0; 16];
    cdb[0] = if kind == Transfer::Read { opcode::READ_10 } else { opcode::WRITE_10 };
    cdb[2..6].copy_from_slice(&lba.to_be_bytes());
    cdb[7..9].copy_from_slice(&blocks.to_be_bytes());
    cdb
}

/// READ (16) or WRITE (16) (SBC-3 5.10, 5.37).
#[inline]
pub fn transfer_16(kind: Transfer, lba: u64, blocks: u32) -> Cdb {
    let mut cdb = [0; 16];
    cdb[0] = if kind == Transfer::Read { opcode::READ_16 } else { opcode::WRITE_16 };
    cdb[2..10].copy_from_slice(&lba.to_be_bytes());
    cdb[10..14].copy_from_slice(&blocks.to_be_bytes());
    cdb
}

/// LBA and block count of a CDB that has them at the same place as READ and WRITE: in READ (6), (10), (12) or (16)
/// form. The group code in the opcode selects the form. A count of 0 in the 6-byte form is 256 (SBC-3 5.7).
#[inline]
pub fn lba_and_blocks(cdb: &Cdb) -> (u64, u32) {
    match cdb[0] >> 5 {
        0 => {
            let blocks = if cdb[4] == 0 { 256 } else { u32::from(cdb[4]) };
            (u64::from(be24(cdb, 1) & 0x1F_FFFF), blocks)
        }
        1 | 2 => (u64::from(be32(cdb, 2)), u32::from(be16(cdb, 7))),
        5 => (u64::from(be32(cdb, 2)), be32(cdb, 6)),
        _ => (be64(cdb, 2), be32(cdb, 10)),
    }
}

/// TEST UNIT READY.
pub fn test_unit_ready() -> Cdb {
    [0; 16]
}

/// INQUIRY for the standard data (no page) or for a vital product data page.
pub fn inquiry(page: Option<u8>, allocation_bytes: u16) -> Cdb {
    let [high, low] = allocation_bytes.to_be_bytes();
    let mut cdb = [0; 16];
    cdb[..5].copy_from_slice(&[opcode::INQUIRY, u8::from(page.is_some()), page.unwrap_or(0), high, low]);
    cdb
}

/// READ CAPACITY (10).
pub fn read_capacity_10() -> Cdb {
    let mut cdb = [0; 16];
    cdb[0] = opcode::READ_CAPACITY_10;
    cdb
}

/// READ CAPACITY (16).
pub fn read_capacity_16(allocation_bytes: u32) -> Cdb {
    let mut cdb = [0; 16];
    cdb[..2].copy_from_slice(&[opcode::SERVICE_ACTION_IN_16, opcode::READ_CAPACITY_16]);
    cdb[10..14].copy_from_slice(&allocation_bytes.to_be_bytes());
    cdb
}

/// REPORT LUNS of all logical units except well known ones.
pub fn report_luns(allocation_bytes: u32) -> Cdb {
    let mut cdb = [0; 16];
    cdb[0] = opcode::REPORT_LUNS;
    cdb[6..10].copy_from_slice(&allocation_bytes.to_be_bytes());
    cdb
}

/// REPORT TARGET PORT GROUPS, parameter data of the short form.
pub fn report_target_port_groups(allocation_bytes: u32) -> Cdb {
    let mut cdb = [0; 16];
    cdb[..2].copy_from_slice(&[opcode::MAINTENANCE_IN, opcode::REPORT_TARGET_PORT_GROUPS]);
    cdb[6..10].copy_from_slice(&allocation_bytes.to_be_bytes());
    cdb
}

/// SYNCHRONIZE CACHE (10) of the whole logical unit.
pub fn synchronize_cache() -> Cdb {
    let mut cdb = [0; 16];
    cdb[0] = opcode::SYNCHRONIZE_CACHE_10;
    cdb
}

/// MODE SENSE (6) of the current values of a page, without block descriptors.
pub fn mode_sense_6(page: u8, allocation_bytes: u8) -> Cdb {
    const DBD: u8 = 0x08;
    let mut cdb = [0; 16];
    cdb[..5].copy_from_slice(&[opcode::MODE_SENSE_6, DBD, page, 0, allocation_bytes]);
    cdb
}

/// LOG SENSE of the current cumulative values of a page.
pub fn log_sense(page: u8, allocation_bytes: u16) -> Cdb {
    const CUMULATIVE: u8 = 0x40;
    let mut cdb = [0; 16];
    cdb[..3].copy_from_slice(&[opcode::LOG_SENSE, 0, CUMULATIVE | page]);
    cdb[7..9].copy_from_slice(&allocation_bytes.to_be_bytes());
    cdb
}

/// UNMAP with a parameter list of this length.
pub fn unmap(list_bytes: u16) -> Cdb {
    let mut cdb = [0; 16];
    cdb[0] = opcode::UNMAP;
    cdb[7..9].copy_from_slice(&list_bytes.to_be_bytes());
    cdb
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_where_the_standard_puts_them() {
        let read = transfer_16(Transfer::Read, 0x1_0000_0002, 0x0102_0304);
        assert_eq!(read, [0x88, 0, 0, 0, 0, 1, 0, 0, 0, 2, 1, 2, 3, 4, 0, 0]);
        let write = transfer_10(Transfer::Write, 0x0102_0304, 0x0506);
        assert_eq!(write[..10], [0x2A, 0, 1, 2, 3, 4, 0, 5, 6, 0]);
        assert_eq!(inquiry(Some(0x83), 0x0102)[..6], [0x12, 1, 0x83, 1, 2, 0]);
        assert_eq!(unmap(24)[..10], [0x42, 0, 0, 0, 0, 0, 0, 0, 24, 0]);
        assert_eq!(read_capacity_16(32)[13], 32);
        assert_eq!(mode_sense_6(0x08, 252)[..6], [0x1A, 0x08, 0x08, 0, 252, 0]);
        assert_eq!(log_sense(0x0C, 0x0102)[..10], [0x4D, 0, 0x4C, 0, 0, 0, 0, 1, 2, 0]);
    }

    #[test]
    fn six_byte_reads_have_21_bits_of_lba_and_count_zero_as_256() {
        let mut cdb = [0; 16];
        cdb[..6].copy_from_slice(&[opcode::READ_6, 0xFF, 0xFF, 0xFF, 0, 0]);
        assert_eq!(lba_and_blocks(&cdb), (0x1F_FFFF, 256));
        let mut cdb = [0; 16];
        cdb[..12].copy_from_slice(&[opcode::READ_12, 0, 0, 0, 0, 9, 0, 1, 0, 0, 0, 0]);
        assert_eq!(lba_and_blocks(&cdb), (9, 0x1_0000));
    }
}
