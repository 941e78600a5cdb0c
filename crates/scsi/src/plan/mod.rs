//! The plan of a command: the result of [`Nexus::begin`](crate::Nexus::begin).

mod refusal;
mod reply;
mod transfer;

pub(crate) use refusal::Refusal;
pub use reply::Reply;
pub use transfer::{Expected, Extent, Residual};

use crate::Task;

/// The next action for one command.
#[derive(Debug)]
pub enum Plan {
    /// Send these bytes of the medium, then GOOD.
    Read(Extent),
    /// Receive these bytes into the medium, then GOOD. [`Nexus::end_write`](crate::Nexus::end_write) must follow
    /// exactly once, also if the command fails: until then COMPARE AND WRITE cannot use the blocks.
    Write(Extent),
    /// The answer is ready.
    Reply(Reply),
    /// Several steps: drive it with [`Task::next`].
    Task(Box<Task>),
}
