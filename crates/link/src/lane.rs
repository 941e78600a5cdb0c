//! A lane: one direction of one cable, with its sender.
//!
//! The sender (a NIC or an egress port of a switch) has a queue per priority, selects by its schedule among those that
//! are not paused, and is busy for the time that the frame takes at line rate. Then the frame is on the wire for delay
//! and jitter.

use crate::{
    config::{FaultConfig, PRIORITIES, Schedule, WireConfig},
    frame::{HEADER_BYTES, Nanos, Tagged, wire_bytes},
    rng::LinkRng,
    schedule::Scheduler,
    stats::LaneStats,
};
use std::collections::VecDeque;

/// A frame in a queue, and the account to release when it leaves.
#[derive(Debug)]
pub(crate) struct Waiting<P> {
    pub(crate) tagged: Tagged<P>,
    pub(crate) account: Account,
}

/// The resource that a waiting frame occupies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Account {
    /// A place in the transmit ring of an interface.
    Ring(usize),
    /// The shared memory of the switch.
    Pool,
    /// The reserve of a lossless class (0 = all, or the priority) of its ingress lane.
    Ingress { lane: usize, class: usize },
}

/// A NIC or a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Node {
    Nic(usize),
    Switch(usize),
}

/// Where a lane is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ends {
    pub(crate) from: Node,
    pub(crate) to: Node,
    pub(crate) bond: usize,
    pub(crate) reverse: usize,
}

#[derive(Debug)]
pub(crate) struct Lane<P> {
    pub(crate) from: Node,
    pub(crate) to: Node,
    /// The bond of its sender.
    pub(crate) bond: usize,
    /// The other direction of the same cable.
    pub(crate) reverse: usize,
    pub(crate) wire: WireConfig,
    /// Whether this link of the cable is plugged in.
    pub(crate) plugged: bool,
    pub(crate) fault: FaultConfig,
    /// The cable and the link are plugged in, and both ends have power.
    pub(crate) up: bool,
    pub(crate) scheduler: Scheduler,
    rng: LinkRng,
    queues: [VecDeque<Waiting<P>>; PRIORITIES],
    /// Priorities with something to send, as bits.
    backlog: u8,
    /// Priorities that the receiver has stopped, as bits.
    paused: u8,
    paused_since: [Nanos; PRIORITIES],
    pub(crate) current: Option<Waiting<P>>,
    /// When the current frame has been sent.
    pub(crate) busy_until: Nanos,
    /// Rest of the rounding to nanoseconds, in bits times 10^9.
    carry: u64,
    /// Frames on the wire, with their arrival times.
    pub(crate) flying: VecDeque<(Nanos, Tagged<P>)>,
    last_arrival: Nanos,
    pub(crate) stats: LaneStats,
    /// Bytes of lossless classes from this lane that are still in the switch.
    pub(crate) held_bytes: [u64; PRIORITIES],
    /// Classes for which the receiver of this lane has requested a pause, as bits.
    pub(crate) asked: u8,
    pub(crate) pauses_asked: u64,
    /// When the last pause frame for the sender of this lane arrives.
    last_pause: Nanos,
    /// Counts how often the cable was pulled out: earlier pause frames are ignored afterwards.
    pub(crate) epoch: u32,
}

impl<P> Lane<P> {
    pub(crate) fn new(ends: Ends, wire: WireConfig, schedule: &Schedule, rng: LinkRng) -> Self {
        let Ends { from, to, bond, reverse } = ends;
        Self {
            from,
            to,
            bond,
            reverse,
            wire,
            plugged: true,
            fault: FaultConfig::default(),
            up: wire.up,
            scheduler: Scheduler::new(schedule),
            rng,
            queues: std::array::from_fn(|_| VecDeque::new()),
            backlog: 0,
            paused: 0,
            paused_since: [0; PRIORITIES],
            current: None,
            busy_until: 0,
            carry: 0,
            flying: VecDeque::new(),
            last_arrival: 0,
            stats: LaneStats::default(),
            held_bytes: [0; PRIORITIES],
            asked: 0,
            pauses_asked: 0,
            last_pause: 0,
            epoch: 0,
        }
    }

    pub(crate) fn queued_bytes(&self, priority: u8) -> u64 {
        self.stats.queues[usize::from(priority)].queued_bytes
    }

    pub(crate) fn push(&mut self, waiting: Waiting<P>) {
        let priority = usize::from(waiting.tagged.priority);
        let queue = &mut self.stats.queues[priority];
        queue.queued_bytes += u64::from(waiting.tagged.frame.length);
        queue.queued_bytes_max = queue.queued_bytes_max.max(queue.queued_bytes);
        self.queues[priority].push_back(waiting);
        self.backlog |= 1 << priority;
    }

    /// Begins to send the next frame if the lane is free and a frame may be sent. Returns when it will have been sent.
    pub(crate) fn start(&mut self, now: Nanos) -> Option<Nanos> {
        if self.current.is_some() {
            return None;
        }
        let queues = &self.queues;
        let next =
            |priority: usize| queues[priority].front().map_or(0, |waiting| waiting.tagged.frame.length);
        let priority = self.scheduler.pick(self.backlog & !self.paused, next)?;
        let waiting = self.queues[priority].pop_front()?;
        if self.queues[priority].is_empty() {
            self.backlog &= !(1 << priority);
        }
        let length = u64::from(waiting.tagged.frame.length);
        let queue = &mut self.stats.queues[priority];
        queue.queued_bytes -= length;
        queue.frames += 1;
        queue.bytes += length;
        self.stats.frames += 1;
        self.stats.bytes += length;
        let duration = self.duration(waiting.tagged.frame.length);
        self.stats.busy_ns += duration;
        self.current = Some(waiting);
        self.busy_until = now + duration;
        Some(self.busy_until)
    }

    /// Whether only a pause stops its frames.
    pub(crate) fn is_held(&self) -> bool {
        self.backlog & self.paused != 0
    }

    /// When the next frame on the wire arrives, at the earliest.
    pub(crate) fn next_arrival(&self) -> Option<Nanos> {
        let flying = self.flying.front().map(|&(arrival, _)| arrival);
        flying.or_else(|| self.current.is_some().then(|| self.busy_until + self.wire.delay_ns))
    }

    /// Shortest time from a frame's arrival at the sender to its arrival at the receiver.
    pub(crate) fn passage_ns(&self) -> Nanos {
        wire_bytes(60) * 8 * 1_000_000_000 / self.wire.rate_bits_per_s + self.wire.delay_ns
    }

    /// Time on the wire at line rate; the rest of the rounding is added to the next frame.
    fn duration(&mut self, length: u32) -> Nanos {
        let bits_e9 = wire_bytes(length) * 8 * 1_000_000_000 + self.carry;
        self.carry = bits_e9 % self.wire.rate_bits_per_s;
        bits_e9 / self.wire.rate_bits_per_s
    }

    /// The arrival time of a sent frame, or None if it is lost. Order is kept: no frame overtakes another.
    pub(crate) fn fate(&mut self, length: u32, now: Nanos) -> Option<Nanos> {
        if !self.up {
            self.stats.drops.down += 1;
            return None;
        }
        if self.fault.mtu > 0 && length > self.fault.mtu + HEADER_BYTES {
            self.stats.drops.mtu += 1;
            return None;
        }
        if self.rng.chance(self.wire.loss) || self.rng.chance(self.fault.loss) {
            self.stats.drops.loss += 1;
            return None;
        }
        let jitter_ns = self.rng.up_to(self.wire.jitter_ns);
        self.last_arrival = self.last_arrival.max(now + self.wire.delay_ns + jitter_ns);
        Some(self.last_arrival)
    }

    /// When a pause frame that the sender of this lane makes now arrives: it is sent before all queues, but does not
    /// interrupt a frame.
    pub(crate) fn pause_arrival(&self, now: Nanos) -> Nanos {
        let begin = if self.current.is_some() { self.busy_until.max(now) } else { now };
        begin + wire_bytes(60) * 8 * 1_000_000_000 / self.wire.rate_bits_per_s + self.wire.delay_ns
    }

    /// Keeps pause frames for this lane in order, also across changes.
    pub(crate) fn after_last_pause(&mut self, arrival: Nanos) -> Nanos {
        self.last_pause = self.last_pause.max(arrival);
        self.last_pause
    }

    /// The cable is pulled out: no sender is paused, and no pause is requested.
    pub(crate) fn unplug(&mut self, now: Nanos) {
        self.epoch += 1;
        self.asked = 0;
        self.last_pause = 0;
        self.pause(u8::MAX, false, now);
    }

    /// Bytes beyond `xoff` that may still arrive over this lane: the frame that goes beyond it, one for as long as the
    /// pause waits for the other direction's frame to be sent, the one that is being sent when the pause arrives, and
    /// the contents of the wire during the round trip.
    pub(crate) fn headroom_bytes(&self, mtu: u32) -> u64 {
        let round_trip_ns = 2 * self.wire.delay_ns + self.wire.jitter_ns;
        let on_the_wire = u128::from(round_trip_ns) * u128::from(self.wire.rate_bits_per_s) / 8_000_000_000;
        on_the_wire as u64 + 3 * wire_bytes(mtu + HEADER_BYTES) + 2 * wire_bytes(60)
    }

    /// Stops or releases priorities.
    pub(crate) fn pause(&mut self, priorities: u8, stop: bool, now: Nanos) {
        for priority in (0..PRIORITIES).filter(|priority| priorities >> priority & 1 == 1) {
            let bit = 1 << priority;
            if stop && self.paused & bit == 0 {
                self.paused |= bit;
                self.paused_since[priority] = now;
                self.stats.queues[priority].pauses += 1;
            } else if !stop && self.paused & bit != 0 {
                self.paused &= !bit;
                self.stats.queues[priority].paused_ns += now - self.paused_since[priority];
            }
        }
    }

    /// Counters, with the current pauses.
    pub(crate) fn snapshot(&self, now: Nanos) -> LaneStats {
        let mut stats = self.stats.clone();
        for (priority, queue) in stats.queues.iter_mut().enumerate() {
            if self.paused >> priority & 1 == 1 {
                queue.paused_ns += now.saturating_sub(self.paused_since[priority]);
            }
        }
        stats
    }
}
