//! A file and the channels of its session (multichannel, MS-SMB2 3.2.5.3.3, 4.8): connections over which its requests are
//! dealt in turn.
//!
//! The first channel logs on and opens the file. The others join its session, each with a key of its own for signatures. If
//! a channel is lost, another one does its requests, and a new channel is started. If the first one is lost, another one
//! becomes the first. If all are lost, the first one restores the session as if it were the only one (`file/recovery.rs`).

use crate::event::{SmbEventKind, SmbIo, SmbIoError, SmbSink, SmbSubmitError};
use crate::file::{FileContext, FileFacts, FileLoss, RemoteFile, SmbFileState, SplitIos};
use crate::options::SmbOptions;
use linerate_io::{AttachedRegions, Completion, Driver, Handle, Nanos, TcpInfo};

/// From the loss of a channel to the start of another one.
const RETRY_NS: Nanos = 250_000_000;

/// See the module text.
#[derive(Debug)]
pub(crate) struct OpenFile {
    /// At least one; the first one has opened the file.
    channels: Vec<Channel>,
    /// Channels that the user asked for.
    wanted: usize,
    /// I/Os that are longer than a request.
    splits: SplitIos,
    /// The channel of the next I/O.
    next: usize,
    /// All channels have been there.
    is_complete: bool,
    /// When a missing channel is started.
    start_at: Nanos,
    /// A lost channel is replaced.
    replaces_lost: bool,
}

#[derive(Debug)]
struct Channel {
    file: RemoteFile,
    /// Its place among the wanted channels.
    place: usize,
}

/// What a file needs while it handles something.
pub(crate) struct ClientContext<'a, S> {
    pub(crate) sink: &'a mut S,
    pub(crate) regions: &'a AttachedRegions,
    pub(crate) now: Nanos,
}

/// From the context of the client and the I/Os of a file, makes the context of a channel.
macro_rules! context {
    ($cx:expr, $splits:expr) => {
        FileContext { sink: &mut *$cx.sink, regions: $cx.regions, now: $cx.now, splits: &mut $splits }
    };
}

impl OpenFile {
    /// `first` is being opened.
    pub(crate) fn new(first: RemoteFile, options: &SmbOptions) -> Self {
        let is_file = first.is_file();
        Self {
            channels: vec![Channel { file: first, place: 0 }],
            wanted: if is_file { options.channels.into() } else { 1 },
            splits: SplitIos::default(),
            next: 0,
            is_complete: false,
            start_at: 0,
            replaces_lost: options.replacement_timeout_s > 0.0,
        }
    }

    pub(crate) fn first(&self) -> &RemoteFile {
        &self.channels[0].file
    }

    pub(crate) fn first_mut(&mut self) -> &mut RemoteFile {
        &mut self.channels[0].file
    }

    /// Whether it takes I/O: not before all channels are there.
    pub(crate) fn state(&self) -> &SmbFileState {
        let first = &self.first().state;
        let is_early = *first == SmbFileState::Ready && !self.is_complete;
        if is_early { &SmbFileState::Opening } else { first }
    }

    pub(crate) fn facts(&self) -> Option<FileFacts> {
        let channels = self.channels.len() as u16;
        self.first().facts().map(|facts| FileFacts { channels, ..facts })
    }

    /// The kernel's statistics of each connection that there is, with its place among the channels.
    pub(crate) fn tcp_infos<D: Driver>(&self, driver: &D) -> impl Iterator<Item = (usize, TcpInfo)> {
        self.channels.iter().filter_map(|channel| {
            let info = channel.file.stream.and_then(|stream| driver.tcp_info(stream).ok())?;
            Some((channel.place, info))
        })
    }

    /// Queues an I/O on the next channel that works.
    #[inline]
    pub(crate) fn submit(&mut self, io: &SmbIo) -> Result<(), SmbSubmitError> {
        if !self.is_complete {
            return Err(SmbSubmitError::NotReady);
        }
        let count = self.channels.len();
        for _ in 0..count {
            let index = self.next % count;
            self.next = index + 1;
            if self.channels[index].file.state == SmbFileState::Ready {
                return self.channels[index].file.submit(io);
            }
        }
        self.channels[0].file.submit(io)
    }

    /// Sends what is queued. Returns whether an error waits for the time.
    #[inline]
    pub(crate) fn flush<D: Driver>(&mut self, driver: &mut D, regions: &AttachedRegions, now: Nanos) -> bool {
        let mut has_loss = false;
        for Channel { file, .. } in &mut self.channels {
            file.flush(driver, regions, &mut self.splits, now);
            has_loss |= file.loss.is_some();
        }
        has_loss
    }

    /// Handles a completion of one of its streams. Returns whether the time must be handled at once.
    #[inline]
    pub(crate) fn handle<D: Driver, S: SmbSink>(
        &mut self,
        driver: &mut D,
        stream: Handle,
        completion: Completion<D::Socket>,
        cx: &mut ClientContext<'_, S>,
    ) -> bool {
        let own = self.channels.iter().position(|channel| channel.file.stream == Some(stream));
        // A completion of a stream that was closed here only returns memory.
        let Some(index) = own else { return false };
        let file = &mut self.channels[index].file;
        let was_ready = file.state == SmbFileState::Ready;
        let mut own = context!(cx, self.splits);
        let result = match completion {
            Completion::Connected { result, .. } => file.connected(driver, result, own.now),
            Completion::Received { result, buffer, .. } => file.received(result, buffer, &mut own),
            Completion::Sent { result, outgoing, .. } => file.sent(result, outgoing),
            _ => Ok(()),
        };
        let is_new = !was_ready && file.state == SmbFileState::Ready;
        if index > 0 && file.is_asked_for_oplock() {
            self.channels[0].file.forget_durable();
        }
        if let Err(loss) = result {
            self.lose(index, driver, &loss, cx);
            return true;
        }
        if is_new {
            self.note_ready(index, cx);
        }
        is_new && self.channels.len() < self.wanted
    }

    /// A channel takes I/O for the first time, or the session was restored.
    fn note_ready<S: SmbSink>(&mut self, index: usize, cx: &mut ClientContext<'_, S>) {
        let all_are_ready = self.channels.iter().all(|channel| channel.file.state == SmbFileState::Ready);
        if self.is_complete && index > 0 {
            let kind = SmbEventKind::ChannelRestored { channels: self.channels.len() as u16 };
            self.channels[0].file.report(kind, &mut context!(cx, self.splits));
        }
        self.is_complete |= all_are_ready && self.channels.len() == self.wanted;
    }

    /// Late requests, lost connections and missing channels. Adds the streams that were started.
    pub(crate) fn on_time<D: Driver, S: SmbSink>(
        &mut self,
        driver: &mut D,
        cx: &mut ClientContext<'_, S>,
        streams: &mut Vec<Handle>,
    ) {
        let mut index = 0;
        while index < self.channels.len() {
            let result = self.channels[index].file.on_time(&mut context!(cx, self.splits));
            match result {
                Ok(()) => index += 1,
                Err(loss) => {
                    // Afterwards another channel may be at this place.
                    self.lose(index, driver, &loss, cx);
                    break;
                }
            }
        }
        streams.extend(self.channels[0].file.retry(driver, cx.now));
        if let Err(loss) = self.start_missing(driver, cx.now, streams) {
            self.end(driver, &loss, cx);
        }
    }

    /// One after the other: Samba 4.17 can lose one of several that begin at the same time.
    fn start_missing<D: Driver>(
        &mut self,
        driver: &mut D,
        now: Nanos,
        streams: &mut Vec<Handle>,
    ) -> Result<(), FileLoss> {
        let is_wanted = !self.is_complete || self.replaces_lost;
        let is_quiet = self.channels.iter().all(|channel| channel.file.state == SmbFileState::Ready);
        if !is_quiet || !is_wanted || self.channels.len() == self.wanted || now < self.start_at {
            return Ok(());
        }
        let taken = |place: &usize| self.channels.iter().all(|channel| channel.place != *place);
        let place = (0..self.wanted).find(taken).unwrap_or_default();
        match RemoteFile::bind(driver, &mut self.channels[0].file) {
            // The host has no socket for it now.
            Err(FileLoss::Connect(_)) if self.is_complete => self.start_at = now + RETRY_NS,
            result => {
                let file = result?;
                streams.extend(file.stream);
                self.channels.push(Channel { file, place });
            }
        }
        Ok(())
    }

    /// A connection is lost.
    fn lose<D: Driver, S: SmbSink>(
        &mut self,
        index: usize,
        driver: &mut D,
        loss: &FileLoss,
        cx: &mut ClientContext<'_, S>,
    ) {
        let works =
            |other: &usize| *other != index && self.channels[*other].file.state == SmbFileState::Ready;
        let working = (0..self.channels.len()).find(works);
        let was_new = index > 0 && self.channels[index].file.state == SmbFileState::Opening;
        if self.is_complete && was_new {
            // It had no requests yet.
            self.channels.swap_remove(index).file.hang_up(driver);
            self.start_at = cx.now + RETRY_NS;
            return;
        }
        if !self.is_complete || !loss.is_temporary(true) {
            return self.end(driver, loss, cx);
        }
        let Some(working) = working else {
            self.drop_others(driver, cx);
            if index == 0 {
                self.channels[0].file.lose(driver, loss, &mut context!(cx, self.splits));
            }
            return;
        };
        let mut lost = index;
        if index == 0 {
            self.channels.swap(0, working);
            let (first, others) = self.channels.split_at_mut(working);
            first[0].file.take_over(&mut others[0].file);
            lost = working;
        }
        let mut lost = self.channels.swap_remove(lost).file;
        let first = &mut self.channels[0].file;
        let requests = lost.move_requests(first, &mut context!(cx, self.splits));
        lost.hang_up(driver);
        let sequence = first.channel_sequence().wrapping_add(1);
        for channel in &mut self.channels {
            channel.file.set_channel_sequence(sequence, cx.now);
        }
        self.start_at = cx.now + RETRY_NS;
        let left = self.channels.len() as u16;
        let kind = SmbEventKind::ChannelLost { reason: loss.to_string(), requests, left };
        self.channels[0].file.report(kind, &mut context!(cx, self.splits));
    }

    /// The file cannot be used any more.
    fn end<D: Driver, S: SmbSink>(&mut self, driver: &mut D, loss: &FileLoss, cx: &mut ClientContext<'_, S>) {
        self.drop_others(driver, cx);
        self.channels[0].file.fail(driver, loss, &mut context!(cx, self.splits));
    }

    /// The first channel gets the requests of all others, which end.
    fn drop_others<D: Driver, S: SmbSink>(&mut self, driver: &mut D, cx: &mut ClientContext<'_, S>) {
        let (first, others) = self.channels.split_at_mut(1);
        for channel in others {
            channel.file.move_requests(&mut first[0].file, &mut context!(cx, self.splits));
            channel.file.hang_up(driver);
        }
        self.channels.truncate(1);
    }

    /// Starts to close it.
    pub(crate) fn close<D: Driver, S: SmbSink>(&mut self, driver: &mut D, cx: &mut ClientContext<'_, S>) {
        self.drop_others(driver, cx);
        self.channels[0].file.close(driver, &mut context!(cx, self.splits));
    }

    /// Closes every connection, and ends every I/O.
    pub(crate) fn hang_up<D: Driver, S: SmbSink>(&mut self, driver: &mut D, cx: &mut ClientContext<'_, S>) {
        for Channel { file, .. } in &mut self.channels {
            file.hang_up(driver);
            file.end_all(SmbIoError::Closed, &mut context!(cx, self.splits));
        }
    }
}
