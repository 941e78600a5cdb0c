//! Time, wakes and fairness.

use super::Bench;
use linerate_io::{Completion, Driver, Wait};
use std::{
    io::{Read, Write},
    net::TcpStream,
    thread,
    time::Duration,
};

pub(crate) fn waits_until_the_deadline<D: Driver<Socket = TcpStream>>(mut bench: Bench<D>) {
    for wait_ns in [0, 300_000, 20_000_000] {
        let deadline = bench.driver.now() + wait_ns;
        let mut out = Vec::new();
        bench.driver.poll(Wait::Until(deadline), &mut out).unwrap();
        assert!(out.is_empty());
        let late_ns = bench.driver.now().checked_sub(deadline).expect("poll waited for its deadline");
        assert!(late_ns < 2_000_000_000, "{late_ns} ns late");
    }
    let before = bench.driver.now();
    bench.driver.poll(Wait::Never, &mut Vec::new()).unwrap();
    assert!(bench.driver.now() - before < 1_000_000_000);
}

pub(crate) fn a_nearer_deadline_counts_and_an_old_one_disturbs_once<D: Driver<Socket = TcpStream>>(
    mut bench: Bench<D>,
) {
    const MS: u64 = 1_000_000;
    let began = bench.driver.now();
    // Another thread ends a wait for a far deadline at once.
    D::wake(&bench.driver.waker());
    let mut out = Vec::new();
    while out.is_empty() {
        bench.driver.poll(Wait::Until(began + 400 * MS), &mut out).unwrap();
    }
    for near_ms in [20, 40, 60] {
        let mut out = Vec::new();
        bench.driver.poll(Wait::Until(began + near_ms * MS), &mut out).unwrap();
        let now = bench.driver.now();
        assert!(out.is_empty() && now >= began + near_ms * MS, "ended early");
        assert!(now < began + 390 * MS, "waited for the far deadline");
    }
    let mut waits = 0;
    while bench.driver.now() < began + 500 * MS {
        bench.driver.poll(Wait::Until(began + 500 * MS), &mut Vec::new()).unwrap();
        waits += 1;
    }
    assert!(waits <= 2, "{waits} waits");
}

pub(crate) fn a_wake_from_another_thread_ends_the_wait<D: Driver<Socket = TcpStream>>(mut bench: Bench<D>) {
    for _ in 0..10 {
        let waker = bench.driver.waker();
        let thread = thread::spawn(move || {
            thread::sleep(Duration::from_millis(2));
            for _ in 0..5 {
                D::wake(&waker);
            }
        });
        let mut out = Vec::new();
        while out.is_empty() {
            bench.driver.poll(Wait::Forever, &mut out).unwrap();
        }
        assert!(out.iter().all(|done| matches!(done, Completion::Woken)));
        thread.join().unwrap();
        bench.driver.poll(Wait::Never, &mut out).unwrap();
        assert!(out.len() <= 5, "wakes coalesce");
    }
}

pub(crate) fn many_streams_make_progress_together<D: Driver<Socket = TcpStream>>(mut bench: Bench<D>) {
    const STREAMS: usize = 300;
    let mut pairs: Vec<_> = (0..STREAMS).map(|_| bench.pair()).collect();
    for (stream, peer) in &mut pairs {
        bench.recv(*stream, 32);
        peer.write_all(&stream.index().to_be_bytes()).unwrap();
    }
    for (stream, peer) in &mut pairs {
        let (result, buffer) = bench.received(*stream);
        assert_eq!((result.unwrap(), &buffer.as_slice()[..4]), (4, &stream.index().to_be_bytes()[..]));
        bench.send(*stream, b"ok");
        bench.sent(*stream).0.unwrap();
        let mut answer = [0; 2];
        peer.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"ok");
    }
}

pub(crate) fn a_receive_ends_with_a_buffer_as_long_as_its_own<D: Driver<Socket = TcpStream>>(
    mut bench: Bench<D>,
) {
    let mut pairs: Vec<_> = (0..20).map(|_| bench.pair()).collect();
    for round in 0_u8..3 {
        for (at, (stream, _)) in pairs.iter().enumerate() {
            bench.recv(*stream, 100 + at % 5);
        }
        // In another order than they wait. In the last round they are closed instead.
        for (at, (stream, peer)) in pairs.iter_mut().enumerate().rev() {
            if round == 2 {
                bench.driver.close(*stream);
            } else {
                peer.write_all(&[round, at as u8]).unwrap();
            }
        }
        for (at, (stream, _)) in pairs.iter().enumerate() {
            let (result, buffer) = bench.received(*stream);
            assert_eq!(buffer.len(), 100 + at % 5, "stream {at}, round {round}");
            if round == 2 {
                assert!(result.is_err());
            } else {
                assert_eq!((result.unwrap(), &buffer.as_slice()[..2]), (2, &[round, at as u8][..]));
            }
        }
    }
}

pub(crate) fn a_busy_stream_does_not_starve_another<D: Driver<Socket = TcpStream>>(mut bench: Bench<D>) {
    let (busy, mut flood) = bench.pair();
    let (quiet, mut whisper) = bench.pair();
    let flooder = thread::spawn(move || while flood.write_all(&vec![0; 65_536]).is_ok() {});
    bench.recv(busy, 100);
    bench.recv(quiet, 100);
    for _ in 0..100 {
        bench.received(busy).0.unwrap();
        bench.recv(busy, 100);
    }
    whisper.write_all(b"psst").unwrap();
    let deadline = bench.driver.now() + super::LIMIT_NS;
    let mut out = Vec::new();
    'heard: loop {
        assert!(bench.driver.now() < deadline, "the quiet stream was not served");
        bench.driver.poll(Wait::Forever, &mut out).unwrap();
        for done in out.drain(..) {
            match done {
                Completion::Received { stream, result, .. } if stream == quiet => {
                    assert_eq!(result.unwrap(), 4);
                    break 'heard;
                }
                Completion::Received { stream, buffer, .. } => bench.driver.recv(stream, &[], buffer),
                _ => {}
            }
        }
    }
    bench.driver.close(busy);
    bench.driver.poll(Wait::Never, &mut out).unwrap();
    flooder.join().unwrap();
}
