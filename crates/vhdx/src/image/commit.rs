//! How changes become durable.
//!
//! 1. A flush of the file: data, new lengths, and the pages of the commit before are durable.
//! 2. A log entry with the changed pages of the BAT, and a flush. From here on they survive a power cut.
//! 3. The pages in their places. The next commit flushes them.
//!
//! The first entry of a session is written before the header names the log, because a header that names a log without a
//! complete entry is damage (MS-VHDX 2.3.3).

use super::{VhdxImage, WriteState};
use crate::{
    error::VhdxError,
    file::ImageFile,
    log::{LogArea, LogWriter},
};

impl<F: ImageFile> VhdxImage<F> {
    /// Makes all earlier writes durable. After an error the image takes no more writes.
    pub fn flush(&mut self) -> Result<(), VhdxError> {
        match self.state {
            WriteState::ReadOnly | WriteState::Clean => Ok(()),
            WriteState::Failed => Err(VhdxError::Failed),
            WriteState::Written => {
                let committed = self.commit();
                self.settle(committed)
            }
        }
    }

    /// Makes all writes durable, empties the log, and returns the file.
    pub fn close(mut self) -> Result<F, VhdxError> {
        self.flush()?;
        if self.headers.current().log.is_some() {
            // The entry's changes must be in their places before the header forgets the log.
            self.medium.flush()?;
            self.headers.update(&mut self.medium, |next| next.log = None)?;
            // So that both headers say the same (MS-VHDX 2.2.2.1).
            self.headers.update(&mut self.medium, |_| ())?;
        }
        Ok(self.medium.into_inner())
    }

    fn commit(&mut self) -> Result<(), VhdxError> {
        self.medium.flush()?;
        let changes = self.bat.changes();
        if changes.is_empty() {
            return Ok(());
        }
        let area = LogArea::of(self.headers.current());
        let log = match &mut self.log {
            Some(log) => log,
            None => self.log.insert(LogWriter::new(area, self.guids.draw())),
        };
        log.append(&mut self.medium, &changes, self.end)?;
        self.medium.flush()?;
        let guid = log.guid();
        if self.headers.current().log != Some(guid) {
            self.headers.update(&mut self.medium, |next| next.log = Some(guid))?;
        }
        for (offset, page) in &changes {
            self.medium.write(*offset, page)?;
        }
        self.bat.set_clean();
        Ok(())
    }

    /// Passes on the result of a change of the structures; after an error what is durable is not known.
    pub(super) fn settle<T>(&mut self, result: Result<T, VhdxError>) -> Result<T, VhdxError> {
        if result.is_err() {
            self.state = WriteState::Failed;
        }
        result
    }
}
