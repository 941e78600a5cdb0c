//! Receiving: messages are parsed in the receive buffer.
//!
//! One receive returns as many messages as the kernel has. The head of a READ response is checked before any byte of its
//! data is stored. Then the data are dropped, or copied into the caller's segment. If a long rest is still missing, the
//! next receive puts it directly into that segment. All other messages are collected and handled as a whole, and so are
//! encrypted ones.

use super::incoming::{CONTROL_BYTES_MAX, Incoming, ReadData};
use super::steps::SmbStep;
use super::tasks::{Purpose, SmbTask, TaskSlot};
use super::{FileContext, FileLoss, RemoteFile};
use crate::crypto::signing::{Sender, Signature};
use crate::event::{SmbIo, SmbIoError, SmbOp, SmbSink};
use crate::wire::files;
use crate::wire::frame::{HEAD_BYTES, MessagePart, is_sealed};
use crate::wire::header::{MessageHeader, SIGNATURE_AT, SmbCommand, UNSOLICITED, first_of_compound};
use crate::wire::part;
use crate::wire::status::Status;
use linerate_io::{AttachedRegions, Buffer, Driver, Handle, Seg};
use std::io;

impl RemoteFile {
    /// Returns the buffer to the driver, and the segment for long read data.
    pub(super) fn receive_again<D: Driver>(&mut self, driver: &mut D, stream: Handle) {
        // The driver has the buffer for a receive.
        let Some(buffer) = self.buffer.take() else { return };
        self.direct = match &self.incoming {
            Incoming::Read(data) => data.missing(self.reader.direct_remaining()),
            _ => None,
        };
        driver.recv(stream, self.direct.as_slice(), buffer);
    }

    /// A receive has ended.
    #[inline]
    pub(crate) fn received<S: SmbSink>(
        &mut self,
        result: io::Result<usize>,
        buffer: Buffer,
        cx: &mut FileContext<'_, S>,
    ) -> Result<(), FileLoss> {
        let mut len = match result {
            Ok(0) if !self.heard => return Err(FileLoss::ClosedAtOnce),
            Ok(0) => return Err(FileLoss::Closed),
            Ok(len) => len,
            Err(error) => return Err(FileLoss::Broken(error.to_string())),
        };
        self.heard = true;
        if let Some(seg) = self.direct.take() {
            let direct = (seg.len as usize).min(len);
            if let Some(signing) = &mut self.verifying {
                cx.regions.for_each_chunk(Seg { len: direct as u32, ..seg }, |chunk| signing.update(chunk));
            }
            self.reader.advance_direct(direct as u32);
            len -= direct;
        }
        let result = self.parse(&buffer.as_slice()[..len], cx);
        self.buffer = Some(buffer);
        result
    }

    fn parse<S: SmbSink>(&mut self, bytes: &[u8], cx: &mut FileContext<'_, S>) -> Result<(), FileLoss> {
        let mut rest = bytes;
        loop {
            let (used, part) = self.reader.next(rest)?;
            match part {
                MessagePart::NeedMore => return Ok(()),
                MessagePart::Head { rest_len } => {
                    self.head(rest_len)?;
                    if rest_len == 0 {
                        self.complete(cx)?;
                    }
                }
                MessagePart::Rest { bytes, offset, complete } => {
                    self.rest(&rest[bytes], offset, cx.regions);
                    if complete {
                        self.complete(cx)?;
                    }
                }
            }
            rest = &rest[used..];
        }
    }

    /// Checks the head of a message, and determines what its rest is.
    #[inline]
    fn head(&mut self, rest_len: u32) -> Result<(), FileLoss> {
        let mut bytes = [0; HEAD_BYTES];
        let head_len = self.reader.head().len();
        bytes[..head_len].copy_from_slice(self.reader.head());
        let head = &bytes[..head_len];
        self.verifying = None;
        self.incoming = if is_sealed(head) {
            Incoming::Sealed
        } else {
            let header = MessageHeader::parse(head)?;
            if header.next_command.get() == 0 {
                self.check_protection(header, head)?;
                self.classify(head, header, rest_len)?
            } else if rest_len <= CONTROL_BYTES_MAX {
                Incoming::Compound
            } else {
                return Err(FileLoss::Protocol("a long compound of answers"));
            }
        };
        if matches!(self.incoming, Incoming::Whole | Incoming::Compound | Incoming::Sealed) {
            self.scratch.clear();
            self.scratch.extend_from_slice(head);
        }
        Ok(())
    }

    /// Whether a message that is not encrypted may be, and may lack a signature. Starts to check the one that it has.
    #[inline]
    fn check_protection(&mut self, header: &MessageHeader, head: &[u8]) -> Result<(), FileLoss> {
        let (status, message_id) = (header.status(), header.message_id.get());
        if self.protection.seals {
            return Err(ended(status).unwrap_or(FileLoss::Protocol("it did not encrypt an answer")));
        }
        // This side does not have the key yet that signs the refusal of a channel.
        let is_refused = self.step == SmbStep::LoggingOn && status != Status::SUCCESS;
        if is_refused && self.binding.is_some() {
            return Ok(());
        }
        // MS-SMB2 3.2.5.1.3: neither of them is signed.
        if status == Status::PENDING || message_id == UNSOLICITED {
            return Ok(());
        }
        match self.protection.verifier() {
            Some(key) if header.is_signed() => {
                self.verifying = Some(key.start(head, message_id, Sender::Server));
                Ok(())
            }
            _ if self.protection.signs => {
                Err(ended(status).unwrap_or(FileLoss::Protocol("it did not sign an answer")))
            }
            _ => Ok(()),
        }
    }

    /// The request of an answer; None: the message answers no request.
    #[inline]
    fn task_of(&self, header: &MessageHeader) -> Result<Option<TaskSlot>, FileLoss> {
        if header.message_id.get() == UNSOLICITED {
            return Ok(None);
        }
        let stranger = FileLoss::Protocol("an answer to a request that is not in flight");
        let slot = self.tasks.find(header.message_id.get()).ok_or(stranger)?;
        if !header.is(self.tasks.get(slot).command()) {
            return Err(FileLoss::Protocol("an answer with the command of another request"));
        }
        Ok(Some(slot))
    }

    #[inline]
    fn classify(&self, head: &[u8], header: &MessageHeader, rest_len: u32) -> Result<Incoming, FileLoss> {
        let Some(task) = self.task_of(header)? else {
            let is_break = header.is(SmbCommand::OplockBreak) && rest_len <= CONTROL_BYTES_MAX;
            return Ok(if is_break { Incoming::Whole } else { Incoming::Ignored });
        };
        if let Purpose::Io(part) = self.tasks.get(task).purpose
            && let SmbIo { op: SmbOp::Read(into), len_bytes, .. } = part.io
            && header.status() == Status::SUCCESS
        {
            let (offset, len) = files::read_data(head)?;
            let skip = offset.checked_sub(HEAD_BYTES as u32);
            let skip = skip.filter(|skip| len <= len_bytes && skip + len <= rest_len);
            let skip =
                skip.ok_or(FileLoss::Protocol("read data outside their message or longer than asked for"))?;
            return Ok(Incoming::Read(ReadData { task, into, skip, len, rest_len }));
        }
        if rest_len > CONTROL_BYTES_MAX {
            return Err(FileLoss::Protocol("a long answer to a request without data"));
        }
        Ok(Incoming::Whole)
    }

    #[inline]
    fn rest(&mut self, bytes: &[u8], offset: u32, regions: &AttachedRegions) {
        if let Some(signing) = &mut self.verifying {
            signing.update(bytes);
        }
        match &self.incoming {
            Incoming::Ignored => {}
            // Bounded by the reader's limit.
            Incoming::Whole | Incoming::Compound | Incoming::Sealed => self.scratch.extend_from_slice(bytes),
            Incoming::Read(data) => data.store(bytes, offset, regions),
        }
    }

    /// The message is complete.
    #[inline]
    fn complete<S: SmbSink>(&mut self, cx: &mut FileContext<'_, S>) -> Result<(), FileLoss> {
        if self.verifying.is_some() {
            let signature = self.reader.head()[SIGNATURE_AT].try_into().unwrap_or_default();
            self.check_signature(&signature)?;
        }
        match std::mem::replace(&mut self.incoming, Incoming::Ignored) {
            Incoming::Ignored => Ok(()),
            Incoming::Read(data) => {
                self.credits.grant(MessageHeader::parse(self.reader.head())?.credits.get());
                let task = self.end(data.task);
                if let Purpose::Io(part) = task.purpose {
                    cx.splits.end(part, moved(data.len, part.io.len_bytes), cx.sink);
                }
                Ok(())
            }
            Incoming::Whole => {
                let scratch = std::mem::take(&mut self.scratch);
                let result = self.whole(&scratch, cx);
                self.scratch = scratch;
                result
            }
            Incoming::Compound => {
                let scratch = std::mem::take(&mut self.scratch);
                let result = self.each(&scratch, false, cx);
                self.scratch = scratch;
                result
            }
            Incoming::Sealed => {
                let mut scratch = std::mem::take(&mut self.scratch);
                let result = match self.protection.open(&mut scratch) {
                    Ok(message) => self.each(message, true, cx),
                    Err(error) => Err(error.into()),
                };
                self.scratch = scratch;
                result
            }
        }
    }

    /// The answers of a message. Those that were not encrypted together are signed one by one (MS-SMB2 3.2.5.1.3).
    fn each<S: SmbSink>(
        &mut self,
        message: &[u8],
        was_sealed: bool,
        cx: &mut FileContext<'_, S>,
    ) -> Result<(), FileLoss> {
        let mut rest = message;
        loop {
            let (answer, others) = rest.split_at(first_of_compound(rest)?);
            if !was_sealed {
                let header = MessageHeader::parse(answer)?;
                self.check_protection(header, answer)?;
                self.check_signature(&header.signature)?;
            }
            self.whole(answer, cx)?;
            if others.is_empty() {
                return Ok(());
            }
            rest = others;
        }
    }

    fn check_signature(&mut self, signature: &Signature) -> Result<(), FileLoss> {
        let is_right = self.verifying.take().is_none_or(|signing| signing.matches(signature));
        let wrong =
            "the signature of an answer is wrong: the answer, or the negotiation, was changed on its way";
        if is_right { Ok(()) } else { Err(FileLoss::Protocol(wrong)) }
    }

    /// A message other than plain read data.
    fn whole<S: SmbSink>(&mut self, message: &[u8], cx: &mut FileContext<'_, S>) -> Result<(), FileLoss> {
        let header = MessageHeader::parse(message)?;
        let Some(slot) = self.task_of(header)? else {
            return if header.is(SmbCommand::OplockBreak) { self.unsolicited(message) } else { Ok(()) };
        };
        self.credits.grant(header.credits.get());
        let status = header.status();
        if status == Status::PENDING {
            self.tasks.get_mut(slot).async_id = header.async_id();
            return Ok(());
        }
        let task = *self.tasks.get(slot);
        match task.purpose {
            Purpose::Dropped(_) => {
                self.end(slot);
                Ok(())
            }
            Purpose::Control(command) => {
                self.end(slot);
                if self.is_of_caller(command) {
                    if let Some(loss) = ended(status) {
                        return Err(loss);
                    }
                    self.keep_answer(status, message);
                    return Ok(());
                }
                // The file may be closed since.
                let is_open = matches!(self.step, SmbStep::Open | SmbStep::Closing | SmbStep::LoggingOff);
                let is_told = command == SmbCommand::QueryInfo && is_open;
                if is_told || matches!(command, SmbCommand::Echo | SmbCommand::OplockBreak) {
                    return Ok(());
                }
                self.step_answered(message, cx)?;
                self.end_recovery(cx);
                Ok(())
            }
            Purpose::Io(part) => {
                // After this, or a malformed answer, the I/O is still in flight.
                if let Some(loss) = ended(status) {
                    return Err(loss);
                }
                let is_early = status == Status::FILE_NOT_AVAILABLE && !task.is_cancelled;
                if is_early && self.keep_refused(part, cx.now) {
                    self.end(slot);
                    return Ok(());
                }
                let result = io_result(&part.io, &task, message, status, cx.regions)?;
                self.end(slot);
                cx.splits.end(part, result, cx.sink);
                Ok(())
            }
        }
    }

    #[inline]
    fn end(&mut self, slot: TaskSlot) -> SmbTask {
        let task = self.tasks.remove(slot);
        self.credits.end(task.charge);
        task
    }
}

/// The end of an I/O by the answer to it.
fn io_result(
    io: &SmbIo,
    task: &SmbTask,
    message: &[u8],
    status: Status,
    regions: &AttachedRegions,
) -> Result<Result<(), SmbIoError>, FileLoss> {
    Ok(match (status, io.op) {
        (Status::SUCCESS, SmbOp::Flush | SmbOp::SetLength) => Ok(()),
        (Status::SUCCESS, SmbOp::Write { .. }) => moved(files::written(message)?, io.len_bytes),
        (Status::SUCCESS, SmbOp::Read(into)) => {
            let (offset, len) = files::read_data(message)?;
            let data = part(message, offset, len.min(io.len_bytes))?;
            if let Some(seg) = into {
                regions.of(seg).write(seg.offset, data);
            }
            moved(len, io.len_bytes)
        }
        (Status::CANCELLED, _) if task.is_cancelled => Err(SmbIoError::Timeout),
        (Status::END_OF_FILE, _) => Err(SmbIoError::Short { moved: 0 }),
        (status, _) => Err(SmbIoError::Refused(status)),
    })
}

fn moved(bytes: u32, of: u32) -> Result<(), SmbIoError> {
    if bytes == of { Ok(()) } else { Err(SmbIoError::Short { moved: bytes }) }
}

/// A status after which nothing on the connection can succeed.
fn ended(status: Status) -> Option<FileLoss> {
    let ends = [
        Status::USER_SESSION_DELETED,
        Status::NETWORK_NAME_DELETED,
        Status::NETWORK_SESSION_EXPIRED,
        Status::FILE_CLOSED,
    ];
    ends.contains(&status).then_some(FileLoss::Ended(status))
}
