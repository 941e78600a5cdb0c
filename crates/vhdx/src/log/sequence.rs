//! Finds the active sequence (MS-VHDX 2.3.3): the newest entries that are complete.
//!
//! The specification describes a scan that walks from each sector again. Here each entry is checked once, and links
//! lead from it to the next one, so that a log that was made to be slow is not.

use super::{
    LogArea, Sector,
    entry::{CHECKSUM_AT, EntryHeader, is_data_of},
};
use crate::{
    error::{Structure, VhdxError},
    file::{ImageFile, Medium},
    guid::Guid,
    wire::u32_at,
};
use std::collections::HashMap;

/// Entries overlap only where a newer one is torn. A log of which more than this many times its length must be checked
/// was made by hand.
const CHECKED_LOGS_MAX: u64 = 4;

/// Entries to replay, oldest first: their first sectors, and their headers.
#[derive(Debug)]
pub(super) struct ActiveSequence(pub(super) Vec<(u32, EntryHeader)>);

/// Reads the whole log. Errors: no sequence is complete, so the file is damaged.
pub(super) fn find<F: ImageFile>(
    medium: &mut Medium<F>,
    area: LogArea,
    guid: Guid,
) -> Result<ActiveSequence, VhdxError> {
    let entries = valid_entries(medium, area, guid)?;
    let next = |first: u32, header: &EntryHeader| {
        let next = ((u64::from(first) + u64::from(header.sectors)) % u64::from(area.sectors())) as u32;
        let follows =
            entries.get(&next).is_some_and(|after| after.sequence.checked_sub(1) == Some(header.sequence));
        follows.then_some(next)
    };
    // Where the walk from each entry ends. Sequence numbers grow along a walk, so its later entries are done first.
    let mut newest_first: Vec<(u32, EntryHeader)> =
        entries.iter().map(|(&first, &header)| (first, header)).collect();
    newest_first.sort_unstable_by_key(|(first, header)| (std::cmp::Reverse(header.sequence), *first));
    let mut ends: HashMap<u32, u32> = HashMap::new();
    for (first, header) in &newest_first {
        let end = next(*first, header).and_then(|next| ends.get(&next).copied()).unwrap_or(*first);
        ends.insert(*first, end);
    }
    let Some((head, header)) =
        newest_first.iter().find(|(first, header)| ends.get(&header.tail_sector) == Some(first))
    else {
        let reason = "the header names a log, but no sequence of entries in it is complete";
        return Err(VhdxError::damaged(Structure::Log, area.offset, reason));
    };
    let mut sequence = Vec::new();
    let mut at = header.tail_sector;
    while at != *head {
        let header = entries[&at];
        sequence.push((at, header));
        // The walk from the tail ends at the head.
        at = next(at, &header).unwrap_or(*head);
    }
    sequence.push((*head, *header));
    Ok(ActiveSequence(sequence))
}

/// All entries with this identifier whose checksum is right, by their first sectors.
fn valid_entries<F: ImageFile>(
    medium: &mut Medium<F>,
    area: LogArea,
    guid: Guid,
) -> Result<HashMap<u32, EntryHeader>, VhdxError> {
    let mut left = u64::from(area.sectors()) * CHECKED_LOGS_MAX;
    let mut entries = HashMap::new();
    for first in 0..area.sectors() {
        let sector = area.read(medium, u64::from(first))?;
        let Some(header) = EntryHeader::parse(&sector, guid, area.sectors()) else { continue };
        left = left.checked_sub(u64::from(header.sectors)).ok_or_else(|| {
            let reason = "too many of its entries overlap";
            VhdxError::damaged(Structure::Log, area.place(u64::from(first)), reason)
        })?;
        if is_whole(medium, area, first, &sector, &header)? {
            entries.insert(first, header);
        }
    }
    Ok(entries)
}

/// Whether checksum, descriptors and data sectors are those of one entry.
fn is_whole<F: ImageFile>(
    medium: &mut Medium<F>,
    area: LogArea,
    first: u32,
    sector: &Sector,
    header: &EntryHeader,
) -> Result<bool, VhdxError> {
    use super::entry::Descriptor;
    let described = header.descriptor_sectors();
    let before = linerate_crc32c::crc32c(&sector[..CHECKSUM_AT]);
    let mut sum = linerate_crc32c::crc32c_append(before, &[0; 4]);
    sum = linerate_crc32c::crc32c_append(sum, &sector[CHECKSUM_AT + 4..]);
    let mut data_sectors = 0;
    for number in 0..u64::from(header.sectors) {
        let current = if number == 0 { *sector } else { area.read(medium, u64::from(first) + number)? };
        if number > 0 {
            sum = linerate_crc32c::crc32c_append(sum, &current);
        }
        if number < described {
            for descriptor in header.parse_descriptors(&current, number) {
                match descriptor {
                    Some(Descriptor::Data { .. }) => data_sectors += 1,
                    Some(Descriptor::Zero { .. }) => {}
                    None => return Ok(false),
                }
            }
        } else if number - described < data_sectors && !is_data_of(&current, header.sequence) {
            return Ok(false);
        }
    }
    let has_room = described + data_sectors <= u64::from(header.sectors);
    Ok(has_room && sum == u32_at(sector, CHECKSUM_AT))
}
