//! A network in user space: TAP interfaces in the hosts' namespaces, joined by NICs, links and switches that are modelled.

pub mod spec;

pub use spec::{FabricSpec, SpecError};
