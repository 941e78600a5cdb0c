//! Vital product data pages (SPC-4 7.8, SBC-3 6.6).

use super::ports::target_name;
use crate::{
    MAX_TRANSFER_BYTES, TargetPort, UnitConfig,
    copy::third_party_copy_page,
    itl::Itl,
    limits::{MAX_COMPARE_BLOCKS, MAX_UNMAP_BLOCKS, MAX_UNMAP_DESCRIPTORS, MAX_WRITE_SAME_BLOCKS},
    sense::Sense,
};

type BuildPage = fn(&Itl) -> Vec<u8>;

/// Page codes in ascending order with what builds their body.
static PAGES: &[(u8, BuildPage)] = &[
    (0x00, |_| PAGES.iter().map(|(code, _)| *code).collect()),
    (0x80, |itl| itl.unit().config().identity.serial.clone().into_bytes()),
    (0x83, device_identification),
    (0x86, |itl| extended_inquiry(itl.unit().config())),
    (0x87, |_| vec![0x3F, 0xFF, 0, 0]),
    (0x88, |itl| scsi_ports(itl.unit().config())),
    (0x8F, |_| third_party_copy_page()),
    (0xB0, |itl| block_limits(itl.unit().config())),
    (0xB1, |_| block_device_characteristics()),
    (0xB2, |itl| logical_block_provisioning(itl.unit().config())),
];

pub(super) fn page(itl: &Itl, code: u8) -> Result<Vec<u8>, Sense> {
    let (_, build) = PAGES.iter().find(|(known, _)| *known == code).ok_or(Sense::cdb(2))?;
    let body = build(itl);
    let len = (body.len() as u16).to_be_bytes();
    let mut out = vec![0, code, len[0], len[1]];
    out.extend_from_slice(&body);
    Ok(out)
}

/// ASCII left-aligned in a field, padded with spaces, anything else shown as a question mark (SPC-4 4.3.1).
pub(super) fn padded(text: &str, len: usize) -> Vec<u8> {
    let printable = |byte: u8| if (0x20..0x7F).contains(&byte) { byte } else { b'?' };
    let mut out: Vec<u8> = text.bytes().take(len).map(printable).collect();
    out.resize(len, b' ');
    out
}

/// Designators: association in bits 5-4 of byte 1, type in bits 3-0 (SPC-4 7.8.6).
mod designator {
    pub(super) const BINARY: u8 = 1;
    pub(super) const ASCII: u8 = 2;
    pub(super) const UTF8: u8 = 3;
    pub(super) const OF_UNIT: u8 = 0x00;
    pub(super) const OF_PORT: u8 = 0x90;
    pub(super) const OF_TARGET: u8 = 0xA0;
    pub(super) const T10_VENDOR: u8 = 1;
    pub(super) const NAA: u8 = 3;
    pub(super) const RELATIVE_PORT: u8 = 4;
    pub(super) const PORT_GROUP: u8 = 5;
    pub(super) const SCSI_NAME: u8 = 8;
}

const ISCSI: u8 = 0x50;

fn push_designator(out: &mut Vec<u8>, code_set: u8, kind: u8, value: &[u8]) {
    let protocol = if kind & 0x80 != 0 { ISCSI } else { 0 };
    out.extend_from_slice(&[protocol | code_set, kind, 0, value.len() as u8]);
    out.extend_from_slice(value);
}

/// A SCSI name string: NUL-terminated, padded to a multiple of four.
fn name_string(name: &str) -> Vec<u8> {
    let mut out = name.as_bytes()[..name.len().min(247)].to_vec();
    out.push(0);
    out.resize(out.len().next_multiple_of(4), 0);
    out
}

/// The bytes of the unit's NAA designator: 16 for NAA 6, else 8.
pub(crate) fn naa(config: &UnitConfig) -> &[u8] {
    let naa = &config.identity.naa;
    if naa[0] >> 4 == 6 { naa } else { &naa[..8] }
}

fn device_identification(itl: &Itl) -> Vec<u8> {
    use designator::{ASCII, BINARY, OF_PORT, OF_TARGET, OF_UNIT, UTF8};
    let config = itl.unit().config();
    let identity = &config.identity;
    let mut out = Vec::new();
    push_designator(&mut out, BINARY, OF_UNIT | designator::NAA, naa(config));
    let mut vendor = padded(&identity.vendor, 8);
    vendor.extend(padded(&identity.product, 16));
    vendor.extend(identity.serial.bytes().take(32));
    push_designator(&mut out, ASCII, OF_UNIT | designator::T10_VENDOR, &vendor);
    let relative = itl.port().relative_port;
    if let Some(port) = config.ports.iter().find(|port| port.relative_id == relative) {
        let relative = u32::from(relative).to_be_bytes();
        push_designator(&mut out, BINARY, OF_PORT | designator::RELATIVE_PORT, &relative);
        let group = u32::from(port.group).to_be_bytes();
        push_designator(&mut out, BINARY, OF_PORT | designator::PORT_GROUP, &group);
        push_designator(&mut out, UTF8, OF_PORT | designator::SCSI_NAME, &name_string(&port.name));
        let target = name_string(target_name(port));
        push_designator(&mut out, UTF8, OF_TARGET | designator::SCSI_NAME, &target);
    }
    out
}

fn extended_inquiry(config: &UnitConfig) -> Vec<u8> {
    const SIMPSUP: u8 = 0x01;
    const V_SUP: u8 = 0x01;
    let mut out = vec![0; 60];
    out[1] = SIMPSUP;
    out[2] = if config.write_cache { V_SUP } else { 0 };
    out
}

fn scsi_ports(config: &UnitConfig) -> Vec<u8> {
    let mut out = Vec::new();
    for TargetPort { relative_id, name, .. } in &config.ports {
        let mut designators = Vec::new();
        let kind = designator::OF_PORT | designator::SCSI_NAME;
        push_designator(&mut designators, designator::UTF8, kind, &name_string(name));
        out.extend_from_slice(&[0, 0]);
        out.extend_from_slice(&relative_id.to_be_bytes());
        out.extend_from_slice(&[0; 6]);
        out.extend_from_slice(&(designators.len() as u16).to_be_bytes());
        out.extend_from_slice(&designators);
    }
    out
}

fn block_limits(config: &UnitConfig) -> Vec<u8> {
    const WSNZ: u8 = 1;
    let mut out = vec![0; 60];
    let granularity = config.physical_block_bytes / config.block_bytes;
    let max_blocks = MAX_TRANSFER_BYTES / config.block_bytes;
    out[0] = WSNZ;
    out[1] = MAX_COMPARE_BLOCKS;
    out[2..4].copy_from_slice(&(granularity as u16).to_be_bytes());
    out[4..8].copy_from_slice(&max_blocks.to_be_bytes());
    // Best at one MiB: longer transfers gain nothing and hold up their neighbours.
    out[8..12].copy_from_slice(&((1 << 20) / config.block_bytes).to_be_bytes());
    if config.thin {
        out[16..20].copy_from_slice(&MAX_UNMAP_BLOCKS.to_be_bytes());
        out[20..24].copy_from_slice(&MAX_UNMAP_DESCRIPTORS.to_be_bytes());
        let unmap = (config.unmap_bytes / config.block_bytes).max(granularity);
        out[24..28].copy_from_slice(&unmap.to_be_bytes());
        out[28..32].copy_from_slice(&0x8000_0000_u32.to_be_bytes());
    }
    out[32..40].copy_from_slice(&u64::from(MAX_WRITE_SAME_BLOCKS).to_be_bytes());
    out
}

/// Solid state: no rotation, no zones.
fn block_device_characteristics() -> Vec<u8> {
    let mut out = vec![0; 60];
    out[1] = 1;
    out
}

fn logical_block_provisioning(config: &UnitConfig) -> Vec<u8> {
    const LBPU: u8 = 0x80;
    const LBPWS: u8 = 0x40;
    const LBPWS10: u8 = 0x20;
    const LBPRZ: u8 = 0x04;
    const THIN: u8 = 0x02;
    if config.thin { vec![0, LBPU | LBPWS | LBPWS10 | LBPRZ, THIN, 0] } else { vec![0; 4] }
}
