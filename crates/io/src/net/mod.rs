//! Networks as the kernel has them: TCP sockets, namespaces that a thread may enter, TAP interfaces, and waiting for
//! many of them.
//!
//! Open `tap.rs` for what a packet looks like on its way between this process and a host's stack.

pub mod netns;
mod poller;
mod queue;
pub(crate) mod socket;
mod tap;

pub use poller::Poller;
pub use tap::{Tap, TapOptions, VNET_HEADER_BYTES};
