//! A rotating drive as a state machine in given time: which command is served next, and until when.

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
/// From this share of that on, cached writes compete with commands for the arm; below, they wait until it is idle.
const PRESSING_SHARE: u64 = 2;
/// The most that the arm takes from one cached range in one go.
const CHUNK_BYTES: u64 = 1 << 20;
/// A command that has waited so many times longer than another may cost that much more time to reach: no command starves.
const PATIENCE: Nanos = 50;

/// A command of the host.
#[derive(Clone, Copy, Debug)]
pub(super) enum Command {
    /// Read these bytes.
    Read { start: u64, end: u64 },
    /// Write these bytes; durable ones pass the buffer by.
    Write { start: u64, end: u64, durable: bool },
    /// Bring everything to the medium.
    Flush,
}

/// When a command is done.
#[derive(Debug)]
pub(super) enum Done {
    /// Known now.
    At(Nanos),
    /// Known when the arm has come so far.
    Later(oneshot::Receiver<Nanos>),
}

/// See the module text.
#[derive(Debug)]
pub(super) struct Rotating {
    sheet: RotatingSheet,
    geometry: Geometry,
    size_bytes: u64,
    /// Where in a revolution the platter is at time 0.
    phase: Nanos,
    head: Head,
    /// For the arm, in the order of their coming.
    queue: VecDeque<Request>,
    /// Writes that wait for room in the buffer, or for a flush before them to end.
    held: VecDeque<(u64, u64, oneshot::Sender<Nanos>)>,
    flushes: Vec<oneshot::Sender<Nanos>>,
    dirty: Dirty,
    runs: Runs,
    /// The link is busy until then.
    link: Nanos,
    job: Option<Job>,
}

/// The arm and what is under it.
#[derive(Debug)]
struct Head {
    place: Place,
    /// The byte that passes next ...
    offset: u64,
    /// ... if it is read or written at this instant.
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
    /// Cached bytes go to the medium.
    Clean,
}

/// What the arm could do next.
#[derive(Clone, Copy)]
enum Choice {
    Request(usize),
    Clean(u64, u64),
}

impl Rotating {
    /// At rest. `phase` sets drives apart whose platters would turn in step otherwise.
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

    /// Takes a command that comes now.
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

    /// Begins the next piece of work for the arm, if there is any and it is idle, not before `free`; returns when it ends.
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

    /// Ends the piece of work that [`Self::begin`] began.
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

    /// The nearest command in time, or cached write; those that wait long come nearer.
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
            // What continues is never skipped for something nearer, not even where the track ends.
            let continues = request.start == self.head.offset && begun == self.head.free;
            let reached = if continues { begun } else { self.reached(begun, request.start, request.writes) };
            let waited = free.saturating_sub(request.came);
            offer((reached - free) as i64 - (waited / PATIENCE) as i64, Choice::Request(nth));
        }
        let pressing = self.dirty.bytes() > self.dirty_max() / PRESSING_SHARE
            || !self.flushes.is_empty()
            || !self.held.is_empty();
        if self.queue.is_empty() || pressing {
            // As many as commands, spread over the disk: so a small disk gains no more by choosing than a large one.
            for (start, end) in self.dirty.spread(self.head.offset, self.sheet.queue_depth as u64, free) {
                let continues = start == self.head.offset && free == self.head.free;
                let reached = if continues { free } else { self.reached(free, start, true) };
                offer((reached - free) as i64, Choice::Clean(start, end.min(start + CHUNK_BYTES)));
            }
        }
        best.map(|(_, choice)| choice)
    }

    /// When the head can start with a byte, if it leaves for it at `begun`.
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

    /// When a read that the arm leaves for at `begun` is over.
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
            // The head is on its way through the rest.
            return begun.max(growing.since + self.geometry.transfer(growing.from, end - growing.from));
        }
        let next = self.geometry.place(ahead);
        let there = begun + self.geometry.rotation(begun + self.phase, &next);
        there + self.geometry.transfer(ahead, end - ahead)
    }

    /// When a write that the arm leaves for at `begun` is over. Sectors that it fills in part are read first, and
    /// written when they come round again.
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
        // Both edges in one revolution cost one more; far apart, one each.
        let turns = if transfer < self.geometry.period() { edges.min(1) } else { edges };
        reached + turns * self.geometry.period() + transfer
    }

    /// Whether a read is served from what was read before or ahead. As the host goes on, so does the arm.
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

    /// How far reading ahead has come.
    fn ahead(&self, at: Nanos) -> u64 {
        self.runs.growing().map_or(0, |growing| {
            let time = at.saturating_sub(growing.since);
            (growing.from + self.geometry.passed(growing.from, time)).min(growing.limit)
        })
    }

    /// When a command that the buffer serves is done: the link carries one after the other.
    fn buffered(&mut self, now: Nanos, len: u64) -> Nanos {
        self.link = self.link.max(now + us(self.sheet.buffered_us)) + us(len as f64 / self.sheet.link_mb_s);
        self.link
    }

    fn dirty_max(&self) -> u64 {
        self.sheet.buffer_bytes / DIRTY_SHARE
    }

    /// A flush holds later writes back, or it might never end.
    fn has_room(&self, len: u64) -> bool {
        self.flushes.is_empty() && self.dirty.bytes() + len <= self.dirty_max()
    }

    /// Nothing is in the buffer only. Durable writes are on their way by themselves.
    fn is_clean(&self) -> bool {
        self.dirty.bytes() == 0 && !matches!(self.job, Some(Job::Clean))
    }
}

/// Microseconds in nanoseconds.
fn us(us: f64) -> Nanos {
    (us * 1e3).round() as Nanos
}
