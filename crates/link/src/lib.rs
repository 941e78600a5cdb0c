//! NICs, links and switches in virtual time, without I/O.
//!
//! Nothing here reads a clock or a packet: the caller passes the time and the frames that a host
//! sends, and takes away those that a host receives. So the same model carries real packets (`crates/fabric`) and
//! simulated ones.
//!
//! A frame's way, and what each station does to it:
//!
//! 1. `network.rs` takes it into the transmit ring of its interface, which holds the host back when it is full.
//! 2. `lane.rs` is one direction of a cable with the sender that feeds it: a queue per priority, `schedule.rs` to
//!    choose among them (strict or ETS), line rate, then delay, jitter and loss. A paused priority is not chosen.
//!    Each link can be pulled out by itself, and each of its directions can fail without either end noticing.
//! 3. `switch.rs` and `network/forward.rs` learn and find the way, VLAN by VLAN; of a LAG's links that are up it takes the
//!    one that the flow's hash says. A lossy frame needs room in its queue and in the shared memory, else it is dropped. A
//!    lossless one needs room in the reserve of the port it came in by: past `xoff` that port is paused (802.3x or PFC),
//!    above it is the headroom. A paused sender's queue fills up in turn, so pauses spread backwards as they do in a
//!    real fabric.
//! 4. `nic.rs` puts it into the receive ring of the NIC, and interrupts the host at once, after a while or after some
//!    frames.
//!
//! Queues are drop-tail, switches store and forward, links are full duplex. Times are exact to the nanosecond and repeat
//! exactly for the same calls and the same seed. Not modelled: cut-through, tags on the wire (4 bytes), spanning tree,
//! pause quanta (a pause holds until it is lifted or the cable is pulled out).

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
