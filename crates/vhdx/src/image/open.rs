//! Existing images: replay of the log, then the check of every structure.

use super::{VhdxImage, WriteState};
use crate::{
    bat::Bat,
    error::{Structure, VhdxError},
    extents::Extents,
    file::{ImageFile, Medium},
    format::{HEADER_SECTION_BYTES, header::Headers, identifier, metadata::Metadata, regions::RegionTable},
    guid::GuidSource,
    log::{LogArea, replay},
};

/// What an open image may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// Only reads; nothing is written to the file.
    ReadOnly,
    /// Reads and writes.
    ReadWrite,
}

impl<F: ImageFile> VhdxImage<F> {
    /// Opens a fixed or dynamic image. Errors: it is none, it is damaged, or it needs something that is missing here.
    pub fn open(file: F, mode: OpenMode, mut guids: GuidSource) -> Result<Self, VhdxError> {
        let mut medium = Medium::new(file)?;
        let file_bytes = medium.length()?;
        if file_bytes < identifier::BYTES as u64
            || !identifier::is_image(&medium.read_vec(0, identifier::BYTES as u64)?)
        {
            return Err(VhdxError::Foreign);
        }
        if file_bytes < HEADER_SECTION_BYTES {
            let reason = format!("the file ends in the header section, after {file_bytes} bytes");
            return Err(VhdxError::damaged(Structure::FileIdentifier, 0, reason));
        }
        let mut headers = Headers::read(&mut medium, file_bytes)?;
        if headers.current().log.is_some() {
            if mode == OpenMode::ReadOnly {
                return Err(VhdxError::NeedsReplay);
            }
            recover(&mut medium, &mut headers, &mut guids)?;
        }
        let header = headers.current();
        let mut extents = Extents::new(medium.length()?);
        let place = (header.log_offset, u64::from(header.log_bytes));
        extents.claim(place.0, place.1, Structure::Header, place.0)?;
        let table = RegionTable::read(&mut medium, &mut extents)?;
        let metadata = Metadata::read(&mut medium, table.metadata)?;
        let bat = Bat::read(&mut medium, metadata.geometry, table.bat, &mut extents)?;
        let state = match mode {
            OpenMode::ReadOnly => WriteState::ReadOnly,
            OpenMode::ReadWrite => WriteState::Clean,
        };
        Ok(Self { medium, metadata, headers, bat, end: extents.end(), guids, log: None, state })
    }
}

/// Replays the log and empties it. The headers first say that the file changes (MS-VHDX 2.2.2).
fn recover<F: ImageFile>(
    medium: &mut Medium<F>,
    headers: &mut Headers,
    guids: &mut GuidSource,
) -> Result<(), VhdxError> {
    let header = headers.current().clone();
    let Some(guid) = header.log else { return Ok(()) };
    replay(medium, LogArea::of(&header), guid, |medium| {
        headers.update(medium, |next| next.file_write = guids.draw())
    })?;
    medium.flush()?;
    headers.update(medium, |next| next.log = None)
}
