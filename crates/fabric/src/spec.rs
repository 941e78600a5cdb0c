//! The specification of a fabric, and its changes at run time, as JSON (version 1).
//!
//! A **port** is a physical NIC port, cabled to a switch. Each of its **interfaces** is a TAP in a network namespace,
//! with its own VLAN and priority. **Trunks** join switches, which must form a tree. A port or trunk with several
//! `links` is a LAG, or a host's team: every flow uses one of the links that are up. Unknown keys are refused.

mod change;

use linerate_link::{ConfigError, FRAME_BYTES_MAX, NicConfig, PRIORITIES, SwitchConfig, WireConfig};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};
use thiserror::Error;

pub use change::{ChangeSpec, LinkChange, NicChange, PortChange, SwitchChange, TrunkChange, WireChange};

/// The version of the JSON form that this crate reads.
pub const SPEC_VERSION: u32 = 1;
/// Most links of one LAG.
pub const LINKS_MAX: u32 = 16;

/// A whole network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FabricSpec {
    /// Always [`SPEC_VERSION`].
    pub version: u32,
    /// Decides every loss and every jitter.
    #[serde(default)]
    pub seed: u64,
    /// The switches.
    pub switches: Vec<NamedSwitch>,
    /// Ports of hosts and arrays.
    pub ports: Vec<PortSpec>,
    /// Cables between switches.
    #[serde(default)]
    pub trunks: Vec<TrunkSpec>,
}

/// A switch and its name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NamedSwitch {
    /// Unique among the switches.
    pub name: String,
    /// How it works.
    #[serde(default)]
    pub settings: SwitchConfig,
}

/// A physical NIC port and its cable to a switch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PortSpec {
    /// Unique among ports and trunks, for example `h1.p0`.
    pub name: String,
    /// The switch at the other end of the cable.
    pub switch: String,
    /// Cables that work as one (LAG); 1.
    #[serde(default = "one")]
    pub links: u32,
    /// The cable.
    #[serde(default)]
    pub wire: WireConfig,
    /// Most bytes that a priority may have waiting at the switch for this port; None: the switch's setting.
    #[serde(default)]
    pub queue_bytes: Option<u64>,
    /// The card.
    #[serde(default)]
    pub nic: NicConfig,
    /// TAPs that share this port; at least one.
    pub interfaces: Vec<InterfaceSpec>,
}

/// A TAP interface in a network namespace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InterfaceSpec {
    /// Path of the namespace, for example `/proc/4711/fd/5`; none = the namespace of the fabric's process.
    #[serde(default)]
    pub netns: Option<String>,
    /// Name of the interface there, at most 15 bytes.
    pub interface: String,
    /// Its name in counters and changes, unique on its port; None: the name of the interface.
    #[serde(default)]
    pub name: Option<String>,
    /// Address, for example `02:00:00:00:01:00`; None: the kernel makes one.
    #[serde(default)]
    pub mac: Option<String>,
    /// Longest payload of a frame (L3); 1500.
    #[serde(default = "default_mtu")]
    pub mtu: u32,
    /// Frames reach only interfaces of the same VLAN, 0 to 4094; 0.
    #[serde(default)]
    pub vlan: u16,
    /// Priority of all frames from here, 0 to 7; 0.
    #[serde(default)]
    pub priority: u8,
    /// Frames that the host may queue above the NIC's ring (txqueuelen); 10000.
    #[serde(default = "default_queue_frames")]
    pub queue_frames: u32,
    /// The kernel's NAPI of the host's namespace receives the frames; it can be a thread whose CPU time counts for the
    /// host. Otherwise the fabric's own thread runs the host's stack. false.
    #[serde(default)]
    pub napi: bool,
}

/// A cable between two switches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TrunkSpec {
    /// Unique among ports and trunks.
    pub name: String,
    /// A switch.
    pub a: String,
    /// Another one.
    pub b: String,
    /// Cables that work as one (LAG); 1.
    #[serde(default = "one")]
    pub links: u32,
    /// The cable.
    #[serde(default)]
    pub wire: WireConfig,
    /// Most bytes that a priority may have waiting at either end; None: the switch's setting.
    #[serde(default)]
    pub queue_bytes: Option<u64>,
}

/// What is wrong with a specification or a change.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SpecError {
    /// Invalid JSON.
    #[error("{0}")]
    Json(String),
    /// Made for another version.
    #[error("version {0} of the fabric's specification is unknown; expected {SPEC_VERSION}")]
    Version(u32),
    /// A value or a reference is wrong.
    #[error("{at}.{key}: {problem}")]
    Value {
        /// Where, for example `ports.h1.p0`.
        at: String,
        /// The key there.
        key: String,
        /// The fault.
        problem: String,
    },
}

impl FabricSpec {
    /// Reads the JSON form and validates it.
    pub fn from_json(text: &str) -> Result<Self, SpecError> {
        let spec: Self = serde_json::from_str(text).map_err(|error| SpecError::Json(error.to_string()))?;
        spec.validate()?;
        Ok(spec)
    }

    /// Finds the first contradiction.
    pub fn validate(&self) -> Result<(), SpecError> {
        if self.version != SPEC_VERSION {
            return Err(SpecError::Version(self.version));
        }
        let mut switches = HashMap::new();
        for (index, switch) in self.switches.iter().enumerate() {
            let at = format!("switches.{}", switch.name);
            require(!switch.name.is_empty(), &at, "name", "a switch needs a name")?;
            let other = switches.insert(switch.name.as_str(), index);
            require(other.is_none(), &at, "name", "two switches have this name")?;
            switch.settings.check().map_err(|error| SpecError::at(&at, error))?;
        }
        let mut names = HashSet::new();
        let mut taps = HashSet::new();
        for port in &self.ports {
            let at = format!("ports.{}", port.name);
            require(!port.name.is_empty(), &at, "name", "a port needs a name")?;
            require(names.insert(&port.name), &at, "name", "two ports or trunks have this name")?;
            require(switches.contains_key(port.switch.as_str()), &at, "switch", "no such switch")?;
            port.check(&at)?;
            for interface in &port.interfaces {
                let own = taps.insert((&interface.netns, &interface.interface));
                require(own, &at, "interfaces", "two interfaces of one namespace have the same name")?;
            }
        }
        let mut forest = Forest::new(self.switches.len());
        for trunk in &self.trunks {
            let at = format!("trunks.{}", trunk.name);
            require(!trunk.name.is_empty(), &at, "name", "a trunk needs a name")?;
            require(names.insert(&trunk.name), &at, "name", "two ports or trunks have this name")?;
            check_cable(&at, trunk.links, &trunk.wire, trunk.queue_bytes)?;
            let a = switches.get(trunk.a.as_str());
            let a = a.ok_or_else(|| SpecError::value(&at, "a", "no such switch"))?;
            let b = switches.get(trunk.b.as_str());
            let b = b.ok_or_else(|| SpecError::value(&at, "b", "no such switch"))?;
            let problem = "the switches are joined already; frames would circle (use links = 2 for a LAG)";
            require(forest.join(*a, *b), &at, "b", problem)?;
        }
        Ok(())
    }
}

impl PortSpec {
    fn check(&self, at: &str) -> Result<(), SpecError> {
        check_cable(at, self.links, &self.wire, self.queue_bytes)?;
        self.nic.check().map_err(|error| SpecError::at(&format!("{at}.nic"), error))?;
        require(!self.interfaces.is_empty(), at, "interfaces", "a port needs at least one")?;
        let mut names = HashSet::new();
        let named = self.interfaces.iter().all(|interface| names.insert(interface.name()));
        require(
            named,
            at,
            "interfaces",
            "two interfaces of one port have the same name; give them a `name` each",
        )?;
        let mut vlans = HashSet::new();
        let apart = self.interfaces.iter().all(|interface| vlans.insert(interface.vlan));
        require(apart, at, "interfaces", "the interfaces of one port need different VLANs")?;
        self.interfaces
            .iter()
            .try_for_each(|interface| interface.check(&format!("{at}.interfaces.{}", interface.interface)))
    }
}

impl InterfaceSpec {
    /// Its name in counters and changes.
    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.interface)
    }

    fn check(&self, at: &str) -> Result<(), SpecError> {
        let length = self.interface.len();
        require((1..=15).contains(&length), at, "interface", "expected a name of 1 to 15 bytes")?;
        require(!self.name().is_empty(), at, "name", "expected a name, or none")?;
        let mac_is_good = self.mac.as_ref().is_none_or(|mac| parse_mac(mac).is_some());
        require(mac_is_good, at, "mac", "expected a unicast address like 02:00:00:00:01:00")?;
        check_mtu(at, self.mtu)?;
        require(self.vlan <= 4094, at, "vlan", "expected 0 to 4094")?;
        require(usize::from(self.priority) < PRIORITIES, at, "priority", "expected 0 to 7")?;
        require((1..=1_000_000).contains(&self.queue_frames), at, "queue_frames", "expected 1 to 1000000")
    }
}

impl SpecError {
    pub(crate) fn value(at: &str, key: &str, problem: &str) -> Self {
        Self::Value { at: at.to_owned(), key: key.to_owned(), problem: problem.to_owned() }
    }

    pub(crate) fn at(at: &str, error: ConfigError) -> Self {
        Self::Value { at: at.to_owned(), key: error.key, problem: error.problem }
    }
}

/// A unicast Ethernet address from its text.
pub(crate) fn parse_mac(text: &str) -> Option<[u8; 6]> {
    let mut mac = [0; 6];
    let mut parts = text.split(':');
    for byte in &mut mac {
        let part = parts.next().filter(|part| part.len() == 2)?;
        *byte = u8::from_str_radix(part, 16).ok()?;
    }
    let is_unicast = mac[0] & 1 == 0 && mac != [0; 6];
    (is_unicast && parts.next().is_none()).then_some(mac)
}

pub(crate) fn check_mtu(at: &str, mtu: u32) -> Result<(), SpecError> {
    let most = FRAME_BYTES_MAX - 14;
    require((68..=most).contains(&mtu), at, "mtu", &format!("expected 68 to {most}"))
}

fn check_cable(at: &str, links: u32, wire: &WireConfig, queue_bytes: Option<u64>) -> Result<(), SpecError> {
    require((1..=LINKS_MAX).contains(&links), at, "links", &format!("expected 1 to {LINKS_MAX}"))?;
    let room = queue_bytes.is_none_or(|bytes| (64..=1 << 34).contains(&bytes));
    require(room, at, "queue_bytes", "expected 64 bytes to 16 GiB")?;
    wire.check().map_err(|error| SpecError::at(&format!("{at}.wire"), error))
}

fn require(holds: bool, at: &str, key: &str, problem: &str) -> Result<(), SpecError> {
    if holds { Ok(()) } else { Err(SpecError::value(at, key, problem)) }
}

fn one() -> u32 {
    1
}

fn default_mtu() -> u32 {
    1500
}

fn default_queue_frames() -> u32 {
    10_000
}

/// Which switches are joined: union-find, to find circles.
struct Forest(Vec<usize>);

impl Forest {
    fn new(nodes: usize) -> Self {
        Self((0..nodes).collect())
    }

    fn root(&self, mut node: usize) -> usize {
        while self.0[node] != node {
            node = self.0[node];
        }
        node
    }

    /// False if the two were joined already.
    fn join(&mut self, a: usize, b: usize) -> bool {
        let (a, b) = (self.root(a), self.root(b));
        self.0[a] = b;
        a != b
    }
}

#[cfg(test)]
mod tests;
