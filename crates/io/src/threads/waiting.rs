//! How a thread waits for completions: asleep, polling, or polling for a short time before it sleeps.
//!
//! To sleep and to be woken costs 5 to 50 us, and the answer of a peer often comes sooner. To poll costs a CPU that others
//! may want. [`WaitMode::Auto`] learns how long to poll, as KVM does for halted processors
//! (Documentation/virt/kvm/halt-polling.rst):
//!
//! - If a wait was short and ended in a sleep, the thread polls twice as long next time, up to a limit. If it was longer
//!   than the limit, half as long, down to nothing.
//! - The limit is a few wake-ups, as measured on this machine once per process.
//! - While it polls, it yields its CPU every few microseconds. If other threads use more than a small share of the CPU, it
//!   does not poll for a while, each time for longer. Threads of the kernel that run now and then are no reason to sleep.
//!
//! So an idle thread sleeps, and a thread whose CPU is wanted by others does too. The time of polls that found nothing is
//! counted ([`Waiter::polled_ns`]): it is CPU time that belongs to no I/O.

use crate::{Completion, Driver, Nanos, Wait, system::now_ns};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{
    hint, io,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    thread,
    time::Duration,
};

/// How long a thread polls after its first short wait; a shorter time finds too little.
const POLL_FIRST_NS: u64 = 8_000;
/// The longest time to poll is this many wake-ups, within these limits.
const POLL_MAX_WAKE_UPS: u64 = 8;
const POLL_MAX_NS: std::ops::RangeInclusive<u64> = 100_000..=200_000;
/// The time between two yields.
const YIELD_EVERY_NS: u64 = 2_000;
/// If a yield takes longer, another thread used the CPU.
const TAKEN_NS: u64 = 20_000;
/// The CPU is wanted if others used it for more than one part in so many of the recent time of polls.
const WANTED_PARTS: u64 = 16;
/// Recent: about the last so many nanoseconds of polls.
const RECENT_NS: u64 = 20_000_000;
/// How long a thread does not poll after its CPU was taken: at first, and at most.
const PAUSE_FIRST_NS: u64 = 1_000_000;
const PAUSE_MAX_NS: u64 = 256_000_000;
/// Wake-ups that are measured; their median counts.
const WAKE_UPS: usize = 15;

/// How a thread waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WaitMode {
    /// Polls for a short time that it learns, then sleeps.
    #[default]
    Auto,
    /// Sleeps in the kernel until something happens.
    Block,
    /// Never sleeps: the lowest latency, but each thread uses a whole CPU.
    Spin,
}

/// Waits for the completions of one driver.
#[derive(Debug)]
pub struct Waiter {
    mode: WaitMode,
    budget: PollBudget,
    polled_ns: u64,
}

impl Waiter {
    /// For one thread. The first one with [`WaitMode::Auto`] measures what a wake-up costs, which takes about 2 ms.
    pub fn new(mode: WaitMode) -> Self {
        let max_ns = if mode == WaitMode::Auto { poll_max_ns(wake_up_ns()) } else { 0 };
        Self { mode, budget: PollBudget::new(max_ns), polled_ns: 0 }
    }

    /// The time of all polls that found nothing: CPU time that belongs to no I/O.
    pub fn polled_ns(&self) -> u64 {
        self.polled_ns
    }

    /// As [`Driver::poll`], in the way of its mode. Virtual time needs [`WaitMode::Block`]: it does not pass in polls.
    pub fn poll<D: Driver>(
        &mut self,
        driver: &mut D,
        wait: Wait,
        out: &mut Vec<Completion<D::Socket>>,
    ) -> io::Result<()> {
        if wait == Wait::Never || self.mode == WaitMode::Block {
            return driver.poll(wait, out);
        }
        // The first poll submits what is queued. That is work, not waiting.
        driver.poll(Wait::Never, out)?;
        if !out.is_empty() {
            return Ok(());
        }
        let began = driver.now();
        let budget_ns = if self.mode == WaitMode::Spin { u64::MAX } else { self.budget.at(began) };
        if budget_ns > 0 && self.poll_for(budget_ns, began, driver, wait, out)? {
            return Ok(());
        }
        driver.poll(wait, out)?;
        self.budget.waited(driver.now() - began, !out.is_empty());
        Ok(())
    }

    /// Polls until there is a completion or the wait is over (true), or the budget is spent or the CPU taken (false).
    fn poll_for<D: Driver>(
        &mut self,
        budget_ns: u64,
        began: Nanos,
        driver: &mut D,
        wait: Wait,
        out: &mut Vec<Completion<D::Socket>>,
    ) -> io::Result<bool> {
        let limit = if let Wait::Until(until) = wait { until } else { Nanos::MAX };
        let (mut counted, mut last, mut yielded) = (began, began, began);
        let over = loop {
            if self.mode == WaitMode::Auto && last - yielded >= YIELD_EVERY_NS {
                thread::yield_now();
                yielded = driver.now();
                if yielded - last > TAKEN_NS {
                    self.polled(last - counted);
                    let is_wanted = self.budget.taken(yielded, yielded - last);
                    (counted, last) = (yielded, yielded);
                    if is_wanted {
                        return Ok(false);
                    }
                }
            }
            hint::spin_loop();
            driver.poll(Wait::Never, out)?;
            if !out.is_empty() {
                break true;
            }
            last = driver.now();
            if last >= limit {
                break true;
            }
            if last - began >= budget_ns {
                break false;
            }
        };
        self.polled(last - counted);
        Ok(over)
    }

    fn polled(&mut self, ns: u64) {
        self.polled_ns += ns;
        self.budget.polled(ns);
    }
}

/// How long to poll before the next sleep.
#[derive(Debug)]
struct PollBudget {
    ns: u64,
    max_ns: u64,
    paused_until: Nanos,
    pause_ns: u64,
    /// Time of polls since the last pause.
    polled_ns: u64,
    /// Recent time of polls, and the time for which others used the CPU between them.
    recent_ns: (u64, u64),
}

impl PollBudget {
    fn new(max_ns: u64) -> Self {
        Self { ns: 0, max_ns, paused_until: 0, pause_ns: PAUSE_FIRST_NS, polled_ns: 0, recent_ns: (0, 0) }
    }

    fn at(&self, now: Nanos) -> u64 {
        if now < self.paused_until { 0 } else { self.ns }
    }

    /// A wait that ended in a sleep took so long, polls included; `found`: it ended with a completion.
    fn waited(&mut self, ns: u64, found: bool) {
        if ns > self.max_ns {
            self.ns = if self.ns / 2 < POLL_FIRST_NS { 0 } else { self.ns / 2 };
        } else if found {
            self.ns = (2 * self.ns).clamp(POLL_FIRST_NS, self.max_ns);
        }
    }

    /// A series of polls took so long.
    fn polled(&mut self, ns: u64) {
        self.polled_ns += ns;
        self.recent_ns.0 += ns;
        if self.recent_ns.0 > RECENT_NS {
            self.recent_ns = (self.recent_ns.0 / 2, self.recent_ns.1 / 2);
        }
    }

    /// Other threads used the CPU for so long during a poll. True: they want it, so polls pause. If there were polls for
    /// less time since the last pause than that was long, the next pause is twice as long, else half as long.
    fn taken(&mut self, now: Nanos, ns: u64) -> bool {
        self.recent_ns.1 += ns;
        if WANTED_PARTS * self.recent_ns.1 <= self.recent_ns.0 {
            return false;
        }
        self.recent_ns = (0, 0);
        let is_soon = std::mem::take(&mut self.polled_ns) < self.pause_ns;
        let pause_ns = if is_soon { 2 * self.pause_ns } else { self.pause_ns / 2 };
        self.pause_ns = pause_ns.clamp(PAUSE_FIRST_NS, PAUSE_MAX_NS);
        self.paused_until = now + self.pause_ns;
        true
    }
}

fn poll_max_ns(wake_up_ns: u64) -> u64 {
    (POLL_MAX_WAKE_UPS * wake_up_ns).clamp(*POLL_MAX_NS.start(), *POLL_MAX_NS.end())
}

/// The median time from waking a sleeping thread until it runs, measured once per process.
fn wake_up_ns() -> u64 {
    static MEASURED: OnceLock<u64> = OnceLock::new();
    *MEASURED.get_or_init(|| {
        let woken = Arc::new(AtomicU64::new(0));
        let stamp = Arc::clone(&woken);
        let sleeper = thread::Builder::new().name("wake-up".into()).spawn(move || {
            for _ in 0..WAKE_UPS {
                thread::park();
                stamp.store(now_ns(), SeqCst);
            }
        });
        // Without a thread nothing can be measured: the shortest polls do no harm.
        let Ok(sleeper) = sleeper else { return 0 };
        let mut times: Vec<u64> = (0..WAKE_UPS)
            .map(|_| {
                // By then it sleeps, and its CPU is idle.
                thread::sleep(Duration::from_micros(60));
                let begun = now_ns();
                woken.store(0, SeqCst);
                sleeper.thread().unpark();
                loop {
                    match woken.load(SeqCst) {
                        0 => thread::yield_now(),
                        at => break at.saturating_sub(begun),
                    }
                }
            })
            .collect();
        let _ = sleeper.join();
        times.sort_unstable();
        times[WAKE_UPS / 2]
    })
}

#[cfg(test)]
mod tests {
    use super::{
        PAUSE_FIRST_NS, PAUSE_MAX_NS, POLL_FIRST_NS, PollBudget, RECENT_NS, poll_max_ns, wake_up_ns,
    };

    const MAX_NS: u64 = 100_000;

    fn busy() -> PollBudget {
        let mut budget = PollBudget::new(MAX_NS);
        for _ in 0..10 {
            budget.waited(20_000, true);
        }
        budget
    }

    #[test]
    fn a_thread_that_never_waited_does_not_poll() {
        assert_eq!(PollBudget::new(MAX_NS).at(0), 0);
    }

    #[test]
    fn short_waits_make_it_poll_longer_up_to_the_limit() {
        let mut budget = PollBudget::new(MAX_NS);
        budget.waited(20_000, true);
        assert_eq!(budget.at(0), POLL_FIRST_NS);
        budget.waited(20_000, true);
        assert_eq!(budget.at(0), 2 * POLL_FIRST_NS);
        assert_eq!(busy().at(0), MAX_NS);
    }

    #[test]
    fn long_waits_end_the_polls_and_one_of_them_does_not() {
        let mut budget = busy();
        budget.waited(10_000_000, true);
        assert_eq!(budget.at(0), MAX_NS / 2);
        for _ in 0..4 {
            budget.waited(10_000_000, false);
        }
        assert_eq!(budget.at(0), 0);
    }

    #[test]
    fn a_short_wait_that_found_nothing_teaches_nothing() {
        let mut budget = PollBudget::new(MAX_NS);
        budget.waited(20_000, false);
        assert_eq!(budget.at(0), 0);
    }

    #[test]
    fn a_thread_whose_cpu_is_wanted_pauses_for_longer_each_time_and_for_less_when_it_is_not() {
        let mut budget = busy();
        let mut now = 1_000_000_000_000;
        let mut pauses = |budget: &mut PollBudget, polls_for_ns: u64| -> Vec<u64> {
            let mut pause = || {
                now += polls_for_ns;
                budget.polled(polls_for_ns);
                assert!(budget.taken(now, polls_for_ns));
                assert_eq!(budget.at(now), 0);
                let mut later = (0..=PAUSE_MAX_NS / PAUSE_FIRST_NS).map(|ms| now + ms * PAUSE_FIRST_NS);
                let until = later.find(|&at| budget.at(at) > 0).unwrap();
                std::mem::replace(&mut now, until).abs_diff(until)
            };
            (0..10).map(|_| pause()).collect()
        };
        let wanted = pauses(&mut budget, 2_000);
        assert!(wanted.windows(2).all(|pair| pair[1] == (2 * pair[0]).min(PAUSE_MAX_NS)), "{wanted:?}");
        assert_eq!(wanted[9], PAUSE_MAX_NS);
        let free = pauses(&mut budget, PAUSE_MAX_NS);
        assert!(free.windows(2).all(|pair| pair[1] == (pair[0] / 2).max(PAUSE_FIRST_NS)), "{free:?}");
        assert_eq!(free[9], PAUSE_FIRST_NS);
    }

    #[test]
    fn a_thread_that_uses_little_of_the_cpu_ends_no_polls_and_one_that_uses_more_does() {
        let outcomes = |away_ns: u64| -> usize {
            let mut budget = busy();
            // First the CPU is its own; then each millisecond of polls loses the CPU once.
            budget.polled(RECENT_NS);
            (1..=100)
                .filter(|ms| {
                    budget.polled(1_000_000);
                    budget.taken(ms * 1_000_000, away_ns)
                })
                .count()
        };
        assert_eq!(outcomes(30_000), 0);
        assert!(outcomes(300_000) > 10);
    }

    #[test]
    fn the_limit_follows_the_measured_wake_up() {
        assert_eq!(poll_max_ns(0), 100_000);
        assert_eq!(poll_max_ns(16_000), 128_000);
        assert_eq!(poll_max_ns(10_000_000), 200_000);
        assert!(wake_up_ns() < 1_000_000_000);
    }
}
