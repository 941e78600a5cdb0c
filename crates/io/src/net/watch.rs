//! Watches a network namespace: links that go up and down, addresses that are added and removed.
//!
//! The kernel reports every change over one netlink socket. When the socket overflows, all links and addresses are listed
//! again and compared with the last view; the only effect is a delay. The same comparison makes repeated and outdated
//! messages harmless: an event is reported only when something differs from before.

use crate::{
    Waker,
    net::route::{self, GROUPS, List, RouteFact},
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

/// Longer than any datagram of the kernel about links and addresses.
const DATAGRAM_BYTES: usize = 64 * 1024;
/// Most attempts at a list that changes interrupt.
const LISTS_MAX: u32 = 20;

/// What has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NetEvent {
    /// The interface is set up and has a carrier now.
    LinkUp {
        /// Its name.
        interface: String,
    },
    /// It is set down, has lost its carrier, or was removed.
    LinkDown {
        /// Its name.
        interface: String,
    },
    /// The interface has a new address, which can be used now.
    AddressAdded {
        /// The interface's name.
        interface: String,
        /// The address.
        address: IpAddr,
    },
    /// The address was removed, alone or with its interface.
    AddressRemoved {
        /// The interface's name.
        interface: String,
        /// The address.
        address: IpAddr,
    },
}

/// A view of the namespace in which it was opened, and a socket that reports its changes. The socket (see [`AsFd`]) is
/// readable when [`NetWatch::take`] has work; no call blocks for longer than a list takes.
#[derive(Debug)]
pub struct NetWatch {
    socket: OwnedFd,
    /// For lists. A socket belongs to the namespace in which it was opened, whichever thread uses it.
    lister: OwnedFd,
    datagram: Vec<u8>,
    view: NetView,
}

impl NetWatch {
    /// Watches the namespace of the calling thread. [`NetWatch::links`] and [`NetWatch::addresses`] list what exists
    /// now; later changes are events.
    pub fn open() -> io::Result<Self> {
        let (socket, lister) = (open_socket(SocketFlags::NONBLOCK)?, open_socket(SocketFlags::empty())?);
        bind(&socket, &SocketAddrNetlink::new(0, GROUPS))?;
        let mut datagram = vec![0; DATAGRAM_BYTES];
        // The list follows the bind, so no change is missed in between.
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

    /// Reads all messages of the kernel since the last call, and reports the changes in order.
    pub fn take(&mut self, mut report: impl FnMut(NetEvent)) -> io::Result<()> {
        loop {
            match recv(&self.socket, &mut self.datagram[..], RecvFlags::empty()) {
                Ok((_, len)) => {
                    for fact in route::facts(&self.datagram[..len]) {
                        self.view.update(fact, &mut report);
                    }
                }
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => {}
                // The socket overflowed: messages are lost.
                Err(Errno::NOBUFS) => {
                    self.drop_messages()?;
                    let now = list(&self.lister, &mut self.datagram)?;
                    self.view.change_to(now, &mut report);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Drops the messages in the socket: after an overflow they may be outdated, and their corrections may be lost.
    fn drop_messages(&mut self) -> io::Result<()> {
        loop {
            match recv(&self.socket, &mut self.datagram[..], RecvFlags::empty()) {
                Ok(_) | Err(Errno::INTR | Errno::NOBUFS) => {}
                Err(Errno::AGAIN) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Watches on a thread of its own until the result is dropped. `report` gets every change, and the error if watching
    /// ends early.
    pub fn follow(
        self,
        report: impl FnMut(io::Result<NetEvent>) + Send + 'static,
    ) -> io::Result<NetFollower> {
        let waker = Waker::new()?;
        let end = waker.clone();
        let builder = thread::Builder::new().name("linerate-netwatch".into());
        let thread = builder.spawn(move || self.run(&end, report))?;
        Ok(NetFollower { waker, thread: Some(thread) })
    }

    fn run(mut self, end: &Waker, mut report: impl FnMut(io::Result<NetEvent>)) {
        loop {
            let mut ready =
                [PollFd::new(&self.socket, PollFlags::IN), PollFd::from_borrowed_fd(end.fd(), PollFlags::IN)];
            let waited = poll(&mut ready, None);
            if !ready[1].revents().is_empty() {
                return;
            }
            let taken = match waited {
                Ok(_) | Err(Errno::INTR) => self.take(|event| report(Ok(event))),
                Err(error) => Err(error.into()),
            };
            if let Err(error) = taken {
                return report(Err(error));
            }
        }
    }
}

impl AsFd for NetWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The thread of [`NetWatch::follow`]. Drop ends the thread and the reports.
#[derive(Debug)]
pub struct NetFollower {
    waker: Waker,
    thread: Option<JoinHandle<()>>,
}

impl Drop for NetFollower {
    fn drop(&mut self) {
        self.waker.wake();
        if let Some(thread) = self.thread.take() {
            // A panic has written its message to standard error.
            let _ = thread.join();
        }
    }
}

/// The links and addresses of a namespace.
#[derive(Debug, Default)]
struct NetView {
    /// By the kernel's index.
    links: BTreeMap<u32, WatchedLink>,
}

#[derive(Debug)]
struct WatchedLink {
    name: String,
    up: bool,
    addresses: BTreeSet<IpAddr>,
}

impl NetView {
    fn update(&mut self, fact: RouteFact, report: &mut impl FnMut(NetEvent)) {
        match fact {
            RouteFact::Link { index, name, up } => self.update_link(index, name, up, report),
            RouteFact::LinkGone { index } => {
                if let Some(link) = self.links.remove(&index) {
                    link.end(report);
                }
            }
            RouteFact::Address { index, address } => {
                if let Some(link) = self.links.get_mut(&index)
                    && link.addresses.insert(address)
                {
                    report(NetEvent::AddressAdded { interface: link.name.clone(), address });
                }
            }
            RouteFact::AddressGone { index, address } => {
                if let Some(link) = self.links.get_mut(&index)
                    && link.addresses.remove(&address)
                {
                    report(NetEvent::AddressRemoved { interface: link.name.clone(), address });
                }
            }
            RouteFact::Interrupted | RouteFact::Done | RouteFact::Refused(_) => {}
        }
    }

    fn update_link(&mut self, index: u32, name: String, up: bool, report: &mut impl FnMut(NetEvent)) {
        let before = self.links.remove(&index);
        let link = match before {
            Some(link) if link.name == name => {
                if link.up != up {
                    report(change(&name, up));
                }
                WatchedLink { up, ..link }
            }
            before => {
                // A renamed link is another link to all users of names.
                let addresses = before.map(|link| link.end(report)).unwrap_or_default();
                if up {
                    report(change(&name, true));
                }
                for address in &addresses {
                    report(NetEvent::AddressAdded { interface: name.clone(), address: *address });
                }
                WatchedLink { name, up, addresses }
            }
        };
        self.links.insert(index, link);
    }

    /// Reports the differences to a newer view, and replaces the view.
    fn change_to(&mut self, now: Self, report: &mut impl FnMut(NetEvent)) {
        let gone: Vec<u32> =
            self.links.keys().copied().filter(|index| !now.links.contains_key(index)).collect();
        for index in gone {
            self.update(RouteFact::LinkGone { index }, report);
        }
        for (index, link) in now.links {
            let before = self.links.get(&index).map(|before| before.addresses.clone()).unwrap_or_default();
            for address in before.difference(&link.addresses) {
                self.update(RouteFact::AddressGone { index, address: *address }, report);
            }
            self.update(RouteFact::Link { index, name: link.name, up: link.up }, report);
            for address in link.addresses {
                self.update(RouteFact::Address { index, address }, report);
            }
        }
    }
}

impl WatchedLink {
    /// Reports that the link was removed. Returns its addresses.
    fn end(self, report: &mut impl FnMut(NetEvent)) -> BTreeSet<IpAddr> {
        for address in &self.addresses {
            report(NetEvent::AddressRemoved { interface: self.name.clone(), address: *address });
        }
        if self.up {
            report(change(&self.name, false));
        }
        self.addresses
    }
}

fn change(interface: &str, up: bool) -> NetEvent {
    let interface = interface.to_owned();
    if up { NetEvent::LinkUp { interface } } else { NetEvent::LinkDown { interface } }
}

fn open_socket(flags: SocketFlags) -> io::Result<OwnedFd> {
    // The default protocol is 0: NETLINK_ROUTE.
    Ok(socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC | flags, None)?)
}

/// Lists the namespace of a socket.
fn list(socket: &OwnedFd, datagram: &mut [u8]) -> io::Result<NetView> {
    for _ in 0..LISTS_MAX {
        let mut view = NetView::default();
        let whole = list_into(&mut view, socket, List::Links, datagram)?
            && list_into(&mut view, socket, List::Addresses, datagram)?;
        if whole {
            return Ok(view);
        }
    }
    Err(io::Error::new(io::ErrorKind::TimedOut, "links and addresses change faster than they can be listed"))
}

/// Adds a whole list to the view. False if a change interrupted it.
fn list_into(view: &mut NetView, socket: &OwnedFd, list: List, datagram: &mut [u8]) -> io::Result<bool> {
    send(socket, &route::request(list), SendFlags::empty())?;
    let mut whole = true;
    loop {
        let (_, len) = recv(socket, &mut *datagram, RecvFlags::empty())?;
        for fact in route::facts(&datagram[..len]) {
            match fact {
                RouteFact::Done => return Ok(whole),
                RouteFact::Refused(number) => return Err(io::Error::from_raw_os_error(number)),
                RouteFact::Interrupted => whole = false,
                fact => view.update(fact, &mut |_| {}),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(index: u32, name: &str, up: bool) -> RouteFact {
        RouteFact::Link { index, name: name.into(), up }
    }

    fn address(index: u32, last: u8) -> RouteFact {
        RouteFact::Address { index, address: [10, 0, 0, last].into() }
    }

    fn view(facts: impl IntoIterator<Item = RouteFact>) -> NetView {
        let mut view = NetView::default();
        facts.into_iter().for_each(|fact| view.update(fact, &mut |_| {}));
        view
    }

    /// Events in few words.
    fn reported(act: impl FnOnce(&mut dyn FnMut(NetEvent))) -> Vec<String> {
        let mut events = Vec::new();
        act(&mut |event| {
            events.push(match event {
                NetEvent::LinkUp { interface } => format!("{interface} up"),
                NetEvent::LinkDown { interface } => format!("{interface} down"),
                NetEvent::AddressAdded { interface, address } => format!("{interface} + {address}"),
                NetEvent::AddressRemoved { interface, address } => format!("{interface} - {address}"),
            });
        });
        events
    }

    fn updated(view: &mut NetView, facts: impl IntoIterator<Item = RouteFact>) -> Vec<String> {
        reported(|mut report| facts.into_iter().for_each(|fact| view.update(fact, &mut report)))
    }

    #[test]
    fn only_differences_are_reported() {
        let mut view = view([link(1, "a", true), address(1, 1)]);
        let again = [link(1, "a", true), address(1, 1), address(2, 9), RouteFact::LinkGone { index: 3 }];
        assert_eq!(updated(&mut view, again), [""; 0]);
        let changes = [address(1, 2), link(1, "a", false), link(1, "a", true)];
        assert_eq!(updated(&mut view, changes), ["a + 10.0.0.2", "a down", "a up"]);
        let gone = [
            RouteFact::AddressGone { index: 1, address: [10, 0, 0, 1].into() },
            RouteFact::LinkGone { index: 1 },
        ];
        assert_eq!(updated(&mut view, gone), ["a - 10.0.0.1", "a - 10.0.0.2", "a down"]);
    }

    #[test]
    fn a_renamed_link_is_another_one() {
        let mut view = view([link(1, "a", true), address(1, 1)]);
        let expected = ["a - 10.0.0.1", "a down", "b up", "b + 10.0.0.1"];
        assert_eq!(updated(&mut view, [link(1, "b", true)]), expected);
    }

    #[test]
    fn after_an_overflow_the_difference_is_reported() {
        let mut old =
            view([link(1, "a", true), address(1, 1), address(1, 2), link(2, "b", true), address(2, 3)]);
        let new = [link(1, "a", false), address(1, 2), address(1, 4), link(3, "c", true), address(3, 3)];
        let events = reported(|mut report| old.change_to(view(new.clone()), &mut report));
        let expected =
            ["b - 10.0.0.3", "b down", "a - 10.0.0.1", "a down", "a + 10.0.0.4", "c up", "c + 10.0.0.3"];
        assert_eq!(events, expected);
        assert_eq!(reported(|mut report| old.change_to(view(new), &mut report)), [""; 0]);
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
