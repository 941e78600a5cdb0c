//! Sending: all queued requests become one gather list.
//!
//! A request gets its number and its credits when it is sent, not when it is queued, so none is lost while it waits. An
//! I/O that is longer than one request becomes several of them then (`parts.rs`).

use super::credits::Ticket;
use super::parts::{IoPart, SplitIos};
use super::protection::ControlMessage;
use super::tasks::{Purpose, SmbTask};
use super::{CreditWait, FileLoss, RemoteFile, SmbFileState};
use crate::crypto::signing::Sender;
use crate::event::{SmbIo, SmbOp};
use crate::wire::files;
use crate::wire::header::{MessageHeader, SmbCommand, compound};
use linerate_io::{AttachedRegions, Driver, Nanos, Outgoing};
use zerocopy::little_endian::{U32, U64};

impl RemoteFile {
    /// Passes the queued requests to the driver and receives again. While a send is in progress, new requests wait for
    /// its end, so that they are sent together. An error is kept until the time is handled.
    #[inline]
    pub(crate) fn flush<D: Driver>(
        &mut self,
        driver: &mut D,
        regions: &AttachedRegions,
        splits: &mut SplitIos,
        now: Nanos,
    ) {
        let Some(stream) = self.stream.filter(|_| self.is_connected) else { return };
        if let Some(mut out) = self.outgoing.take() {
            self.loss = self.push_all(&mut out, regions, splits, now).err();
            if out.is_empty() {
                self.outgoing = Some(out);
            } else {
                driver.send(stream, out);
            }
        }
        self.receive_again(driver, stream);
    }

    fn push_all(
        &mut self,
        out: &mut Outgoing,
        regions: &AttachedRegions,
        splits: &mut SplitIos,
        now: Nanos,
    ) -> Result<(), FileLoss> {
        self.give_up_oplock(now)?;
        let is_known = self.tell_sequence(now)?;
        self.push_control(out);
        let takes_ios = is_known && self.state == SmbFileState::Ready;
        if takes_ios { self.push_ios(out, regions, splits, now) } else { Ok(()) }
    }

    fn push_control(&mut self, out: &mut Outgoing) {
        for message in self.control.drain(..) {
            self.protection.push_message(out, message);
        }
    }

    fn push_ios(
        &mut self,
        out: &mut Outgoing,
        regions: &AttachedRegions,
        splits: &mut SplitIos,
        now: Nanos,
    ) -> Result<(), FileLoss> {
        while let Some(first) = self.queue.front() {
            let charge = self.credits.charge_of(first.io.len_bytes.min(self.max_io_bytes));
            if !self.tasks.has_space(self.credits.next_message_id()) {
                break;
            }
            let Some(ticket) = self.credits.take(charge) else {
                return self.wait_for_credits(out, charge, now);
            };
            let Some(part) = self.next_part(splits) else { break };
            self.has_asked_for_credits = false;
            let header = self.header(part.io.op.command(), &ticket, part.is_replay);
            self.push_io(out, &header, &part.io, regions);
            self.tasks.insert(SmbTask::new(ticket, Purpose::Io(part), now));
        }
        Ok(())
    }

    /// The header of a request of the session.
    #[inline]
    fn header(&self, command: SmbCommand, ticket: &Ticket, is_replay: bool) -> MessageHeader {
        let mut header =
            MessageHeader::request(command, ticket.message_id, ticket.charge_field, ticket.request);
        header.session_id = U64::new(self.session_id);
        header.tree_id = U32::new(self.tree_id);
        if command.is_of_file() && self.has_channel_sequence() {
            header.set_channel_sequence(self.replays.sequence, is_replay);
        }
        header
    }

    /// The next queued I/O, or a part of it that one request can move.
    #[inline]
    fn next_part(&mut self, splits: &mut SplitIos) -> Option<IoPart> {
        let first = self.queue.front_mut()?;
        splits.cut(first, self.max_io_bytes).or_else(|| self.queue.pop_front())
    }

    #[inline]
    fn push_io(&mut self, out: &mut Outgoing, header: &MessageHeader, io: &SmbIo, regions: &AttachedRegions) {
        let (file_id, offset, len) = (self.file_id, io.offset_bytes, io.len_bytes);
        match io.op {
            SmbOp::Read(_) => {
                self.protection.push_io(out, regions, files::READ_BYTES, None, |into| {
                    files::read(into, header, file_id, offset, len);
                });
            }
            SmbOp::Write { from, durable } => {
                self.protection.push_io(out, regions, files::IO_BYTES, Some(from), |into| {
                    files::write(into, header, file_id, offset, len, durable);
                });
            }
            SmbOp::Flush => {
                let bytes = files::close_or_flush(header, file_id);
                let message = ControlMessage { bytes, sender: Sender::Client, sign: false };
                self.protection.push_message(out, message);
            }
            SmbOp::SetLength => {
                let bytes = files::set_size(header, file_id, offset);
                let message = ControlMessage { bytes, sender: Sender::Client, sign: false };
                self.protection.push_message(out, message);
            }
        }
    }

    /// An I/O waits for the answers to others. Without others in flight the client asks for credits with an ECHO, whose
    /// answer is the last chance to get enough.
    fn wait_for_credits(&mut self, out: &mut Outgoing, needed: u16, now: Nanos) -> Result<(), FileLoss> {
        let granted = self.credits.total();
        self.credit_wait = self.credit_wait.or(Some(CreditWait::New { granted }));
        if !self.tasks.is_empty() {
            return Ok(());
        }
        if granted == 0 || self.has_asked_for_credits {
            return Err(FileLoss::Credits { granted, needed });
        }
        self.has_asked_for_credits = true;
        self.send_control(SmbCommand::Echo, now, |_, header| files::empty(&header))?;
        self.push_control(out);
        Ok(())
    }

    /// Queues a request of opening or closing, or an ECHO.
    pub(super) fn send_control(
        &mut self,
        command: SmbCommand,
        now: Nanos,
        make: impl FnOnce(&Self, MessageHeader) -> Vec<u8>,
    ) -> Result<(), FileLoss> {
        let ticket = self.credits.take(1).ok_or_else(|| self.no_credit())?;
        let mut bytes = make(self, self.header(command, &ticket, false));
        // The key of the session signs the logon of a channel, which gives the channel its own.
        if command == SmbCommand::SessionSetup && self.binding.is_some() {
            self.protection.sign(&mut bytes);
        }
        if matches!(command, SmbCommand::Negotiate | SmbCommand::SessionSetup) {
            self.opening.preauth.add(&bytes);
        }
        // MS-SMB2 3.2.4.1.1, 3.2.5.5: TREE_CONNECT and the validation are signed even if nothing else is.
        let is_signed = matches!(command, SmbCommand::TreeConnect | SmbCommand::Ioctl);
        let sign = is_signed && self.protection.has_keys();
        self.control.push(ControlMessage { bytes, sender: Sender::Client, sign });
        self.tasks.insert(SmbTask::new(ticket, Purpose::Control(command), now));
        Ok(())
    }

    /// Queues a FLUSH of the caller beside the requests of closing.
    pub(super) fn send_flush(&mut self, part: IoPart, now: Nanos) -> Result<(), FileLoss> {
        let Some(ticket) = self.credits.take(1) else {
            self.queue.push_back(part);
            return Err(self.no_credit());
        };
        let header = self.header(SmbCommand::Flush, &ticket, part.is_replay);
        let bytes = files::close_or_flush(&header, self.file_id);
        self.control.push(ControlMessage { bytes, sender: Sender::Client, sign: false });
        self.tasks.insert(SmbTask::new(ticket, Purpose::Io(part), now));
        Ok(())
    }

    /// Adds a request about the same file to the one that was queued last (MS-SMB2 3.2.4.1.4). Returns whether it did: not
    /// without a credit.
    pub(super) fn relate(
        &mut self,
        command: SmbCommand,
        now: Nanos,
        make: impl FnOnce(&MessageHeader) -> Vec<u8>,
    ) -> bool {
        let has_space = self.tasks.has_space(self.credits.next_message_id());
        let Some(ticket) = has_space.then(|| self.credits.take(1)).flatten() else { return false };
        let mut header = self.header(command, &ticket, false);
        header.set_related();
        let bytes = make(&header);
        let last = self.control.last_mut().expect("a request is related to one that waits to be sent");
        compound(&mut last.bytes, &bytes);
        self.tasks.insert(SmbTask::new(ticket, Purpose::Control(command), now));
        self.related = Some(ticket.message_id);
        true
    }

    /// The request of the step failed, and so does the one that is related to it.
    pub(super) fn drop_related(&mut self) {
        if let Some(slot) = self.related.take().and_then(|id| self.tasks.find(id)) {
            let task = self.tasks.get_mut(slot);
            task.purpose = Purpose::Dropped(task.command());
        }
    }

    fn no_credit(&self) -> FileLoss {
        FileLoss::Credits { granted: self.credits.total(), needed: 1 }
    }

    /// Queues a CANCEL (MS-SMB2 3.2.4.24): it costs no credit, and has the number of the request that it cancels.
    pub(super) fn queue_cancel(&mut self, message_id: u64, async_id: Option<u64>) {
        let mut header = MessageHeader::request(SmbCommand::Cancel, message_id, 0, 0);
        header.session_id = U64::new(self.session_id);
        if let Some(id) = async_id {
            header.set_async_id(id);
        }
        self.control.push(ControlMessage {
            bytes: files::empty(&header),
            sender: Sender::ClientCancel,
            sign: false,
        });
    }

    /// A send has ended.
    pub(crate) fn sent(
        &mut self,
        result: std::io::Result<()>,
        mut outgoing: Box<Outgoing>,
    ) -> Result<(), FileLoss> {
        outgoing.clear();
        self.outgoing = Some(outgoing);
        match result {
            // The reason is in what the server sent before it closed the connection.
            Err(_) if matches!(self.state, SmbFileState::Opening | SmbFileState::Reconnecting) => Ok(()),
            result => result.map_err(|error| FileLoss::Broken(error.to_string())),
        }
    }
}
