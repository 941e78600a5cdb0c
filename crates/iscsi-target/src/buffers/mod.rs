//! I/O buffers: how many there are (`pool.rs`), how much of them one connection may hold (`budget.rs`), and the volume
//! operations that own some while they work (`operation.rs`).

pub(crate) mod budget;
pub(crate) mod operation;
pub(crate) mod pool;
pub(crate) mod spare_lists;
