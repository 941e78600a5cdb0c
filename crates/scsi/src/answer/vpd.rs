//! Vital product data pages (SPC-4 7.8, SBC-3 6.6).

use super::ports::target_name;
use crate::{
    MAX_TRANSFER_BYTES, TargetPort, UnitConfig,
    copy::third_party_copy_page,
    limits::{MAX_COMPARE_BLOCKS, MAX_UNMAP_BLOCKS, MAX_UNMAP_DESCRIPTORS, MAX_WRITE_SAME_BLOCKS},
    nexus::Itl,
};
use linerate_scsi_proto::{
    sense::Sense,
    vpd::{
        Association, BlockLimits, CodeSet, Designator, LONG_BODY_BYTES, Provisioning, designator,
        encode_page, name_string, number_value, page as code,
    },
    wire::padded,
};

type BuildPage = fn(&Itl) -> Vec<u8>;

/// Page codes in ascending order, with the function that builds their body.
static PAGES: &[(u8, BuildPage)] = &[
    (code::SUPPORTED, |_| PAGES.iter().map(|(code, _)| *code).collect()),
    (code::SERIAL_NUMBER, |itl| itl.unit().config().identity.serial.clone().into_bytes()),
    (code::IDENTIFICATION, device_identification),
    (code::EXTENDED_INQUIRY, |itl| extended_inquiry(itl.unit().config())),
    // Every page and subpage: shared by all initiators.
    (code::MODE_PAGE_POLICY, |_| vec![0x3F, 0xFF, 0, 0]),
    (code::SCSI_PORTS, |itl| scsi_ports(itl.unit().config())),
    (code::THIRD_PARTY_COPY, |_| third_party_copy_page()),
    (code::BLOCK_LIMITS, |itl| block_limits(itl.unit().config()).encode()),
    (code::BLOCK_CHARACTERISTICS, |_| block_device_characteristics()),
    (code::PROVISIONING, |itl| provisioning(itl.unit().config()).encode().to_vec()),
];

pub(super) fn page(itl: &Itl, code: u8) -> Result<Vec<u8>, Sense> {
    let (_, build) = PAGES.iter().find(|(listed, _)| *listed == code).ok_or(Sense::cdb(2))?;
    Ok(encode_page(code, &build(itl)))
}

/// The bytes of the unit's NAA designator: 16 for NAA 6, else 8.
pub(crate) fn naa(config: &UnitConfig) -> &[u8] {
    let naa = &config.identity.naa;
    if naa[0] >> 4 == 6 { naa } else { &naa[..8] }
}

fn device_identification(itl: &Itl) -> Vec<u8> {
    use Association::{Port, Target, Unit};
    use CodeSet::{Ascii, Binary, Utf8};
    let config = itl.unit().config();
    let identity = &config.identity;
    let mut out = Vec::new();
    let mut push = |association, kind, code_set, value: &[u8]| {
        Designator { association, kind, value }.push(code_set, &mut out);
    };
    push(Unit, designator::NAA, Binary, naa(config));
    let mut vendor = padded(&identity.vendor, 8);
    vendor.extend(padded(&identity.product, 16));
    vendor.extend(identity.serial.bytes().take(32));
    push(Unit, designator::T10_VENDOR, Ascii, &vendor);
    let relative = itl.port().relative_port;
    if let Some(port) = config.ports.iter().find(|port| port.relative_id == relative) {
        push(Port, designator::RELATIVE_PORT, Binary, &number_value(relative));
        push(Port, designator::PORT_GROUP, Binary, &number_value(port.group));
        push(Port, designator::SCSI_NAME, Utf8, &name_string(&port.name));
        push(Target, designator::SCSI_NAME, Utf8, &name_string(target_name(port)));
    }
    out
}

fn extended_inquiry(config: &UnitConfig) -> Vec<u8> {
    const SIMPSUP: u8 = 0x01;
    const V_SUP: u8 = 0x01;
    let mut out = vec![0; LONG_BODY_BYTES];
    out[1] = SIMPSUP;
    out[2] = if config.write_cache { V_SUP } else { 0 };
    out
}

fn scsi_ports(config: &UnitConfig) -> Vec<u8> {
    let mut out = Vec::new();
    for TargetPort { relative_id, name, .. } in &config.ports {
        let mut designators = Vec::new();
        let value = &name_string(name);
        let name = Designator { association: Association::Port, kind: designator::SCSI_NAME, value };
        name.push(CodeSet::Utf8, &mut designators);
        out.extend_from_slice(&[0, 0]);
        out.extend_from_slice(&relative_id.to_be_bytes());
        out.extend_from_slice(&[0; 6]);
        out.extend_from_slice(&(designators.len() as u16).to_be_bytes());
        out.extend_from_slice(&designators);
    }
    out
}

fn block_limits(config: &UnitConfig) -> BlockLimits {
    let granularity = config.physical_block_bytes / config.block_bytes;
    let limits = BlockLimits {
        write_same_not_zero: true,
        max_compare_blocks: MAX_COMPARE_BLOCKS,
        granularity_blocks: granularity as u16,
        max_transfer_blocks: MAX_TRANSFER_BYTES / config.block_bytes,
        // 1 MiB: longer transfers are not faster and delay other commands.
        best_transfer_blocks: (1 << 20) / config.block_bytes,
        max_write_same_blocks: u64::from(MAX_WRITE_SAME_BLOCKS),
        ..BlockLimits::default()
    };
    if !config.thin {
        return limits;
    }
    BlockLimits {
        max_unmap_blocks: MAX_UNMAP_BLOCKS,
        max_unmap_descriptors: MAX_UNMAP_DESCRIPTORS,
        unmap_granularity_blocks: (config.unmap_bytes / config.block_bytes).max(granularity),
        unmap_alignment_blocks: Some(0),
        ..limits
    }
}

/// Solid state: no rotation, no zones.
fn block_device_characteristics() -> Vec<u8> {
    let mut out = vec![0; LONG_BODY_BYTES];
    out[1] = 1;
    out
}

fn provisioning(config: &UnitConfig) -> Provisioning {
    let thin = config.thin;
    Provisioning { unmap: thin, write_same_unmaps: thin, unmapped_reads_zeros: thin, thin }
}
