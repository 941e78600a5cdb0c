//! The thread that is the network: real time in, virtual time along with it.
//!
//! Virtual time is the real time since the start. One turn of the loop lets everything happen that is due, takes what the
//! hosts have sent meanwhile, and waits until a host is to be interrupted or sends. What happens in between is settled
//! later, at its own virtual time: only hosts could see a difference.
//!
//! Waiting is dear: a sleep costs some 20 us of CPU time on a virtual machine and ends as much too late. So there are
//! two ways to wait ([`Pace`]). While there is little to do, a sleep ends early by as much as sleeps have been late,
//! and the rest is spent looking: frames are handed over on time. Under load the loop rests for [`REST_NS`] after each
//! turn: frames are passed on in batches, at most that late.
//!
//! Work that takes longer than it may shows as **lag**, the real time at which something was done minus the virtual time at
//! which it was due. A turn covers at most [`TURN_NS_MAX`] beyond what was due, so a fabric that cannot keep up becomes a
//! slower network rather than one that reads its hosts ever less often. Lag beyond [`LAG_NS_MAX`] is given up: the virtual
//! clock is set back, and what was lost is counted. A measurement reads these counters and discards the intervals
//! in which the engine was late.

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

/// Rest after each turn under load, which is also the latest that a frame is handed over without need.
const REST_NS: Nanos = 100_000;
/// Longest wait while a host has more to send than its NIC has room for.
const REFILL_NS: Nanos = 200_000;
/// Most virtual time that one turn covers.
const TURN_NS_MAX: Nanos = 1_000_000;
/// Lag that is not caught up with.
const LAG_NS_MAX: Nanos = 20_000_000;
/// Most that a sleep is cut short by, and so the most that is spent looking.
const LATE_NS_MAX: Nanos = 40_000;

/// What a fabric's owner asks of its thread.
#[derive(Debug)]
pub(crate) enum FabricRequest {
    Stats(SyncSender<FabricStats>),
    /// Answered by the monotonic time at which it took effect.
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
    /// None where the scheduler has no such policy.
    haste: Option<Haste>,
    lag: LagStats,
}

impl Engine {
    pub(crate) fn new(plan: FabricPlan, network: Network<Segment>, hosts: Hosts) -> io::Result<Self> {
        // A late thread is a slow network. Where the priority is not permitted, the lag shows it.
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
                // The last turn may be long ago: what is asked is about now.
                self.turn()?;
                if !self.answer(requests)? {
                    return Ok(());
                }
            }
        }
    }

    /// Lets happen what is due, and takes what hosts have sent. Returns when it began, and whether there is more to do.
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

    /// Waits for what comes next. Returns whether the owner wants something.
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

    /// The time, and up to when a turn goes that has something to do since `due`. Time that cannot be made up is given up.
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

    /// Serves all requests that wait. False once the owner has hung up.
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

/// How the loop waits, from how busy it has been and how late its sleeps have ended.
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
    /// Takes down a turn's work. True if so much of the time is spent on work that batches pay.
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

    /// Takes down how long a sleep was and should have been. Sleeps that a host cut short say nothing.
    fn slept(&mut self, took: Nanos, asked: Nanos) {
        if took >= asked {
            self.late_ns = mean(self.late_ns, (took - asked).min(LATE_NS_MAX));
        }
    }
}

/// A mean that forgets: the new value counts for a sixteenth.
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
