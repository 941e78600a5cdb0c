//! How threads wait, wake each other, and use a value in turn.

mod lent;
mod waiting;
mod wake;

pub use lent::{KernelDriver, Lent};
pub use waiting::{WaitMode, Waiter};
pub use wake::Waker;
