//! The EXTENDED COPY parameter list (SPC-4 6.4.2): the request of the sender, with all checks that need only its bytes.

use super::limits::{MAX_DESCRIPTOR_BYTES, MAX_SEGMENT_BYTES, MAX_SEGMENTS, MAX_TARGETS};
use linerate_scsi_proto::sense::{Sense, code};
use linerate_scsi_proto::wire::{be16, be24, be32, be64};

const HEADER_BYTES: usize = 16;
const TARGET_BYTES: usize = 32;
pub(super) const IDENTIFICATION_TARGET: u8 = 0xE4;
pub(super) const BLOCK_TO_BLOCK: u8 = 0x02;
pub(super) const BLOCK_TO_BLOCK_OFFSET: u8 = 0x0A;

/// A parameter list that can be carried out.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CopyList {
    /// `None` if the sender will not request the result (LIST ID USAGE 3).
    pub(super) list_id: Option<u8>,
    pub(super) targets: Vec<CopyTarget>,
    pub(super) segments: Vec<Segment>,
}

/// A unit, identified by its NAA designator (other designators match none of our units).
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CopyTarget {
    pub(super) naa: Vec<u8>,
    pub(super) block_bytes: u32,
}

/// Move blocks from one unit to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) source: u16,
    pub(super) destination: u16,
    pub(super) source_lba: u64,
    pub(super) destination_lba: u64,
    pub(super) amount: Amount,
}

/// How much a segment moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Amount {
    /// Blocks of the destination (DC set) or of the source.
    Blocks {
        count: u16,
        of_destination: bool,
    },
    Bytes(u32),
}

pub(super) fn parse(list: &[u8]) -> Result<CopyList, Sense> {
    let length_error = Sense::illegal(code::PARAMETER_LIST_LENGTH);
    if list.len() < HEADER_BYTES {
        return Err(length_error);
    }
    let (targets_len, segments_len) = (usize::from(be16(list, 2)), be32(list, 8) as usize);
    let inline_len = be32(list, 12);
    let descriptors =
        list[HEADER_BYTES..].get(..targets_len.saturating_add(segments_len)).ok_or(length_error)?;
    if descriptors.len() > MAX_DESCRIPTOR_BYTES || inline_len != 0 {
        return Err(length_error);
    }
    let (targets, segments) = descriptors.split_at(targets_len);
    let list_id = (list[1] & 0x18 != 0x18).then_some(list[0]);
    Ok(CopyList {
        list_id,
        targets: parse_targets(targets)?,
        segments: parse_segments(segments, HEADER_BYTES + targets_len)?,
    })
}

fn parse_targets(bytes: &[u8]) -> Result<Vec<CopyTarget>, Sense> {
    if !bytes.len().is_multiple_of(TARGET_BYTES) {
        return Err(Sense::parameter(2));
    }
    if bytes.len() / TARGET_BYTES > MAX_TARGETS {
        return Err(Sense::illegal(code::TOO_MANY_TARGETS));
    }
    let parse_one = |(index, bytes): (usize, &[u8])| {
        let at = (HEADER_BYTES + index * TARGET_BYTES) as u16;
        parse_target(bytes, at)
    };
    bytes.chunks_exact(TARGET_BYTES).enumerate().map(parse_one).collect()
}

fn parse_target(bytes: &[u8], at: u16) -> Result<CopyTarget, Sense> {
    const NAA: u8 = 3;
    const DISK: u8 = 0;
    if bytes[0] != IDENTIFICATION_TARGET {
        return Err(Sense::illegal(code::UNSUPPORTED_TARGET_TYPE));
    }
    // Another device type. LU ID TYPE and NUL are ignored since SPC-4.
    if bytes[1] & 0x1F != DISK {
        return Err(Sense::parameter(at + 1));
    }
    let designator = bytes[8..28].get(..usize::from(bytes[7])).ok_or(Sense::parameter(at + 7))?;
    let names_unit = bytes[5] & 0x3F == NAA;
    let naa = if names_unit { designator.to_vec() } else { Vec::new() };
    Ok(CopyTarget { naa, block_bytes: be24(bytes, 29) })
}

fn parse_segments(mut bytes: &[u8], mut at: usize) -> Result<Vec<Segment>, Sense> {
    let mut segments = Vec::new();
    while !bytes.is_empty() {
        if segments.len() == MAX_SEGMENTS {
            return Err(Sense::illegal(code::TOO_MANY_SEGMENTS));
        }
        let len = match bytes[0] {
            BLOCK_TO_BLOCK => 28,
            BLOCK_TO_BLOCK_OFFSET => 32,
            _ => return Err(Sense::illegal(code::UNSUPPORTED_SEGMENT_TYPE)),
        };
        if bytes.len() < len || usize::from(be16(bytes, 2)) != len - 4 {
            return Err(Sense::parameter((at + 2) as u16));
        }
        segments.push(parse_segment(&bytes[..len], at)?);
        bytes = &bytes[len..];
        at += len;
    }
    Ok(segments)
}

fn parse_segment(bytes: &[u8], at: usize) -> Result<Segment, Sense> {
    const DC: u8 = 0x02;
    let amount = if bytes[0] == BLOCK_TO_BLOCK {
        Amount::Blocks { count: be16(bytes, 10), of_destination: bytes[1] & DC != 0 }
    } else {
        // Byte offsets into a block are not supported.
        if be32(bytes, 28) != 0 {
            return Err(Sense::parameter((at + 28) as u16));
        }
        if be32(bytes, 8) > MAX_SEGMENT_BYTES {
            return Err(Sense::parameter((at + 8) as u16));
        }
        Amount::Bytes(be32(bytes, 8))
    };
    Ok(Segment {
        source: be16(bytes, 4),
        destination: be16(bytes, 6),
        source_lba: be64(bytes, 12),
        destination_lba: be64(bytes, 20),
        amount,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_list_panics(list in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&list);
        }

        #[test]
        fn no_descriptors_panic(
            mut list in proptest::collection::vec(any::<u8>(), 16..400),
            targets in 0_u16..5,
            kind in proptest::sample::select(vec![BLOCK_TO_BLOCK, BLOCK_TO_BLOCK_OFFSET]),
        ) {
            let targets_len = targets * 32;
            list[2..4].copy_from_slice(&targets_len.to_be_bytes());
            let rest = (list.len() - 16).saturating_sub(usize::from(targets_len)) as u32;
            list[8..12].copy_from_slice(&rest.to_be_bytes());
            if let Some(first) = list.get_mut(16 + usize::from(targets_len)) {
                *first = kind;
            }
            let _ = parse(&list);
        }
    }
}
