//! Streams and listeners.

use super::{Bench, LIMIT_NS, localhost};
use linerate_io::{Buffer, Completion, Driver, EpollDriver, Outgoing, Region, Seg, SocketOptions, Wait};
use std::{
    io::{ErrorKind, Read, Write},
    net::{Ipv6Addr, Shutdown, TcpListener, TcpStream},
    thread,
};

pub(crate) fn echoes_over_ipv4_and_ipv6<D: Driver<Socket = TcpStream>>(mut bench: Bench<D>) {
    for addr in [localhost(), (Ipv6Addr::LOCALHOST, 0).into()] {
        let (listener, addr) = bench.listen(addr);
        let client = bench.driver.connect(addr, &SocketOptions::default()).unwrap();
        bench.connected(client).unwrap();
        let server = bench.accept(listener);
        assert_eq!(bench.driver.local_addr(server).unwrap(), addr);
        for round in 0..100_u8 {
            bench.recv(server, 64);
            bench.recv(client, 64);
            bench.send(client, &[round; 33]);
            let (result, buffer) = bench.received(server);
            assert_eq!(result.unwrap(), 33);
            bench.send(server, &buffer.as_slice()[..33]);
            let (result, buffer) = bench.received(client);
            assert_eq!((result.unwrap(), &buffer.as_slice()[..33]), (33, &[round; 33][..]));
            bench.sent(client).0.unwrap();
            bench.sent(server).0.unwrap();
        }
    }
}

pub(crate) fn receives_into_segments_first<D: Driver<Socket = TcpStream>>(mut bench: Bench<D>) {
    let (stream, mut peer) = bench.pair();
    let region = Region::anonymous(8192).unwrap();
    let id = bench.driver.attach(region.clone());
    let segs = [Seg { region: id, offset: 4094, len: 4 }, Seg { region: id, offset: 10, len: 3 }];
    peer.write_all(b"0123456789").unwrap();
    // The peer's bytes are in the socket before the receive starts, so that one receive takes them all.
    thread::sleep(std::time::Duration::from_millis(50));
    bench.driver.recv(stream, &segs, Buffer::new(16));
    let (result, buffer) = bench.received(stream);
    assert_eq!(result.unwrap(), 10);
    assert_eq!((region.compare(4094, b"0123"), region.compare(10, b"456")), (None, None));
    assert_eq!(&buffer.as_slice()[..3], b"789");
}

pub(crate) fn a_retracted_receive_fills_its_buffer_only<D: Driver<Socket = TcpStream>>(mut bench: Bench<D>) {
    let (stream, mut peer) = bench.pair();
    let region = Region::anonymous(4096).unwrap();
    let segs = [Seg { region: bench.driver.attach(region.clone()), offset: 0, len: 4 }];
    assert!(!bench.driver.retract(stream), "no receive waits");
    for round in 0..3 {
        bench.driver.recv(stream, &segs, Buffer::new(16));
        bench.expect_nothing();
        assert!(bench.driver.retract(stream) && bench.driver.retract(stream), "again changes nothing");
        peer.write_all(b"0123456789").unwrap();
        let (result, buffer) = bench.received(stream);
        assert_eq!((result.unwrap(), &buffer.as_slice()[..10]), (10, &b"0123456789"[..]), "round {round}");
        assert_eq!(region.compare(0, &[0; 16]), None, "the segments are left alone");
    }
    // The next receive has segments again; a receive that has found bytes keeps them.
    peer.write_all(b"abcdef").unwrap();
    thread::sleep(std::time::Duration::from_millis(50));
    bench.driver.recv(stream, &segs, Buffer::new(16));
    let retracted = bench.driver.retract(stream);
    let (result, buffer) = bench.received(stream);
    assert_eq!(result.unwrap(), 6);
    let (placed, rest) = if retracted { ([0; 4], &b"abcdef"[..]) } else { (*b"abcd", &b"ef"[..]) };
    assert_eq!((region.compare(0, &placed), &buffer.as_slice()[..rest.len()]), (None, rest));
    bench.driver.close(stream);
    assert!(!bench.driver.retract(stream), "a closed stream has none");
}

pub(crate) fn sends_from_regions_and_resumes_short_sends<D: Driver<Socket = TcpStream>>(mut bench: Bench<D>) {
    const LEN: u32 = 8 << 20;
    let (stream, mut peer) = bench.pair();
    let region = Region::anonymous(u64::from(LEN)).unwrap();
    let pattern: Vec<u8> = (0..251).collect();
    region.fill(0, u64::from(LEN), &pattern);
    let id = bench.driver.attach(region.clone());
    let mut outgoing = Box::new(Outgoing::new());
    let mut expected = Vec::new();
    // Far more pieces than one system call takes, and far more bytes than the socket buffers hold.
    for (at, header) in (0..LEN).step_by(4096).zip(0_u32..) {
        outgoing.push_bytes(&header.to_be_bytes());
        outgoing.push_seg(Seg { region: id, offset: u64::from(at), len: 4096 });
        expected.extend_from_slice(&header.to_be_bytes());
        let mut bytes = [0; 4096];
        region.read(u64::from(at), &mut bytes);
        expected.extend_from_slice(&bytes);
    }
    let len_bytes = outgoing.len_bytes();
    bench.driver.send(stream, outgoing);
    let reader = thread::spawn(move || {
        thread::sleep(std::time::Duration::from_millis(50));
        let mut got = vec![0; len_bytes];
        peer.read_exact(&mut got).unwrap();
        got
    });
    let (result, outgoing) = bench.sent(stream);
    result.unwrap();
    assert_eq!(outgoing.len_bytes(), len_bytes, "the list comes back as it was");
    assert!(reader.join().unwrap() == expected);
}

pub(crate) fn short_lists_fill_a_socket_and_keep_their_order<D: Driver<Socket = TcpStream>>(
    mut bench: Bench<D>,
) {
    const LISTS: usize = 2000;
    let (stream, mut peer) = bench.pair();
    // 20 MB: the peer reads late, so a list is sent only in part at some point.
    let list = |nth: usize| -> Vec<u8> { (nth..nth + 10_001).map(|at| (at % 251) as u8).collect() };
    let reader = thread::spawn(move || {
        thread::sleep(std::time::Duration::from_millis(100));
        let mut got = vec![0; 10_001];
        for nth in 0..LISTS {
            peer.read_exact(&mut got).unwrap();
            assert!(got == list(nth), "list {nth}");
        }
    });
    for nth in 0..LISTS {
        bench.send(stream, &list(nth));
        bench.sent(stream).0.unwrap();
    }
    reader.join().unwrap();
}

pub(crate) fn a_long_send_goes_with_the_next_poll_whatever_that_brings<D: Driver<Socket = TcpStream>>(
    mut bench: Bench<D>,
) {
    let (long, mut peer) = bench.pair();
    let (short, _other) = bench.pair();
    bench.send(long, &vec![7; 100_000]);
    bench.send(short, &[8; 100]);
    let mut done = Vec::new();
    bench.driver.poll(Wait::Never, &mut done).unwrap();
    let mut got = vec![0; 100_000];
    peer.read_exact(&mut got).unwrap();
    assert!(got.iter().all(|&byte| byte == 7));
}

pub(crate) fn an_end_after_data_is_seen<D: Driver<Socket = TcpStream>>(mut bench: Bench<D>) {
    let (stream, mut peer) = bench.pair();
    bench.recv(stream, 100);
    peer.write_all(b"last words").unwrap();
    assert_eq!(bench.received(stream).0.unwrap(), 10);
    bench.recv(stream, 100);
    bench.expect_nothing();
    peer.shutdown(Shutdown::Write).unwrap();
    assert_eq!(bench.received(stream).0.unwrap(), 0);
}

pub(crate) fn data_and_end_that_came_together_are_both_seen<D: Driver<Socket = TcpStream>>(
    mut bench: Bench<D>,
) {
    let (stream, mut peer) = bench.pair();
    peer.write_all(b"last words").unwrap();
    drop(peer);
    thread::sleep(std::time::Duration::from_millis(50));
    for expected in [10, 0, 0] {
        bench.recv(stream, 100);
        assert_eq!(bench.received(stream).0.unwrap(), expected);
    }
}

/// All other work is done between two small groups of a flood.
pub(crate) fn a_flood_of_connections_comes_in_handfuls<D: Driver<Socket = TcpStream>>(mut bench: Bench<D>) {
    let (_, addr) = bench.listen(localhost());
    let peers: Vec<_> = (0..300).map(|_| TcpStream::connect(addr).unwrap()).collect();
    let (mut accepted, deadline) = (0, bench.driver.now() + LIMIT_NS);
    while accepted < peers.len() {
        let mut done = Vec::new();
        bench.driver.poll(Wait::Until(deadline), &mut done).unwrap();
        let count =
            done.iter().filter(|done| matches!(done, Completion::Accepted { result: Ok(_), .. })).count();
        assert!(count <= 64, "{count} at a time");
        assert!(bench.driver.now() < deadline, "{accepted} of {}", peers.len());
        accepted += count;
    }
    bench.expect_nothing();
}

pub(crate) fn refused_connections_say_so<D: Driver<Socket = TcpStream>>(mut bench: Bench<D>) {
    let closed = TcpListener::bind(localhost()).unwrap().local_addr().unwrap();
    match bench.driver.connect(closed, &SocketOptions::default()) {
        Ok(stream) => {
            assert_eq!(bench.connected(stream).unwrap_err().kind(), ErrorKind::ConnectionRefused);
        }
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionRefused),
    }
}

pub(crate) fn closing_gives_buffers_back<D: Driver<Socket = TcpStream>>(mut bench: Bench<D>) {
    let (stream, peer) = bench.pair();
    let region = Region::anonymous(16 << 20).unwrap();
    let id = bench.driver.attach(region);
    let mut outgoing = Box::new(Outgoing::new());
    outgoing.push_seg(Seg { region: id, offset: 0, len: 16 << 20 });
    bench.driver.send(stream, outgoing);
    bench.recv(stream, 777);
    bench.expect_nothing();
    bench.driver.close(stream);
    let (result, buffer) = bench.received(stream);
    assert_eq!(result.unwrap_err().kind(), ErrorKind::ConnectionAborted);
    assert_eq!(buffer.len(), 777);
    let (result, outgoing) = bench.sent(stream);
    assert_eq!(result.unwrap_err().kind(), ErrorKind::ConnectionAborted);
    assert_eq!(outgoing.len_bytes(), 16 << 20);
    let mut rest = Vec::new();
    // The peer sees the end (or a reset) and does not wait for ever.
    let _ = (&peer).read_to_end(&mut rest);
    assert!(rest.len() < 16 << 20);
}

pub(crate) fn closing_a_connecting_stream_ends_it<D: Driver<Socket = TcpStream>>(mut bench: Bench<D>) {
    // A listener with a full backlog: further connections stay half-way.
    let options = SocketOptions { backlog: 0, ..SocketOptions::default() };
    let mut parked = EpollDriver::new().unwrap();
    let listener = parked.listen(localhost(), &options).unwrap();
    let addr = parked.local_addr(listener).unwrap();
    let mut waiting = Vec::new();
    for _ in 0..8 {
        waiting.push(bench.driver.connect(addr, &SocketOptions::default()).unwrap());
    }
    bench.driver.poll(Wait::Never, &mut Vec::new()).unwrap();
    let last = waiting[7];
    bench.driver.close(last);
    assert_eq!(bench.connected(last).unwrap_err().kind(), ErrorKind::ConnectionAborted);
}

pub(crate) fn a_stale_handle_is_an_error<D: Driver<Socket = TcpStream>>(mut bench: Bench<D>) {
    let (stream, _peer) = bench.pair();
    bench.driver.close(stream);
    let (newer, _newer_peer) = bench.pair();
    assert_ne!(stream, newer);
    bench.recv(stream, 10);
    assert!(bench.received(stream).0.is_err());
    bench.send(stream, b"lost");
    assert!(bench.sent(stream).0.is_err());
    assert!(bench.driver.local_addr(stream).is_err());
    assert!(bench.driver.tcp_info(stream).is_err());
    bench.driver.sync(stream, 9);
    assert!(bench.filed(stream, 9).is_err());
}

pub(crate) fn a_segment_outside_its_region_is_an_error<D: Driver<Socket = TcpStream>>(mut bench: Bench<D>) {
    let (stream, _peer) = bench.pair();
    let id = bench.driver.attach(Region::anonymous(4096).unwrap());
    let outside = Seg { region: id, offset: 4090, len: 7 };
    bench.driver.recv(stream, &[outside], Buffer::default());
    assert_eq!(bench.received(stream).0.unwrap_err().kind(), ErrorKind::InvalidInput);
    let mut outgoing = Box::new(Outgoing::new());
    outgoing.push_seg(outside);
    bench.driver.send(stream, outgoing);
    assert_eq!(bench.sent(stream).0.unwrap_err().kind(), ErrorKind::InvalidInput);
}

pub(crate) fn sockets_move_between_drivers<D: Driver<Socket = TcpStream>>(mut bench: Bench<D>) {
    let (listener, addr) = bench.listen(localhost());
    let mut peer = TcpStream::connect(addr).unwrap();
    let ((), done) = bench.expect("accept", |done| matches!(done, Completion::Accepted { .. }).then_some(()));
    let Completion::Accepted { result, listener: from } = done else { unreachable!() };
    assert_eq!(from, listener);
    let (socket, from) = result.unwrap();
    assert_eq!(from, peer.local_addr().unwrap());
    peer.write_all(b"before").unwrap();
    let worker = thread::spawn(move || {
        let mut other = Bench::new(EpollDriver::new().unwrap());
        let stream = other.driver.add_stream(socket, &SocketOptions::default()).unwrap();
        other.recv(stream, 100);
        other.received(stream).0.unwrap()
    });
    assert_eq!(worker.join().unwrap(), 6);
}

pub(crate) fn socket_options_are_applied<D: Driver<Socket = TcpStream>>(mut bench: Bench<D>) {
    let options = SocketOptions {
        nodelay: false,
        send_buffer_bytes: Some(100_000),
        recv_buffer_bytes: Some(50_000),
        congestion_control: Some("cubic".into()),
        user_timeout_ms: Some(5000),
        keepalive_s: Some(30),
        ..SocketOptions::default()
    };
    let (listener, addr) = bench.listen(localhost());
    let stream = bench.driver.connect(addr, &options).unwrap();
    bench.connected(stream).unwrap();
    let info = bench.driver.tcp_info(stream).unwrap();
    assert_eq!((info.nodelay, info.congestion_control.as_str()), (false, "cubic"));
    assert_eq!((info.send_buffer_bytes, info.recv_buffer_bytes), (200_000, 100_000));
    let server = bench.accept(listener);
    assert!(bench.driver.tcp_info(server).unwrap().nodelay);
    bench.send(stream, &[1; 5000]);
    bench.sent(stream).0.unwrap();
    bench.recv(server, 5000);
    bench.received(server).0.unwrap();
    assert_eq!(bench.driver.tcp_info(stream).unwrap().bytes_sent, 5000);
}

pub(crate) fn a_taken_port_is_an_error<D: Driver<Socket = TcpStream>>(mut bench: Bench<D>) {
    let (listener, addr) = bench.listen(localhost());
    let error = bench.driver.listen(addr, &SocketOptions::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AddrInUse);
    // A closed listener frees its port.
    bench.driver.close(listener);
    bench.driver.poll(Wait::Never, &mut Vec::new()).unwrap();
    bench.driver.listen(addr, &SocketOptions::default()).unwrap();
}

pub(crate) fn dropping_the_driver_ends_what_is_in_flight<D: Driver<Socket = TcpStream>>(mut bench: Bench<D>) {
    let (stream, mut peer) = bench.pair();
    let region = Region::anonymous(16 << 20).unwrap();
    let id = bench.driver.attach(region.clone());
    let mut outgoing = Box::new(Outgoing::new());
    outgoing.push_seg(Seg { region: id, offset: 0, len: 16 << 20 });
    bench.driver.send(stream, outgoing);
    bench.driver.recv(stream, &[Seg { region: id, offset: 0, len: 4096 }], Buffer::new(100));
    bench.expect_nothing();
    drop(bench);
    // Only the test owns the region again, and nothing writes to it any more.
    assert_eq!(std::sync::Arc::strong_count(&region), 1);
    let _ = peer.write_all(&[0xFF; 4096]);
    thread::sleep(std::time::Duration::from_millis(20));
    assert_eq!(region.compare(0, &[0; 4096]), None);
}
