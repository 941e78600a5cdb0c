//! The client: one thread's files, and the order in which they get completions and time.

use crate::address::SmbAddress;
use crate::credentials::SmbCredentials;
use crate::event::{SmbFileId, SmbIo, SmbIoError, SmbSink, SmbSubmitError};
use crate::file::{FileContext, FileFacts, RemoteFile, SmbFileState, SmbGoal, SmbMode};
use crate::options::SmbOptions;
use crate::wire::shares::ListedShare;
use linerate_io::{AttachedRegions, Completion, Driver, Handle, Nanos, Region, RegionId, TcpInfo, Wait};
use std::sync::Arc;

/// The time between two checks for late requests.
const TICK_NS: Nanos = 50_000_000;

/// Files of one thread. See the crate text. The order of calls:
///
/// 1. [`attach`](Self::attach) regions, [`open`](Self::open) every file, then [`wait_ready`](Self::wait_ready).
/// 2. [`submit`](Self::submit) I/Os, then [`flush`](Self::flush) once.
/// 3. Poll the driver; pass its completions to [`handle_completion`](Self::handle_completion), and the time to
///    [`on_time`](Self::on_time).
/// 4. [`close`](Self::close).
#[derive(Debug, Default)]
pub struct SmbClient {
    files: Vec<RemoteFile>,
    /// By the index of a stream's handle: the handle and its file.
    routes: Vec<Option<(Handle, SmbFileId)>>,
    regions: AttachedRegions,
    wake_at: Nanos,
}

impl SmbClient {
    /// A client without files.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes a region usable in I/Os that is attached to the driver.
    pub fn add_region(&mut self, id: RegionId, region: Arc<Region>) {
        self.regions.insert(id, region);
    }

    /// Attaches a region to the driver, and makes it usable in I/Os.
    pub fn attach<D: Driver>(&mut self, driver: &mut D, region: &Arc<Region>) -> RegionId {
        let id = driver.attach(Arc::clone(region));
        self.add_region(id, Arc::clone(region));
        id
    }

    /// Starts to open a file: connection, logon, share, file. It does not wait, except for a name server.
    pub fn open<D: Driver>(
        &mut self,
        driver: &mut D,
        address: &SmbAddress,
        options: &SmbOptions,
        credentials: SmbCredentials,
        mode: SmbMode,
    ) -> Result<SmbFileId, crate::SmbFailure> {
        self.start(driver, address, options, credentials, SmbGoal::File(mode))
    }

    /// Starts to list the shares of a server, whose address is [`SmbAddress::of_server`]. It ends as ready or failed, like
    /// a file; [`Self::shares`] has the list.
    pub(crate) fn list_shares<D: Driver>(
        &mut self,
        driver: &mut D,
        address: &SmbAddress,
        options: &SmbOptions,
        credentials: SmbCredentials,
    ) -> Result<SmbFileId, crate::SmbFailure> {
        self.start(driver, address, options, credentials, SmbGoal::Shares)
    }

    /// The shares that were listed.
    pub(crate) fn shares(&self, list: SmbFileId) -> &[ListedShare] {
        self.files[list.index()].shares()
    }

    fn start<D: Driver>(
        &mut self,
        driver: &mut D,
        address: &SmbAddress,
        options: &SmbOptions,
        credentials: SmbCredentials,
        goal: SmbGoal,
    ) -> Result<SmbFileId, crate::SmbFailure> {
        let id = SmbFileId(self.files.len() as u32);
        let file = RemoteFile::start(driver, id, address, options, credentials, goal)
            .map_err(|loss| loss.failure(address))?;
        if let Some(stream) = file.stream {
            self.route(stream, id);
        }
        self.files.push(file);
        Ok(id)
    }

    fn route(&mut self, stream: Handle, file: SmbFileId) {
        let index = stream.index() as usize;
        if self.routes.len() <= index {
            self.routes.resize(index + 1, None);
        }
        self.routes[index] = Some((stream, file));
    }

    /// Waits until every file is open or has failed.
    pub fn wait_ready<D: Driver>(&mut self, driver: &mut D) -> std::io::Result<()> {
        let is_opening = |file: &RemoteFile| file.state == SmbFileState::Opening;
        self.drive_while(driver, &mut Vec::new(), Nanos::MAX, |this| this.files.iter().any(is_opening))
    }

    /// Whether a file takes I/O.
    pub fn state(&self, file: SmbFileId) -> &SmbFileState {
        &self.files[file.index()].state
    }

    /// What was negotiated; None before.
    pub fn facts(&self, file: SmbFileId) -> Option<FileFacts> {
        self.files[file.index()].facts()
    }

    /// The address that a file was opened with.
    pub fn address(&self, file: SmbFileId) -> &SmbAddress {
        &self.files[file.index()].address
    }

    /// All files.
    pub fn files(&self) -> impl Iterator<Item = SmbFileId> + use<> {
        (0..self.files.len() as u32).map(SmbFileId)
    }

    /// The kernel's statistics of a file's connection; None while there is none.
    pub fn tcp_info<D: Driver>(&self, driver: &D, file: SmbFileId) -> Option<TcpInfo> {
        self.files[file.index()].stream.and_then(|stream| driver.tcp_info(stream).ok())
    }

    /// Queues an I/O; it leaves with the next [`flush`](Self::flush).
    #[inline]
    pub fn submit(&mut self, file: SmbFileId, io: &SmbIo) -> Result<(), SmbSubmitError> {
        self.files[file.index()].submit(io)
    }

    /// Sends everything that is queued, one send per file, and receives again if the last buffer is used up.
    #[inline]
    pub fn flush<D: Driver>(&mut self, driver: &mut D) {
        let now = driver.now();
        for file in &mut self.files {
            file.flush(driver, &self.regions, now);
            if file.loss.is_some() {
                self.wake_at = now;
            }
        }
    }

    /// Handles a completion of one of this client's streams; returns one of another stream.
    #[inline]
    pub fn handle_completion<D: Driver>(
        &mut self,
        driver: &mut D,
        completion: Completion<D::Socket>,
        sink: &mut impl SmbSink,
    ) -> Option<Completion<D::Socket>> {
        let stream = match &completion {
            Completion::Connected { stream, .. }
            | Completion::Received { stream, .. }
            | Completion::Sent { stream, .. } => *stream,
            _ => return Some(completion),
        };
        let route = self.routes.get(stream.index() as usize).copied().flatten();
        let Some((_, id)) = route.filter(|(own, _)| *own == stream) else { return Some(completion) };
        let file = &mut self.files[id.index()];
        // A completion of a stream that was closed here only returns memory.
        if file.stream != Some(stream) {
            return None;
        }
        let mut cx = FileContext { sink, regions: &self.regions, now: driver.now() };
        let result = match completion {
            Completion::Connected { result, .. } => file.connected(driver, result, cx.now),
            Completion::Received { result, buffer, .. } => file.received(result, buffer, &mut cx),
            Completion::Sent { result, outgoing, .. } => file.sent(result, outgoing),
            _ => Ok(()),
        };
        if let Err(loss) = result {
            file.lose(driver, &loss, &mut cx);
            // A lost connection is restored at once.
            self.wake_at = cx.now;
        }
        None
    }

    /// Looks for late requests, and restores lost connections. Cheap when it is not due.
    pub fn on_time<D: Driver>(&mut self, driver: &mut D, now: Nanos, sink: &mut impl SmbSink) {
        if now < self.wake_at {
            return;
        }
        self.wake_at = now + TICK_NS;
        for index in 0..self.files.len() {
            let file = &mut self.files[index];
            let mut cx = FileContext { sink: &mut *sink, regions: &self.regions, now };
            if let Err(loss) = file.on_time(&mut cx) {
                file.lose(driver, &loss, &mut cx);
            }
            if let Some(stream) = file.retry(driver, now) {
                self.route(stream, SmbFileId(index as u32));
            }
        }
    }

    /// When [`on_time`](Self::on_time) has something to do next.
    pub fn next_deadline(&self) -> Option<Nanos> {
        (!self.files.is_empty()).then_some(self.wake_at)
    }

    /// Closes every file and logs off, in at most `timeout_ns`; I/Os still in flight end as [`SmbIoError::Closed`].
    pub fn close<D: Driver>(
        &mut self,
        driver: &mut D,
        timeout_ns: Nanos,
        sink: &mut impl SmbSink,
    ) -> std::io::Result<()> {
        let now = driver.now();
        for file in &mut self.files {
            let mut cx = FileContext { sink: &mut *sink, regions: &self.regions, now };
            file.close(driver, &mut cx);
        }
        let is_closing = |file: &RemoteFile| file.state == SmbFileState::Closing;
        let result =
            self.drive_while(driver, sink, now + timeout_ns, |this| this.files.iter().any(is_closing));
        for file in &mut self.files {
            file.hang_up(driver);
            file.end_all(SmbIoError::Closed, sink);
        }
        result
    }

    /// One turn of a loop without other work: flush, wait for a completion or `until`, handle it.
    pub(crate) fn turn<D: Driver>(
        &mut self,
        driver: &mut D,
        until: Nanos,
        sink: &mut impl SmbSink,
    ) -> std::io::Result<()> {
        let mut completions = Vec::new();
        self.flush(driver);
        driver.poll(Wait::Until(self.wake_at.min(until)), &mut completions)?;
        for completion in completions {
            self.handle_completion(driver, completion, sink);
        }
        self.on_time(driver, driver.now(), sink);
        Ok(())
    }

    fn drive_while<D: Driver>(
        &mut self,
        driver: &mut D,
        sink: &mut impl SmbSink,
        until: Nanos,
        busy: impl Fn(&Self) -> bool,
    ) -> std::io::Result<()> {
        while busy(self) && driver.now() < until {
            self.turn(driver, until, sink)?;
        }
        Ok(())
    }
}
