//! The structures of an image that are parsed as a whole. Open this file first.
//!
//! Each module has one structure: it parses bytes into a type that holds only what is valid, and writes it again.

pub(crate) mod header;
pub(crate) mod identifier;
pub(crate) mod metadata;
pub(crate) mod regions;

/// Bytes of a header, a page of the BAT, and a sector of the log.
pub(crate) const SECTOR_BYTES: u64 = 4096;
/// End of the header section (MS-VHDX 2.2); everything else is after it.
pub(crate) const HEADER_SECTION_BYTES: u64 = 1 << 20;
