//! The configuration of a network: wires, NICs, switches, and how a sender selects among its queues.
//!
//! The types are also the JSON form of the fabric's specification; unknown keys are refused and absent keys take the values
//! shown at their field. Bounds are checked by [`check`](WireConfig::check), which names the key.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use thiserror::Error;

/// Priorities (IEEE 802.1Q PCP): 0 to 7.
pub const PRIORITIES: usize = 8;
/// Longest frame, FCS excluded.
pub const FRAME_BYTES_MAX: u32 = 16_384;
/// Longest delay or jitter of a wire: ten seconds.
const DELAY_NS_MAX: u64 = 10_000_000_000;
/// Largest buffer of any kind.
const BUFFER_BYTES_MAX: u64 = 1 << 34;
/// Longest ring of a NIC.
const RING_FRAMES_MAX: u32 = 1 << 20;

/// A cable: both directions have the same figures.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WireConfig {
    /// Line rate of each direction, preamble and gap included: 10^9 carries 81,274 full frames of 1,514 bytes per second.
    pub rate_bits_per_s: u64,
    /// One-way propagation delay; 0.
    #[serde(default)]
    pub delay_ns: u64,
    /// Added to the delay of each frame: evenly distributed from 0 to this, order kept; 0.
    #[serde(default)]
    pub jitter_ns: u64,
    /// Probability that a frame is lost on the way, 0 to 1, drawn from the network's seed; 0.
    #[serde(default)]
    pub loss: f64,
    /// Whether the cable is plugged in; true.
    #[serde(default = "yes")]
    pub up: bool,
}

/// One link of a cable, besides the common settings of all its links ([`WireConfig`]).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LinkConfig {
    /// Whether it is plugged in. It carries frames if the whole cable is, too. true.
    pub up: bool,
    /// The faults from the NIC to the switch, or from a trunk's `a` to its `b`. None.
    pub outbound: FaultConfig,
    /// The faults in the other direction. None.
    pub inbound: FaultConfig,
}

/// Faults of one direction of a link that neither of its ends notices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FaultConfig {
    /// Probability that a frame is lost, in addition to the wire's own; 1: nothing passes. 0.
    pub loss: f64,
    /// Longest payload (L3) that passes, as if one station had another MTU; 0: any. 0.
    pub mtu: u32,
}

/// A network interface card: one physical port of a host or an array.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct NicConfig {
    /// Frames that wait to be sent, per interface; a full ring stops the host, and drops nothing. 512.
    pub tx_ring_frames: u32,
    /// Frames that wait for the next interrupt; more are dropped. 512.
    pub rx_ring_frames: u32,
    /// Longest time from a frame's arrival to the interrupt; 0 = one interrupt per frame. 0.
    pub moderation_us: u32,
    /// Frames that cause the interrupt before its time; 0: only the time counts. 0.
    pub moderation_frames: u32,
    /// Receive segment coalescing: consecutive TCP segments within one interrupt are delivered as one. false.
    pub rsc: bool,
    /// Pauses when the switch requests it (802.3x or PFC, as the switch is configured). true.
    pub pause_rx: bool,
    /// Requests a pause from the switch while its receive ring is more than three quarters full. false.
    pub pause_tx: bool,
    /// How the NIC selects among the priorities of its interfaces. Strict.
    pub schedule: Schedule,
}

/// A switch: store and forward, drop-tail queues per egress port and priority, memory shared by all ports.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SwitchConfig {
    /// Whether it has power; without power all its links are down. true.
    pub up: bool,
    /// Most bytes that one priority of one egress port may have waiting; more are dropped. 512 KiB.
    pub queue_bytes: u64,
    /// Most bytes that all queues together may have waiting; more are dropped. 16 MiB.
    pub buffer_bytes: u64,
    /// Longest payload of a frame (L3) that it forwards. 9216.
    pub mtu: u32,
    /// Flow control towards a sender that is too fast. none.
    pub flow_control: FlowControl,
    /// Priorities that PFC protects: they are paused at `xoff_bytes` and never dropped for lack of queue space. Empty.
    /// 802.3x pause protects all.
    pub lossless_priorities: Vec<u8>,
    /// Bytes from one ingress port (per priority with PFC) in the switch above which it requests a pause from that
    /// port. 64 KiB.
    pub xoff_bytes: u64,
    /// Bytes at or below which the port may continue. 32 KiB.
    pub xon_bytes: u64,
    /// Space per ingress port above `xoff_bytes` for frames that arrive before the pause takes effect; None: the
    /// maximum by the wire's rate and delay.
    pub headroom_bytes: Option<u64>,
    /// ECN-capable frames are marked if at least this many bytes wait in a queue; 0: never. 0.
    pub ecn_threshold_bytes: u64,
    /// How an egress port selects among its priorities. Strict.
    pub schedule: Schedule,
}

/// How a switch slows its senders down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FlowControl {
    /// It drops.
    #[default]
    None,
    /// IEEE 802.3x: all priorities stop.
    Pause,
    /// IEEE 802.1Qbb: only the lossless priorities stop.
    Pfc,
}

/// How a sender selects among priorities with waiting frames.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Schedule {
    /// The rule. strict.
    pub kind: ScheduleKind,
    /// ETS: priority -> share in percent; together at most 100. Empty with strict.
    pub shares: BTreeMap<u8, u32>,
}

/// See [`Schedule::kind`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ScheduleKind {
    /// The highest priority first.
    #[default]
    Strict,
    /// IEEE 802.1Qaz: each priority gets at least its share, and the bandwidth that the others do not use. A priority
    /// without a share sends only when those with one have nothing to send.
    Ets,
}

/// A value out of its bounds.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{key}: {problem}")]
pub struct ConfigError {
    /// The key, for example `loss`.
    pub key: String,
    /// The fault.
    pub problem: String,
}

impl Default for WireConfig {
    fn default() -> Self {
        Self { rate_bits_per_s: 1_000_000_000, delay_ns: 0, jitter_ns: 0, loss: 0.0, up: true }
    }
}

impl Default for LinkConfig {
    fn default() -> Self {
        Self { up: true, outbound: FaultConfig::default(), inbound: FaultConfig::default() }
    }
}

impl Default for NicConfig {
    fn default() -> Self {
        Self {
            tx_ring_frames: 512,
            rx_ring_frames: 512,
            moderation_us: 0,
            moderation_frames: 0,
            rsc: false,
            pause_rx: true,
            pause_tx: false,
            schedule: Schedule::default(),
        }
    }
}

impl Default for SwitchConfig {
    fn default() -> Self {
        Self {
            up: true,
            queue_bytes: 512 << 10,
            buffer_bytes: 16 << 20,
            mtu: 9216,
            flow_control: FlowControl::None,
            lossless_priorities: Vec::new(),
            xoff_bytes: 64 << 10,
            xon_bytes: 32 << 10,
            headroom_bytes: None,
            ecn_threshold_bytes: 0,
            schedule: Schedule::default(),
        }
    }
}

impl WireConfig {
    /// Checks the values against their limits.
    pub fn check(&self) -> Result<(), ConfigError> {
        within("rate_bits_per_s", self.rate_bits_per_s, 1_000, 1_000_000_000_000)?;
        within("delay_ns", self.delay_ns, 0, DELAY_NS_MAX)?;
        within("jitter_ns", self.jitter_ns, 0, DELAY_NS_MAX)?;
        probability("loss", self.loss)
    }
}

impl LinkConfig {
    /// Checks the values against their limits.
    pub fn check(&self) -> Result<(), ConfigError> {
        probability("outbound.loss", self.outbound.loss)?;
        within("outbound.mtu", self.outbound.mtu, 0, FRAME_BYTES_MAX - 14)?;
        probability("inbound.loss", self.inbound.loss)?;
        within("inbound.mtu", self.inbound.mtu, 0, FRAME_BYTES_MAX - 14)
    }
}

impl NicConfig {
    /// Checks the values against their limits.
    pub fn check(&self) -> Result<(), ConfigError> {
        within("tx_ring_frames", self.tx_ring_frames, 1, RING_FRAMES_MAX)?;
        within("rx_ring_frames", self.rx_ring_frames, 1, RING_FRAMES_MAX)?;
        within("moderation_us", self.moderation_us, 0, 1_000_000)?;
        within("moderation_frames", self.moderation_frames, 0, RING_FRAMES_MAX)?;
        self.schedule.check()
    }
}

impl SwitchConfig {
    /// Checks the values against their limits.
    pub fn check(&self) -> Result<(), ConfigError> {
        within("queue_bytes", self.queue_bytes, 64, BUFFER_BYTES_MAX)?;
        within("buffer_bytes", self.buffer_bytes, 64, BUFFER_BYTES_MAX)?;
        within("mtu", self.mtu, 68, FRAME_BYTES_MAX - 14)?;
        within("xoff_bytes", self.xoff_bytes, 64, BUFFER_BYTES_MAX)?;
        within("xon_bytes", self.xon_bytes, 0, self.xoff_bytes)?;
        within("headroom_bytes", self.headroom_bytes.unwrap_or(0), 0, BUFFER_BYTES_MAX)?;
        within("ecn_threshold_bytes", self.ecn_threshold_bytes, 0, BUFFER_BYTES_MAX)?;
        for &priority in &self.lossless_priorities {
            within("lossless_priorities", priority, 0, PRIORITIES as u8 - 1)?;
        }
        self.schedule.check()
    }

    /// Whether frames of a priority are stopped instead of dropped.
    pub(crate) fn is_lossless(&self, priority: u8) -> bool {
        match self.flow_control {
            FlowControl::None => false,
            FlowControl::Pause => true,
            FlowControl::Pfc => self.lossless_priorities.contains(&priority),
        }
    }
}

impl Schedule {
    /// ETS with these shares in percent.
    pub fn ets(shares: &[(u8, u32)]) -> Self {
        Self { kind: ScheduleKind::Ets, shares: shares.iter().copied().collect() }
    }

    fn check(&self) -> Result<(), ConfigError> {
        for (&priority, &share) in &self.shares {
            within("schedule.shares", priority, 0, PRIORITIES as u8 - 1)?;
            within("schedule.shares", share, 1, 100)?;
        }
        let sum: u32 = self.shares.values().sum();
        match self.kind {
            ScheduleKind::Strict if sum == 0 => Ok(()),
            ScheduleKind::Ets if (1..=100).contains(&sum) => Ok(()),
            ScheduleKind::Strict => {
                Err(ConfigError::new("schedule.shares", "strict scheduling knows no shares".to_owned()))
            }
            ScheduleKind::Ets => Err(ConfigError::new(
                "schedule.shares",
                format!("they add up to {sum} percent; expected at most 100, and at least one share"),
            )),
        }
    }
}

impl ConfigError {
    /// The key and what is wrong with it.
    pub fn new(key: &str, problem: String) -> Self {
        Self { key: key.to_owned(), problem }
    }
}

fn yes() -> bool {
    true
}

fn probability(key: &str, value: f64) -> Result<(), ConfigError> {
    if (0.0..=1.0).contains(&value) {
        return Ok(());
    }
    Err(ConfigError::new(key, format!("{value} is no probability (0 to 1)")))
}

/// An error unless `low <= value <= high`.
pub(crate) fn within<T: Copy + PartialOrd + std::fmt::Display>(
    key: &str,
    value: T,
    low: T,
    high: T,
) -> Result<(), ConfigError> {
    if low <= value && value <= high {
        return Ok(());
    }
    Err(ConfigError::new(key, format!("{value} is out of bounds; expected {low} to {high}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_within_bounds() {
        WireConfig::default().check().unwrap();
        NicConfig::default().check().unwrap();
        SwitchConfig::default().check().unwrap();
        LinkConfig::default().check().unwrap();
    }

    #[test]
    fn nonsense_is_refused_with_its_key() {
        let wire = WireConfig { loss: f64::NAN, ..WireConfig::default() };
        assert_eq!(wire.check().unwrap_err().key, "loss");
        let deaf = FaultConfig { loss: 1.5, mtu: 0 };
        let link = LinkConfig { inbound: deaf, ..LinkConfig::default() };
        assert_eq!(link.check().unwrap_err().key, "inbound.loss");
        let switch = SwitchConfig { xon_bytes: 1 << 20, ..SwitchConfig::default() };
        assert_eq!(switch.check().unwrap_err().key, "xon_bytes");
        for shares in [vec![], vec![(3, 60), (0, 50)], vec![(8, 10)], vec![(1, 0)]] {
            let schedule = Schedule::ets(&shares);
            assert_eq!(schedule.check().unwrap_err().key, "schedule.shares");
        }
    }

    #[test]
    fn protection_follows_flow_control() {
        let mut switch = SwitchConfig { lossless_priorities: vec![3], ..SwitchConfig::default() };
        assert!(!switch.is_lossless(3));
        switch.flow_control = FlowControl::Pfc;
        assert!(switch.is_lossless(3) && !switch.is_lossless(0));
        switch.flow_control = FlowControl::Pause;
        assert!(switch.is_lossless(0));
    }
}
