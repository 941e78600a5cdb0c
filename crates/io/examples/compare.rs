//! Compares the two drivers, interleaved: `cargo run --release -p linerate-io --example compare`.
//!
//! Round trips of one small message over loopback, batches of 32 answers of 4 KiB, and direct reads of a file at depth
//! 32; each as nanoseconds of wall time and of this process's CPU per unit.

#![allow(clippy::print_stdout)] // a program talks to its user

use linerate_io::{
    Buffer, Completion, Driver, FileOptions, Handle, Outgoing, Preference, Region, RegionId, Seg,
    SocketOptions, Wait, open_driver, system, with_driver,
};
use std::{
    error::Error,
    io::{Read, Write},
    net::{Ipv4Addr, TcpStream},
    thread,
};

const DEPTH: u64 = 32;
const LEN: u32 = 4096;
const FILE_BYTES: u64 = 64 << 20;

type Outcome = Result<(), Box<dyn Error>>;

fn main() -> Outcome {
    for _ in 0..3 {
        for preference in [Preference::Epoll, Preference::IoUring] {
            match open_driver(preference) {
                Ok(driver) => with_driver!(driver, |driver| compare(driver))?,
                Err(error) => println!("{preference}: {error}"),
            }
        }
    }
    Ok(())
}

fn compare<D: Driver<Socket = TcpStream>>(mut driver: D) -> Outcome {
    let region = Region::anonymous(u64::from(LEN) * DEPTH)?;
    region.fill(0, region.len(), b"data");
    let id = driver.attach(region);
    for (what, answers) in [("ping", 0), ("batch of 32 x 4 KiB", DEPTH)] {
        serve(&mut driver, what, id, answers)?;
    }
    read_file(&mut driver, id)
}

fn report<D: Driver>(driver: &D, what: &str, units: u64, began: u64, cpu: system::ProcessCpu) -> Outcome {
    let used = system::process_cpu()?;
    let cpu_ns = (used.user_us + used.system_us - cpu.user_us - cpu.system_us) * 1000;
    let wall_ns = driver.now() - began;
    println!("{:9} {what}: {} ns, {} ns CPU", driver.name(), wall_ns / units, cpu_ns / units);
    Ok(())
}

/// Answers `answers` segments (or the message itself) to each of a blocking client's messages.
fn serve<D: Driver<Socket = TcpStream>>(driver: &mut D, what: &str, id: RegionId, answers: u64) -> Outcome {
    const ROUNDS: u64 = 5000;
    let listener = driver.listen((Ipv4Addr::LOCALHOST, 0).into(), &SocketOptions::default())?;
    let addr = driver.local_addr(listener)?;
    let answer_len = if answers == 0 { 64 } else { answers as usize * LEN as usize };
    let client = thread::spawn(move || -> std::io::Result<()> {
        let mut socket = TcpStream::connect(addr)?;
        socket.set_nodelay(true)?;
        let mut answer = vec![0; answer_len];
        for _ in 0..ROUNDS {
            socket.write_all(&[1; 64])?;
            socket.read_exact(&mut answer)?;
        }
        Ok(())
    });
    let (began, cpu) = (driver.now(), system::process_cpu()?);
    let mut spare = Some(Box::new(Outgoing::new()));
    let (mut done, mut rounds) = (Vec::new(), 0);
    while rounds < ROUNDS {
        driver.poll(Wait::Forever, &mut done)?;
        for completion in done.drain(..) {
            match completion {
                Completion::Accepted { result, .. } => {
                    let stream = driver.add_stream(result?.0, &SocketOptions::default())?;
                    driver.recv(stream, &[], Buffer::new(4096));
                }
                Completion::Received { stream, result: Ok(0) | Err(_), .. } => driver.close(stream),
                Completion::Received { stream, buffer, .. } => {
                    let mut outgoing = spare.take().unwrap_or_default();
                    match answers {
                        0 => outgoing.push_bytes(&buffer.as_slice()[..64]),
                        _ => (0..answers).for_each(|at| {
                            outgoing.push_seg(Seg { region: id, offset: at * u64::from(LEN), len: LEN });
                        }),
                    }
                    driver.send(stream, outgoing);
                    driver.recv(stream, &[], buffer);
                }
                Completion::Sent { mut outgoing, .. } => {
                    outgoing.clear();
                    spare = Some(outgoing);
                    rounds += 1;
                }
                _ => {}
            }
        }
    }
    report(driver, what, ROUNDS, began, cpu)?;
    client.join().map_err(|_| "the client panicked")??;
    driver.close(listener);
    Ok(())
}

/// Direct reads of a file that was written before, `DEPTH` at a time.
fn read_file<D: Driver>(driver: &mut D, id: RegionId) -> Outcome {
    const READS: u64 = 50_000;
    let path = std::env::temp_dir().join(format!("compare-{}", std::process::id()));
    std::fs::write(&path, vec![7; FILE_BYTES as usize])?;
    let options = FileOptions { direct: true, ..FileOptions::default() };
    let opened = driver.open(&path, &options);
    std::fs::remove_file(&path)?;
    let file = opened?;
    let (began, cpu) = (driver.now(), system::process_cpu()?);
    let mut spot = 1_u64;
    let mut read = |driver: &mut D, file: Handle, slot: u64| {
        spot = spot.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let offset = (spot >> 20) % (FILE_BYTES / u64::from(LEN)) * u64::from(LEN);
        driver.read_at(file, slot, &[Seg { region: id, offset: slot * u64::from(LEN), len: LEN }], offset);
    };
    for slot in 0..DEPTH {
        read(driver, file, slot);
    }
    let (mut done, mut reads) = (Vec::new(), 0);
    while reads < READS {
        driver.poll(Wait::Forever, &mut done)?;
        for completion in done.drain(..) {
            if let Completion::File { tag, result, .. } = completion {
                result?;
                reads += 1;
                read(driver, file, tag);
            }
        }
    }
    report(driver, "direct read at depth 32", READS, began, cpu)
}
