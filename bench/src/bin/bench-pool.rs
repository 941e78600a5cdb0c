//! `bench-pool`: what a pool of 1 TiB of thin volumes, all written, costs to snapshot, to read and to open; prints JSON.
//!
//! The disk keeps the pool's metadata and forgets its pages, so that only the pool is measured, and fits into memory.

use bytes::{Bytes, BytesMut};
use linerate_io::system::now_ns;
use linerate_storage::{
    Disk, DiskError, Executor, Runtime,
    disk::{DiskStats, Reading, SparseDisk, Writing},
    pool::{Pool, PoolConfig, PoolError, PoolVolume},
};
use std::{cell::Cell, future::ready, io::Write, rc::Rc};

const PAGE_BYTES: u64 = 1 << 20;
const VOLUMES: u64 = 4;
const VOLUME_BYTES: u64 = 256 << 30;
const SNAPSHOTS: u64 = 100;
const READS: u64 = 20_000;
/// At each end of the disk.
const MOST_METADATA_BYTES: u64 = 1 << 30;

/// Keeps blocks, forgets pages.
struct Metadata {
    kept: SparseDisk,
}

impl Disk for Metadata {
    fn name(&self) -> &str {
        self.kept.name()
    }

    fn size_bytes(&self) -> u64 {
        self.kept.size_bytes()
    }

    fn block_bytes(&self) -> u32 {
        self.kept.block_bytes()
    }

    fn stats(&self) -> DiskStats {
        self.kept.stats()
    }

    fn read(&self, offset: u64, into: BytesMut) -> Reading {
        self.kept.read(offset, into)
    }

    fn write(&self, offset: u64, data: Bytes, durable: bool) -> Writing {
        if (MOST_METADATA_BYTES..self.size_bytes() - MOST_METADATA_BYTES).contains(&offset) {
            return Box::pin(ready(Ok(())));
        }
        self.kept.write(offset, data, durable)
    }

    fn flush(&self) -> Writing {
        self.kept.flush()
    }

    fn discard(&self, offset: u64, len: u64) -> Writing {
        self.kept.discard(offset, len)
    }
}

fn config() -> PoolConfig {
    PoolConfig { page_bytes: PAGE_BYTES, ..PoolConfig::new("p0") }
}

fn seconds_since(start_ns: u64) -> f64 {
    (now_ns() - start_ns) as f64 / 1e9
}

/// Writes a share of a volume's pages anew.
async fn write_pages(volume: &PoolVolume, page: &Bytes, first: u64, step: u64) -> Result<(), DiskError> {
    for index in (first..VOLUME_BYTES / PAGE_BYTES).step_by(step as usize) {
        volume.write(index * PAGE_BYTES, page.clone(), false).await?;
        if index % 16_384 == 0 {
            volume.flush().await?;
        }
    }
    volume.flush().await
}

async fn measure(runtime: Runtime) -> Result<serde_json::Value, PoolError> {
    let disk: Rc<dyn Disk> = Rc::new(Metadata { kept: SparseDisk::new("d0", 5 << 39, 4096) });
    let pool = Pool::create(runtime.clone(), config(), Rc::clone(&disk)).await?;
    let page = Bytes::from(vec![0; PAGE_BYTES as usize]);
    let mut volumes = Vec::new();
    for number in 0..VOLUMES {
        let volume = pool.create_volume(&format!("v{number}"), VOLUME_BYTES).await?;
        write_pages(&volume, &page, 0, 1).await?;
        volumes.push(volume);
    }
    let mut snapshots_ms = Vec::new();
    for number in 0..SNAPSHOTS {
        // All volumes are one application: its snapshot covers all of the 1 TiB.
        let start = now_ns();
        pool.snapshot(&["v0", "v1", "v2", "v3"], &format!("s{number}"), number as f64).await?;
        snapshots_ms.push(seconds_since(start) * 1e3);
        write_pages(&volumes[(number % VOLUMES) as usize], &page, number, SNAPSHOTS).await?;
    }
    let rng = Cell::new(1_u64);
    let start = now_ns();
    for _ in 0..READS {
        rng.set(rng.get().wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1));
        let block = (rng.get() >> 20) % (VOLUME_BYTES / 8192);
        volumes[0].read(block * 8192, BytesMut::zeroed(8192)).await?;
    }
    let read_us = seconds_since(start) * 1e6 / READS as f64;
    drop((pool, volumes));
    let start = now_ns();
    let pool = Pool::open(runtime, config(), disk).await?;
    let open_s = seconds_since(start);
    let start = now_ns();
    pool.delete_snapshot("v0", "s0").await?;
    let delete_snapshot_ms = seconds_since(start) * 1e3;
    let used_bytes = pool.status().used_bytes;
    Ok(serde_json::json!({
        "snapshots_ms": snapshots_ms, "open_s": open_s, "read_us": read_us,
        "delete_snapshot_ms": delete_snapshot_ms, "used_bytes": used_bytes,
    }))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut executor = Executor::new();
    let measuring = measure(executor.runtime());
    let report = executor.run_in_virtual_time(measuring).ok_or("the pool waits for nothing")??;
    Ok(writeln!(std::io::stdout(), "{report}")?)
}
