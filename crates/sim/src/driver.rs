//! The driver trait on a simulated network.

use crate::files::{FileOperation, FileWork};
use crate::link::{Recv, Send, Side};
use crate::socket::SimSocket;
use crate::world::{SimNetwork, Station, World, WorldEvent};
use linerate_io::{
    Buffer, Completion, Driver, FileOptions, Handle, Nanos, Outgoing, Region, RegionId, Seg, Slots,
    SocketOptions, TcpInfo, Wait,
};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

/// Wakes a [`SimDriver`].
#[derive(Clone)]
pub struct SimWaker {
    network: SimNetwork,
    station: usize,
}

/// One host of a [`SimNetwork`]. Its [`Driver::poll`] never waits: it records the end of its wait and returns the
/// completions. [`SimNetwork::advance`] moves the clock once all drivers wait.
pub struct SimDriver {
    network: SimNetwork,
    station: usize,
    objects: Slots<Object>,
}

#[derive(Clone, Copy)]
enum Object {
    Listener(SocketAddr),
    Stream(usize, Side),
    File(usize),
}

impl SimNetwork {
    /// A driver on this network: one host.
    pub fn driver(&self) -> SimDriver {
        let mut world = self.lock();
        world.stations.push(Station::default());
        SimDriver { network: self.clone(), station: world.stations.len() - 1, objects: Slots::new() }
    }
}

impl SimDriver {
    fn stream(&self, handle: Handle) -> Option<(usize, Side)> {
        match *self.objects.get(handle)? {
            Object::Stream(link, side) => Some((link, side)),
            Object::Listener(_) | Object::File(_) => None,
        }
    }

    fn ready(world: &mut World, station: usize, completion: Completion<SimSocket>) {
        world.stations[station].ready.push_back(completion);
    }
}

impl Driver for SimDriver {
    type Socket = SimSocket;
    type Waker = SimWaker;

    fn name(&self) -> &'static str {
        "sim"
    }

    fn now(&self) -> Nanos {
        self.network.now()
    }

    fn waker(&self) -> SimWaker {
        SimWaker { network: self.network.clone(), station: self.station }
    }

    fn wake(waker: &SimWaker) {
        waker.network.lock().stations[waker.station].woken = true;
    }

    fn attach(&mut self, region: Arc<Region>) -> RegionId {
        let regions = &mut self.network.lock().stations[self.station].regions;
        regions.push(region);
        RegionId::new(regions.len() as u32 - 1)
    }

    fn listen(&mut self, mut addr: SocketAddr, _options: &SocketOptions) -> io::Result<Handle> {
        let network = self.network.clone();
        let mut world = network.lock();
        if addr.port() == 0 {
            addr.set_port(world.next_port);
            world.next_port += 1;
        }
        if world.listeners.contains_key(&addr) {
            return Err(ErrorKind::AddrInUse.into());
        }
        let handle = self.objects.insert(Object::Listener(addr));
        world.listeners.insert(addr, (self.station, handle));
        Ok(handle)
    }

    fn local_addr(&self, handle: Handle) -> io::Result<SocketAddr> {
        match self.objects.get(handle).copied().ok_or(ErrorKind::NotConnected)? {
            Object::Listener(addr) => Ok(addr),
            Object::Stream(link, side) => Ok(self.network.lock().links[link].end(side).addr),
            Object::File(_) => Err(ErrorKind::NotConnected.into()),
        }
    }

    fn connect(&mut self, addr: SocketAddr, options: &SocketOptions) -> io::Result<Handle> {
        let network = self.network.clone();
        let mut world = network.lock();
        let client =
            SocketAddr::new(options.bind.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST)), world.next_port);
        world.next_port = world.next_port.wrapping_add(1).max(1024);
        // The connection contains the handle, and the handle's entry contains the connection.
        let link = world.links.len();
        let handle = self.objects.insert(Object::Stream(link, Side::Client));
        let made = world.connect((self.station, handle), client, addr);
        debug_assert_eq!(made, link);
        let timeout_ms = options.user_timeout_ms.map(Nanos::from);
        world.links[link].end(Side::Client).user_timeout = timeout_ms.map(|ms| ms * 1_000_000);
        Ok(handle)
    }

    fn add_stream(&mut self, mut socket: SimSocket, _options: &SocketOptions) -> io::Result<Handle> {
        let link = socket.link.take().ok_or(ErrorKind::NotConnected)?;
        let handle = self.objects.insert(Object::Stream(link, Side::Server));
        self.network.lock().links[link].end(Side::Server).owner = Some((self.station, handle));
        Ok(handle)
    }

    fn tcp_info(&self, stream: Handle) -> io::Result<TcpInfo> {
        self.stream(stream).ok_or(ErrorKind::NotConnected)?;
        Ok(TcpInfo::default())
    }

    fn recv(&mut self, stream: Handle, direct: &[Seg], buffer: Buffer) {
        let mut world = self.network.lock();
        // Closed.
        let Some((link, side)) = self.stream(stream) else {
            let result = Err(ErrorKind::NotConnected.into());
            return Self::ready(&mut world, self.station, Completion::Received { stream, result, buffer });
        };
        let end = world.links[link].end(side);
        assert!(end.recv.is_none(), "one receive per stream at a time");
        let recv = Recv { direct: direct.to_vec(), buffer };
        assert!(recv.room() > 0, "a receive needs room");
        end.recv = Some(recv);
        world.deliver(link, side);
    }

    fn retract(&mut self, stream: Handle) -> bool {
        let Some((link, side)) = self.stream(stream) else { return false };
        let mut world = self.network.lock();
        let Some(recv) = &mut world.links[link].end(side).recv else { return false };
        recv.direct.clear();
        assert!(recv.room() > 0, "the receive needs a buffer");
        true
    }

    fn send(&mut self, stream: Handle, outgoing: Box<Outgoing>) {
        assert!(!outgoing.is_empty(), "a send needs bytes");
        let mut world = self.network.lock();
        let dead = match self.stream(stream) {
            Some((link, side)) => world.links[link].end(side).dead,
            None => Some(ErrorKind::NotConnected),
        };
        if let Some(error) = dead {
            let result = Err(error.into());
            return Self::ready(&mut world, self.station, Completion::Sent { stream, result, outgoing });
        }
        if let Some((link, side)) = self.stream(stream) {
            let end = world.links[link].end(side);
            assert!(end.send.is_none(), "one send per stream at a time");
            end.send = Some(Send { outgoing, sent: 0 });
            let at = world.now + world.rng.range(0, 1_000);
            world.schedule(at, WorldEvent::Transmit { link, side });
        }
    }

    fn open(&mut self, path: &Path, options: &FileOptions) -> io::Result<Handle> {
        let file = self.network.lock().open_file(path, options)?;
        Ok(self.objects.insert(Object::File(file)))
    }

    fn file_size(&self, file: Handle) -> io::Result<u64> {
        match self.objects.get(file) {
            Some(Object::File(index)) => Ok(self.network.lock().file_bytes(*index)),
            _ => Err(ErrorKind::NotFound.into()),
        }
    }

    fn read_at(&mut self, file: Handle, tag: u64, segs: &[Seg], offset: u64) {
        self.file_operation(file, tag, FileWork::Read { segs: segs.to_vec(), offset });
    }

    fn write_at(&mut self, file: Handle, tag: u64, segs: &[Seg], offset: u64, _durable: bool) {
        self.file_operation(file, tag, FileWork::Write { segs: segs.to_vec(), offset });
    }

    fn sync(&mut self, file: Handle, tag: u64) {
        self.file_operation(file, tag, FileWork::Sync);
    }

    fn discard(&mut self, file: Handle, tag: u64, offset: u64, len: u64) {
        self.file_operation(file, tag, FileWork::Discard { offset, len });
    }

    /// Memory is space enough.
    fn allocate(&mut self, file: Handle, tag: u64, _offset: u64, _len: u64) {
        self.file_operation(file, tag, FileWork::Sync);
    }

    fn close(&mut self, handle: Handle) {
        // Closed before.
        let Some(object) = self.objects.remove(handle) else { return };
        let mut world = self.network.lock();
        match object {
            Object::Listener(addr) => drop(world.listeners.remove(&addr)),
            Object::Stream(link, side) => world.close(link, side),
            Object::File(_) => {}
        }
    }

    fn poll(&mut self, wait: Wait, out: &mut Vec<Completion<SimSocket>>) -> io::Result<()> {
        let mut world = self.network.lock();
        world.run_due();
        let station = &mut world.stations[self.station];
        if std::mem::take(&mut station.woken) {
            out.push(Completion::Woken);
        }
        out.extend(station.ready.drain(..));
        station.wake_at = match wait {
            Wait::Until(at) => Some(at),
            _ => None,
        };
        Ok(())
    }
}

impl SimDriver {
    fn file_operation(&mut self, handle: Handle, tag: u64, work: FileWork) {
        let mut world = self.network.lock();
        let Some(Object::File(file)) = self.objects.get(handle).copied() else {
            let result = Err(ErrorKind::NotFound.into());
            return Self::ready(&mut world, self.station, Completion::File { file: handle, tag, result });
        };
        let station = self.station;
        world.begin_file_operation(FileOperation { station, handle, file, tag, work });
    }
}
