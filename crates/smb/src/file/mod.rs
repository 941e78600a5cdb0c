//! One file of a share, with a connection, a session and a tree of its own.
//!
//! Its steps are in `steps.rs` and `opening.rs`; I/Os are sent in `send.rs` and answered in `receive.rs`. `credits.rs` has
//! the window, `tasks.rs` the requests in flight, `protection.rs` signatures and encryption, `loss.rs` the reasons of
//! failures; `recovery.rs` restores a lost connection, `replays.rs` sends its requests again; `goal` is what a connection
//! is for in place of a file: the list of the server's shares, or all names of the share. It owns no clock, no socket and
//! no thread.

mod credits;
mod goal;
mod incoming;
mod loss;
mod opening;
mod parts;
mod protection;
mod receive;
mod recovery;
mod replays;
mod send;
mod steps;
mod tasks;

pub use goal::SmbMode;
pub(crate) use goal::{SmbGoal, TreeAnswer};
pub(crate) use loss::FileLoss;
pub(crate) use parts::SplitIos;

use crate::address::SmbAddress;
use crate::credentials::SmbCredentials;
use crate::crypto::keys::SessionKeys;
use crate::crypto::signing::Signing;
use crate::event::{
    SmbEvent, SmbEventKind, SmbFailure, SmbFileId, SmbIo, SmbIoError, SmbOp, SmbSink, SmbSubmitError,
};
use crate::options::{SmbOptions, nanos};
use crate::wire::body::OpenId;
use crate::wire::durable::DurableVersion;
use crate::wire::files::OpenMode;
use crate::wire::frame::MessageReader;
use crate::wire::negotiate::Negotiated;
use credits::Credits;
use goal::GoalProgress;
use incoming::{CONTROL_BYTES_MAX, Incoming};
use linerate_io::{AttachedRegions, Buffer, Driver, Handle, Nanos, Outgoing, Seg, SocketOptions};
use parts::{IoPart, Replays};
use protection::{ControlMessage, Protection};
use recovery::{DurableHandle, Recovery};
use std::collections::VecDeque;
use std::net::SocketAddr;
use steps::{ChannelBinding, FileOpening, SmbStep};
use tasks::TasksInFlight;

/// Receive memory of one connection. It fits into a core's second-level cache.
const RECEIVE_BYTES: usize = 256 * 1024;

/// Whether a file takes I/O.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SmbFileState {
    /// Being opened.
    Opening,
    /// It takes I/O.
    Ready,
    /// Its connection was lost and is being restored. It takes I/O, which waits.
    Reconnecting,
    /// Being closed.
    Closing,
    /// It cannot be used.
    Failed(SmbFailure),
    /// Closed by the caller.
    Closed,
}

/// What was negotiated, as read back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileFacts {
    /// The file's size.
    pub size_bytes: u64,
    /// The longest READ and WRITE; a longer I/O is split.
    pub max_io_bytes: u32,
    /// The longest READ that the server permits.
    pub max_read_bytes: u32,
    /// The longest WRITE that the server permits.
    pub max_write_bytes: u32,
    /// Both ends of the connection.
    pub local_addr: Option<SocketAddr>,
    /// See `local_addr`.
    pub peer_addr: SocketAddr,
    /// The dialect.
    pub dialect: &'static str,
    /// The algorithm of signatures; None: I/Os are not signed.
    pub signing: Option<&'static str>,
    /// The cipher; None: I/Os are not encrypted.
    pub encryption: Option<&'static str>,
    /// The durable handle that the server granted, by the version of its contexts; None: it keeps no file open without a
    /// connection.
    pub durable: Option<&'static str>,
    /// Credits that the server has granted so far.
    pub credits: u32,
    /// Connections of the session.
    pub channels: u16,
    /// The server logged the user in as a guest.
    pub is_guest: bool,
}

/// A file and its connection.
#[derive(Debug)]
pub(crate) struct RemoteFile {
    pub(crate) id: SmbFileId,
    pub(crate) address: SmbAddress,
    options: SmbOptions,
    user: String,
    /// For another logon when the connection was lost.
    credentials: SmbCredentials,
    mode: SmbMode,
    goal: GoalProgress,
    pub(crate) state: SmbFileState,
    step: SmbStep,
    opening: FileOpening,
    /// The request behind that of the step, in one compound with it.
    related: Option<u64>,
    /// It is a further channel of a session.
    binding: Option<ChannelBinding>,
    /// For further channels.
    session_keys: Option<SessionKeys>,
    /// Channels that the session has had.
    channels_bound: u32,
    /// When opening or closing must be done.
    deadline: Nanos,
    command_timeout_ns: Nanos,
    peer: SocketAddr,
    pub(crate) local: Option<SocketAddr>,
    /// None once it is closed.
    pub(crate) stream: Option<Handle>,
    is_connected: bool,
    heard: bool,
    reader: MessageReader,
    /// None while the driver has it.
    buffer: Option<Buffer>,
    /// Bytes that the current receive puts directly into a region.
    direct: Option<Seg>,
    /// None while the driver has it.
    outgoing: Option<Box<Outgoing>>,
    /// What the arriving message is.
    incoming: Incoming,
    /// The signature of the arriving message, if it has one.
    verifying: Option<Signing>,
    /// A message that is handled as a whole.
    scratch: Vec<u8>,
    /// Requests of opening and closing, cancels and echoes to send: each message, and how it is signed.
    control: Vec<ControlMessage>,
    negotiated: Option<Negotiated>,
    protection: Protection,
    credits: Credits,
    /// I/Os have waited for credits.
    credit_wait: Option<CreditWait>,
    /// An error of the last flush, until the time is handled.
    pub(crate) loss: Option<FileLoss>,
    /// An ECHO has asked for credits, and no I/O was sent since.
    has_asked_for_credits: bool,
    session_id: u64,
    /// The last session that the server granted.
    previous_session_id: u64,
    tree_id: u32,
    file_id: OpenId,
    durable: DurableHandle,
    /// The level to which the server wants to lower the oplock.
    break_to: Option<u8>,
    /// The connection was lost.
    recovery: Option<Recovery>,
    /// A server may drop each connection as soon as it is there.
    next_attempt_at: Nanos,
    replays: Replays,
    is_guest: bool,
    pub(crate) size_bytes: u64,
    max_io_bytes: u32,
    tasks: TasksInFlight,
    queue: VecDeque<IoPart>,
}

/// I/Os have waited for credits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CreditWait {
    /// Not reported yet.
    New { granted: u32 },
    /// Reported.
    Reported,
}

/// What a file needs while it handles something.
pub(crate) struct FileContext<'a, S> {
    pub(crate) sink: &'a mut S,
    pub(crate) regions: &'a AttachedRegions,
    pub(crate) now: Nanos,
    pub(crate) splits: &'a mut SplitIos,
}

impl RemoteFile {
    /// Starts to open a file.
    pub(crate) fn start<D: Driver>(
        driver: &mut D,
        id: SmbFileId,
        address: &SmbAddress,
        options: &SmbOptions,
        credentials: SmbCredentials,
        goal: SmbGoal,
    ) -> Result<Self, FileLoss> {
        options.check().map_err(|error| FileLoss::Options(error.to_string()))?;
        Self::connect(driver, id, address, options, credentials, goal, address.resolve()?)
    }

    fn connect<D: Driver>(
        driver: &mut D,
        id: SmbFileId,
        address: &SmbAddress,
        options: &SmbOptions,
        credentials: SmbCredentials,
        goal: SmbGoal,
        peer: SocketAddr,
    ) -> Result<Self, FileLoss> {
        let stream = driver
            .connect(peer, &SocketOptions::default())
            .map_err(|error| FileLoss::Connect(error.to_string()))?;
        let user = credentials.user.clone();
        Ok(Self {
            id,
            address: address.clone(),
            options: options.clone(),
            user,
            credentials: credentials.clone(),
            mode: goal.mode(),
            goal: goal.begin(),
            state: SmbFileState::Opening,
            step: SmbStep::Connecting,
            opening: FileOpening::new(options, credentials, &address.host),
            related: None,
            binding: None,
            session_keys: None,
            channels_bound: 0,
            deadline: driver.now() + nanos(options.login_timeout_s),
            command_timeout_ns: nanos(options.command_timeout_s),
            peer,
            local: None,
            stream: Some(stream),
            is_connected: false,
            heard: false,
            reader: MessageReader::new(CONTROL_BYTES_MAX),
            buffer: Some(Buffer::new(RECEIVE_BYTES)),
            direct: None,
            outgoing: Some(Box::default()),
            incoming: Incoming::Ignored,
            verifying: None,
            scratch: Vec::new(),
            control: Vec::new(),
            negotiated: None,
            protection: Protection::default(),
            credits: Credits::new(),
            credit_wait: None,
            loss: None,
            has_asked_for_credits: false,
            session_id: 0,
            previous_session_id: 0,
            tree_id: 0,
            file_id: OpenId::default(),
            durable: DurableHandle::default(),
            break_to: None,
            recovery: None,
            next_attempt_at: 0,
            replays: Replays::default(),
            is_guest: false,
            size_bytes: 0,
            max_io_bytes: 0,
            tasks: TasksInFlight::new(),
            queue: VecDeque::new(),
        })
    }

    /// It is a file, which may have several channels.
    pub(crate) fn is_file(&self) -> bool {
        matches!(self.goal, GoalProgress::File)
    }

    /// What was negotiated; None before.
    pub(crate) fn facts(&self) -> Option<FileFacts> {
        let negotiated = self.negotiated?;
        let seals = self.protection.seals;
        Some(FileFacts {
            size_bytes: self.size_bytes,
            max_io_bytes: self.max_io_bytes,
            max_read_bytes: negotiated.max_read_bytes,
            max_write_bytes: negotiated.max_write_bytes,
            local_addr: self.local,
            peer_addr: self.peer,
            dialect: negotiated.dialect.name(),
            signing: (self.protection.signs && !seals).then(|| negotiated.signing.name()),
            encryption: negotiated.cipher.filter(|_| seals).map(super::wire::negotiate::Cipher::name),
            durable: self.durable.granted.map(DurableVersion::name),
            credits: self.credits.total(),
            channels: 1,
            is_guest: self.is_guest,
        })
    }

    /// Queues an I/O.
    #[inline]
    pub(crate) fn submit(&mut self, io: &SmbIo) -> Result<(), SmbSubmitError> {
        if !matches!(self.state, SmbFileState::Ready | SmbFileState::Reconnecting) {
            return Err(SmbSubmitError::NotReady);
        }
        let (seg_len, is_write) = match io.op {
            SmbOp::Read(into) => (into.map(|seg| seg.len), false),
            SmbOp::Write { from, .. } => (Some(from.len), true),
            SmbOp::Flush | SmbOp::SetLength => {
                self.queue.push_back(IoPart::whole(*io));
                return Ok(());
            }
        };
        let fits = seg_len.is_none_or(|len| len == io.len_bytes);
        if io.len_bytes == 0 || !fits {
            return Err(SmbSubmitError::Length);
        }
        if is_write && !self.mode.write {
            return Err(SmbSubmitError::ReadOnly);
        }
        self.queue.push_back(IoPart::whole(*io));
        Ok(())
    }

    /// TCP is connected, or not.
    pub(crate) fn connected<D: Driver>(
        &mut self,
        driver: &D,
        result: std::io::Result<()>,
        now: Nanos,
    ) -> Result<(), FileLoss> {
        result.map_err(|error| FileLoss::Connect(error.to_string()))?;
        self.is_connected = true;
        self.local = self.stream.and_then(|stream| driver.local_addr(stream).ok());
        self.send_negotiate(now)
    }

    /// Requests that are late are cancelled; later the connection is given up.
    pub(crate) fn on_time<S: SmbSink>(&mut self, cx: &mut FileContext<'_, S>) -> Result<(), FileLoss> {
        if let Some(loss) = self.loss.take() {
            return Err(loss);
        }
        if let Some(CreditWait::New { granted }) = self.credit_wait {
            self.credit_wait = Some(CreditWait::Reported);
            self.report(SmbEventKind::CreditWait { granted }, cx);
        }
        match self.state {
            SmbFileState::Opening if cx.now >= self.deadline => {
                return Err(FileLoss::Silence("the file was not open within login_timeout_s"));
            }
            SmbFileState::Ready => self.queue_refused(),
            SmbFileState::Reconnecting => return self.check_recovery(cx.now),
            _ => return Ok(()),
        }
        let (now, limit) = (cx.now, self.command_timeout_ns);
        let mut late = Vec::new();
        for task in self.tasks.iter_mut().filter(|task| now >= task.sent_at + limit) {
            if now >= task.sent_at + 2 * limit {
                return Err(FileLoss::Silence("the server did not answer a request, nor its cancellation"));
            }
            if !task.is_cancelled {
                task.is_cancelled = true;
                late.push((task.message_id, task.async_id));
            }
        }
        if !late.is_empty() {
            self.report(SmbEventKind::Timeout, cx);
        }
        for (message_id, async_id) in late {
            self.queue_cancel(message_id, async_id);
        }
        Ok(())
    }

    /// The connection is lost: it is restored, or every I/O ends.
    pub(crate) fn lose<D: Driver, S: SmbSink>(
        &mut self,
        driver: &mut D,
        loss: &FileLoss,
        cx: &mut FileContext<'_, S>,
    ) {
        if !self.start_recovery(driver, loss, cx) {
            self.fail(driver, loss, cx);
        }
    }

    /// The file cannot be used any more: every I/O ends.
    pub(crate) fn fail<D: Driver, S: SmbSink>(
        &mut self,
        driver: &mut D,
        loss: &FileLoss,
        cx: &mut FileContext<'_, S>,
    ) {
        let was_closing = matches!(self.state, SmbFileState::Closing | SmbFileState::Closed);
        self.hang_up(driver);
        if was_closing {
            self.state = SmbFileState::Closed;
            self.end_all(SmbIoError::Closed, cx);
            return;
        }
        let failure = loss.failure(&self.address);
        self.state = SmbFileState::Failed(failure.clone());
        self.report(SmbEventKind::Failed(failure), cx);
        self.end_all(SmbIoError::Lost, cx);
    }

    /// Starts to close the file; waiting I/Os end, except a FLUSH behind all others, which leaves with the CLOSE.
    pub(crate) fn close<D: Driver, S: SmbSink>(&mut self, driver: &mut D, cx: &mut FileContext<'_, S>) {
        self.queue_refused();
        let was_ready = self.state == SmbFileState::Ready;
        let has_flush = was_ready && self.queue.back().is_some_and(|last| last.io.op == SmbOp::Flush);
        let flush = if has_flush { self.queue.pop_back() } else { None };
        for part in self.queue.drain(..) {
            cx.splits.end(part, Err(SmbIoError::Closed), cx.sink);
        }
        match self.state {
            SmbFileState::Ready | SmbFileState::Opening | SmbFileState::Reconnecting => {
                if was_ready && self.send_close(flush, cx.now).is_ok() {
                    self.state = SmbFileState::Closing;
                } else {
                    self.hang_up(driver);
                    self.state = SmbFileState::Closed;
                }
            }
            SmbFileState::Closing | SmbFileState::Closed | SmbFileState::Failed(_) => {}
        }
    }

    /// Closes the connection at once.
    pub(crate) fn hang_up<D: Driver>(&mut self, driver: &mut D) {
        if let Some(stream) = self.stream.take() {
            driver.close(stream);
        }
        self.is_connected = false;
        self.control.clear();
    }

    /// Ends every I/O that is waiting or in flight.
    pub(crate) fn end_all<S: SmbSink>(&mut self, error: SmbIoError, cx: &mut FileContext<'_, S>) {
        for task in self.tasks.take_all() {
            if let Some(part) = task.io_part() {
                let error = if task.is_cancelled { SmbIoError::Timeout } else { error };
                cx.splits.end(part, Err(error), cx.sink);
            }
        }
        self.queue_refused();
        for part in self.queue.drain(..) {
            cx.splits.end(part, Err(error), cx.sink);
        }
    }

    pub(crate) fn report<S: SmbSink>(&self, kind: SmbEventKind, cx: &mut FileContext<'_, S>) {
        cx.sink.event(SmbEvent { at: cx.now, file: self.id, kind });
    }

    fn open_mode(&self) -> OpenMode {
        let create = self.mode.create_bytes.is_some();
        // A file that was there and is gone is not replaced by an empty one.
        OpenMode { write: self.mode.write || create, create: create && self.recovery.is_none() }
    }
}
