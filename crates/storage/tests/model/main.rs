//! The layers of the array against a plain map: random work, failures and power cuts, by seed, in virtual time.
//!
//! `oracle.rs` knows what each block may hold; `clients.rs` works on a volume and asks it; `rig.rs` holds drives and clock;
//! `way.rs` joins two arrays; the other files are the scenarios, one per layer. `make sim SEED=n` replays one seed,
//! `make sim` runs many.
#![allow(clippy::unwrap_used, reason = "tests")]

mod clients;
mod drives;
mod oracle;
mod outages;
mod pair;
mod pool;
mod raid;
mod rig;
mod space;
mod stack;
mod way;
