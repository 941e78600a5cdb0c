//! A switch: the ports of addresses, and the use of its memory. Its queues are those of its lanes.

use crate::{
    config::{FlowControl, SwitchConfig},
    frame::{Mac, Nanos},
    stats::SwitchStats,
};
use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
};

/// Most addresses that a switch learns; frames to others are flooded.
const ADDRESSES_MAX: usize = 16_384;

#[derive(Debug)]
pub(crate) struct Switch {
    pub(crate) config: SwitchConfig,
    /// Bonds towards NICs and other switches.
    pub(crate) bonds: Vec<usize>,
    /// Address and VLAN -> bond.
    addresses: HashMap<u64, usize, BuildHasherDefault<AddressHasher>>,
    /// Shortest time from a frame's arrival to its arrival at the next station.
    pub(crate) passage_ns: Nanos,
    pub(crate) stats: SwitchStats,
}

impl Switch {
    pub(crate) fn new(config: SwitchConfig) -> Self {
        Self {
            config,
            bonds: Vec::new(),
            addresses: HashMap::default(),
            passage_ns: 0,
            stats: SwitchStats::default(),
        }
    }

    /// It has lost power and its address table.
    pub(crate) fn forget(&mut self) {
        self.addresses.clear();
        self.stats.addresses = 0;
    }

    /// The address is behind this bond.
    pub(crate) fn learn(&mut self, source: Mac, vlan: u16, bond: usize) {
        if source.is_group() {
            return;
        }
        let key = source.in_vlan(vlan);
        if let Some(known) = self.addresses.get_mut(&key) {
            *known = bond;
        } else if self.addresses.len() < ADDRESSES_MAX {
            self.addresses.insert(key, bond);
            self.stats.addresses += 1;
        }
    }

    /// The bond of an address; None for a group or an unknown address.
    pub(crate) fn find(&self, destination: Mac, vlan: u16) -> Option<usize> {
        if destination.is_group() { None } else { self.addresses.get(&destination.in_vlan(vlan)).copied() }
    }

    /// The class whose bytes count together for flow control; None for a lossy priority.
    pub(crate) fn lossless_class(&self, priority: u8) -> Option<usize> {
        match self.config.flow_control {
            _ if !self.config.is_lossless(priority) => None,
            FlowControl::Pfc => Some(usize::from(priority)),
            FlowControl::Pause | FlowControl::None => Some(0),
        }
    }

    /// The priorities that a pause for a class stops, as bits.
    pub(crate) fn priorities_of(&self, class: usize) -> u8 {
        if self.config.flow_control == FlowControl::Pause { u8::MAX } else { 1 << class }
    }

    /// Takes memory from the pool; false if there is not enough.
    pub(crate) fn take(&mut self, length: u64) -> bool {
        if self.stats.buffered_bytes + length > self.config.buffer_bytes {
            return false;
        }
        self.stats.buffered_bytes += length;
        self.stats.buffered_bytes_max = self.stats.buffered_bytes_max.max(self.stats.buffered_bytes);
        true
    }

    pub(crate) fn give_back(&mut self, length: u64) {
        self.stats.buffered_bytes -= length;
    }
}

/// Addresses are few and chosen by this program: one multiplication distributes them well enough, and is needed twice
/// per frame.
#[derive(Clone, Copy, Debug, Default)]
struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u64(&mut self, value: u64) {
        let mixed = (self.0 ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 32);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
