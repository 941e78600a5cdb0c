//! The thread of the network: virtual time follows real time.
//!
//! Virtual time is the real time since the start. One turn of the loop processes all events that are due, reads the
//! packets that the hosts have sent meanwhile, and waits until a host must be interrupted or sends. Events in between
//! are processed later, at their own virtual time: only hosts could see a difference.
//!
//! Waiting is expensive: a sleep costs about 20 us of CPU time on a virtual machine and ends about as much too late. So
//! there are two ways to wait ([`Pace`]). With little work, a sleep ends early by as much as sleeps have been late, and
//! the rest of the time is spent polling: frames are delivered on time. Under load the loop sleeps for [`REST_NS`]
//! after each turn: frames are delivered in batches, at most that late.
//!
//! If work takes too long, it is visible as **lag**: the real time of an action minus the virtual time at which it was
//! due. A turn covers at most [`TURN_NS_MAX`] beyond the due time. So a fabric that cannot keep up becomes a slower
//! network, and does not read its hosts less and less often. Lag beyond [`LAG_NS_MAX`] is given up: the virtual clock
//! is set back, and the lost time is counted. A measurement reads these counters and discards the intervals in which
//! the engine was late.

use crate::{
    hosts::Hosts,
    packet::Segment,
    plan::{ChangeFailure, FabricPlan},
    report::{Effort, FabricStats, LagStats},
    spec::ChangeSpec,
};
use linerate_io::{
    net::Poller,
    system::{self, Haste},
};
use linerate_link::{Nanos, Network};
use std::{
    io,
    sync::mpsc::{Receiver, SyncSender, TryRecvError},
    time::Duration,
};

/// Sleep after each turn under load. A frame is delayed at most by this without need.
const REST_NS: Nanos = 100_000;
/// Longest wait while a host has more packets than its NIC has space for.
const REFILL_NS: Nanos = 200_000;
/// Most virtual time that one turn covers.
const TURN_NS_MAX: Nanos = 1_000_000;
/// Lag that is not caught up with.
const LAG_NS_MAX: Nanos = 20_000_000;
/// Most that a sleep is shortened by, and so the longest polling.
const LATE_NS_MAX: Nanos = 40_000;

/// Requests of a fabric's owner to its thread.
#[derive(Debug)]
pub(crate) enum FabricRequest {
    Stats(SyncSender<FabricStats>),
    /// The answer is the monotonic time at which it took effect.
    Change(ChangeSpec, SyncSender<Result<Nanos, ChangeFailure>>),
}

pub(crate) struct Engine {
    pub(crate) plan: FabricPlan,
    pub(crate) network: Network<Segment>,
    pub(crate) hosts: Hosts,
    pub(crate) poller: Poller,
    /// Real time at virtual time 0.
    epoch: Nanos,
    pace: Pace,
    /// None if the scheduler has no such policy.
    haste: Option<Haste>,
    lag: LagStats,
}

impl Engine {
    pub(crate) fn new(plan: FabricPlan, network: Network<Segment>, hosts: Hosts) -> io::Result<Self> {
        // A late thread is a slow network. If the priority is not permitted, the lag shows it.
        let haste = system::hurry_thread().ok();
        let poller = Poller::new()?;
        for (index, host) in hosts.list.iter().enumerate() {
            poller.add(&host.tap, index)?;
        }
        Ok(Self {
            plan,
            network,
            hosts,
            poller,
            epoch: system::now_ns(),
            pace: Pace::default(),
            haste,
            lag: LagStats::default(),
        })
    }

    /// Runs until the owner hangs up.
    pub(crate) fn run(&mut self, requests: &Receiver<FabricRequest>) -> io::Result<()> {
        loop {
            let (began, behind) = self.turn()?;
            let woken = if behind { self.wait(Some(0))? } else { self.sleep(began)? };
            if woken {
                // The last turn may be long ago, and the request is about the current time.
                self.turn()?;
                if !self.answer(requests)? {
                    return Ok(());
                }
            }
        }
    }

    /// Processes events that are due, and reads packets of hosts. Returns when it began, and whether there is more
    /// work.
    fn turn(&mut self) -> io::Result<(Nanos, bool)> {
        let due = self.network.next_interrupt();
        let (began, until) = self.begin(due);
        self.network.advance(until, &mut self.hosts);
        if let Some(error) = self.hosts.failure.take() {
            return Err(error);
        }
        let more = self.hosts.read(&mut self.network)?;
        Ok((began, until < began || more))
    }

    /// Waits for the next event. Returns whether the owner has a request.
    fn sleep(&mut self, began: Nanos) -> io::Result<bool> {
        let mut now = self.clock();
        if self.pace.is_high(began, now, self.hosts.handled) {
            self.poller.rest(Duration::from_nanos(REST_NS));
            now = self.clock();
        }
        let refill = self.hosts.is_any_waiting().then_some(now + REFILL_NS);
        let due = self.network.next_interrupt();
        let Some(due) = due.into_iter().chain(refill).min() else { return self.wait(None) };
        let left = due.saturating_sub(now);
        let early = left.saturating_sub(self.pace.late_ns);
        let woken = self.wait(Some(early))?;
        if early > 0 {
            self.pace.slept(self.clock().saturating_sub(now), early);
        }
        Ok(woken)
    }

    fn wait(&mut self, timeout_ns: Option<Nanos>) -> io::Result<bool> {
        let hosts = &mut self.hosts.list;
        self.poller.wait(timeout_ns.map(Duration::from_nanos), |index| hosts[index].readable = true)
    }

    fn clock(&self) -> Nanos {
        system::now_ns() - self.epoch
    }

    /// The time, and the end of a turn whose work is due since `due`. Time that cannot be caught up with is given up.
    fn begin(&mut self, due: Option<Nanos>) -> (Nanos, Nanos) {
        let now = self.clock();
        let Some(due) = due.filter(|&due| due < now) else { return (now, now) };
        let until = now.min(due + TURN_NS_MAX);
        self.lag.note(due, until, now);
        let lag = now - due;
        if lag <= LAG_NS_MAX {
            return (now, until);
        }
        self.epoch += lag;
        self.lag.given_up_ns += lag;
        (due, due)
    }

    /// Serves all waiting requests. False once the owner has disconnected.
    fn answer(&mut self, requests: &Receiver<FabricRequest>) -> io::Result<bool> {
        loop {
            match requests.try_recv() {
                // The caller may have stopped waiting for the answer.
                Ok(FabricRequest::Stats(reply)) => drop(reply.send(self.stats()?)),
                Ok(FabricRequest::Change(change, reply)) => {
                    let changed = self.plan.change(&change, &mut self.network, &mut self.hosts);
                    drop(reply.send(changed));
                }
                Err(TryRecvError::Empty) => return Ok(true),
                Err(TryRecvError::Disconnected) => return Ok(false),
            }
        }
    }

    fn stats(&mut self) -> io::Result<FabricStats> {
        let cpu = system::thread_cpu()?;
        let lag = self.lag;
        self.lag.recent_max_ns = 0;
        let cpu_us = cpu.user_us + cpu.system_us;
        let scheduling = match self.haste {
            Some(Haste::RealTime) => "real_time",
            Some(Haste::Priority) => "priority",
            Some(Haste::Slices) => "slices",
            None => "ordinary",
        };
        Ok(FabricStats::collect(&self.plan, &self.network, &self.hosts, Effort { cpu_us, scheduling, lag }))
    }
}

/// How the loop waits, by its load and by how late its sleeps have ended.
#[derive(Debug, Default)]
struct Pace {
    /// When the last turn with work began, and the packets handled by then.
    last: Nanos,
    handled: u64,
    /// Mean work and mean time of recent turns.
    work_ns: Nanos,
    turn_ns: Nanos,
    /// By how much sleeps end late.
    late_ns: Nanos,
}

impl Pace {
    /// Records a turn's work. True if so much of the time is work that batches are better.
    fn is_high(&mut self, began: Nanos, ended: Nanos, handled: u64) -> bool {
        if handled == self.handled {
            return false;
        }
        self.handled = handled;
        // The clock is set back when time is given up.
        self.work_ns = mean(self.work_ns, ended.saturating_sub(began));
        self.turn_ns = mean(self.turn_ns, began.saturating_sub(self.last));
        self.last = began;
        self.work_ns * 5 > self.turn_ns
    }

    /// Records the requested and the real length of a sleep. Sleeps that a host interrupted are ignored.
    fn slept(&mut self, took: Nanos, asked: Nanos) {
        if took >= asked {
            self.late_ns = mean(self.late_ns, (took - asked).min(LATE_NS_MAX));
        }
    }
}

/// An exponential mean: the new value has a weight of a sixteenth.
fn mean(before: Nanos, value: Nanos) -> Nanos {
    before - before / 16 + value / 16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Turns of `work` every `turn` nanoseconds, until the pace has settled.
    fn settled(pace: &mut Pace, work: Nanos, turn: Nanos) -> bool {
        let (mut now, mut high) = (pace.last, false);
        for _ in 0..200 {
            now += turn;
            high = pace.is_high(now, now + work, pace.handled + 1);
        }
        high
    }

    #[test]
    fn batches_begin_with_load_and_end_with_it() {
        let mut pace = Pace::default();
        assert!(!settled(&mut pace, 5_000, 500_000), "a request now and then");
        assert!(settled(&mut pace, 15_000, 50_000), "a line that is full");
        assert!(!settled(&mut pace, 5_000, 100_000));
    }

    #[test]
    fn looking_is_no_work() {
        let mut pace = Pace::default();
        let handled = pace.handled;
        assert!((0..1_000).all(|turn| !pace.is_high(turn * 600, turn * 600 + 500, handled)));
    }

    #[test]
    fn sleeps_end_earlier_by_as_much_as_they_were_late() {
        let mut pace = Pace::default();
        (0..200).for_each(|_| pace.slept(75_000, 50_000));
        assert!((24_000..=25_000).contains(&pace.late_ns), "{}", pace.late_ns);
        (0..200).for_each(|_| pace.slept(10_000, 50_000));
        assert!(pace.late_ns >= 24_000, "a host that sends says nothing about sleeps");
        (0..200).for_each(|_| pace.slept(9_000_000, 50_000));
        assert!(pace.late_ns <= LATE_NS_MAX, "a machine that is busy does not make the fabric spin");
    }
}
