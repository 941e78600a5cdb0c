//! Networks of the kernel: TCP sockets, namespaces that a thread may enter, TAP interfaces, waiting for many of them,
//! and changes of links and addresses ([`NetWatch`]).
//!
//! `tap.rs` describes a packet between this process and a host's stack.

mod known;
pub mod netns;
mod poller;
mod queue;
mod reach;
mod route;
pub(crate) mod socket;
mod tap;
mod watch;

pub use known::KnownHost;
pub use poller::Poller;
pub use reach::resolve;
pub use tap::{Tap, TapOptions, VNET_HEADER_BYTES};
pub use watch::{NetEvent, NetFollower, NetWatch};
