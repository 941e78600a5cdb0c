//! The log of an array: events of all crates.
//!
//! Events come from `tracing`, on any thread, and wait in a queue until [`Log::take`] reads them. An event never blocks
//! and never fills memory: equal events of one peer are limited (`limit.rs`), the queue has a limit, and dropped events
//! are counted and reported.
//!
//! An event has a kind (its field `event`, a stable name), and mostly a `peer`; its message describes it for people.

mod limit;
mod subscriber;

use limit::Limiter;
use linerate_io::system;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::{
    collections::VecDeque,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU8, Ordering::Relaxed},
    },
    time::Duration,
};
use subscriber::Subscriber;

/// Events that wait to be read; further ones are dropped.
const QUEUE_MAX: usize = 2048;

/// The severity of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Something does not work.
    Error,
    /// Something may not work, or a peer misbehaves.
    Warning,
    /// Useful to know for an owner.
    Info,
    /// Details of peers' actions.
    Debug,
    /// Every PDU. These events are not limited in number.
    Trace,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogEvent {
    /// Seconds since 1970; the current time if it is missing.
    #[serde(default = "system::unix_time_s")]
    pub time_s: f64,
    /// Its severity.
    pub level: Level,
    /// Its kind: a stable name.
    pub event: String,
    /// The description, for people.
    pub message: String,
    /// Address and port, or address, of the peer that it concerns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
    /// More facts, by name.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub fields: Map<String, Value>,
}

/// The queue of events. There is one per process, because `tracing` has one subscriber.
pub struct Log {
    shared: Arc<Shared>,
}

/// The state that reporting threads and the reader share.
struct Shared {
    /// The finest [`Level`] that is collected, as a number.
    level: AtomicU8,
    state: Mutex<State>,
    /// Notified when there are events to read.
    filled: Condvar,
}

#[derive(Default)]
struct State {
    queue: VecDeque<LogEvent>,
    limiter: Limiter,
    /// Events that found the queue full.
    lost: u64,
}

impl Log {
    /// Begins to collect events of this level and above, or changes the level.
    pub fn open(level: Level) -> Self {
        static SHARED: OnceLock<Arc<Shared>> = OnceLock::new();
        let shared = SHARED.get_or_init(|| {
            let shared = Arc::new(Shared::new(level));
            let subscriber = Subscriber::new(Arc::clone(&shared));
            // If another subscriber exists already, only events that are added directly are seen.
            let _ = tracing::subscriber::set_global_default(subscriber);
            shared
        });
        shared.set_level(level);
        Self { shared: Arc::clone(shared) }
    }

    /// Reports something that `tracing` did not bring.
    pub fn put(&self, event: LogEvent) {
        self.shared.report(event);
    }

    /// The events since the last call, the oldest first; waits until there are some, at most this long.
    pub fn take(&self, wait: Duration) -> Vec<LogEvent> {
        let mut state = self.shared.state();
        if state.queue.is_empty() {
            let waited = self.shared.filled.wait_timeout(state, wait);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let now = system::unix_time_s();
        let State { queue, limiter, lost } = &mut *state;
        let mut events: Vec<LogEvent> = queue.drain(..).collect();
        events.extend(limiter.summaries(now));
        match std::mem::take(lost) {
            0 => {}
            lost => events.push(overflow(lost, now)),
        }
        events
    }
}

impl Shared {
    fn new(level: Level) -> Self {
        Self { level: AtomicU8::new(level as u8), state: Mutex::default(), filled: Condvar::new() }
    }

    /// Collects events of this level and above from now on.
    fn set_level(&self, level: Level) {
        self.level.store(level as u8, Relaxed);
        tracing::callsite::rebuild_interest_cache();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A queue is valid after each step, so a panic elsewhere does not damage it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn report(&self, event: LogEvent) {
        let mut state = self.state();
        if !state.limiter.admits(&event) {
            return;
        }
        if state.queue.len() >= QUEUE_MAX {
            state.lost += 1;
            return;
        }
        let was_empty = state.queue.is_empty();
        state.queue.push_back(event);
        drop(state);
        if was_empty {
            self.filled.notify_one();
        }
    }
}

fn overflow(lost: u64, time_s: f64) -> LogEvent {
    LogEvent {
        time_s,
        level: Level::Warning,
        event: "log_overflow".into(),
        message: "events were left out: they came faster than they could be written".into(),
        peer: None,
        fields: [("left_out".to_owned(), lost.into())].into_iter().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Level, Log, LogEvent, QUEUE_MAX, Shared, Subscriber};
    use std::{sync::Arc, time::Duration};

    #[test]
    fn events_are_collected_and_never_more_than_the_queue_holds() {
        // A log for this thread only: other tests of this process make events too.
        let log = Log { shared: Arc::new(Shared::new(Level::Info)) };
        let subscriber = Subscriber::new(Arc::clone(&log.shared));
        tracing::subscriber::with_default(subscriber, || collect_and_overflow(&log));
    }

    fn collect_and_overflow(log: &Log) {
        tracing::debug!(event = "too_fine", "not asked for");
        tracing::warn!(
            event = "login_refused",
            peer = "192.0.2.1:4711",
            status = 0x0202,
            "a login is refused"
        );
        let [event] = &log.take(Duration::from_secs(5))[..] else { panic!() };
        assert_eq!((event.level, event.event.as_str()), (Level::Warning, "login_refused"));
        assert_eq!(
            (event.message.as_str(), event.peer.as_deref()),
            ("a login is refused", Some("192.0.2.1:4711"))
        );
        assert_eq!(event.fields["status"], 0x0202);
        assert!(event.time_s > 1.7e9);

        log.shared.set_level(Level::Debug);
        tracing::debug!(event = "fine", long = "x".repeat(10_000), "{}", "y".repeat(10_000));
        let [event] = &log.take(Duration::from_secs(5))[..] else { panic!() };
        assert!(event.message.len() < 1100 && event.fields["long"].as_str().unwrap().len() < 600);

        let text = r#"{"level": "error", "event": "put", "message": "by hand"}"#;
        for number in 0..3 * QUEUE_MAX {
            let event: LogEvent = serde_json::from_str(text).unwrap();
            log.put(LogEvent { event: format!("put{number}"), ..event });
        }
        let events = log.take(Duration::ZERO);
        assert_eq!(events.len(), QUEUE_MAX + 1);
        let last = events.last().unwrap();
        assert_eq!(
            (last.event.as_str(), &last.fields["left_out"]),
            ("log_overflow", &(2 * QUEUE_MAX).into())
        );
        assert!(log.take(Duration::ZERO).is_empty());
    }
}
