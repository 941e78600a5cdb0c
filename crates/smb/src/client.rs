//! The client: one thread's files, and the order in which they get completions and time.

use crate::address::SmbAddress;
use crate::channels::{ClientContext, OpenFile};
use crate::credentials::SmbCredentials;
use crate::event::{SmbFileId, SmbIo, SmbSink, SmbSubmitError};
use crate::file::{FileFacts, RemoteFile, SmbFileState, SmbGoal, SmbMode};
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
    files: Vec<OpenFile>,
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
        self.files[list.index()].first().shares()
    }

    /// Starts to log on to a share. It ends as ready or failed, like a file; [`Self::tree`] makes its requests.
    pub(crate) fn connect_tree<D: Driver>(
        &mut self,
        driver: &mut D,
        address: &SmbAddress,
        options: &SmbOptions,
        credentials: SmbCredentials,
        write: bool,
    ) -> Result<SmbFileId, crate::SmbFailure> {
        self.start(driver, address, options, credentials, SmbGoal::Tree { write })
    }

    /// A share that was logged on to.
    pub(crate) fn tree(&mut self, tree: SmbFileId) -> &mut RemoteFile {
        self.files[tree.index()].first_mut()
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
        self.files.push(OpenFile::new(file, options));
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
        let is_opening = |file: &OpenFile| *file.state() == SmbFileState::Opening;
        self.drive_while(driver, &mut Vec::new(), Nanos::MAX, |this| this.files.iter().any(is_opening))
    }

    /// Whether a file takes I/O.
    pub fn state(&self, file: SmbFileId) -> &SmbFileState {
        self.files[file.index()].state()
    }

    /// What was negotiated; None before.
    pub fn facts(&self, file: SmbFileId) -> Option<FileFacts> {
        self.files[file.index()].facts()
    }

    /// The address that a file was opened with.
    pub fn address(&self, file: SmbFileId) -> &SmbAddress {
        &self.files[file.index()].first().address
    }

    /// All files.
    pub fn files(&self) -> impl Iterator<Item = SmbFileId> + use<> {
        (0..self.files.len() as u32).map(SmbFileId)
    }

    /// The kernel's statistics of each connection that a file has, with the number of its channel.
    pub fn tcp_infos<D: Driver>(
        &self,
        driver: &D,
        file: SmbFileId,
    ) -> impl Iterator<Item = (usize, TcpInfo)> {
        self.files[file.index()].tcp_infos(driver)
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
            if file.flush(driver, &self.regions, now) {
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
        let mut cx = ClientContext { sink, regions: &self.regions, now: driver.now() };
        // A lost connection is restored at once, and further channels are started at once.
        if self.files[id.index()].handle(driver, stream, completion, &mut cx) {
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
            let mut streams = Vec::new();
            let mut cx = ClientContext { sink: &mut *sink, regions: &self.regions, now };
            self.files[index].on_time(driver, &mut cx, &mut streams);
            for stream in streams {
                self.route(stream, SmbFileId(index as u32));
            }
        }
    }

    /// When [`on_time`](Self::on_time) has something to do next.
    pub fn next_deadline(&self) -> Option<Nanos> {
        (!self.files.is_empty()).then_some(self.wake_at)
    }

    /// Closes every file and logs off, in at most `timeout_ns`; I/Os still in flight end as
    /// [`Closed`](crate::SmbIoError::Closed). A FLUSH that waits behind all other I/Os of its file leaves with the CLOSE,
    /// and its end is reported.
    pub fn close<D: Driver>(
        &mut self,
        driver: &mut D,
        timeout_ns: Nanos,
        sink: &mut impl SmbSink,
    ) -> std::io::Result<()> {
        let now = driver.now();
        for file in &mut self.files {
            let mut cx = ClientContext { sink: &mut *sink, regions: &self.regions, now };
            file.close(driver, &mut cx);
        }
        let is_closing = |file: &OpenFile| *file.state() == SmbFileState::Closing;
        let result =
            self.drive_while(driver, sink, now + timeout_ns, |this| this.files.iter().any(is_closing));
        for file in &mut self.files {
            let mut cx = ClientContext { sink: &mut *sink, regions: &self.regions, now };
            file.hang_up(driver, &mut cx);
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
