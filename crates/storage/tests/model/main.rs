//! The layers of the array against a plain map: random work, failures and power cuts, by seed, in virtual time.
//!
//! `oracle.rs` knows the possible contents of each block; `clients.rs` works on a volume and checks it; `rig.rs` has
//! drives and clock; `way.rs` connects two arrays; the other files are the scenarios, one per layer. `make sim SEED=n`
//! replays one seed, `make sim` runs many.
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
