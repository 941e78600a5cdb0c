//! How I/O is spread over several routes: the paths of a device, or the connections of a session.

mod meter;
mod options;
mod policy;

pub use meter::PathCounters;
pub(crate) use meter::{Load, Meter, Moves};
pub(crate) use options::BalanceOptions;
pub use options::Policy;
pub(crate) use policy::Selector;
