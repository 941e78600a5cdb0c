//! System calls: the driver trait, its `io_uring` and epoll drivers, shared memory, files, clocks.
//!
//! Only this crate calls the operating system, and only it has `unsafe` code. Everything above it (`target`,
//! `initiator`, `load`) uses one trait, [`Driver`], and takes time as an argument, so the simulator can run the same
//! code in virtual time.
//!
//! From the outside in:
//!
//! - [`Driver`] (`driver.rs`): submit operations, [`Driver::poll`] for completions. One driver belongs to one thread.
//! - Its data: [`Buffer`] (receive memory, owned), [`Outgoing`] (a gather list of headers and payload), [`Seg`] (a
//!   range of a [`Region`], memory shared with the kernel), [`Handle`] (a listener, stream or file).
//! - [`SocketOptions`], [`TcpInfo`], [`FileOptions`]: settings, and their values as the kernel reports them.
//! - Two drivers that pass the same tests: `epoll` (readiness, a small thread pool for files) and `uring` (completions
//!   only). [`open_driver`] probes and chooses; [`with_driver!`] runs generic code on the choice.
//! - `net`: TCP sockets, network namespaces, TAP interfaces in them, and changes of links and addresses.
//! - `threads`: [`Waiter`], how a thread waits for completions: asleep, polling, or first the one and then the other;
//!   [`Lent`], a value of one thread that others use while that one sleeps.
//! - `system`: facts about processors and time for a load generator. `vector`: loops for the current processor.

// Only here are clocks read, do threads sleep, and is the kernel called directly.
#![allow(unsafe_code, clippy::disallowed_methods)]

mod buffer;
mod driver;
mod epoll;
mod file;
mod gather;
pub mod net;
mod open;
mod options;
mod outgoing;
mod pool;
mod region;
mod slots;
pub mod system;
mod threads;
mod uring;
pub mod vector;

pub use buffer::Buffer;
pub use driver::{Completion, Driver, Handle, Nanos, RegionId, Seg, Wait};
pub use epoll::EpollDriver;
pub use file::{blocking, space};
pub use open::{AnyDriver, OpenDriverError, Preference, open_driver};
pub use options::{FileOptions, SocketOptions, TcpInfo};
pub use outgoing::{Outgoing, Part};
pub use region::{AttachedRegions, Region, prefetch_value, untouched_bytes};
pub use slots::Slots;
pub use threads::{KernelDriver, Lent, WaitMode, Waiter, Waker};
pub use uring::UringDriver;
