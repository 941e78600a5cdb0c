//! Watching a network namespace: links that go up and down, addresses that come and go.
//!
//! The kernel tells every change over one netlink socket. When it told more than the socket could hold, everything is
//! listed again and compared with the last list, so only the delay shows it. The same comparison makes repeated
//! and overtaken messages harmless: an event is given only when something is different from before.

use crate::{
    net::route::{self, Fact, GROUPS, List},
    wake::Waker,
};
use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
    net::{
        AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, netlink::SocketAddrNetlink, recv,
        send, socket_with,
    },
};
use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    net::IpAddr,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    thread::{self, JoinHandle},
};

/// Longer than any datagram that the kernel makes of links and addresses.
const DATAGRAM_BYTES: usize = 64 * 1024;
/// Lists that a busy kernel may spoil before we give up.
const LISTS_MAX: u32 = 20;

/// What has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NetEvent {
    /// The interface is set up and has a carrier now.
    LinkUp {
        /// Its name.
        interface: String,
    },
    /// It is set down, has lost its carrier, or is gone.
    LinkDown {
        /// Its name.
        interface: String,
    },
    /// The interface has got an address, which can be used now.
    AddressAdded {
        /// The interface's name.
        interface: String,
        /// The address.
        address: IpAddr,
    },
    /// The address is gone, alone or with its interface.
    AddressRemoved {
        /// The interface's name.
        interface: String,
        /// The address.
        address: IpAddr,
    },
}

/// A view of the namespace in which it was opened, and a socket that tells how it changes. The socket (see
/// [`AsFd`]) is readable when [`NetWatch::take`] has something to do; nothing here blocks for longer than a list takes.
#[derive(Debug)]
pub struct NetWatch {
    socket: OwnedFd,
    /// For lists. A socket belongs to the namespace in which it was opened.
    lister: OwnedFd,
    datagram: Vec<u8>,
    view: View,
}

impl NetWatch {
    /// Watches the namespace of the calling thread. What there is now is in [`NetWatch::links`] and
    /// [`NetWatch::addresses`]; later changes are events.
    pub fn open() -> io::Result<Self> {
        let (socket, lister) = (open_socket(SocketFlags::NONBLOCK)?, open_socket(SocketFlags::empty())?);
        bind(&socket, &SocketAddrNetlink::new(0, GROUPS))?;
        let mut datagram = vec![0; DATAGRAM_BYTES];
        // Listed after the socket has begun to listen, so that no change falls between the two.
        let view = list(&lister, &mut datagram)?;
        Ok(Self { socket, lister, datagram, view })
    }

    /// The interfaces, and whether each is up and has a carrier.
    pub fn links(&self) -> impl Iterator<Item = (&str, bool)> {
        self.view.links.values().map(|link| (link.name.as_str(), link.up))
    }

    /// The addresses that can be used, and the interface that each belongs to.
    pub fn addresses(&self) -> impl Iterator<Item = (&str, IpAddr)> {
        let links = self.view.links.values();
        links.flat_map(|link| link.addresses.iter().map(|address| (link.name.as_str(), *address)))
    }

    /// Takes in everything that the kernel has told since the last call, and passes on what changed, in order.
    pub fn take(&mut self, mut tell: impl FnMut(NetEvent)) -> io::Result<()> {
        loop {
            match recv(&self.socket, &mut self.datagram[..], RecvFlags::empty()) {
                Ok((_, len)) => {
                    for fact in route::facts(&self.datagram[..len]) {
                        self.view.learn(fact, &mut tell);
                    }
                }
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => {}
                // What was told meanwhile is lost: the socket had no room.
                Err(Errno::NOBUFS) => {
                    self.drop_told()?;
                    let now = list(&self.lister, &mut self.datagram)?;
                    self.view.become_like(now, &mut tell);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Passes over what has been told: after an overrun it is old, and what would have corrected it is lost.
    fn drop_told(&mut self) -> io::Result<()> {
        loop {
            match recv(&self.socket, &mut self.datagram[..], RecvFlags::empty()) {
                Ok(_) | Err(Errno::INTR | Errno::NOBUFS) => {}
                Err(Errno::AGAIN) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Watches on a thread of its own until the result is dropped. `tell` gets every change, and an error if watching had
    /// to end.
    pub fn follow(self, tell: impl FnMut(io::Result<NetEvent>) + Send + 'static) -> io::Result<NetFollower> {
        let waker = Waker::new()?;
        let end = waker.clone();
        let builder = thread::Builder::new().name("linerate-netwatch".into());
        let thread = builder.spawn(move || self.run(&end, tell))?;
        Ok(NetFollower { waker, thread: Some(thread) })
    }

    fn run(mut self, end: &Waker, mut tell: impl FnMut(io::Result<NetEvent>)) {
        loop {
            let mut ready =
                [PollFd::new(&self.socket, PollFlags::IN), PollFd::from_borrowed_fd(end.fd(), PollFlags::IN)];
            let waited = poll(&mut ready, None);
            if !ready[1].revents().is_empty() {
                return;
            }
            let taken = match waited {
                Ok(_) | Err(Errno::INTR) => self.take(|event| tell(Ok(event))),
                Err(error) => Err(error.into()),
            };
            if let Err(error) = taken {
                return tell(Err(error));
            }
        }
    }
}

impl AsFd for NetWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The thread of [`NetWatch::follow`]. Dropping it ends the thread, after which nothing more is told.
#[derive(Debug)]
pub struct NetFollower {
    waker: Waker,
    thread: Option<JoinHandle<()>>,
}

impl Drop for NetFollower {
    fn drop(&mut self) {
        self.waker.wake();
        if let Some(thread) = self.thread.take() {
            // One that panicked has said so on standard error.
            let _ = thread.join();
        }
    }
}

/// What is known of a namespace.
#[derive(Debug, Default)]
struct View {
    /// By the kernel's index.
    links: BTreeMap<u32, Link>,
}

#[derive(Debug)]
struct Link {
    name: String,
    up: bool,
    addresses: BTreeSet<IpAddr>,
}

impl View {
    fn learn(&mut self, fact: Fact, tell: &mut impl FnMut(NetEvent)) {
        match fact {
            Fact::Link { index, name, up } => self.learn_link(index, name, up, tell),
            Fact::LinkGone { index } => {
                if let Some(link) = self.links.remove(&index) {
                    link.end(tell);
                }
            }
            Fact::Address { index, address } => {
                if let Some(link) = self.links.get_mut(&index)
                    && link.addresses.insert(address)
                {
                    tell(NetEvent::AddressAdded { interface: link.name.clone(), address });
                }
            }
            Fact::AddressGone { index, address } => {
                if let Some(link) = self.links.get_mut(&index)
                    && link.addresses.remove(&address)
                {
                    tell(NetEvent::AddressRemoved { interface: link.name.clone(), address });
                }
            }
            Fact::Interrupted | Fact::Done | Fact::Refused(_) => {}
        }
    }

    fn learn_link(&mut self, index: u32, name: String, up: bool, tell: &mut impl FnMut(NetEvent)) {
        let known = self.links.remove(&index);
        let link = match known {
            Some(link) if link.name == name => {
                if link.up != up {
                    tell(change(&name, up));
                }
                Link { up, ..link }
            }
            known => {
                // Under a new name it is another one to everybody who goes by names.
                let addresses = known.map(|link| link.end(tell)).unwrap_or_default();
                if up {
                    tell(change(&name, true));
                }
                for address in &addresses {
                    tell(NetEvent::AddressAdded { interface: name.clone(), address: *address });
                }
                Link { name, up, addresses }
            }
        };
        self.links.insert(index, link);
    }

    /// Tells what makes this view another one.
    fn become_like(&mut self, now: Self, tell: &mut impl FnMut(NetEvent)) {
        let gone: Vec<u32> =
            self.links.keys().copied().filter(|index| !now.links.contains_key(index)).collect();
        for index in gone {
            self.learn(Fact::LinkGone { index }, tell);
        }
        for (index, link) in now.links {
            let known = self.links.get(&index).map(|known| known.addresses.clone()).unwrap_or_default();
            for address in known.difference(&link.addresses) {
                self.learn(Fact::AddressGone { index, address: *address }, tell);
            }
            self.learn(Fact::Link { index, name: link.name, up: link.up }, tell);
            for address in link.addresses {
                self.learn(Fact::Address { index, address }, tell);
            }
        }
    }
}

impl Link {
    /// Tells that it is gone, and gives the addresses that it had.
    fn end(self, tell: &mut impl FnMut(NetEvent)) -> BTreeSet<IpAddr> {
        for address in &self.addresses {
            tell(NetEvent::AddressRemoved { interface: self.name.clone(), address: *address });
        }
        if self.up {
            tell(change(&self.name, false));
        }
        self.addresses
    }
}

fn change(interface: &str, up: bool) -> NetEvent {
    let interface = interface.to_owned();
    if up { NetEvent::LinkUp { interface } } else { NetEvent::LinkDown { interface } }
}

fn open_socket(flags: SocketFlags) -> io::Result<OwnedFd> {
    // No protocol is protocol 0, which is route netlink.
    Ok(socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC | flags, None)?)
}

/// Lists the namespace of a socket.
fn list(socket: &OwnedFd, datagram: &mut [u8]) -> io::Result<View> {
    for _ in 0..LISTS_MAX {
        let mut view = View::default();
        let whole = list_into(&mut view, socket, List::Links, datagram)?
            && list_into(&mut view, socket, List::Addresses, datagram)?;
        if whole {
            return Ok(view);
        }
    }
    Err(io::Error::new(io::ErrorKind::TimedOut, "links and addresses change faster than they can be listed"))
}

/// Adds a whole list to the view. False if it was spoilt by a change.
fn list_into(view: &mut View, socket: &OwnedFd, list: List, datagram: &mut [u8]) -> io::Result<bool> {
    send(socket, &route::request(list), SendFlags::empty())?;
    let mut whole = true;
    loop {
        let (_, len) = recv(socket, &mut *datagram, RecvFlags::empty())?;
        for fact in route::facts(&datagram[..len]) {
            match fact {
                Fact::Done => return Ok(whole),
                Fact::Refused(number) => return Err(io::Error::from_raw_os_error(number)),
                Fact::Interrupted => whole = false,
                fact => view.learn(fact, &mut |_| {}),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(index: u32, name: &str, up: bool) -> Fact {
        Fact::Link { index, name: name.into(), up }
    }

    fn address(index: u32, last: u8) -> Fact {
        Fact::Address { index, address: [10, 0, 0, last].into() }
    }

    fn view(facts: impl IntoIterator<Item = Fact>) -> View {
        let mut view = View::default();
        facts.into_iter().for_each(|fact| view.learn(fact, &mut |_| {}));
        view
    }

    /// Events in few words.
    fn told(act: impl FnOnce(&mut dyn FnMut(NetEvent))) -> Vec<String> {
        let mut told = Vec::new();
        act(&mut |event| {
            told.push(match event {
                NetEvent::LinkUp { interface } => format!("{interface} up"),
                NetEvent::LinkDown { interface } => format!("{interface} down"),
                NetEvent::AddressAdded { interface, address } => format!("{interface} + {address}"),
                NetEvent::AddressRemoved { interface, address } => format!("{interface} - {address}"),
            });
        });
        told
    }

    fn learnt(view: &mut View, facts: impl IntoIterator<Item = Fact>) -> Vec<String> {
        told(|mut tell| facts.into_iter().for_each(|fact| view.learn(fact, &mut tell)))
    }

    #[test]
    fn only_what_is_different_is_told() {
        let mut view = view([link(1, "a", true), address(1, 1)]);
        let again = [link(1, "a", true), address(1, 1), address(2, 9), Fact::LinkGone { index: 3 }];
        assert_eq!(learnt(&mut view, again), [""; 0]);
        let changes = [address(1, 2), link(1, "a", false), link(1, "a", true)];
        assert_eq!(learnt(&mut view, changes), ["a + 10.0.0.2", "a down", "a up"]);
        let gone =
            [Fact::AddressGone { index: 1, address: [10, 0, 0, 1].into() }, Fact::LinkGone { index: 1 }];
        assert_eq!(learnt(&mut view, gone), ["a - 10.0.0.1", "a - 10.0.0.2", "a down"]);
    }

    #[test]
    fn a_renamed_link_is_another_one() {
        let mut view = view([link(1, "a", true), address(1, 1)]);
        let expected = ["a - 10.0.0.1", "a down", "b up", "b + 10.0.0.1"];
        assert_eq!(learnt(&mut view, [link(1, "b", true)]), expected);
    }

    #[test]
    fn after_an_overrun_the_difference_is_told() {
        let mut old =
            view([link(1, "a", true), address(1, 1), address(1, 2), link(2, "b", true), address(2, 3)]);
        let new = [link(1, "a", false), address(1, 2), address(1, 4), link(3, "c", true), address(3, 3)];
        let events = told(|mut tell| old.become_like(view(new.clone()), &mut tell));
        let expected =
            ["b - 10.0.0.3", "b down", "a - 10.0.0.1", "a down", "a + 10.0.0.4", "c up", "c + 10.0.0.3"];
        assert_eq!(events, expected);
        assert_eq!(told(|mut tell| old.become_like(view(new), &mut tell)), [""; 0]);
    }

    #[test]
    fn every_namespace_has_a_loopback_interface() {
        let watch = NetWatch::open().unwrap();
        assert!(watch.links().any(|(name, _)| name == "lo"));
        for (interface, _) in watch.addresses() {
            assert!(watch.links().any(|(name, _)| name == interface));
        }
        watch.follow(|event| drop(event.unwrap())).unwrap();
    }
}
