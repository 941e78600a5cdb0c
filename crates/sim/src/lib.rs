//! A virtual clock and a simulated network behind the driver trait: the product's code, run a thousand times a second.
//!
//! A [`SimNetwork`] is a world of its own: a clock that only [`SimNetwork::advance`] moves, addresses, TCP connections.
//! Each [`SimDriver`] made from it implements [`linerate_io::Driver`], so that the target's worker and the
//! initiator run in it unchanged, on one thread, taking turns. What a network may do to them is in [`Conditions`]:
//! delay and jitter, data that arrives in pieces or glued together, full windows, refused and lost connections.
//! Memory that an operation refers to is read or written at some later moment before its completion, as a kernel
//! would.
//!
//! One seed decides everything, so that a failure is replayed by its seed: [`for_each_seed`] prints it.
//!
//! - `world.rs`: clock, event queue, and the way of bytes from one end of a connection to the other;
//! - `wires.rs`: the network between clients and one address of a server, for faults of one path of several;
//! - `files.rs`: files in memory whose operations take their time;
//! - `driver.rs`: the driver trait on top of it;
//! - `conditions.rs`, `rng.rs`, `seeds.rs`: what may happen, chance, replay.

mod conditions;
mod driver;
mod files;
mod link;
mod rng;
mod seeds;
mod socket;
mod wires;
mod world;

pub use conditions::Conditions;
pub use driver::{SimDriver, SimWaker};
pub use rng::Rng;
pub use seeds::for_each_seed;
pub use socket::SimSocket;
pub use wires::Wire;
pub use world::SimNetwork;
