//! I/O buffers: their number (`pool.rs`), the share that one connection may use (`budget.rs`), and the volume
//! operations that own some while they run (`operation.rs`).

pub(crate) mod budget;
pub(crate) mod operation;
pub(crate) mod pool;
pub(crate) mod spare_lists;
