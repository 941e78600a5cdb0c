//! A volume for its worker: its flows, its free slots, and the selection of the next I/O.

use super::{control::Control, pause::ThinkTime, upkeep::Upkeep};
use crate::{
    payload::duplicates::Duplicates,
    spec::ShareMode,
    stream::{Sequence, Shot, arrival::Arrivals, share::Turns},
    verify::Expected,
};
use linerate_io::Nanos;

/// One stream on one volume.
#[derive(Debug)]
pub(crate) struct Flow {
    pub(crate) stream: u32,
    /// Index among the worker's volumes.
    pub(crate) volume: u32,
    pub(crate) sequence: Sequence,
    /// Open loop: intended start times.
    pub(crate) arrivals: Option<Arrivals>,
    pub(crate) priority: u32,
    /// The flow's arrival time is in the worker's timers.
    pub(crate) timed: bool,
    pub(crate) stops_at_end: bool,
    pub(crate) at_end: bool,
    pub(crate) in_flight: u32,
    /// Arrivals due and not started, when last counted.
    pub(crate) backlog: u64,
    /// Which write buffers it uses.
    pub(crate) ratio: u32,
    /// Of a stream whose data have duplicates.
    pub(super) duplicates: Option<Box<Duplicates>>,
    pub(super) think: Option<ThinkTime>,
    /// Its time to begin has not come (closed loop).
    pub(super) is_waiting: bool,
    /// When it ends.
    pub(super) ends: Nanos,
}

/// An I/O about to start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start {
    pub(crate) flow: u32,
    pub(crate) shot: Shot,
    /// Its intended start; None in a closed loop.
    pub(crate) intended: Option<Nanos>,
}

/// The next action of a free slot.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pick {
    /// This.
    Start(Start),
    /// An I/O, once other volumes or streams have caught up.
    Gated,
    /// No I/O until one completes or an arrival is due.
    Nothing,
}

/// A volume under load.
#[derive(Debug)]
pub(crate) struct Volume {
    /// Index in the specification.
    pub(crate) index: u32,
    pub(crate) unit: u32,
    /// First used byte of the device.
    pub(crate) first_byte: u64,
    pub(crate) durable_writes: bool,
    /// Indices of its flows among the worker's, closed-loop flows first.
    pub(crate) flows: std::ops::Range<u32>,
    /// How many of them run in a closed loop.
    pub(crate) closed: u32,
    pub(crate) slots: std::ops::Range<u32>,
    pub(crate) free: Vec<u32>,
    /// It is in the worker's list of volumes to check.
    pub(crate) listed: bool,
    /// Drawn, but it conflicts with an I/O in flight (verify mode).
    pub(crate) parked: Option<Start>,
    pub(crate) expected: Option<Expected>,
    pub(crate) turns: Turns,
    /// Closed-loop I/Os started.
    pub(crate) started: u64,
    /// It has failed for good.
    pub(crate) dead: bool,
    /// Errors since the last success.
    pub(crate) errors_in_a_row: u32,
    /// Closed-loop flows that have begun and not reached their end.
    pub(crate) live: u32,
    pub(super) upkeep: Option<Box<Upkeep>>,
}

/// The part of a worker that picking needs.
pub(crate) struct Picking<'a> {
    pub(crate) mode: ShareMode,
    pub(crate) control: &'a Control,
    pub(crate) worker: usize,
    /// Closed-loop I/Os started per stream by this worker.
    pub(crate) stream_started: &'a mut [u64],
    /// The last computed limit of controlled volumes or total streams.
    pub(crate) limit: &'a mut f64,
}

impl Volume {
    /// The next I/O at time `now`.
    pub(crate) fn pick(&mut self, flows: &mut [Flow], now: Nanos, picking: &mut Picking<'_>) -> Pick {
        if let Some(start) = self.parked.take() {
            return Pick::Start(start);
        }
        if let Some(start) = self.due(flows, now) {
            return Pick::Start(start);
        }
        while self.live > 0 {
            let Some(flow) = self.closed_flow(flows, picking) else { return Pick::Gated };
            if now >= flows[flow as usize].ends {
                self.flow_at_end(flows, flow, picking);
                continue;
            }
            if let Some(shot) = flows[flow as usize].sequence.draw() {
                self.started += 1;
                if picking.mode == ShareMode::Total {
                    let stream = flows[flow as usize].stream as usize;
                    picking.stream_started[stream] += 1;
                    picking.control.streams.publish(stream, picking.worker, picking.stream_started[stream]);
                }
                return Pick::Start(Start { flow, shot, intended: None });
            }
            self.flow_at_end(flows, flow, picking);
        }
        Pick::Nothing
    }

    /// The open-loop flow that is due: the most urgent priority, and of those the earliest.
    fn due(&self, flows: &mut [Flow], now: Nanos) -> Option<Start> {
        loop {
            let open = (self.flows.start + self.closed)..self.flows.end;
            let (_, intended, flow) = open
                .filter_map(|flow| {
                    let this = &flows[flow as usize];
                    let next = this.arrivals.as_ref()?.next();
                    (next <= now && !this.at_end).then_some((this.priority, next, flow))
                })
                .min()?;
            let this = &mut flows[flow as usize];
            if intended >= this.ends {
                this.at_end = true;
                continue;
            }
            if let Some(shot) = this.sequence.draw() {
                if let Some(arrivals) = &mut this.arrivals {
                    arrivals.take();
                }
                this.at_end = this.sequence.is_at_end();
                return Some(Start { flow, shot, intended: Some(intended) });
            }
            this.at_end = true;
        }
    }

    /// The next closed-loop flow; None while the shares prevent all of them.
    fn closed_flow(&mut self, flows: &[Flow], picking: &mut Picking<'_>) -> Option<u32> {
        match picking.mode {
            ShareMode::Uncontrolled => self.turns.pick().map(|nth| self.flows.start + nth as u32),
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
                self.turns.pick().map(|nth| self.flows.start + nth as u32)
            }
            ShareMode::Total => {
                let streams = &picking.control.streams;
                let progress = |flow: u32| streams.progress(flows[flow as usize].stream as usize);
                let flow = (self.flows.start..self.flows.start + self.closed)
                    .filter(|flow| !flows[*flow as usize].at_end)
                    .min_by(|a, b| progress(*a).total_cmp(&progress(*b)))?;
                if progress(flow) >= *picking.limit {
                    *picking.limit = streams.limit();
                    if progress(flow) >= *picking.limit {
                        return None;
                    }
                }
                Some(flow)
            }
        }
    }

    /// No I/O of it is in flight, and no slot pauses. Not of a volume with a shared queue.
    pub(super) fn is_idle(&self) -> bool {
        self.free.len() == self.slots.len()
    }

    /// A closed-loop flow has no turns until [`Self::begin_flow`].
    pub(super) fn hold_flow(&mut self, flow: u32) {
        self.turns.remove((flow - self.flows.start) as usize);
        self.live -= 1;
    }

    /// The time of a flow that was held has come.
    pub(super) fn begin_flow(&mut self, flow: u32) {
        self.turns.enter((flow - self.flows.start) as usize);
        self.live += 1;
    }

    /// A closed-loop flow has no more work: the shares no longer include it.
    fn flow_at_end(&mut self, flows: &mut [Flow], flow: u32, picking: &Picking<'_>) {
        flows[flow as usize].at_end = true;
        self.turns.remove((flow - self.flows.start) as usize);
        self.live -= 1;
        if self.live == 0 {
            picking.control.volumes.retire(self.index as usize, picking.worker);
        }
        picking.control.flow_ended(flows[flow as usize].stream as usize, picking.worker);
    }
}
