//! A rotating drive as a state machine: which command is served next, and until when. Time is an argument.

use super::{
    buffer::{Dirty, Runs},
    drives::RotatingSheet,
    geometry::{Geometry, Place},
};
use futures::channel::oneshot;
use linerate_io::Nanos;
use std::collections::VecDeque;

/// Share of the buffer that cached writes may fill.
const DIRTY_SHARE: u64 = 2;
/// Above this share of that limit, cached writes compete with commands for the arm; below, they wait until it is idle.
const PRESSING_SHARE: u64 = 2;
/// Most bytes of one cached range that the arm writes at a time.
const CHUNK_BYTES: u64 = 1 << 20;
/// If a command has waited so many times longer than another, it may take that much more time to reach: no command
/// starves.
const PATIENCE: Nanos = 50;

/// A command of the host.
#[derive(Clone, Copy, Debug)]
pub(super) enum Command {
    /// Read these bytes.
    Read { start: u64, end: u64 },
    /// Write these bytes; durable writes bypass the buffer.
    Write { start: u64, end: u64, durable: bool },
    /// Write everything to the medium.
    Flush,
}

/// When a command is done.
#[derive(Debug)]
pub(super) enum Done {
    /// The time is known now.
    At(Nanos),
    /// The time is known when the arm reaches the command.
    Later(oneshot::Receiver<Nanos>),
}

/// See the module text.
#[derive(Debug)]
pub(super) struct Rotating {
    sheet: RotatingSheet,
    geometry: Geometry,
    size_bytes: u64,
    /// Position of the platter in its revolution at time 0.
    phase: Nanos,
    head: Head,
    /// Commands for the arm, in the order of arrival.
    queue: VecDeque<Request>,
    /// Writes that wait for space in the buffer, or for the end of an earlier flush.
    held: VecDeque<(u64, u64, oneshot::Sender<Nanos>)>,
    flushes: Vec<oneshot::Sender<Nanos>>,
    dirty: Dirty,
    runs: Runs,
    /// The link is busy until this time.
    link: Nanos,
    job: Option<Job>,
}

/// The arm and its position.
#[derive(Debug)]
struct Head {
    place: Place,
    /// The next byte under the head ...
    offset: u64,
    /// ... if it is read or written at this time.
    free: Nanos,
}

#[derive(Debug)]
struct Request {
    start: u64,
    end: u64,
    writes: bool,
    came: Nanos,
    done: oneshot::Sender<Nanos>,
}

/// What the arm is doing.
#[derive(Debug)]
enum Job {
    Request(Request),
    /// Cached bytes are written to the medium.
    Clean,
}

/// What the arm could do next.
#[derive(Clone, Copy)]
enum Choice {
    Request(usize),
    Clean(u64, u64),
}

impl Rotating {
    /// At rest. `phase` differs between drives, so that their platters do not turn in step.
    pub(super) fn new(sheet: &RotatingSheet, size_bytes: u64, phase: u64) -> Self {
        let geometry = Geometry::new(sheet, size_bytes);
        let phase = phase % geometry.period();
        Self {
            head: Head { place: geometry.place(0), offset: 0, free: 0 },
            runs: Runs::new(sheet.buffer_bytes),
            sheet: sheet.clone(),
            geometry,
            size_bytes,
            phase,
            queue: VecDeque::new(),
            held: VecDeque::new(),
            flushes: Vec::new(),
            dirty: Dirty::default(),
            link: 0,
            job: None,
        }
    }

    /// Accepts a command that arrives now.
    pub(super) fn submit(&mut self, now: Nanos, command: Command) -> Done {
        match command {
            Command::Read { start, end } => {
                if self.dirty.holds(start, end) || self.was_read(now, start, end) {
                    return Done::At(self.buffered(now, end - start));
                }
                self.enqueue(now, start, end, false)
            }
            Command::Write { start, end, durable } => {
                if durable || !self.sheet.write_cache || end - start > self.dirty_max() {
                    self.dirty.remove(start, end);
                    return self.enqueue(now, start, end, true);
                }
                if self.held.is_empty() && self.has_room(end - start) {
                    self.dirty.insert(start, end);
                    return Done::At(self.buffered(now, end - start));
                }
                let (done, later) = oneshot::channel();
                self.held.push_back((start, end, done));
                Done::Later(later)
            }
            Command::Flush => {
                if self.is_clean() {
                    return Done::At(now + us(self.sheet.buffered_us));
                }
                let (done, later) = oneshot::channel();
                self.flushes.push(done);
                Done::Later(later)
            }
        }
    }

    /// Begins the next job of the arm, if there is one and the arm is idle, not before `free`; returns its end.
    pub(super) fn begin(&mut self, free: Nanos) -> Option<Nanos> {
        if self.job.is_some() {
            return None;
        }
        let (job, done, end) = match self.choose(free)? {
            Choice::Request(nth) => {
                let request = self.queue.remove(nth)?;
                let (start, end) = (request.start, request.end);
                let begun = free.max(request.came + us(self.sheet.overhead_us));
                let done =
                    if request.writes { self.write(begun, start, end) } else { self.read(begun, start, end) };
                (Job::Request(request), done, end)
            }
            Choice::Clean(start, end) => {
                let done = self.write(free, start, end);
                self.dirty.remove(start, end);
                (Job::Clean, done, end)
            }
        };
        self.head =
            Head { place: self.geometry.place(end.min(self.size_bytes - 1)), offset: end, free: done };
        self.job = Some(job);
        Some(done)
    }

    /// Ends the job that [`Self::begin`] began.
    pub(super) fn finish(&mut self) {
        let at = self.head.free;
        if let Some(Job::Request(request)) = self.job.take() {
            if !request.writes {
                self.runs.read(request.start, request.end, at, self.size_bytes);
            }
            // The caller may have stopped waiting.
            let _ = request.done.send(at);
        }
        if self.is_clean() {
            for done in self.flushes.drain(..) {
                let _ = done.send(at);
            }
        }
        while let Some((start, end, _)) = self.held.front()
            && self.has_room(end - start)
            && let Some((start, end, done)) = self.held.pop_front()
        {
            self.dirty.insert(start, end);
            let _ = done.send(self.buffered(at, end - start));
        }
    }

    fn enqueue(&mut self, now: Nanos, start: u64, end: u64, writes: bool) -> Done {
        let (done, later) = oneshot::channel();
        self.queue.push_back(Request { start, end, writes, came: now, done });
        Done::Later(later)
    }

    /// The command or cached write with the shortest access time; a long wait counts as a shorter time.
    fn choose(&self, free: Nanos) -> Option<Choice> {
        let overhead = us(self.sheet.overhead_us);
        let mut best: Option<(i64, Choice)> = None;
        let mut offer = |score: i64, choice: Choice| {
            if best.is_none_or(|(least, _)| score < least) {
                best = Some((score, choice));
            }
        };
        for (nth, request) in self.queue.iter().take(self.sheet.queue_depth).enumerate() {
            let begun = free.max(request.came + overhead);
            // A command that continues the last one is never skipped for a nearer one, even at the end of a track.
            let continues = request.start == self.head.offset && begun == self.head.free;
            let reached = if continues { begun } else { self.reached(begun, request.start, request.writes) };
            let waited = free.saturating_sub(request.came);
            offer((reached - free) as i64 - (waited / PATIENCE) as i64, Choice::Request(nth));
        }
        let pressing = self.dirty.bytes() > self.dirty_max() / PRESSING_SHARE
            || !self.flushes.is_empty()
            || !self.held.is_empty();
        if self.queue.is_empty() || pressing {
            // As many as there are commands, spread over the disk. So a small disk gains no more from the choice than a
            // large one.
            for (start, end) in self.dirty.spread(self.head.offset, self.sheet.queue_depth as u64, free) {
                let continues = start == self.head.offset && free == self.head.free;
                let reached = if continues { free } else { self.reached(free, start, true) };
                offer((reached - free) as i64, Choice::Clean(start, end.min(start + CHUNK_BYTES)));
            }
        }
        best.map(|(_, choice)| choice)
    }

    /// Time at which the head can start with a byte, if it leaves at `begun`.
    fn reached(&self, begun: Nanos, offset: u64, writes: bool) -> Nanos {
        if offset == self.head.offset && begun == self.head.free {
            let next = self.geometry.place(offset.min(self.size_bytes - 1));
            return begun + self.geometry.rotation(begun + self.phase, &next);
        }
        if !writes
            && let Some(growing) = self.runs.growing()
            && (growing.start..=self.ahead(begun)).contains(&offset)
        {
            return begun;
        }
        let place = self.geometry.place(offset);
        let there = begun + self.geometry.seek(&self.head.place, &place, writes);
        there + self.geometry.rotation(there + self.phase, &place)
    }

    /// End of a read, if the arm leaves at `begun`.
    fn read(&mut self, begun: Nanos, start: u64, end: u64) -> Nanos {
        let reached = self.reached(begun, start, false);
        let Some(growing) = self.runs.growing() else {
            return reached + self.geometry.transfer(start, end - start);
        };
        let ahead = self.ahead(begun);
        self.runs.stop(ahead);
        if !(growing.start..=ahead).contains(&start) {
            return reached + self.geometry.transfer(start, end - start);
        }
        if end <= ahead {
            return begun;
        }
        if ahead < growing.limit {
            // The head already reads the rest.
            return begun.max(growing.since + self.geometry.transfer(growing.from, end - growing.from));
        }
        let next = self.geometry.place(ahead);
        let there = begun + self.geometry.rotation(begun + self.phase, &next);
        there + self.geometry.transfer(ahead, end - ahead)
    }

    /// End of a write, if the arm leaves at `begun`. Partly written sectors are read first, and written one revolution
    /// later.
    fn write(&mut self, begun: Nanos, start: u64, end: u64) -> Nanos {
        self.runs.stop(self.ahead(begun));
        let reached = self.reached(begun, start, true);
        let sector = u64::from(self.sheet.sector_bytes);
        let partial = |at: u64| {
            let first = at / sector * sector;
            at != first && !self.runs.hold(first, (first + sector).min(self.size_bytes))
        };
        let edges = Nanos::from(partial(start))
            + Nanos::from(partial(end) && (end / sector != start / sector || !partial(start)));
        let transfer = self.geometry.transfer(start, end - start);
        // Two edges in the same revolution cost one more revolution; edges far apart cost one each.
        let turns = if transfer < self.geometry.period() { edges.min(1) } else { edges };
        reached + turns * self.geometry.period() + transfer
    }

    /// Whether a read is served from the buffer or the read-ahead. As the host continues, so does the arm.
    fn was_read(&mut self, now: Nanos, start: u64, end: u64) -> bool {
        let ahead = self.ahead(now);
        match self.runs.growing() {
            Some(growing) if growing.start <= start && end <= ahead => {
                let since = if ahead < growing.limit {
                    growing.since
                } else {
                    let next = self.geometry.place(ahead.min(self.size_bytes - 1));
                    now + self.geometry.rotation(now + self.phase, &next)
                };
                self.runs.go_on(since, ahead, end, self.size_bytes);
                true
            }
            _ => self.runs.hold(start, end),
        }
    }

    /// Position of the read-ahead.
    fn ahead(&self, at: Nanos) -> u64 {
        self.runs.growing().map_or(0, |growing| {
            let time = at.saturating_sub(growing.since);
            (growing.from + self.geometry.passed(growing.from, time)).min(growing.limit)
        })
    }

    /// Completion time of a command that the buffer serves: the link transfers one after the other.
    fn buffered(&mut self, now: Nanos, len: u64) -> Nanos {
        self.link = self.link.max(now + us(self.sheet.buffered_us)) + us(len as f64 / self.sheet.link_mb_s);
        self.link
    }

    fn dirty_max(&self) -> u64 {
        self.sheet.buffer_bytes / DIRTY_SHARE
    }

    /// During a flush later writes wait; otherwise the flush might never end.
    fn has_room(&self, len: u64) -> bool {
        self.flushes.is_empty() && self.dirty.bytes() + len <= self.dirty_max()
    }

    /// Whether the medium has all data. Durable writes reach it by themselves.
    fn is_clean(&self) -> bool {
        self.dirty.bytes() == 0 && !matches!(self.job, Some(Job::Clean))
    }
}

/// Microseconds in nanoseconds.
fn us(us: f64) -> Nanos {
    (us * 1e3).round() as Nanos
}
