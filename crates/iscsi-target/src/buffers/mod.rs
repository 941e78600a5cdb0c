//! I/O buffers: their number (`pool.rs`), the share that one connection may use (`budget.rs`), and the volume
//! operations that own some while they run (`operation.rs`). Memory of disks that is sent instead (`disk_regions.rs`).

pub(crate) mod budget;
pub(crate) mod disk_regions;
pub(crate) mod operation;
pub(crate) mod pool;
pub(crate) mod spare_lists;
