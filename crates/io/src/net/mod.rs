//! Networks as the kernel has them: TCP sockets, namespaces that a thread may enter, TAP interfaces, and waiting for
//! many of them; and how links and addresses change ([`NetWatch`]).
//!
//! Open `tap.rs` for what a packet looks like on its way between this process and a host's stack.

pub mod netns;
mod poller;
mod queue;
mod route;
pub(crate) mod socket;
mod tap;
mod watch;

pub use poller::Poller;
pub use tap::{Tap, TapOptions, VNET_HEADER_BYTES};
pub use watch::{NetEvent, NetFollower, NetWatch};
