//! A volume as its worker sees it: its lanes, its free slots, and which I/O a free slot starts next.

use super::control::Control;
use crate::{
    spec::ShareMode,
    stream::{Sequence, Shot, arrival::Arrivals, share::Turns},
    verify::Expected,
};
use linerate_io::Nanos;

/// One stream on one volume.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) stream: u32,
    /// Index among the worker's volumes.
    pub(crate) volume: u32,
    pub(crate) sequence: Sequence,
    /// Open loop: intended start times.
    pub(crate) arrivals: Option<Arrivals>,
    pub(crate) priority: u32,
    /// The lane's arrival time is in the worker's timers.
    pub(crate) timed: bool,
    pub(crate) stops_at_end: bool,
    pub(crate) at_end: bool,
    pub(crate) in_flight: u32,
    /// Arrivals due and not started, when last counted.
    pub(crate) backlog: u64,
    /// Which write buffers it uses.
    pub(crate) ratio: u32,
}

/// An I/O about to start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start {
    pub(crate) lane: u32,
    pub(crate) shot: Shot,
    /// When it was meant to start; none in a closed loop.
    pub(crate) intended: Option<Nanos>,
}

/// What a free slot can do now.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pick {
    /// This.
    Start(Start),
    /// Something, once other volumes or streams have caught up.
    Gated,
    /// Nothing until an I/O completes or an arrival is due.
    Nothing,
}

/// A volume under load.
#[derive(Debug)]
pub(crate) struct Volume {
    /// Index in the specification.
    pub(crate) index: u32,
    pub(crate) unit: u32,
    /// First byte of the device that is used.
    pub(crate) first_byte: u64,
    pub(crate) durable_writes: bool,
    /// Indices of its lanes among the worker's, closed-loop lanes first.
    pub(crate) lanes: std::ops::Range<u32>,
    /// How many of them run in a closed loop.
    pub(crate) closed: u32,
    pub(crate) slots: std::ops::Range<u32>,
    pub(crate) free: Vec<u32>,
    /// Is in the worker's list of volumes to look at.
    pub(crate) listed: bool,
    /// Drawn, but in conflict with an I/O in flight (verify mode).
    pub(crate) parked: Option<Start>,
    pub(crate) expected: Option<Expected>,
    pub(crate) turns: Turns,
    /// Closed-loop I/Os started.
    pub(crate) started: u64,
    /// It has failed for good.
    pub(crate) dead: bool,
    /// Errors since the last success.
    pub(crate) errors_in_a_row: u32,
    /// Closed-loop lanes that have not reached their end.
    pub(crate) live: u32,
}

/// The part of a worker that picking needs.
pub(crate) struct Picking<'a> {
    pub(crate) mode: ShareMode,
    pub(crate) control: &'a Control,
    pub(crate) worker: usize,
    /// Closed-loop I/Os started per stream by this worker.
    pub(crate) stream_started: &'a mut [u64],
    /// How far controlled volumes or total streams may go, when last worked out.
    pub(crate) limit: &'a mut f64,
}

impl Volume {
    /// The next I/O at time `now`.
    pub(crate) fn pick(&mut self, lanes: &mut [Lane], now: Nanos, picking: &mut Picking<'_>) -> Pick {
        if let Some(start) = self.parked.take() {
            return Pick::Start(start);
        }
        if let Some(start) = self.due(lanes, now) {
            return Pick::Start(start);
        }
        while self.live > 0 {
            let Some(lane) = self.closed_lane(lanes, picking) else { return Pick::Gated };
            if let Some(shot) = lanes[lane as usize].sequence.draw() {
                self.started += 1;
                if picking.mode == ShareMode::Total {
                    let stream = lanes[lane as usize].stream as usize;
                    picking.stream_started[stream] += 1;
                    picking.control.streams.publish(stream, picking.worker, picking.stream_started[stream]);
                }
                return Pick::Start(Start { lane, shot, intended: None });
            }
            self.lane_at_end(lanes, lane, picking);
        }
        Pick::Nothing
    }

    /// The open-loop lane that is due: the most urgent priority, and of those the earliest.
    fn due(&self, lanes: &mut [Lane], now: Nanos) -> Option<Start> {
        loop {
            let open = (self.lanes.start + self.closed)..self.lanes.end;
            let (_, intended, lane) = open
                .filter_map(|lane| {
                    let this = &lanes[lane as usize];
                    let next = this.arrivals.as_ref()?.next();
                    (next <= now && !this.at_end).then_some((this.priority, next, lane))
                })
                .min()?;
            let this = &mut lanes[lane as usize];
            if let Some(shot) = this.sequence.draw() {
                if let Some(arrivals) = &mut this.arrivals {
                    arrivals.take();
                }
                return Some(Start { lane, shot, intended: Some(intended) });
            }
            this.at_end = true;
        }
    }

    /// The closed-loop lane whose turn it is; none while the shares hold all of them back.
    fn closed_lane(&mut self, lanes: &[Lane], picking: &mut Picking<'_>) -> Option<u32> {
        match picking.mode {
            ShareMode::Uncontrolled => self.turns.pick().map(|nth| self.lanes.start + nth as u32),
            ShareMode::Controlled => {
                let volumes = &picking.control.volumes;
                let party = self.index as usize;
                if volumes.progress(party) >= *picking.limit {
                    *picking.limit = volumes.limit();
                    if volumes.progress(party) >= *picking.limit {
                        return None;
                    }
                }
                volumes.publish(party, picking.worker, self.started + 1);
                self.turns.pick().map(|nth| self.lanes.start + nth as u32)
            }
            ShareMode::Total => {
                let streams = &picking.control.streams;
                let progress = |lane: u32| streams.progress(lanes[lane as usize].stream as usize);
                let lane = (self.lanes.start..self.lanes.start + self.closed)
                    .filter(|lane| !lanes[*lane as usize].at_end)
                    .min_by(|a, b| progress(*a).total_cmp(&progress(*b)))?;
                if progress(lane) >= *picking.limit {
                    *picking.limit = streams.limit();
                    if progress(lane) >= *picking.limit {
                        return None;
                    }
                }
                Some(lane)
            }
        }
    }

    /// A closed-loop lane has nothing more to do: nobody waits for its share any longer.
    fn lane_at_end(&mut self, lanes: &mut [Lane], lane: u32, picking: &Picking<'_>) {
        lanes[lane as usize].at_end = true;
        self.turns.remove((lane - self.lanes.start) as usize);
        self.live -= 1;
        if self.live == 0 {
            picking.control.volumes.retire(self.index as usize, picking.worker);
        }
        picking.control.lane_ended(lanes[lane as usize].stream as usize, picking.worker);
    }
}
