//! Tasks and their ends, over real sockets.

mod ownership;
mod resets;
