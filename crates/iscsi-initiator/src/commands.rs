//! The CDBs that this initiator sends, and the replies that it reads (SPC-6, SBC-4). Replies are judged by the bytes
//! that came, never by lengths inside them.

use crate::facts::DeviceFacts;
use crate::paths::access;

/// A command descriptor block, padded with zeros to what a SCSI Command PDU carries.
pub(crate) type Cdb = [u8; 16];

/// What a transfer command does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transfer {
    Read,
    Write,
}

/// Force unit access, in byte 1 of WRITE (10) and WRITE (16).
pub(crate) const FUA: u8 = 0x08;

/// READ (16) or WRITE (16) if `long`, else READ (10) or WRITE (10), whose fields the range must fit.
#[inline]
pub(crate) fn transfer(kind: Transfer, long: bool, block: u64, blocks: u32) -> Cdb {
    let mut cdb = [0; 16];
    if long {
        cdb[0] = if kind == Transfer::Read { 0x88 } else { 0x8a };
        cdb[2..10].copy_from_slice(&block.to_be_bytes());
        cdb[10..14].copy_from_slice(&blocks.to_be_bytes());
    } else {
        cdb[0] = if kind == Transfer::Read { 0x28 } else { 0x2a };
        cdb[2..6].copy_from_slice(&(block as u32).to_be_bytes());
        cdb[7..9].copy_from_slice(&(blocks as u16).to_be_bytes());
    }
    cdb
}

/// SYNCHRONIZE CACHE (10) of the whole LUN.
pub(crate) fn synchronize_cache() -> Cdb {
    let mut cdb = [0; 16];
    cdb[0] = 0x35;
    cdb
}

/// UNMAP with one descriptor in its list.
pub(crate) fn unmap() -> Cdb {
    let mut cdb = [0; 16];
    cdb[0] = 0x42;
    cdb[8] = UNMAP_LIST_BYTES as u8;
    cdb
}

/// UNMAP parameter list with one descriptor (SBC-4 5.32.2).
pub(crate) const UNMAP_LIST_BYTES: usize = 24;

/// The list of one range.
pub(crate) fn unmap_list(block: u64, blocks: u32) -> [u8; UNMAP_LIST_BYTES] {
    let mut list = [0; UNMAP_LIST_BYTES];
    list[1] = (UNMAP_LIST_BYTES - 2) as u8;
    list[3] = (UNMAP_LIST_BYTES - 8) as u8;
    list[8..16].copy_from_slice(&block.to_be_bytes());
    list[16..20].copy_from_slice(&blocks.to_be_bytes());
    list
}

/// One question to a LUN when it is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Question {
    TestUnitReady,
    Inquiry,
    SerialNumber,
    Identification,
    PortGroups,
    BlockLimits,
    Provisioning,
    Capacity16,
    Capacity10,
    Luns,
}

impl Question {
    /// What a disk is asked, in order.
    pub(crate) const DISK: &[Question] = &[
        Question::TestUnitReady,
        Question::Inquiry,
        Question::SerialNumber,
        Question::BlockLimits,
        Question::Provisioning,
        Question::Capacity16,
        Question::Capacity10,
    ];
    /// What the disk behind one of several paths is asked. First what it answers whatever its access state.
    pub(crate) const PATH: &[Question] = &[
        Question::Inquiry,
        Question::SerialNumber,
        Question::Identification,
        Question::PortGroups,
        Question::TestUnitReady,
        Question::BlockLimits,
        Question::Provisioning,
        Question::Capacity16,
        Question::Capacity10,
    ];
    /// What a target is asked, through LUN 0.
    pub(crate) const TARGET: &[Question] = &[Question::Luns];

    /// CDB and allocation length in bytes.
    pub(crate) fn cdb(self) -> (Cdb, u32) {
        const VPD: u8 = 1;
        let mut cdb = [0; 16];
        let inquiry = |evpd: u8, page: u8, len: u16| {
            let [hi, lo] = len.to_be_bytes();
            let mut cdb = [0; 16];
            cdb[..5].copy_from_slice(&[0x12, evpd, page, hi, lo]);
            (cdb, u32::from(len))
        };
        match self {
            Question::TestUnitReady => (cdb, 0),
            Question::Inquiry => inquiry(0, 0, 96),
            Question::SerialNumber => inquiry(VPD, 0x80, 252),
            Question::Identification => inquiry(VPD, 0x83, 1024),
            Question::PortGroups => {
                cdb[..2].copy_from_slice(&[0xa3, 0x0a]);
                cdb[6..10].copy_from_slice(&GROUPS_BYTES.to_be_bytes());
                (cdb, GROUPS_BYTES)
            }
            Question::BlockLimits => inquiry(VPD, 0xb0, 64),
            Question::Provisioning => inquiry(VPD, 0xb2, 64),
            Question::Capacity16 => {
                cdb[..2].copy_from_slice(&[0x9e, 0x10]);
                cdb[13] = 32;
                (cdb, 32)
            }
            Question::Capacity10 => {
                cdb[0] = 0x25;
                (cdb, 8)
            }
            Question::Luns => {
                cdb[0] = 0xa0;
                cdb[6..10].copy_from_slice(&LUN_LIST_BYTES.to_be_bytes());
                (cdb, LUN_LIST_BYTES)
            }
        }
    }

    /// A target may refuse this question and still be a good disk.
    pub(crate) fn may_be_refused(self) -> bool {
        matches!(
            self,
            Question::SerialNumber
                | Question::Identification
                | Question::PortGroups
                | Question::BlockLimits
                | Question::Provisioning
                | Question::Capacity16
        )
    }

    /// The answer is known already, or there is none.
    pub(crate) fn is_answered(self, facts: &DeviceFacts) -> bool {
        match self {
            Question::Capacity10 => facts.block_bytes != 0,
            Question::PortGroups => facts.tpgs == 0 || facts.port_group.is_none(),
            _ => false,
        }
    }

    /// Reads the reply into `facts`; a message if it cannot be used.
    pub(crate) fn learn(self, reply: &[u8], facts: &mut DeviceFacts) -> Result<(), &'static str> {
        match self {
            Question::TestUnitReady => {}
            Question::Inquiry => inquiry(reply, facts).ok_or("INQUIRY data is too short")?,
            Question::SerialNumber => facts.serial = words(page(reply, 0x80)),
            Question::Identification => access::identification(page(reply, 0x83), facts),
            Question::PortGroups => facts.groups = access::port_groups(reply),
            Question::BlockLimits => {
                let limit = page(reply, 0xb0).get(4..8).map_or(0, be32);
                facts.max_transfer_blocks = limit;
            }
            // LBPU, byte 5 of the page = byte 1 behind its header.
            Question::Provisioning => {
                facts.unmap = page(reply, 0xb2).get(1).is_some_and(|flags| flags & 0x80 != 0);
            }
            Question::Capacity16 => capacity16(reply, facts).ok_or("READ CAPACITY (16) data is too short")?,
            Question::Capacity10 => {
                let short = "READ CAPACITY (10) data is too short";
                let last = reply.get(..4).map(be32).ok_or(short)?;
                facts.capacity_blocks = u64::from(last) + 1;
                facts.block_bytes = reply.get(4..8).map(be32).ok_or(short)?;
                facts.physical_block_bytes = facts.block_bytes;
            }
            Question::Luns => facts.luns = luns(reply).ok_or("REPORT LUNS data is too short")?,
        }
        Ok(())
    }
}

/// Room for some sixty port groups.
const GROUPS_BYTES: u32 = 1024;
/// Room for 8191 LUNs.
const LUN_LIST_BYTES: u32 = 65_528 + 8;

fn be32(bytes: &[u8]) -> u32 {
    bytes.iter().take(4).fold(0, |value, byte| value << 8 | u32::from(*byte))
}

fn words(bytes: &[u8]) -> String {
    let text: String =
        bytes.iter().map(|&b| if (0x20..0x7f).contains(&b) { char::from(b) } else { ' ' }).collect();
    text.trim().to_owned()
}

/// The body of a VPD page; empty if it is another page or too short.
fn page(reply: &[u8], code: u8) -> &[u8] {
    match reply {
        [_, found, hi, lo, body @ ..] if *found == code => {
            let len = usize::from(u16::from_be_bytes([*hi, *lo]));
            &body[..len.min(body.len())]
        }
        _ => &[],
    }
}

fn inquiry(reply: &[u8], facts: &mut DeviceFacts) -> Option<()> {
    facts.peripheral = *reply.first()?;
    facts.tpgs = reply.get(5)? >> 4 & 3;
    facts.vendor = words(reply.get(8..16)?);
    facts.product = words(reply.get(16..32)?);
    facts.revision = words(reply.get(32..36)?);
    Some(())
}

fn capacity16(reply: &[u8], facts: &mut DeviceFacts) -> Option<()> {
    let last = u64::from(be32(reply.get(..4)?)) << 32 | u64::from(be32(reply.get(4..8)?));
    facts.block_bytes = be32(reply.get(8..12)?);
    // A capacity of 2^64 blocks does not exist; the sum must not wrap to zero either.
    facts.capacity_blocks = last.saturating_add(1);
    let exponent = u32::from(reply.get(13).copied().unwrap_or(0) & 0x0f);
    facts.physical_block_bytes = facts.block_bytes.saturating_mul(1 << exponent);
    facts.thin = reply.get(14).is_some_and(|flags| flags & 0x80 != 0);
    facts.long_commands = true;
    Some(())
}

fn luns(reply: &[u8]) -> Option<Vec<u16>> {
    let announced = be32(reply.get(..4)?) as usize;
    let list = reply.get(8..)?;
    let entries = list[..announced.min(list.len())].chunks_exact(8);
    let number = |entry: &[u8]| {
        let raw = u64::from(be32(entry)) << 32 | u64::from(be32(&entry[4..]));
        linerate_iscsi_proto::pdu::Lun(raw).number()
    };
    Some(entries.filter_map(number).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cdbs_stand_where_the_standard_puts_them() {
        let cdb = transfer(Transfer::Read, true, 0x1_0000_0002, 0x0102_0304);
        assert_eq!(cdb, [0x88, 0, 0, 0, 0, 1, 0, 0, 0, 2, 1, 2, 3, 4, 0, 0]);
        let cdb = transfer(Transfer::Write, false, 0x0102_0304, 0x0506);
        assert_eq!(cdb[..10], [0x2a, 0, 1, 2, 3, 4, 0, 5, 6, 0]);
        let cdb = unmap();
        assert_eq!((cdb[0], cdb[8]), (0x42, 24));
        assert_eq!(
            unmap_list(7, 9),
            [0, 22, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 9, 0, 0, 0, 0]
        );
    }

    #[test]
    fn short_and_lying_replies_do_not_panic() {
        let all = [Question::DISK, Question::PATH, Question::TARGET].concat();
        for question in all {
            for len in 0..100 {
                for byte in [0x00, 0xff, 0x80, 0xb0] {
                    let mut facts = DeviceFacts::default();
                    let _ = question.learn(&vec![byte; len], &mut facts);
                    assert!(facts.luns.len() <= 12 && facts.serial.len() <= 100);
                }
            }
        }
    }

    #[test]
    fn capacity_thin_and_physical_blocks() {
        let mut facts = DeviceFacts::default();
        let mut reply = [0; 32];
        reply[7] = 0xff;
        reply[10] = 2;
        reply[13] = 3;
        reply[14] = 0x80;
        Question::Capacity16.learn(&reply, &mut facts).unwrap();
        assert_eq!((facts.capacity_blocks, facts.block_bytes, facts.physical_block_bytes), (256, 512, 4096));
        assert!(facts.thin && Question::Capacity10.is_answered(&facts));
    }

    #[test]
    fn luns_in_both_addressing_forms() {
        let mut reply = vec![0, 0, 0, 24, 0, 0, 0, 0];
        reply.extend([0, 7, 0, 0, 0, 0, 0, 0]);
        reply.extend([0x41, 0x2c, 0, 0, 0, 0, 0, 0]);
        reply.extend([0xc1, 1, 0, 0, 0, 0, 0, 0]);
        let mut facts = DeviceFacts::default();
        Question::Luns.learn(&reply, &mut facts).unwrap();
        assert_eq!(facts.luns, [7, 300]);
    }
}
