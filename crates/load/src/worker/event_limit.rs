//! A limit of events of each kind in an interval: a target that sends events without end must not fill it.

use crate::record::RunEvent;
use std::collections::BTreeMap;

/// Events of one topic that an interval holds; the rest is counted.
const EVENTS_MAX: u64 = 10;
/// The kind of the event that has the number of dropped events.
const LEFT_OUT: &str = "events_left_out";

/// The topic of an event: its kind, the worker's volume, and the path of that volume.
pub(crate) type Topic = (&'static str, Option<u32>, Option<usize>);

/// The events of this interval.
#[derive(Debug, Default)]
pub(crate) struct EventLimit(BTreeMap<Topic, Count>);

#[derive(Debug, Default)]
struct Count {
    events: u64,
    /// Its volume, path and blame are those of the topic.
    first: Option<RunEvent>,
}

impl EventLimit {
    /// Counts an event. Returns it if there is space for it; it is made only then.
    pub(crate) fn admit(&mut self, topic: Topic, event: impl FnOnce() -> RunEvent) -> Option<RunEvent> {
        let count = self.0.entry(topic).or_default();
        count.events += 1;
        if count.events > EVENTS_MAX {
            return None;
        }
        let event = event();
        count.first.get_or_insert_with(|| event.clone());
        Some(event)
    }

    /// One event for each topic with dropped events before `at_s`. Resets the counts.
    pub(crate) fn left_out(&mut self, at_s: f64) -> impl Iterator<Item = RunEvent> {
        std::mem::take(&mut self.0).into_iter().filter_map(move |((kind, ..), count)| {
            let more = count.events.saturating_sub(EVENTS_MAX);
            let first = count.first.filter(|_| more > 0)?;
            let message = format!("{more} more events of the kind {kind} in this interval");
            Some(RunEvent { at_s, kind: LEFT_OUT.into(), message, ..first })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_blame::Blame;

    fn event(volume: &str) -> RunEvent {
        let (kind, message) = ("async_message".into(), "vendor specific event".into());
        RunEvent { at_s: 1.0, kind, volume: volume.into(), path: String::new(), message, blame: Blame::Peer }
    }

    #[test]
    fn ten_of_a_kind_are_reported_and_the_rest_is_counted() {
        let mut limit = EventLimit::default();
        let mut admitted = |volume: u32| {
            let topic = ("async_message", Some(volume), None);
            (0..25).filter_map(|_| limit.admit(topic, || event(&format!("sd{volume}")))).count()
        };
        assert_eq!((admitted(1), admitted(2)), (10, 10));
        assert!(limit.admit(("session_lost", Some(1), None), || event("sd1")).is_some());
        let rest: Vec<RunEvent> = limit.left_out(2.0).collect();
        let shown = |event: &RunEvent| (event.kind.clone(), event.volume.clone(), event.message.clone());
        let more = "15 more events of the kind async_message in this interval".to_owned();
        let expected = ["sd1", "sd2"].map(|sd| (LEFT_OUT.to_owned(), sd.to_owned(), more.clone()));
        assert_eq!(rest.iter().map(shown).collect::<Vec<_>>(), expected);
        assert!(limit.left_out(3.0).next().is_none());
    }
}
