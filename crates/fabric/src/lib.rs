//! A network in user space: TAP interfaces in the hosts' namespaces, joined by NICs, links and switches that are modelled.
//!
//! The kernel's own network devices can shape a rate, but not delay, pause, mark or lose frames in a controlled way,
//! nor can they stand in for a NIC's rings and interrupts. Here all of that is `crates/link`, which knows neither
//! packets nor clocks; this crate gives it both:
//!
//! - `spec.rs`: what there is, as JSON, and what may change while it runs.
//! - `packet.rs`: the work that a host's stack leaves to its NIC, in both directions, without copying payload.
//! - `hosts.rs`: the TAPs. `plan.rs`: names and settings. `report.rs`: counters.
//! - `engine.rs`: one thread in which virtual time follows real time, and which says how far it fell behind.
//! - `fabric.rs`: the handle on that thread.
//!
//! A frame costs two or three events of the model (about 0.1 us each) and its share of one write; the write into a TAP,
//! which runs the receiving host's stack, is most of it. So the fabric is cheapest with large packets: segmentation
//! left to the NIC, moderated interrupts, segments merged on receipt.

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
