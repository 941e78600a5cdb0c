//! Vital product data pages (SPC-4 7.8, SBC-3 6.6).

use crate::wire::field;

/// Page codes.
pub mod page {
    /// Supported VPD pages.
    pub const SUPPORTED: u8 = 0x00;
    /// Unit serial number.
    pub const SERIAL_NUMBER: u8 = 0x80;
    /// Device identification: see [`super::Designator`].
    pub const IDENTIFICATION: u8 = 0x83;
    /// Extended INQUIRY data.
    pub const EXTENDED_INQUIRY: u8 = 0x86;
    /// Mode page policy.
    pub const MODE_PAGE_POLICY: u8 = 0x87;
    /// SCSI ports.
    pub const SCSI_PORTS: u8 = 0x88;
    /// Third-party copy.
    pub const THIRD_PARTY_COPY: u8 = 0x8F;
    /// Block limits: see [`super::BlockLimits`].
    pub const BLOCK_LIMITS: u8 = 0xB0;
    /// Block device characteristics.
    pub const BLOCK_CHARACTERISTICS: u8 = 0xB1;
    /// Logical block provisioning: see [`super::Provisioning`].
    pub const PROVISIONING: u8 = 0xB2;
}

/// A page of a disk: header, then `body`.
pub fn encode_page(code: u8, body: &[u8]) -> Vec<u8> {
    let [high, low] = (body.len() as u16).to_be_bytes();
    let mut out = vec![0, code, high, low];
    out.extend_from_slice(body);
    out
}

/// The body of page `code`; empty if the reply is another page or too short.
pub fn page_body(reply: &[u8], code: u8) -> &[u8] {
    match reply {
        [_, found, high, low, body @ ..] if *found == code => {
            let len = usize::from(u16::from_be_bytes([*high, *low]));
            &body[..len.min(body.len())]
        }
        _ => &[],
    }
}

/// The object of a designator (SPC-4 table 550).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Association {
    /// The logical unit.
    Unit = 0,
    /// The target port that answers.
    Port = 1,
    /// The target device.
    Target = 2,
}

/// Code sets (SPC-4 table 549).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum CodeSet {
    /// Any bytes.
    Binary = 1,
    /// Printable ASCII.
    Ascii = 2,
    /// UTF-8.
    Utf8 = 3,
}

/// Designator types (SPC-4 table 551).
pub mod designator {
    /// T10 vendor ID based.
    pub const T10_VENDOR: u8 = 1;
    /// EUI-64 based.
    pub const EUI_64: u8 = 2;
    /// NAA.
    pub const NAA: u8 = 3;
    /// Relative target port identifier.
    pub const RELATIVE_PORT: u8 = 4;
    /// Target port group.
    pub const PORT_GROUP: u8 = 5;
    /// SCSI name string.
    pub const SCSI_NAME: u8 = 8;
}

/// PROTOCOL IDENTIFIER of iSCSI, and the bit that makes it valid (PIV).
const ISCSI: u8 = 0x50;
const PIV: u8 = 0x80;

/// One designation descriptor. `value` has at most 255 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Designator<'a> {
    /// Its object.
    pub association: Association,
    /// One of [`designator`].
    pub kind: u8,
    /// The designator itself.
    pub value: &'a [u8],
}

impl Designator<'_> {
    /// Appends it. Designators of ports and targets have the protocol identifier of iSCSI.
    pub fn push(&self, code_set: CodeSet, out: &mut Vec<u8>) {
        let (protocol, valid) = if self.association == Association::Unit { (0, 0) } else { (ISCSI, PIV) };
        let flags = valid | (self.association as u8) << 4 | self.kind;
        out.extend_from_slice(&[protocol | code_set as u8, flags, 0, self.value.len() as u8]);
        out.extend_from_slice(self.value);
    }
}

/// The designators in the body of the device identification page. Those of a reserved association are ignored.
pub fn designators(body: &[u8]) -> impl Iterator<Item = Designator<'_>> {
    let mut rest = body;
    std::iter::from_fn(move || {
        loop {
            let [_, flags, _, len, after @ ..] = rest else { return None };
            let value = &after[..usize::from(*len).min(after.len())];
            rest = &after[value.len()..];
            let association = match flags >> 4 & 3 {
                0 => Association::Unit,
                1 => Association::Port,
                2 => Association::Target,
                _ => continue,
            };
            return Some(Designator { association, kind: flags & 0x0F, value });
        }
    })
}

/// Relative port identifiers and port groups: a number in the last two of four bytes.
pub fn number_value(number: u16) -> [u8; 4] {
    u32::from(number).to_be_bytes()
}

/// The number of a relative port or port group designator; none if it is too short.
pub fn parse_number(value: &[u8]) -> Option<u16> {
    field(value, 2).map(u16::from_be_bytes)
}

/// A SCSI name string: it ends with a zero byte and is padded to a multiple of four bytes.
pub fn name_string(name: &str) -> Vec<u8> {
    let mut out = name.as_bytes()[..name.len().min(247)].to_vec();
    out.push(0);
    out.resize(out.len().next_multiple_of(4), 0);
    out
}

/// Body length of the block limits, block device characteristics and extended INQUIRY pages.
pub const LONG_BODY_BYTES: usize = 60;

const WSNZ: u8 = 0x01;
const UGAVALID: u32 = 0x8000_0000;

/// Block limits page (SBC-3 6.6.4). All counts are logical blocks; 0 = no limit given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockLimits {
    /// WSNZ: WRITE SAME of zero blocks is refused.
    pub write_same_not_zero: bool,
    /// MAXIMUM COMPARE AND WRITE LENGTH.
    pub max_compare_blocks: u8,
    /// OPTIMAL TRANSFER LENGTH GRANULARITY.
    pub granularity_blocks: u16,
    /// MAXIMUM TRANSFER LENGTH.
    pub max_transfer_blocks: u32,
    /// OPTIMAL TRANSFER LENGTH.
    pub best_transfer_blocks: u32,
    /// MAXIMUM UNMAP LBA COUNT; 0 = UNMAP is not supported.
    pub max_unmap_blocks: u32,
    /// MAXIMUM UNMAP BLOCK DESCRIPTOR COUNT.
    pub max_unmap_descriptors: u32,
    /// OPTIMAL UNMAP GRANULARITY.
    pub unmap_granularity_blocks: u32,
    /// UNMAP GRANULARITY ALIGNMENT, if it is given.
    pub unmap_alignment_blocks: Option<u32>,
    /// MAXIMUM WRITE SAME LENGTH.
    pub max_write_same_blocks: u64,
}

impl BlockLimits {
    /// The body of the page.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![0; LONG_BODY_BYTES];
        out[0] = if self.write_same_not_zero { WSNZ } else { 0 };
        out[1] = self.max_compare_blocks;
        out[2..4].copy_from_slice(&self.granularity_blocks.to_be_bytes());
        out[4..8].copy_from_slice(&self.max_transfer_blocks.to_be_bytes());
        out[8..12].copy_from_slice(&self.best_transfer_blocks.to_be_bytes());
        out[16..20].copy_from_slice(&self.max_unmap_blocks.to_be_bytes());
        out[20..24].copy_from_slice(&self.max_unmap_descriptors.to_be_bytes());
        out[24..28].copy_from_slice(&self.unmap_granularity_blocks.to_be_bytes());
        let alignment = self.unmap_alignment_blocks.map_or(0, |blocks| UGAVALID | blocks);
        out[28..32].copy_from_slice(&alignment.to_be_bytes());
        out[32..40].copy_from_slice(&self.max_write_same_blocks.to_be_bytes());
        out
    }

    /// Reads the body of the page; missing fields are 0.
    pub fn parse(body: &[u8]) -> Self {
        let word = |at: usize| field(body, at).map_or(0, u32::from_be_bytes);
        let alignment = word(28);
        Self {
            write_same_not_zero: body.first().is_some_and(|flags| flags & WSNZ != 0),
            max_compare_blocks: body.get(1).copied().unwrap_or(0),
            granularity_blocks: field(body, 2).map_or(0, u16::from_be_bytes),
            max_transfer_blocks: word(4),
            best_transfer_blocks: word(8),
            max_unmap_blocks: word(16),
            max_unmap_descriptors: word(20),
            unmap_granularity_blocks: word(24),
            unmap_alignment_blocks: (alignment & UGAVALID != 0).then_some(alignment & !UGAVALID),
            max_write_same_blocks: field(body, 32).map_or(0, u64::from_be_bytes),
        }
    }
}

const LBPU: u8 = 0x80;
const LBPWS: u8 = 0x40;
const LBPWS10: u8 = 0x20;
const LBPRZ: u8 = 0x04;
const THIN: u8 = 0x02;

/// Logical block provisioning page (SBC-3 6.6.5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Provisioning {
    /// LBPU: UNMAP works.
    pub unmap: bool,
    /// LBPWS and LBPWS10: WRITE SAME (16) and (10) unmap.
    pub write_same_unmaps: bool,
    /// LBPRZ: unmapped blocks read as zeros.
    pub unmapped_reads_zeros: bool,
    /// PROVISIONING TYPE is thin.
    pub thin: bool,
}

impl Provisioning {
    /// The body of the page.
    pub fn encode(&self) -> [u8; 4] {
        let flag = |on: bool, bits: u8| if on { bits } else { 0 };
        let flags = flag(self.unmap, LBPU)
            | flag(self.write_same_unmaps, LBPWS | LBPWS10)
            | flag(self.unmapped_reads_zeros, LBPRZ);
        [0, flags, flag(self.thin, THIN), 0]
    }

    /// Reads the body of the page; missing bits are 0.
    pub fn parse(body: &[u8]) -> Self {
        let at = |index: usize| body.get(index).copied().unwrap_or(0);
        Self {
            unmap: at(1) & LBPU != 0,
            write_same_unmaps: at(1) & LBPWS != 0,
            unmapped_reads_zeros: at(1) & LBPRZ != 0,
            thin: at(2) & 0x07 == THIN,
        }
    }
}
