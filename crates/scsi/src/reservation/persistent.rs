//! Persistent reservations: registrations, the reservation, and the PERSISTENT RESERVE OUT service actions.
//!
//! Every action is a function from state to state. It either refuses and changes nothing, or applies and lists in
//! [`Changes`] the nexuses that the unit must inform (SPC-4 5.13).

use crate::plan::Refusal;
use crate::port::PortPair;
use linerate_scsi_proto::sense::{Sense, code};

/// Reservation types (SPC-4 table 64).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    WriteExclusive = 1,
    ExclusiveAccess = 3,
    WriteExclusiveRegistrantsOnly = 5,
    ExclusiveAccessRegistrantsOnly = 6,
    WriteExclusiveAllRegistrants = 7,
    ExclusiveAccessAllRegistrants = 8,
}

impl Kind {
    pub(crate) fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            1 => Self::WriteExclusive,
            3 => Self::ExclusiveAccess,
            5 => Self::WriteExclusiveRegistrantsOnly,
            6 => Self::ExclusiveAccessRegistrantsOnly,
            7 => Self::WriteExclusiveAllRegistrants,
            8 => Self::ExclusiveAccessAllRegistrants,
            _ => return None,
        })
    }

    fn lets_others_read(self) -> bool {
        matches!(
            self,
            Self::WriteExclusive | Self::WriteExclusiveRegistrantsOnly | Self::WriteExclusiveAllRegistrants
        )
    }

    fn lets_registrants_in(self) -> bool {
        !matches!(self, Self::WriteExclusive | Self::ExclusiveAccess)
    }

    pub(crate) fn is_all_registrants(self) -> bool {
        matches!(self, Self::WriteExclusiveAllRegistrants | Self::ExclusiveAccessAllRegistrants)
    }
}

/// An initiator port registered through a target port, with its key (never 0).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Registrant {
    pub(crate) port: PortPair,
    pub(crate) key: u64,
}

/// The reservation. For the all-registrants types every registrant holds it and `holder` is the one that made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reservation {
    pub(crate) kind: Kind,
    pub(crate) holder: PortPair,
}

/// The other nexuses that an action affects.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    /// Unit attentions to establish.
    pub(crate) attentions: Vec<(PortPair, u16)>,
    /// Ports whose commands must be aborted.
    pub(crate) aborted: Vec<PortPair>,
}

/// Most registrations of one unit, more than any cluster needs. The limit prevents initiators from filling the memory.
const MAX_REGISTRANTS: usize = 1024;

#[derive(Debug, Default)]
pub(crate) struct Persistent {
    pub(crate) registrants: Vec<Registrant>,
    pub(crate) reservation: Option<Reservation>,
    pub(crate) generation: u32,
    /// Kept over a power loss, as requested by the last registration.
    pub(crate) kept: bool,
    /// Counts saved states, so that an older state never replaces a newer one.
    pub(crate) saves: u64,
}

type Outcome = Result<Changes, Refusal>;

impl Persistent {
    pub(crate) fn is_empty(&self) -> bool {
        self.registrants.is_empty()
    }

    pub(crate) fn key_of(&self, port: &PortPair) -> Option<u64> {
        self.registrants.iter().find(|registrant| registrant.port == *port).map(|registrant| registrant.key)
    }

    /// Whether `port` holds the reservation `reservation`.
    pub(crate) fn holds(&self, reservation: &Reservation, port: &PortPair) -> bool {
        if reservation.kind.is_all_registrants() {
            self.key_of(port).is_some()
        } else {
            reservation.holder == *port
        }
    }

    pub(crate) fn may_write(&self, port: &PortPair) -> bool {
        self.reservation.as_ref().is_none_or(|reservation| {
            self.holds(reservation, port)
                || (reservation.kind.lets_registrants_in() && self.key_of(port).is_some())
        })
    }

    pub(crate) fn may_read(&self, port: &PortPair) -> bool {
        self.may_write(port)
            || self.reservation.as_ref().is_none_or(|reservation| reservation.kind.lets_others_read())
    }

    /// The sender must be registered with `key`.
    fn authorize(&self, port: &PortPair, key: u64) -> Result<(), Refusal> {
        if self.key_of(port) == Some(key) { Ok(()) } else { Err(Refusal::Conflict) }
    }

    /// REGISTER (`key` is checked) and REGISTER AND IGNORE EXISTING KEY (`key` is `None`), through each of
    /// `ports`.
    pub(crate) fn register(&mut self, ports: &[PortPair], key: Option<u64>, new_key: u64) -> Outcome {
        if key.is_some_and(|key| ports.iter().any(|port| self.key_of(port).unwrap_or(0) != key)) {
            return Err(Refusal::Conflict);
        }
        if new_key != 0 && self.registrants.len() + ports.len() > MAX_REGISTRANTS {
            return Err(Sense::illegal(code::INSUFFICIENT_REGISTRATION_RESOURCES).into());
        }
        let mut changes = Changes::default();
        for port in ports {
            if new_key == 0 {
                self.unregister(port, &mut changes);
            } else if let Some(old) = self.registrants.iter_mut().find(|old| old.port == *port) {
                old.key = new_key;
            } else {
                self.registrants.push(Registrant { port: port.clone(), key: new_key });
            }
        }
        self.generation = self.generation.wrapping_add(1);
        Ok(changes)
    }

    fn unregister(&mut self, port: &PortPair, changes: &mut Changes) {
        let Some(index) = self.registrants.iter().position(|registrant| registrant.port == *port) else {
            return;
        };
        self.registrants.remove(index);
        // Without a reservation there is nothing to release.
        let Some(reservation) = &self.reservation else { return };
        let gone = if reservation.kind.is_all_registrants() {
            self.registrants.is_empty()
        } else {
            reservation.holder == *port
        };
        if gone {
            self.drop_reservation(port, changes);
        }
    }

    /// Ends the reservation; for the types that permit registrants, they are informed (SPC-4 5.13.11.2.2).
    fn drop_reservation(&mut self, sender: &PortPair, changes: &mut Changes) {
        if let Some(old) = self.reservation.take()
            && old.kind.lets_registrants_in()
        {
            self.tell_others(sender, code::RESERVATIONS_RELEASED, changes);
        }
    }

    fn tell_others(&self, sender: &PortPair, attention: u16, changes: &mut Changes) {
        let others = self.registrants.iter().filter(|registrant| registrant.port != *sender);
        changes.attentions.extend(others.map(|registrant| (registrant.port.clone(), attention)));
    }

    /// RESERVE.
    pub(crate) fn reserve(&mut self, port: &PortPair, key: u64, kind: Kind) -> Outcome {
        self.authorize(port, key)?;
        match &self.reservation {
            None => self.reservation = Some(Reservation { kind, holder: port.clone() }),
            Some(held) if self.holds(held, port) && held.kind == kind => {}
            Some(_) => return Err(Refusal::Conflict),
        }
        Ok(Changes::default())
    }

    /// RELEASE.
    pub(crate) fn release(&mut self, port: &PortPair, key: u64, kind: Kind) -> Outcome {
        self.authorize(port, key)?;
        let mut changes = Changes::default();
        if let Some(held) = self.reservation.as_ref().filter(|held| self.holds(held, port)) {
            if held.kind != kind {
                return Err(Sense::illegal(code::INVALID_RELEASE).into());
            }
            self.drop_reservation(port, &mut changes);
        }
        Ok(changes)
    }

    /// CLEAR.
    pub(crate) fn clear(&mut self, port: &PortPair, key: u64) -> Outcome {
        self.authorize(port, key)?;
        let mut changes = Changes::default();
        self.tell_others(port, code::RESERVATIONS_PREEMPTED, &mut changes);
        self.registrants.clear();
        self.reservation = None;
        self.generation = self.generation.wrapping_add(1);
        Ok(changes)
    }

    /// PREEMPT, and PREEMPT AND ABORT with `abort` (SPC-4 5.13.11.2.4).
    pub(crate) fn preempt(
        &mut self,
        port: &PortPair,
        key: u64,
        victim: u64,
        kind: Option<Kind>,
        abort: bool,
    ) -> Outcome {
        self.authorize(port, key)?;
        let takes_over = match &self.reservation {
            Some(held) if held.kind.is_all_registrants() => victim == 0,
            Some(held) => self.key_of(&held.holder) == Some(victim),
            None => false,
        };
        if victim == 0 && !takes_over {
            return Err(Sense::parameter(8).into());
        }
        if !takes_over && !self.registrants.iter().any(|registrant| registrant.key == victim) {
            return Err(Refusal::Conflict);
        }
        // The type is used only when a reservation is made.
        let new_kind = if takes_over { Some(kind.ok_or(Sense::cdb(2))?) } else { None };
        let removed = self.remove_victims(port, victim, takes_over);
        let mut changes = Changes::default();
        if let Some(kind) = new_kind {
            let changed = self.reservation.as_ref().is_some_and(|held| held.kind != kind);
            self.reservation = Some(Reservation { kind, holder: port.clone() });
            if changed {
                self.tell_others(port, code::RESERVATIONS_RELEASED, &mut changes);
            }
        } else if self.registrants.is_empty() {
            self.reservation = None;
        }
        changes.attentions.extend(removed.iter().map(|gone| (gone.clone(), code::REGISTRATIONS_PREEMPTED)));
        if abort {
            changes.aborted = removed;
        }
        self.generation = self.generation.wrapping_add(1);
        Ok(changes)
    }

    /// Removes the registrations that PREEMPT names. The sender stays registered if it takes over the reservation;
    /// otherwise a sender that names its own key also removes itself.
    fn remove_victims(&mut self, port: &PortPair, victim: u64, takes_over: bool) -> Vec<PortPair> {
        let mut removed = Vec::new();
        self.registrants.retain(|registrant| {
            let named = victim == 0 || registrant.key == victim;
            let spared = takes_over && registrant.port == *port;
            if named && !spared && registrant.port != *port {
                removed.push(registrant.port.clone());
            }
            !named || spared
        });
        removed
    }

    /// REGISTER AND MOVE: transfers registration and reservation to `to`.
    pub(crate) fn register_and_move(
        &mut self,
        port: &PortPair,
        key: u64,
        to: &PortPair,
        new_key: u64,
        unregister: bool,
    ) -> Outcome {
        self.authorize(port, key)?;
        let kind = match &self.reservation {
            Some(held) if !held.kind.is_all_registrants() && held.holder == *port => held.kind,
            _ => return Err(Refusal::Conflict),
        };
        if new_key == 0 {
            return Err(Sense::parameter(8).into());
        }
        if to == port {
            return Err(Sense::parameter(24).into());
        }
        if let Some(old) = self.registrants.iter_mut().find(|old| old.port == *to) {
            old.key = new_key;
        } else {
            self.registrants.push(Registrant { port: to.clone(), key: new_key });
        }
        self.reservation = Some(Reservation { kind, holder: to.clone() });
        if unregister {
            self.registrants.retain(|registrant| registrant.port != *port);
        }
        self.generation = self.generation.wrapping_add(1);
        Ok(Changes::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::InitiatorPort;

    fn port(name: &str) -> PortPair {
        PortPair {
            initiator: InitiatorPort { name: format!("iqn.2026-11.test:{name}"), isid: [0x80; 6] },
            relative_port: 1,
        }
    }

    fn two_registered(kind: Kind) -> (Persistent, PortPair, PortPair) {
        let mut state = Persistent::default();
        let (a, b) = (port("a"), port("b"));
        state.register(std::slice::from_ref(&a), None, 0xA).unwrap();
        state.register(std::slice::from_ref(&b), Some(0), 0xB).unwrap();
        state.reserve(&a, 0xA, kind).unwrap();
        (state, a, b)
    }

    #[test]
    fn the_access_table_of_all_six_types() {
        // (type, registrant reads, registrant writes, others read, others write)
        let table = [
            (Kind::WriteExclusive, true, false, true, false),
            (Kind::ExclusiveAccess, false, false, false, false),
            (Kind::WriteExclusiveRegistrantsOnly, true, true, true, false),
            (Kind::ExclusiveAccessRegistrantsOnly, true, true, false, false),
            (Kind::WriteExclusiveAllRegistrants, true, true, true, false),
            (Kind::ExclusiveAccessAllRegistrants, true, true, false, false),
        ];
        for (kind, reads, writes, stranger_reads, stranger_writes) in table {
            let (state, a, b) = two_registered(kind);
            let stranger = port("c");
            assert!(state.may_read(&a) && state.may_write(&a), "{kind:?}");
            assert_eq!((state.may_read(&b), state.may_write(&b)), (reads, writes), "{kind:?}");
            let got = (state.may_read(&stranger), state.may_write(&stranger));
            assert_eq!(got, (stranger_reads, stranger_writes), "{kind:?}");
        }
    }

    #[test]
    fn preempt_takes_the_reservation_and_tells_the_loser() {
        let (mut state, a, b) = two_registered(Kind::WriteExclusive);
        let changes = state.preempt(&b, 0xB, 0xA, Kind::from_code(3), true).unwrap();
        assert_eq!(changes.attentions, [(a.clone(), code::REGISTRATIONS_PREEMPTED)]);
        assert_eq!(changes.aborted, [a]);
        assert_eq!(state.reservation, Some(Reservation { kind: Kind::ExclusiveAccess, holder: b }));
        assert_eq!(state.generation, 3);
    }

    #[test]
    fn preempt_of_all_registrants_with_key_zero_ends_with_one() {
        let (mut state, _, b) = two_registered(Kind::ExclusiveAccessAllRegistrants);
        state.preempt(&b, 0xB, 0, Kind::from_code(1), false).unwrap();
        assert_eq!(state.registrants, [Registrant { port: b, key: 0xB }]);
    }

    #[test]
    fn preempt_refuses_unknown_and_zero_keys_without_change() {
        let (mut state, _, b) = two_registered(Kind::WriteExclusive);
        assert_eq!(state.preempt(&b, 0xB, 0x77, Kind::from_code(1), false), Err(Refusal::Conflict));
        assert_eq!(state.preempt(&b, 0xB, 0, Kind::from_code(1), false), Err(Sense::parameter(8).into()));
        assert_eq!(state.preempt(&b, 0xA, 0xA, Kind::from_code(1), false), Err(Refusal::Conflict));
        assert_eq!((state.registrants.len(), state.generation), (2, 2));
    }

    #[test]
    fn unregistering_the_holder_releases_and_tells_registrants() {
        let (mut state, a, b) = two_registered(Kind::WriteExclusiveRegistrantsOnly);
        let changes = state.register(&[a], Some(0xA), 0).unwrap();
        assert_eq!(changes.attentions, [(b, code::RESERVATIONS_RELEASED)]);
        assert_eq!(state.reservation, None);
    }

    #[test]
    fn all_registrants_reservation_ends_with_the_last_registration() {
        let (mut state, a, b) = two_registered(Kind::WriteExclusiveAllRegistrants);
        state.register(&[a], Some(0xA), 0).unwrap();
        assert!(state.reservation.is_some());
        state.register(&[b], Some(0xB), 0).unwrap();
        assert_eq!(state.reservation, None);
    }

    #[test]
    fn release_needs_the_same_type_and_is_idle_for_others() {
        let (mut state, a, b) = two_registered(Kind::WriteExclusive);
        assert_eq!(state.release(&b, 0xB, Kind::WriteExclusive), Ok(Changes::default()));
        let wrong = state.release(&a, 0xA, Kind::ExclusiveAccess);
        assert_eq!(wrong, Err(Sense::illegal(code::INVALID_RELEASE).into()));
        assert!(state.reservation.is_some());
        state.release(&a, 0xA, Kind::WriteExclusive).unwrap();
        assert_eq!(state.reservation, None);
    }

    #[test]
    fn register_and_move_hands_the_reservation_over() {
        let (mut state, a, _) = two_registered(Kind::WriteExclusive);
        let c = port("c");
        state.register_and_move(&a, 0xA, &c, 0xC, true).unwrap();
        assert_eq!(state.key_of(&a), None);
        assert!(state.may_write(&c) && !state.may_write(&a));
    }
}
