//! A TAP interface: for the host's stack the kernel's end is a NIC; our end is a file of Ethernet frames.
//!
//! Every packet begins with a `virtio_net_hdr` (10 bytes, host byte order). With it the stack can leave work to the
//! NIC, as with real ones: checksums (`NEEDS_CSUM`: the field has the sum of the pseudo header, the rest must be added)
//! and segmentation (`gso_type`, `gso_size`: up to 64 KiB of TCP that the NIC cuts into frames). In the other direction
//! the same header reports that a NIC has verified a checksum, or has merged segments.

use crate::net::{netns, queue};
use rustix::{
    buffer::spare_capacity,
    fs::{Mode, OFlags, open},
    io::Errno,
    net::{AddressFamily, SocketFlags, SocketType, socket_with},
};
use std::{
    ffi::c_int,
    io::{self, IoSlice},
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
    path::Path,
};

/// Length of the header in front of every frame.
pub const VNET_HEADER_BYTES: usize = 10;

/// Options of a TAP.
#[derive(Clone, Copy, Debug)]
pub struct TapOptions<'a> {
    /// Name of the interface, at most 15 bytes.
    pub name: &'a str,
    /// Its address; None: the kernel makes one.
    pub mac: Option<[u8; 6]>,
    /// Longest payload of a frame.
    pub mtu: u32,
    /// Packets that the kernel keeps for us before it drops.
    pub queue_frames: u32,
    /// The kernel's NAPI of the namespace receives our packets, not the writing thread itself.
    pub napi: bool,
}

/// A TAP interface; it is removed when this is dropped.
#[derive(Debug)]
pub struct Tap {
    file: OwnedFd,
    /// A socket of the namespace, for questions and changes.
    control: OwnedFd,
    name: [libc::c_char; libc::IFNAMSIZ],
}

impl Tap {
    /// Makes an interface in a namespace (None: the caller's). It has a carrier, and is down until it is set up.
    ///
    /// Errors: those of [`netns::enter`]; no `/dev/net/tun`; no permission; the name is in use (`ResourceBusy`).
    pub fn open(path: Option<&Path>, options: &TapOptions<'_>) -> io::Result<Self> {
        netns::within(path, || {
            let tap = Self {
                file: open("/dev/net/tun", OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())?,
                control: socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?,
                name: interface_name(options.name)?,
            };
            let napi = if options.napi { libc::IFF_NAPI } else { 0 };
            // Without EXCL an existing TAP would be taken over, and would outlive this process.
            let flags = libc::IFF_TAP | libc::IFF_NO_PI | libc::IFF_VNET_HDR | libc::IFF_TUN_EXCL | napi;
            let mut request = tap.request(|request| request.ifr_ifru.ifru_flags = flags as i16);
            ioctl(&tap.file, libc::TUNSETIFF, &mut request)?;
            let offloads = libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN;
            ioctl_number(&tap.file, libc::TUNSETOFFLOAD, offloads.into())?;
            if let Some(mac) = options.mac {
                tap.set_mac(mac)?;
            }
            tap.set_mtu(options.mtu)?;
            queue::set_length(tap.index()?, options.queue_frames)?;
            Ok(tap)
        })
    }

    fn index(&self) -> io::Result<c_int> {
        let mut request = self.request(|_| {});
        ioctl(&self.control, libc::SIOCGIFINDEX, &mut request)?;
        // SAFETY: the kernel has filled in the index.
        Ok(unsafe { request.ifr_ifru.ifru_ifindex })
    }

    /// Reads one packet with its header into the spare capacity of a vector, which should have space for 64 KiB and the
    /// headers. False if there is none now, or never again because the interface was removed.
    pub fn read(&self, into: &mut Vec<u8>) -> io::Result<bool> {
        match rustix::io::read(&self.file, spare_capacity(into)) {
            Ok(_) => Ok(true),
            Err(Errno::AGAIN | Errno::BADFD) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes one packet: its header, then a frame in any number of pieces. False if the host does not accept it: the
    /// interface is down or removed, or there is too little memory.
    pub fn write(&self, pieces: &[IoSlice<'_>]) -> io::Result<bool> {
        match rustix::io::writev(&self.file, pieces) {
            Ok(_) => Ok(true),
            Err(Errno::IO | Errno::AGAIN | Errno::NOBUFS | Errno::NOMEM | Errno::BADFD) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// The interface's address.
    pub fn mac(&self) -> io::Result<[u8; 6]> {
        let mut request = self.request(|_| {});
        ioctl(&self.control, libc::SIOCGIFHWADDR, &mut request)?;
        // SAFETY: the kernel has filled in the address.
        let address = unsafe { request.ifr_ifru.ifru_hwaddr };
        Ok(std::array::from_fn(|index| address.sa_data[index] as u8))
    }

    /// Changes the MTU.
    pub fn set_mtu(&self, mtu: u32) -> io::Result<()> {
        let mut request = self.request(|request| request.ifr_ifru.ifru_mtu = mtu as c_int);
        ioctl(&self.control, libc::SIOCSIFMTU, &mut request)
    }

    /// Sets the carrier on or off for the host. Does nothing if the interface was removed.
    pub fn set_carrier(&self, up: bool) -> io::Result<()> {
        let mut up = c_int::from(up);
        // SAFETY: the kernel reads one int.
        match check(unsafe { libc::ioctl(self.file.as_raw_fd(), libc::TUNSETCARRIER, &raw mut up) }) {
            Err(error) if error.raw_os_error() == Some(libc::EBADFD) => Ok(()),
            result => result,
        }
    }

    fn set_mac(&self, mac: [u8; 6]) -> io::Result<()> {
        let mut request = self.request(|request| {
            // SAFETY: all-zero is a valid sockaddr.
            let mut address: libc::sockaddr = unsafe { std::mem::zeroed() };
            address.sa_family = libc::ARPHRD_ETHER;
            for (place, byte) in address.sa_data.iter_mut().zip(mac) {
                *place = byte as libc::c_char;
            }
            request.ifr_ifru.ifru_hwaddr = address;
        });
        ioctl(&self.control, libc::SIOCSIFHWADDR, &mut request)
    }

    fn request(&self, fill: impl FnOnce(&mut libc::ifreq)) -> libc::ifreq {
        // SAFETY: all-zero is a valid ifreq.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        request.ifr_name = self.name;
        fill(&mut request);
        request
    }
}

impl AsFd for Tap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

fn interface_name(name: &str) -> io::Result<[libc::c_char; libc::IFNAMSIZ]> {
    if name.is_empty() || name.len() >= libc::IFNAMSIZ || name.contains('\0') {
        let problem = format!("{name:?} is not a valid interface name");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
    }
    let mut chars = [0; libc::IFNAMSIZ];
    for (place, byte) in chars.iter_mut().zip(name.bytes()) {
        *place = byte as libc::c_char;
    }
    Ok(chars)
}

fn ioctl(file: &OwnedFd, request: libc::Ioctl, argument: &mut libc::ifreq) -> io::Result<()> {
    // SAFETY: every request that this file makes reads or writes one ifreq.
    check(unsafe { libc::ioctl(file.as_raw_fd(), request, std::ptr::from_mut(argument)) })
}

fn ioctl_number(file: &OwnedFd, request: libc::Ioctl, argument: libc::c_ulong) -> io::Result<()> {
    // SAFETY: the request takes a number, not a pointer.
    check(unsafe { libc::ioctl(file.as_raw_fd(), request, argument) })
}

fn check(result: c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
