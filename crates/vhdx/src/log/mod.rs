//! The log (MS-VHDX 2.3): a ring of entries, each of which holds pages of the BAT or of other metadata before they are
//! written to their places. Open this file first.
//!
//! - `entry.rs`: the bytes of an entry.
//! - `sequence.rs`: the entries that an open has to replay.
//! - `replay.rs`: their replay.
//! - `writer.rs`: where this program puts its own entries.

mod entry;
mod replay;
mod sequence;
mod writer;

pub(crate) use replay::replay;
pub(crate) use writer::{ENTRY_PAGES_MAX, LogWriter};

use crate::{
    error::VhdxError,
    file::{ImageFile, Medium},
    format::{SECTOR_BYTES, header::FileHeader},
};

/// A sector of the log.
type Sector = [u8; SECTOR_BYTES as usize];

/// Where the log is in the file: whole MiB.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogArea {
    offset: u64,
    bytes: u32,
}

impl LogArea {
    pub(crate) fn of(header: &FileHeader) -> Self {
        Self { offset: header.log_offset, bytes: header.log_bytes }
    }

    fn sectors(self) -> u32 {
        self.bytes / SECTOR_BYTES as u32
    }

    /// Reads the sector with this number; after the last one is the first one.
    fn read<F: ImageFile>(self, medium: &mut Medium<F>, sector: u64) -> Result<Sector, VhdxError> {
        let mut bytes = [0; SECTOR_BYTES as usize];
        medium.read(self.place(sector), &mut bytes)?;
        Ok(bytes)
    }

    /// Where a sector is in the file.
    fn place(self, sector: u64) -> u64 {
        self.offset + sector % u64::from(self.sectors()) * SECTOR_BYTES
    }
}
