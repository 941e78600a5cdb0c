//! A virtual clock and a simulated network behind the driver trait: runs the product's code a thousand times per
//! second.
//!
//! A [`SimNetwork`] has a clock that only [`SimNetwork::advance`] moves, addresses, and TCP connections. Each of its
//! [`SimDriver`]s implements [`linerate_io::Driver`], so the target's worker and the initiator run on it unchanged, on
//! one thread, taking turns. [`Conditions`] are the properties of the network: delay and jitter, data that arrives in
//! pieces or joined together, full windows, refused and lost connections. Memory of an operation is read or written at
//! some later time before its completion, as a kernel does it.
//!
//! One seed determines everything, so a failure can be replayed by its seed: [`for_each_seed`] prints it.
//!
//! - `world.rs`: clock, event queue, and the transport of bytes between the ends of a connection;
//! - `wires.rs`: the network between clients and one address of a server, for faults of one of several paths;
//! - `files.rs`: files in memory whose operations take time;
//! - `driver.rs`: the driver trait for all of it;
//! - `conditions.rs`, `rng.rs`, `seeds.rs`: properties, random numbers, replay.

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
