//! Connections by peer: those that have not logged in (half-open), and those of sessions.

use super::{Peer, Ticket};
use crate::{config::ArrayLimits, connection_key::ConnectionKey};
use linerate_io::Nanos;
use std::{
    collections::{BTreeMap, HashMap, HashSet, VecDeque},
    net::IpAddr,
};

/// A peer is known after its session has lasted this long.
const KNOWN_AFTER_NS: Nanos = 10_000_000_000;
/// Peers that stay known after their last session; the oldest one is removed first.
const KNOWN_PEERS: usize = 1024;
/// Half-open connections by which a known peer may exceed the others before it counts as the one with the most.
const KNOWN_CREDIT: usize = 8;
/// Connections of all sessions, as a multiple of the sessions.
const CONNECTIONS_PER_SESSION: usize = 2;

/// How an initiator has identified itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Only by its name.
    Stranger,
    /// The target names it, or has its proof.
    Named,
}

/// A worker and its connection; None while the connection moves to it.
type Place = Option<(usize, ConnectionKey)>;

/// A half-open connection that must be dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Victim(pub(crate) Place);

/// A connection that has not logged in.
#[derive(Debug)]
struct HalfOpen {
    peer: Peer,
    place: Place,
}

/// The connections of one peer.
#[derive(Debug, Default)]
struct Holding {
    half_open: usize,
    logged_in: usize,
    /// Since when it has sessions without a break.
    since: Nanos,
}

/// See the module text.
#[derive(Debug)]
pub(crate) struct Connections {
    half_open_max: usize,
    half_open_per_peer: usize,
    /// Connections of sessions; 0 = no limit.
    per_peer: usize,
    sessions: usize,
    half_open: BTreeMap<Ticket, HalfOpen>,
    logged_in: HashMap<Ticket, Peer>,
    peers: HashMap<Peer, Holding>,
    known: HashSet<Peer>,
    /// In the order in which they became known.
    known_order: VecDeque<Peer>,
    last: Ticket,
}

impl Connections {
    pub(crate) fn new(limits: &ArrayLimits) -> Self {
        Self {
            half_open_max: limits.half_open_connections,
            half_open_per_peer: limits.half_open_per_peer,
            per_peer: limits.connections_per_peer,
            sessions: limits.sessions,
            half_open: BTreeMap::new(),
            logged_in: HashMap::new(),
            peers: HashMap::new(),
            known: HashSet::new(),
            known_order: VecDeque::new(),
            last: 0,
        }
    }

    /// A connection has arrived. If there are too many, an older one must be dropped.
    pub(crate) fn arrive(&mut self, address: IpAddr, now: Nanos) -> (Ticket, Option<Victim>) {
        let peer = Peer::of(address);
        self.last += 1;
        self.half_open.insert(self.last, HalfOpen { peer, place: None });
        let holding = self.peers.entry(peer).or_default();
        holding.half_open += 1;
        let victim = if holding.half_open > self.half_open_per_peer {
            self.half_open.iter().find(|(_, other)| other.peer == peer).map(|(ticket, _)| *ticket)
        } else if self.half_open.len() > self.half_open_max {
            self.most_dispensable(now)
        } else {
            None
        };
        (self.last, victim.and_then(|ticket| self.drop_half_open(ticket)))
    }

    /// The host has no resources for another connection. Returns the one that must be dropped.
    pub(crate) fn make_room(&mut self, now: Nanos) -> Option<Victim> {
        self.most_dispensable(now).and_then(|ticket| self.drop_half_open(ticket))
    }

    /// The oldest half-open connection of the peer with the most.
    fn most_dispensable(&self, now: Nanos) -> Option<Ticket> {
        let weight = |peer: &Peer| {
            let held = self.peers.get(peer).map_or(0, |holding| holding.half_open);
            if self.is_known(peer, now) { held.saturating_sub(KNOWN_CREDIT) } else { held }
        };
        let weights: HashMap<Peer, usize> = self
            .peers
            .iter()
            .filter(|(_, held)| held.half_open > 0)
            .map(|(peer, _)| (*peer, weight(peer)))
            .collect();
        let most = weights.values().max()?;
        let oldest = self.half_open.iter().find(|(_, one)| weights.get(&one.peer) == Some(most));
        oldest.map(|(ticket, _)| *ticket)
    }

    fn drop_half_open(&mut self, ticket: Ticket) -> Option<Victim> {
        let dropped = self.half_open.remove(&ticket)?;
        self.let_go(dropped.peer, |holding| holding.half_open -= 1);
        Some(Victim(dropped.place))
    }

    /// A worker has the connection now; false if it had to be dropped meanwhile.
    pub(crate) fn placed(&mut self, ticket: Ticket, worker: usize, key: ConnectionKey) -> bool {
        let found = self.half_open.get_mut(&ticket);
        found.map(|half_open| half_open.place = Some((worker, key))).is_some()
    }

    /// The connection moves to another worker.
    pub(crate) fn leaves(&mut self, ticket: Ticket) {
        if let Some(half_open) = self.half_open.get_mut(&ticket) {
            half_open.place = None;
        }
    }

    /// Where a half-open connection is.
    pub(crate) fn place(&self, ticket: Ticket) -> Place {
        self.half_open.get(&ticket)?.place
    }

    /// The connection has logged in, even if it was selected to be dropped at the same moment.
    pub(crate) fn logged_in(&mut self, ticket: Ticket, address: IpAddr, now: Nanos) {
        let peer = Peer::of(address);
        let was_half_open = self.half_open.remove(&ticket).is_some();
        let holding = self.peers.entry(peer).or_default();
        holding.half_open -= usize::from(was_half_open);
        if holding.logged_in == 0 {
            holding.since = now;
        }
        holding.logged_in += 1;
        self.logged_in.insert(ticket, peer);
    }

    /// The connection has closed.
    pub(crate) fn ended(&mut self, ticket: Ticket, now: Nanos) {
        if let Some(peer) = self.logged_in.remove(&ticket) {
            if self.is_known(&peer, now) {
                self.remember(peer);
            }
            self.let_go(peer, |holding| holding.logged_in -= 1);
        } else {
            self.drop_half_open(ticket);
        }
    }

    /// Whether a session may have another connection, and the limit of sessions for this initiator.
    pub(crate) fn room(&self, address: IpAddr, standing: Standing, now: Nanos) -> (bool, usize) {
        let peer = Peer::of(address);
        let held = self.peers.get(&peer).map_or(0, |holding| holding.logged_in);
        let fits = (self.per_peer == 0 || held < self.per_peer)
            && self.logged_in.len() < CONNECTIONS_PER_SESSION * self.sessions;
        let spare = match standing {
            Standing::Named => self.sessions / 8,
            Standing::Stranger if self.is_known(&peer, now) => self.sessions / 16,
            Standing::Stranger => 0,
        };
        (fits, self.sessions + spare)
    }

    fn is_known(&self, peer: &Peer, now: Nanos) -> bool {
        let lasts =
            |holding: &Holding| holding.logged_in > 0 && now.saturating_sub(holding.since) >= KNOWN_AFTER_NS;
        self.known.contains(peer) || self.peers.get(peer).is_some_and(lasts)
    }

    fn remember(&mut self, peer: Peer) {
        if self.known.insert(peer) {
            self.known_order.push_back(peer);
        }
        if self.known_order.len() > KNOWN_PEERS
            && let Some(first) = self.known_order.pop_front()
        {
            self.known.remove(&first);
        }
    }

    fn let_go(&mut self, peer: Peer, change: impl FnOnce(&mut Holding)) {
        if let Some(holding) = self.peers.get_mut(&peer) {
            change(holding);
            if holding.half_open == 0 && holding.logged_in == 0 {
                self.peers.remove(&peer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Connections, KNOWN_AFTER_NS, Standing, Victim};
    use crate::{config::ArrayLimits, connection_key::ConnectionKey};
    use std::net::IpAddr;

    fn address(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    fn key(index: u32) -> ConnectionKey {
        ConnectionKey { index, generation: 0 }
    }

    fn connections(half_open_connections: usize, half_open_per_peer: usize) -> Connections {
        Connections::new(&ArrayLimits { half_open_connections, half_open_per_peer, ..ArrayLimits::default() })
    }

    /// Adds and places a connection; returns the index of the one that must be dropped.
    fn come(all: &mut Connections, from: u8, index: u32) -> Option<u32> {
        let (ticket, victim) = all.arrive(address(from), 0);
        assert!(all.placed(ticket, 0, key(index)));
        victim.map(|Victim(place)| place.unwrap().1.index)
    }

    #[test]
    fn the_address_with_the_most_gives_its_oldest() {
        let mut all = connections(4, 100);
        assert_eq!([1, 2, 2, 3].map(|from| come(&mut all, from, u32::from(from))), [None; 4]);
        assert_eq!(come(&mut all, 4, 4), Some(2), "2 has two");
        assert_eq!(come(&mut all, 5, 5), Some(1), "all have one: the oldest");
    }

    #[test]
    fn an_address_at_its_limit_gives_its_own_oldest() {
        let mut all = connections(100, 2);
        assert_eq!([1, 2, 1].map(|from| come(&mut all, from, u32::from(from))), [None; 3]);
        assert_eq!(come(&mut all, 1, 7), Some(1));
    }

    #[test]
    fn one_that_must_go_before_it_is_placed_is_not_taken_in() {
        let mut all = connections(1, 1);
        let (first, _) = all.arrive(address(1), 0);
        assert_eq!(all.arrive(address(1), 0).1, Some(Victim(None)));
        assert!(!all.placed(first, 0, key(0)));
    }

    #[test]
    fn what_was_logged_in_never_goes_and_makes_a_peer_known() {
        let mut all = connections(2, 100);
        let (ticket, _) = all.arrive(address(1), 0);
        all.logged_in(ticket, address(1), 0);
        let later = 2 * KNOWN_AFTER_NS;
        for _ in 0..2 {
            assert_eq!(all.arrive(address(1), later).1, None);
        }
        assert_eq!(
            all.arrive(address(9), later).1,
            Some(Victim(None)),
            "only the new one can go: 1 is known"
        );
        all.ended(ticket, later);
        assert_eq!(all.room(address(1), Standing::Stranger, later).1, 1024 + 64);
        assert_eq!(all.room(address(2), Standing::Stranger, later).1, 1024);
        assert_eq!(all.room(address(2), Standing::Named, later).1, 1024 + 128);
    }

    #[test]
    fn nothing_is_left_of_peers_that_are_gone() {
        let mut all = connections(3, 2);
        let tickets: Vec<_> = (0..50).map(|number| all.arrive(address(number), 0).0).collect();
        for number in 45..50_u8 {
            all.logged_in(tickets[usize::from(number)], address(number), 0);
        }
        for ticket in tickets {
            all.ended(ticket, 0);
        }
        assert!(all.peers.is_empty() && all.half_open.is_empty() && all.logged_in.is_empty());
    }
}
