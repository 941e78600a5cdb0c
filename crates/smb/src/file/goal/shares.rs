//! The list of a server's shares: a pipe in place of a file, and one remote call over it. `steps.rs` has its steps.

use super::super::steps::SmbStep;
use super::super::{FileLoss, RemoteFile};
use super::GoalProgress;
use crate::wire::files;
use crate::wire::header::SmbCommand;
use crate::wire::rpc::{self, RpcAnswer};
use crate::wire::shares::{ListedShare, SHARE_ENUM, SRVSVC, SRVSVC_PIPE, share_enum, shares};
use crate::wire::status::Status;
use linerate_io::Nanos;

const BIND_CALL: u32 = 1;
const LIST_CALL: u32 = 2;

/// A list in the making.
#[derive(Debug, Default)]
pub(in super::super) struct ShareListing {
    answer: RpcAnswer,
    shares: Vec<ListedShare>,
}

impl RemoteFile {
    /// The server's shares; empty before they are known.
    pub(crate) fn shares(&self) -> &[ListedShare] {
        if let GoalProgress::Shares(listing) = &self.goal { &listing.shares } else { &[] }
    }

    pub(in super::super) fn send_create_pipe(&mut self, now: Nanos) -> Result<(), FileLoss> {
        self.step = SmbStep::CreatingPipe;
        self.send_control(SmbCommand::Create, now, |_, header| files::create_pipe(&header, SRVSVC_PIPE))
    }

    pub(in super::super) fn pipe_created(
        &mut self,
        message: &[u8],
        status: Status,
        now: Nanos,
    ) -> Result<(), FileLoss> {
        if status != Status::SUCCESS {
            return Err(FileLoss::pipe(status, &self.user));
        }
        (self.file_id, _) = files::opened(message)?;
        self.step = SmbStep::Binding;
        self.send_control(SmbCommand::Ioctl, now, |file, header| {
            files::transceive(&header, file.file_id, &rpc::bind(BIND_CALL, SRVSVC))
        })
    }

    pub(in super::super) fn pipe_bound(
        &mut self,
        message: &[u8],
        status: Status,
        now: Nanos,
    ) -> Result<(), FileLoss> {
        if status != Status::SUCCESS {
            return Err(FileLoss::pipe(status, &self.user));
        }
        let bound = rpc::bound(files::transceived(message)?, BIND_CALL);
        bound.map_err(|error| FileLoss::rpc(error, &self.user))?;
        self.step = SmbStep::Listing;
        self.send_control(SmbCommand::Ioctl, now, |file, header| {
            let call = rpc::request(LIST_CALL, SHARE_ENUM, &share_enum(&file.address.host));
            files::transceive(&header, file.file_id, &call)
        })
    }

    /// Bytes of the result came, by the answer to the call or to a READ of the pipe.
    pub(in super::super) fn pipe_answered(
        &mut self,
        message: &[u8],
        status: Status,
        now: Nanos,
    ) -> Result<(), FileLoss> {
        // With BUFFER_OVERFLOW the pipe has more bytes of the same fragment.
        if status != Status::SUCCESS && status != Status::BUFFER_OVERFLOW {
            return Err(FileLoss::pipe(status, &self.user));
        }
        let is_first = self.step == SmbStep::Listing;
        let bytes = if is_first { files::transceived(message)? } else { files::pipe_read(message)? };
        if bytes.is_empty() {
            return Err(FileLoss::Protocol("an answer without bytes of the pipe"));
        }
        let GoalProgress::Shares(listing) = &mut self.goal else {
            return Err(FileLoss::Protocol("a list that was not asked for"));
        };
        let is_whole = listing.answer.add(bytes, LIST_CALL);
        if is_whole.map_err(|error| FileLoss::rpc(error, &self.user))? {
            let found = shares(listing.answer.data());
            listing.shares = found.map_err(|error| FileLoss::share_list(error, &self.user))?;
            self.open();
            return Ok(());
        }
        self.step = SmbStep::Fetching;
        self.send_control(SmbCommand::Read, now, |file, header| files::read_pipe(&header, file.file_id))
    }
}
