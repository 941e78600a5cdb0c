//! Limits the lines for many equal events: per kind and peer, and per kind.

use super::{Level, LogEvent};
use std::{
    collections::HashMap,
    net::{IpAddr, SocketAddr},
};

/// Time over which events are counted.
const WINDOW_S: f64 = 10.0;
/// Events of one kind and peer in that time.
const PER_PEER: u64 = 10;
/// Events of one kind in that time, of all peers together.
const PER_KIND: u64 = 200;
/// Limit of the separate counts of kinds and peers; above it only kinds are counted.
const COUNTS_MAX: usize = 4096;

/// A kind, and the address that caused the events; None: all addresses.
type Key = (String, Option<String>);

#[derive(Debug)]
struct Count {
    since_s: f64,
    admitted: u64,
    left_out: u64,
    level: Level,
}

/// See the module text.
#[derive(Debug, Default)]
pub(super) struct Limiter(HashMap<Key, Count>);

impl Limiter {
    /// Whether an event is written; otherwise it is counted. Traces are always written.
    pub(super) fn admits(&mut self, event: &LogEvent) -> bool {
        if event.level == Level::Trace {
            return true;
        }
        let by_peer = event.peer.as_deref().map(|peer| (event.event.clone(), Some(address(peer))));
        let is_told_apart = |key: &Key| self.0.len() < COUNTS_MAX || self.0.contains_key(key);
        by_peer.filter(is_told_apart).is_none_or(|key| self.count(key, PER_PEER, event))
            && self.count((event.event.clone(), None), PER_KIND, event)
    }

    fn count(&mut self, key: Key, most: u64, event: &LogEvent) -> bool {
        let LogEvent { time_s, level, .. } = event;
        let count =
            self.0.entry(key).or_insert(Count { since_s: *time_s, admitted: 0, left_out: 0, level: *level });
        if count.left_out == 0 && time_s - count.since_s > WINDOW_S {
            (count.since_s, count.admitted) = (*time_s, 0);
        }
        if count.admitted < most {
            count.admitted += 1;
            return true;
        }
        count.left_out += 1;
        false
    }

    /// The counts of past times.
    pub(super) fn summaries(&mut self, now_s: f64) -> Vec<LogEvent> {
        let is_over = |_: &Key, count: &mut Count| !(0.0..=WINDOW_S).contains(&(now_s - count.since_s));
        let over = self.0.extract_if(is_over).filter(|(_, count)| count.left_out > 0);
        let summary = |((event, address), count): (Key, Count)| {
            let seconds = (now_s - count.since_s).max(WINDOW_S).round() as u64;
            LogEvent {
                time_s: now_s,
                level: count.level,
                event,
                message: format!("and {} more in {seconds} s", in_thousands(count.left_out)),
                peer: address,
                fields: [("left_out".to_owned(), count.left_out.into())].into_iter().collect(),
            }
        };
        let mut summaries: Vec<LogEvent> = over.map(summary).collect();
        summaries.sort_by(|a, b| (&a.event, &a.peer).cmp(&(&b.event, &b.peer)));
        summaries
    }
}

/// A number as people read it.
fn in_thousands(number: u64) -> String {
    let digits = number.to_string();
    let groups = digits.as_bytes().rchunks(3).rev();
    groups.map(String::from_utf8_lossy).collect::<Vec<_>>().join(",")
}

/// A peer without its port.
fn address(peer: &str) -> String {
    let parsed = peer.parse::<SocketAddr>().map(|addr| addr.ip()).or_else(|_| peer.parse::<IpAddr>());
    parsed.map_or_else(|_| peer.to_owned(), |address| address.to_string())
}

#[cfg(test)]
mod tests {
    use super::{COUNTS_MAX, Level, Limiter, LogEvent, PER_KIND, PER_PEER};

    fn event(kind: &str, peer: Option<&str>, time_s: f64) -> LogEvent {
        LogEvent {
            time_s,
            level: Level::Warning,
            event: kind.into(),
            message: String::new(),
            peer: peer.map(str::to_owned),
            fields: serde_json::Map::new(),
        }
    }

    #[test]
    fn a_flood_of_one_peer_is_a_few_lines_and_a_number() {
        let mut limiter = Limiter::default();
        let mut admitted = 0;
        for number in 0..1214_u32 {
            let peer = format!("192.0.2.1:{}", 1000 + number);
            admitted +=
                u64::from(limiter.admits(&event("login_refused", Some(&peer), f64::from(number) / 200.0)));
        }
        assert_eq!(admitted, PER_PEER);
        assert!(limiter.admits(&event("login_refused", Some("192.0.2.2:1"), 7.0)), "another peer");
        assert!(limiter.admits(&event("digest_error", Some("192.0.2.1:1"), 7.0)), "another kind");
        assert!(limiter.summaries(9.0).is_empty());
        let [summary] = &limiter.summaries(10.1)[..] else { panic!() };
        assert_eq!(summary.message, "and 1,204 more in 10 s");
        assert_eq!((summary.event.as_str(), summary.peer.as_deref()), ("login_refused", Some("192.0.2.1")));
        assert_eq!(summary.fields["left_out"], 1204);
        assert!(limiter.admits(&event("login_refused", Some("192.0.2.1:1"), 10.2)), "it begins anew");
    }

    #[test]
    fn a_flood_of_many_peers_is_bounded_in_lines_and_memory() {
        let mut limiter = Limiter::default();
        let flood = (0..100_000_u32).filter(|number| {
            let peer = std::net::Ipv4Addr::from(*number).to_string();
            limiter.admits(&event("login_refused", Some(&peer), 1.0))
        });
        assert_eq!(flood.count() as u64, PER_KIND);
        assert!(limiter.0.len() <= COUNTS_MAX + 1);
        let summaries = limiter.summaries(20.0);
        assert_eq!(summaries.len(), 1);
        assert_eq!(summaries[0].fields["left_out"], 100_000 - PER_KIND);
        assert!(limiter.0.is_empty());
    }
}
