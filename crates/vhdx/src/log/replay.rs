//! Replays the log (MS-VHDX 2.3.3). A replay that is interrupted is repeated from its beginning.

use super::{
    LogArea,
    entry::{Descriptor, EntryHeader, restore},
    sequence::{ActiveSequence, find},
};
use crate::{
    error::{Structure, VhdxError},
    file::{ImageFile, Medium},
    format::{HEADER_SECTION_BYTES, SECTOR_BYTES, regions},
    guid::Guid,
};
use std::ops::Range;

/// An image ends before this byte; see `extents.rs`.
const FILE_BYTES_MAX: u64 = 128 << 40;

/// Writes what the log's entries with this identifier describe. `before` is called once it is sure that there is
/// something to replay, before anything is written. The caller flushes.
pub(crate) fn replay<F: ImageFile>(
    medium: &mut Medium<F>,
    area: LogArea,
    guid: Guid,
    before: impl FnOnce(&mut Medium<F>) -> Result<(), VhdxError>,
) -> Result<(), VhdxError> {
    let ActiveSequence(entries) = find(medium, area, guid)?;
    let Some(&(head, header)) = entries.last() else { return Ok(()) };
    let head_place = area.place(u64::from(head));
    let file_bytes = medium.length()?;
    if file_bytes < header.flushed_file_bytes {
        let reason = format!(
            "the file had {} bytes and has {file_bytes}; its end is missing",
            header.flushed_file_bytes
        );
        return Err(VhdxError::damaged(Structure::Log, head_place, reason));
    }
    if header.last_file_bytes > FILE_BYTES_MAX {
        let reason = format!("a file of {} bytes is no image", header.last_file_bytes);
        return Err(VhdxError::damaged(Structure::Log, head_place, reason));
    }
    let limit = file_bytes.max(header.last_file_bytes);
    check(medium, area, &entries, limit)?;
    before(medium)?;
    medium.grow(header.last_file_bytes)?;
    for (first, header) in entries {
        apply(medium, area, first, &header)?;
    }
    Ok(())
}

/// Every change must be inside the file, and neither in the headers nor in the log itself. All zeros together are at
/// most as long as the file, so that no entry keeps a replay busy.
fn check<F: ImageFile>(
    medium: &mut Medium<F>,
    area: LogArea,
    entries: &[(u32, EntryHeader)],
    limit: u64,
) -> Result<(), VhdxError> {
    let mut zeros_left = limit;
    for (first, header) in entries {
        for number in 0..header.descriptor_sectors() {
            let sector = area.read(medium, u64::from(*first) + number)?;
            for descriptor in header.parse_descriptors(&sector, number).flatten() {
                let (offset, bytes) = match descriptor {
                    Descriptor::Zero { offset, bytes } => (offset, bytes),
                    Descriptor::Data { offset, .. } => (offset, SECTOR_BYTES),
                };
                let end = offset.checked_add(bytes).filter(|&end| end <= limit);
                if end.is_none_or(|end| !is_metadata(offset..end, area)) {
                    let reason = format!("an entry changes {bytes} bytes at {offset}, which is no metadata");
                    let place = area.place(u64::from(*first) + number);
                    return Err(VhdxError::damaged(Structure::Log, place, reason));
                }
                if matches!(descriptor, Descriptor::Zero { .. }) {
                    zeros_left = zeros_left.checked_sub(bytes).ok_or_else(|| {
                        let place = area.place(u64::from(*first) + number);
                        VhdxError::damaged(Structure::Log, place, "its zeros are longer than the file")
                    })?;
                }
            }
        }
    }
    Ok(())
}

/// Whether the log may change these bytes: the region tables, and all after the header section but the log.
fn is_metadata(range: Range<u64>, area: LogArea) -> bool {
    let in_tables =
        range.start >= regions::OFFSETS[0] && range.end <= regions::OFFSETS[1] + regions::TABLE_BYTES;
    let log_end = area.offset + u64::from(area.bytes);
    let is_log = range.start < log_end && area.offset < range.end;
    in_tables || (range.start >= HEADER_SECTION_BYTES && !is_log)
}

fn apply<F: ImageFile>(
    medium: &mut Medium<F>,
    area: LogArea,
    first: u32,
    header: &EntryHeader,
) -> Result<(), VhdxError> {
    let mut data = u64::from(first) + header.descriptor_sectors();
    for number in 0..header.descriptor_sectors() {
        let sector = area.read(medium, u64::from(first) + number)?;
        for descriptor in header.parse_descriptors(&sector, number).flatten() {
            match descriptor {
                Descriptor::Zero { offset, bytes } => medium.zero(offset..offset + bytes)?,
                Descriptor::Data { offset, leading, trailing } => {
                    let mut content = area.read(medium, data)?;
                    restore(&mut content, leading, trailing);
                    medium.write(offset, &content)?;
                    data += 1;
                }
            }
        }
    }
    Ok(())
}
