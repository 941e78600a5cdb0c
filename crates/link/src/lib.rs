//! NICs, links and switches in virtual time, without I/O.
//!
//! Nothing here reads a clock or a packet: the caller passes the time and the frames that a host sends, and takes the
//! frames that a host receives. So the same model carries real packets (`crates/fabric`) and simulated ones.
//!
//! The path of a frame, and the work of each station:
//!
//! 1. `network.rs` adds it to the transmit ring of its interface, which stops the host when it is full.
//! 2. `lane.rs` is one direction of a cable with its sender: a queue per priority, `schedule.rs` to select among them
//!    (strict or ETS), line rate, then delay, jitter and loss. A paused priority is not selected. Each link can be
//!    pulled out separately, and each of its directions can fail without either end noticing.
//! 3. `switch.rs` and `network/forward.rs` learn addresses and find the port, per VLAN; of a LAG's links that are up,
//!    the flow's hash selects one. A lossy frame needs space in its queue and in the shared memory, else it is dropped.
//!    A lossless one needs space in the reserve of its ingress port: above `xoff` that port is paused (802.3x or PFC),
//!    and above this is the headroom. The queue of a paused sender fills up in turn, so pauses spread backwards as they
//!    do in a real fabric.
//! 4. `nic.rs` puts it into the receive ring of the NIC, and interrupts the host at once, after a time or after some
//!    frames.
//!
//! Queues are drop-tail, switches store and forward, links are full duplex. Times are exact to the nanosecond, and the
//! same for the same calls and the same seed. Not modelled: cut-through, tags on the wire (4 bytes), spanning tree,
//! pause quanta (a pause is valid until it is lifted or the cable is pulled out).

mod config;
mod frame;
mod lane;
mod network;
mod nic;
mod rng;
mod schedule;
mod stats;
mod switch;

pub use config::{
    ConfigError, FRAME_BYTES_MAX, FaultConfig, FlowControl, LinkConfig, NicConfig, PRIORITIES, Schedule,
    ScheduleKind, SwitchConfig, WireConfig,
};
pub use frame::{Frame, Mac, Nanos};
pub use network::{Cable, Network, NicId, SwitchId, TrunkId};
pub use nic::{InterfaceConfig, InterfaceId, Receiver};
pub use stats::{Drops, LaneStats, LinkStats, PortStats, QueueStats, ReceiveStats, SwitchStats, TrunkStats};
