//! Where new entries go.
//!
//! Each commit is one entry. Before it is written, the changes of the entry before it are durable in their places. So
//! an entry's tail is always the entry itself, and the space of all entries but the last one is free.

use super::{
    LogArea,
    entry::{EntryFacts, encode},
};
use crate::{
    error::VhdxError,
    file::{ImageFile, Medium},
    format::SECTOR_BYTES,
    guid::Guid,
    wire::MIB,
};

/// Pages of the BAT in one entry. Two entries of this size fit into the smallest log with room to spare.
pub(crate) const ENTRY_PAGES_MAX: usize = 64;

/// The log of a session.
#[derive(Debug)]
pub(crate) struct LogWriter {
    area: LogArea,
    guid: Guid,
    /// Of the next entry.
    sequence: u64,
    sector: u32,
}

impl LogWriter {
    /// A log whose entries have a new identifier, so that none of those before are valid.
    pub(crate) fn new(area: LogArea, guid: Guid) -> Self {
        Self { area, guid, sequence: 1, sector: 0 }
    }

    /// The identifier of its entries.
    pub(crate) fn guid(&self) -> Guid {
        self.guid
    }

    /// Writes an entry with these sectors of the file: offsets and contents. The caller has flushed before, and
    /// flushes again. `structures_end` is the end of the last block.
    pub(crate) fn append<F: ImageFile>(
        &mut self,
        medium: &mut Medium<F>,
        changes: &[(u64, Vec<u8>)],
        structures_end: u64,
    ) -> Result<(), VhdxError> {
        debug_assert!(changes.len() <= ENTRY_PAGES_MAX);
        let sectors = (changes.len() + 1) as u32;
        if self.sector + sectors > self.area.sectors() {
            self.sector = 0;
        }
        let facts = EntryFacts {
            guid: self.guid,
            sequence: self.sequence,
            tail_sector: self.sector,
            // A LUN may end between two MiB.
            flushed_file_bytes: medium.length()? / MIB * MIB,
            last_file_bytes: structures_end,
        };
        let bytes = encode(&facts, changes);
        debug_assert_eq!(bytes.len() as u64, u64::from(sectors) * SECTOR_BYTES);
        medium.write(self.area.place(u64::from(self.sector)), &bytes)?;
        self.sector += sectors;
        self.sequence += 1;
        Ok(())
    }
}
