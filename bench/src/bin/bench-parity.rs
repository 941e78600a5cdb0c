//! `bench-parity SECONDS ROUNDS`: copying, P, and P with Q, in turn; prints the bytes per second of each round as JSON.
//!
//! Counted is what is read and what is written: 2 bytes per byte that is copied, 9 per 8 of data for P, 10 per 8 with Q.
//! The data are far larger than the processor's caches.

use linerate_io::system::now_ns;
use linerate_storage::raid::parity;
use std::io::Write;

const BLOCK_BYTES: usize = 64 << 10;
const DATA_BLOCKS: usize = 8;
const DATA_BYTES: usize = 128 << 20;

/// Bytes per second of `work`, which reads `DATA_BYTES` each time and writes `written_bytes`.
fn rate(seconds: f64, written_bytes: usize, mut work: impl FnMut()) -> f64 {
    let (start, mut passes) = (now_ns(), 0_u32);
    loop {
        work();
        passes += 1;
        let took_s = (now_ns() - start) as f64 / 1e9;
        if took_s >= seconds {
            return f64::from(passes) * (DATA_BYTES + written_bytes) as f64 / took_s;
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: bench-parity SECONDS ROUNDS";
    let seconds: f64 = arguments.next().ok_or(usage)?.parse()?;
    let rounds: usize = arguments.next().ok_or(usage)?.parse()?;
    let data: Vec<u8> = (0..DATA_BYTES).map(|at| (at % 251) as u8).collect();
    let stripes: Vec<Vec<&[u8]>> =
        data.chunks(DATA_BLOCKS * BLOCK_BYTES).map(|stripe| stripe.chunks(BLOCK_BYTES).collect()).collect();
    let mut copy = vec![1; DATA_BYTES];
    let (mut p, mut q) = (vec![1; DATA_BYTES / DATA_BLOCKS], vec![1; DATA_BYTES / DATA_BLOCKS]);
    let mut report = Vec::new();
    for _ in 0..rounds {
        let copied = rate(seconds, DATA_BYTES, || std::hint::black_box(&mut copy).copy_from_slice(&data));
        let sums = rate(seconds, DATA_BYTES / DATA_BLOCKS, || {
            for (stripe, p) in stripes.iter().zip(p.chunks_mut(BLOCK_BYTES)) {
                parity::generate(stripe, p, None);
            }
        });
        let both = rate(seconds, 2 * DATA_BYTES / DATA_BLOCKS, || {
            for (stripe, (p, q)) in
                stripes.iter().zip(p.chunks_mut(BLOCK_BYTES).zip(q.chunks_mut(BLOCK_BYTES)))
            {
                parity::generate(stripe, p, Some(q));
            }
        });
        report.push(serde_json::json!({ "copy_bytes_s": copied, "p_bytes_s": sums, "pq_bytes_s": both }));
    }
    Ok(writeln!(std::io::stdout(), "{}", serde_json::Value::from(report))?)
}
