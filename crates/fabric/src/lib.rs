//! A network in user space: TAP interfaces in the hosts' namespaces, joined by modelled NICs, links and switches.
//!
//! The kernel's own network devices can limit a rate, but they cannot delay, pause, mark or lose frames in a controlled
//! way, and do not model a NIC's rings and interrupts. Here `crates/link` does all of that. It has neither packets nor
//! clocks; this crate provides both:
//!
//! - `spec.rs`: the specification as JSON, and its changes at run time.
//! - `packet.rs`: the work that a host's stack leaves to its NIC, in both directions, without copying payload.
//! - `hosts.rs`: the TAPs. `plan.rs`: names and settings. `report.rs`: counters.
//! - `engine.rs`: one thread in which virtual time follows real time, and which reports its lag.
//! - `fabric.rs`: the handle of that thread.
//!
//! A frame costs two or three events of the model (about 0.1 us each) and its share of one write. The write into a TAP,
//! which runs the receiving host's stack, is the largest part. So the fabric is cheapest with large packets:
//! segmentation by the NIC, moderated interrupts, segments merged on receipt.

mod engine;
mod fabric;
mod hosts;
mod packet;
mod plan;
mod report;
pub mod spec;

pub use fabric::{Fabric, FabricError};
pub use plan::{PortSettings, TrunkSettings};
pub use report::{
    Effort, FabricStats, InterfaceStats, LagStats, NamedPortStats, NamedSwitchStats, NamedTrunkStats,
};
pub use spec::{ChangeSpec, FabricSpec, SpecError};
