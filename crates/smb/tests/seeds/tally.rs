//! What happened over all seeds, so that a proof shows that its faults were met.

use linerate_smb::SmbIoError;

/// See the module text.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    /// Sessions whose file was open.
    pub(crate) opened: u64,
    /// Sessions that lost their connection.
    pub(crate) lost: u64,
    /// Connections that were restored, with the file that the server had kept open, or with one that was opened again.
    pub(crate) kept: u64,
    pub(crate) reopened: u64,
    /// I/Os by their end.
    pub(crate) ios_right: u64,
    pub(crate) ios_lost: u64,
    pub(crate) ios_cancelled: u64,
    pub(crate) ios_closed: u64,
}

impl Tally {
    pub(crate) fn count(&mut self, result: Result<(), SmbIoError>) {
        let counter = match result {
            Ok(()) => &mut self.ios_right,
            Err(SmbIoError::Timeout) => &mut self.ios_cancelled,
            Err(SmbIoError::Closed) => &mut self.ios_closed,
            Err(_) => &mut self.ios_lost,
        };
        *counter += 1;
    }

    pub(crate) fn count_restored(&mut self, is_same_handle: bool) {
        *(if is_same_handle { &mut self.kept } else { &mut self.reopened }) += 1;
    }

    /// Every end of a session and of an I/O has occurred.
    pub(crate) fn has_all(&self) -> bool {
        let ios = [self.ios_right, self.ios_lost, self.ios_cancelled, self.ios_closed];
        let sessions = [self.opened, self.lost, self.kept, self.reopened];
        ios.iter().chain(&sessions).all(|count| *count > 0)
    }
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.opened += other.opened;
        self.lost += other.lost;
        self.kept += other.kept;
        self.reopened += other.reopened;
        self.ios_right += other.ios_right;
        self.ios_lost += other.ios_lost;
        self.ios_cancelled += other.ios_cancelled;
        self.ios_closed += other.ios_closed;
    }
}
