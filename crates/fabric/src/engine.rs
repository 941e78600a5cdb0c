//! The thread that is the network: real time in, virtual time along with it.
//!
//! Virtual time is the real time since the start. One turn of the loop lets everything happen that is due, takes what the
//! hosts have sent meanwhile, and sleeps until the next thing is due or a host sends. A turn costs a few system calls, so under
//! load the loop rests for as long as it has worked, at most [`REST_NS_MAX`]: frames are then handed over in batches, at most
//! that late, while the model's own times stay exact.
//!
//! Work that takes longer than it may shows as **lag**, the real time at which something was done minus the virtual time at
//! which it was due. A turn covers at most [`TURN_NS_MAX`] of virtual time, so a fabric that cannot keep up becomes a slower
//! network rather than one that reads its hosts ever less often. Lag beyond [`LAG_NS_MAX`] is given up: the virtual clock is set
//! back, and what was lost is counted. Whoever measures looks at these counters and discards what was measured late.

use crate::{
    hosts::Hosts,
    packet::Segment,
    plan::{ChangeFailure, Plan},
    report::{FabricStats, LagStats},
    spec::ChangeSpec,
};
use linerate_io::{net::Poller, system};
use linerate_link::{Nanos, Network};
use std::{
    io,
    sync::mpsc::{Receiver, SyncSender, TryRecvError},
    time::Duration,
};

/// Longest rest under load, which is also the latest that a frame is handed over without need.
const REST_NS_MAX: Nanos = 50_000;
/// Shortest time worth sleeping for.
const SLEEP_NS_MIN: Nanos = 3_000;
/// Most virtual time that one turn covers.
const TURN_NS_MAX: Nanos = 1_000_000;
/// Lag that is not caught up with.
const LAG_NS_MAX: Nanos = 20_000_000;
/// Lag from which on a measurement is to be doubted.
const LATE_NS: Nanos = 1_000_000;

/// What a fabric's owner asks of its thread.
#[derive(Debug)]
pub(crate) enum Request {
    Stats(SyncSender<FabricStats>),
    Change(ChangeSpec, SyncSender<Result<(), ChangeFailure>>),
}

pub(crate) struct Engine {
    pub(crate) plan: Plan,
    pub(crate) network: Network<Segment>,
    pub(crate) hosts: Hosts,
    pub(crate) poller: Poller,
    /// Real time at virtual time 0.
    epoch: Nanos,
    lag: LagStats,
}

impl Engine {
    pub(crate) fn new(plan: Plan, network: Network<Segment>, hosts: Hosts) -> io::Result<Self> {
        // A thread that comes late is a slow network: where it may not hurry, the lag will tell.
        if let Err(error) = system::hurry_thread() {
            log::info!("the fabric runs with ordinary priority: {error}");
        }
        let poller = Poller::new()?;
        for (index, host) in hosts.list.iter().enumerate() {
            poller.add(&host.tap, index)?;
        }
        Ok(Self { plan, network, hosts, poller, epoch: system::now_ns(), lag: LagStats::default() })
    }

    /// Runs until the owner hangs up.
    pub(crate) fn run(&mut self, requests: &Receiver<Request>) -> io::Result<()> {
        loop {
            let began = self.clock();
            let until = self.network.next_event().map_or(began, |due| began.min(due + TURN_NS_MAX));
            self.note_lag(began);
            self.network.advance(until, &mut self.hosts);
            if let Some(error) = self.hosts.failure.take() {
                return Err(error);
            }
            let more = self.hosts.read(&mut self.network)?;
            if until < began || more {
                // Behind: no rest, but the owner is heard.
                if self.wait(Some(0))? && !self.answer(requests)? {
                    return Ok(());
                }
                continue;
            }
            if self.sleep(began)? && !self.answer(requests)? {
                return Ok(());
            }
        }
    }

    /// Rests after work, then waits for what comes next. Returns whether the owner wants something.
    fn sleep(&mut self, began: Nanos) -> io::Result<bool> {
        let now = self.clock();
        let rest = (now - began).min(REST_NS_MAX);
        if rest >= SLEEP_NS_MIN {
            self.poller.rest(Duration::from_nanos(rest));
        }
        let Some(due) = self.network.next_event() else { return self.wait(None) };
        let now = self.clock();
        let left = due.saturating_sub(now);
        self.wait(Some(if left < SLEEP_NS_MIN { 0 } else { left }))
    }

    fn wait(&mut self, timeout_ns: Option<Nanos>) -> io::Result<bool> {
        let hosts = &mut self.hosts.list;
        self.poller.wait(timeout_ns.map(Duration::from_nanos), |index| hosts[index].readable = true)
    }

    fn clock(&self) -> Nanos {
        system::now_ns() - self.epoch
    }

    /// How late is what should have happened by now?
    fn note_lag(&mut self, now: Nanos) {
        let lag = self.network.next_event().map_or(0, |due| now.saturating_sub(due));
        self.lag.note(lag, LATE_NS);
        if lag > LAG_NS_MAX {
            self.epoch += lag;
            self.lag.given_up_ns += lag;
        }
    }

    /// Serves all requests that wait. False once the owner has hung up.
    fn answer(&mut self, requests: &Receiver<Request>) -> io::Result<bool> {
        loop {
            match requests.try_recv() {
                // Whoever asked may have gone in the meantime: then nobody wants the answer.
                Ok(Request::Stats(reply)) => drop(reply.send(self.stats()?)),
                Ok(Request::Change(change, reply)) => {
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
        Ok(FabricStats::collect(&self.plan, &self.network, &self.hosts, cpu_us, lag))
    }
}
