//! One session: the file is opened, read in whole, then read, written and flushed at random until the session ends in
//! the chosen way.

use crate::model::Model;
use crate::relay::{self, Act, Fault};
use crate::tally::Tally;
use linerate_io::{Driver, Nanos, Region, RegionId, Seg, Wait};
use linerate_sim::Rng;
use linerate_smb::wire::status::Status;
use linerate_smb::{
    Blame, SmbAddress, SmbClient, SmbCredentials, SmbEvent, SmbEventKind, SmbFileId, SmbFileState, SmbIo,
    SmbIoDone, SmbIoError, SmbMode, SmbOp, SmbOptions, SmbSink,
};
use std::sync::Arc;
use std::time::Duration;

pub(crate) const FILE_BYTES: usize = 1 << 20;
const IO_BYTES_MAX: usize = 256 * 1024;
/// Bytes before and behind the data of a slot, which no read may change.
const GUARD_BYTES: u64 = 64;
const GUARD: [u8; GUARD_BYTES as usize] = [0xA5; GUARD_BYTES as usize];
const SLOT_BYTES: u64 = IO_BYTES_MAX as u64 + 2 * GUARD_BYTES;
const SLOTS_MAX: u64 = 16;
/// A session that lasts longer hangs.
const SESSION_NS: Nanos = 60_000_000_000;
const CLOSE_NS: Nanos = 5_000_000_000;

/// Connections of a session that have faults, when the client makes new ones.
const FAULTS_MAX: u64 = 3;

/// How a session ends, or what happens in it.
#[derive(Clone, Debug)]
pub(crate) enum End {
    /// Closed when all I/Os have ended.
    Closed,
    /// Closed while I/Os are in flight.
    ClosedEarly,
    /// The client ends without a word; the kernel closes its socket.
    Dropped,
    /// The server is killed; it is started again if the client reconnects.
    Killed,
    /// The connection is cut on its way, and so are the next ones as long as there are faults.
    Cut(Vec<Fault>),
    /// Bytes are held back for longer than a request may last, so requests are cancelled or given up.
    Paused(Vec<Fault>),
}

/// What a session is like.
#[derive(Clone, Debug)]
pub(crate) struct Course {
    pub(crate) end: End,
    /// The client restores a lost connection.
    pub(crate) reconnects: bool,
    pub(crate) way: SmbOptions,
    /// A wrong client, to show that it is noticed.
    pub(crate) defect: Option<Defect>,
}

/// What a wrong client does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Defect {
    /// It reports success for a write that it does not send.
    DroppedWrite,
    /// A read has the data of the place behind it.
    NeighbourRead,
}

impl Defect {
    fn apply(self, io: &mut SmbIo) {
        match (self, io.op) {
            // The data are received and dropped, so that only the server's file is wrong.
            (Self::DroppedWrite, SmbOp::Write { .. }) => io.op = SmbOp::Read(None),
            (Self::NeighbourRead, SmbOp::Read(_)) => {
                let len = u64::from(io.len_bytes);
                io.offset_bytes = (io.offset_bytes + len).min(FILE_BYTES as u64 - len);
            }
            _ => {}
        }
    }
}

impl End {
    pub(crate) fn of(rng: &mut Rng, reconnects: bool) -> Self {
        let faults = |rng: &mut Rng, act| {
            let count = if reconnects { rng.range(1, FAULTS_MAX) } else { 1 };
            let fault = |_| {
                let most = 1 << rng.range(6, 21);
                Fault { to_client: rng.chance(50), after_bytes: rng.range(0, most) as usize, act }
            };
            (0..count).map(fault).collect()
        };
        match rng.range(0, 9) {
            0 => Self::Closed,
            1 => Self::ClosedEarly,
            2 | 3 => Self::Dropped,
            4 => Self::Killed,
            5..=7 => Self::Cut(faults(rng, Act::Cut)),
            _ => {
                let pause = Duration::from_millis(rng.range(20, 500));
                Self::Paused(faults(rng, Act::Pause(pause)))
            }
        }
    }

    fn faults(&self) -> Option<Vec<Fault>> {
        match self {
            Self::Cut(faults) | Self::Paused(faults) => Some(faults.clone()),
            _ => None,
        }
    }
}

impl Course {
    /// An I/O may end like this in such a session.
    fn permits(&self, error: SmbIoError) -> bool {
        let is_loss = error == SmbIoError::Lost && !self.reconnects;
        match self.end {
            End::Closed | End::Dropped => false,
            End::ClosedEarly => error == SmbIoError::Closed,
            End::Killed | End::Cut(_) => is_loss,
            // The server refuses a request while an earlier one of another channel is held back.
            End::Paused(_) => {
                is_loss
                    || error == SmbIoError::Timeout
                    || error == SmbIoError::Refused(Status::FILE_NOT_AVAILABLE)
            }
        }
    }
}

/// What the client reports.
#[derive(Default)]
struct Reports {
    done: Vec<SmbIoDone>,
    /// Of each restored connection, whether the server had kept the file open.
    restored: Vec<bool>,
}

impl SmbSink for Reports {
    fn done(&mut self, done: SmbIoDone) {
        self.done.push(done);
    }

    fn event(&mut self, event: SmbEvent) {
        if let SmbEventKind::ConnectionRestored { is_same_handle, .. } = event.kind {
            self.restored.push(is_same_handle);
        }
    }
}

/// An I/O in flight.
#[derive(Clone, Debug)]
struct Flight {
    at: usize,
    len: usize,
    /// Of a write.
    data: Option<Vec<u8>>,
}

/// See the module text.
pub(crate) struct Session<'a, D: Driver> {
    driver: D,
    rng: &'a mut Rng,
    model: &'a mut Model,
    tally: &'a mut Tally,
    course: Course,
    client: SmbClient,
    region: Arc<Region>,
    region_id: RegionId,
    in_flight: Vec<Option<Flight>>,
    started: u64,
    ended: u64,
    /// I/Os to start.
    ios: u64,
    /// Ended I/Os after which the session ends, where the end is not at a byte.
    end_after: u64,
}

impl<'a, D: Driver> Session<'a, D> {
    pub(crate) fn new(
        mut driver: D,
        rng: &'a mut Rng,
        model: &'a mut Model,
        tally: &'a mut Tally,
        course: Course,
    ) -> Self {
        let mut client = SmbClient::new();
        let region = Region::anonymous(SLOTS_MAX * SLOT_BYTES).unwrap();
        let region_id = client.attach(&mut driver, &region);
        let in_flight = vec![None; rng.range(1, SLOTS_MAX) as usize];
        let ios = rng.range(10, 100);
        let end_after = rng.range(0, ios);
        let (started, ended) = (0, 0);
        Self {
            driver,
            rng,
            model,
            tally,
            course,
            client,
            region,
            region_id,
            in_flight,
            started,
            ended,
            ios,
            end_after,
        }
    }

    /// Runs it. `kill` ends the server, and starts it again if the client reconnects.
    pub(crate) fn run(
        mut self,
        url: impl Fn(u16) -> String,
        port: u16,
        (user, password): (&str, &str),
        kill: &mut dyn FnMut(),
    ) {
        let relay = self.course.end.faults().map(|faults| relay::Relay::start(port, faults));
        let address = SmbAddress::parse(&url(relay.as_ref().map_or(port, |relay| relay.port))).unwrap();
        let credentials = SmbCredentials::of_user(Some(user), Some(password));
        // Samba answers at once, so requests of this session are late only behind a pause.
        let limit_s = if matches!(self.course.end, End::Paused(_)) { 0.15 } else { 30.0 };
        // Without another connection the end of each I/O says what the fault did. With one, no I/O may end with an error.
        let options = SmbOptions {
            login_timeout_s: 30.0,
            command_timeout_s: limit_s,
            replacement_timeout_s: if self.course.reconnects { 40.0 } else { 0.0 },
            ..self.course.way.clone()
        };
        let mode = SmbMode { write: true, create_bytes: None };
        let file = self.client.open(&mut self.driver, &address, &options, credentials, mode).unwrap();
        self.client.wait_ready(&mut self.driver).unwrap();
        if self.check_state(file) {
            self.tally.opened += 1;
            self.load(file, kill);
        }
        self.finish();
    }

    /// Whether the file takes I/O. A failure must be one that the session's end explains.
    fn check_state(&mut self, file: SmbFileId) -> bool {
        match self.client.state(file) {
            SmbFileState::Ready | SmbFileState::Reconnecting => true,
            SmbFileState::Failed(failure) => {
                let end = &self.course.end;
                assert!(!matches!(end, End::Closed | End::ClosedEarly | End::Dropped), "{failure}");
                // A file that was open once is open again.
                assert!(!self.course.reconnects || self.started == 0, "{failure}");
                assert_eq!(failure.blame, Blame::Peer, "{failure}");
                self.tally.lost += 1;
                false
            }
            other => panic!("the file is {other:?}"),
        }
    }

    fn load(&mut self, file: SmbFileId, kill: &mut dyn FnMut()) {
        let until = self.driver.now() + SESSION_NS;
        let (mut reports, mut completions, mut is_killed) = (Reports::default(), Vec::new(), false);
        while self.started < self.ios || self.in_flight.iter().any(Option::is_some) {
            if self.ended >= self.end_after {
                match self.course.end {
                    // What is queued and was not sent has to end, too.
                    End::ClosedEarly => return self.submit(file),
                    End::Dropped => return,
                    End::Killed if !is_killed => {
                        self.submit(file);
                        self.client.flush(&mut self.driver);
                        kill();
                        is_killed = true;
                    }
                    _ => {}
                }
            }
            self.submit(file);
            self.client.flush(&mut self.driver);
            let wake_at = self.client.next_deadline().unwrap_or(until).min(until);
            self.driver.poll(Wait::Until(wake_at), &mut completions).unwrap();
            assert!(self.driver.now() < until, "the session hangs: {:?}", self.in_flight);
            for completion in completions.drain(..) {
                self.client.handle_completion(&mut self.driver, completion, &mut reports);
            }
            let now = self.driver.now();
            self.client.on_time(&mut self.driver, now, &mut reports);
            for end in reports.done.drain(..) {
                self.check_end(end);
            }
            reports.restored.drain(..).for_each(|is_same| self.tally.count_restored(is_same));
            if !self.check_state(file) {
                let busy = self.in_flight.iter().flatten().count();
                assert_eq!(busy, 0, "I/Os did not end with their connection");
                return;
            }
        }
    }

    fn submit(&mut self, file: SmbFileId) {
        for slot in 0..self.in_flight.len() {
            if self.in_flight[slot].is_some() || self.started == self.ios {
                continue;
            }
            let Some((mut io, flight)) = self.choose(slot as u32) else { continue };
            self.course.defect.inspect(|defect| defect.apply(&mut io));
            self.client.submit(file, &io).unwrap();
            self.in_flight[slot] = Some(flight);
            self.started += 1;
        }
    }

    /// A random I/O that overlaps none in flight and no byte that is not known; None: there was none.
    fn choose(&mut self, slot: u32) -> Option<(SmbIo, Flight)> {
        let whole_reads = (FILE_BYTES / IO_BYTES_MAX) as u64;
        let begins = self.started < whole_reads;
        if !begins && self.rng.chance(8) {
            let io = SmbIo { slot, op: SmbOp::Flush, offset_bytes: 0, len_bytes: 0 };
            return Some((io, Flight { at: 0, len: 0, data: None }));
        }
        let (at, len) = if begins {
            (self.started as usize * IO_BYTES_MAX, IO_BYTES_MAX)
        } else {
            let most = 1 << self.rng.range(0, IO_BYTES_MAX.ilog2().into());
            let len = self.rng.range(1, most) as usize;
            (self.rng.range(0, (FILE_BYTES - len) as u64) as usize, len)
        };
        let overlaps = |other: &Flight| at < other.at + other.len && other.at < at + len;
        if self.in_flight.iter().flatten().any(overlaps) || self.model.is_open(at, len) {
            return None;
        }
        let is_write = !begins && self.rng.chance(50);
        let place = u64::from(slot) * SLOT_BYTES;
        let seg = Seg { region: self.region_id, offset: place + GUARD_BYTES, len: len as u32 };
        let mut data = vec![0; len];
        self.rng.fill(&mut data);
        self.region.write(place, &GUARD);
        self.region.write(seg.offset, &data);
        self.region.write(seg.offset + len as u64, &GUARD);
        let op = if is_write {
            SmbOp::Write { from: seg, durable: self.rng.chance(20) }
        } else {
            SmbOp::Read(Some(seg))
        };
        let io = SmbIo { slot, op, offset_bytes: at as u64, len_bytes: len as u32 };
        Some((io, Flight { at, len, data: is_write.then_some(data) }))
    }

    fn check_end(&mut self, end: SmbIoDone) {
        let flight = self.in_flight[end.slot as usize].take().expect("an I/O ended twice");
        self.ended += 1;
        self.tally.count(end.result);
        let place = u64::from(end.slot) * SLOT_BYTES;
        let behind = place + GUARD_BYTES + flight.len as u64;
        if flight.len > 0 {
            assert_eq!(self.region.compare(place, &GUARD), None, "bytes before the data were changed");
            assert_eq!(self.region.compare(behind, &GUARD), None, "bytes behind the data were changed");
        }
        match (end.result, flight.data) {
            (Ok(()), Some(data)) => self.model.written(flight.at, &data),
            (Ok(()), None) => {
                let right = self.model.part(flight.at, flight.len);
                let wrong = self.region.compare(place + GUARD_BYTES, right);
                assert_eq!(wrong, None, "read of {} bytes at {}", flight.len, flight.at);
            }
            (Err(error), data) => {
                assert!(self.course.permits(error), "{error}");
                if let Some(data) = data {
                    self.model.not_known(flight.at, data);
                }
            }
        }
    }

    /// Closes the file, or drops everything. Writes in flight may reach the file.
    fn finish(mut self) {
        if !matches!(self.course.end, End::Dropped) {
            let mut done = Vec::new();
            self.client.close(&mut self.driver, CLOSE_NS, &mut done).unwrap();
            for end in done {
                self.check_end(end);
            }
            assert!(self.in_flight.iter().all(Option::is_none), "closing did not end every I/O");
        }
        for flight in self.in_flight.drain(..).flatten() {
            if let Some(data) = flight.data {
                self.model.not_known(flight.at, data);
            }
        }
    }
}
