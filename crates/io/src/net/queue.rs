//! The length of an interface's transmit queue. The old way to set it (ioctl) requires a right for the whole machine;
//! route netlink requires one for the interface's namespace, and a user without root can have that.

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use std::io;

const RTM_SETLINK: u16 = 19;
const NLM_F_REQUEST: u16 = 1;
const NLM_F_ACK: u16 = 4;
const IFLA_TXQLEN: u16 = 13;
/// Header, `ifinfomsg`, one attribute.
const MESSAGE_BYTES: usize = 16 + 16 + 8;
/// Offset of the error number in the answer: after its header.
const ERROR_AT: usize = 16;

/// Sets it for the interface of this index in the namespace of the calling thread.
pub(super) fn set_length(interface: i32, packets: u32) -> io::Result<()> {
    // No protocol is protocol 0, which is route netlink.
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    rustix::io::write(&socket, &request(interface, packets))?;
    let mut answer = [0; 512];
    let length = rustix::io::read(&socket, &mut answer)?;
    let number = answer.get(ERROR_AT..ERROR_AT + 4).filter(|_| length >= ERROR_AT + 4);
    match number.and_then(|bytes| bytes.try_into().ok()).map(i32::from_ne_bytes) {
        Some(0) => Ok(()),
        Some(number) => Err(io::Error::from_raw_os_error(-number)),
        None => Err(io::Error::new(io::ErrorKind::InvalidData, "an answer of netlink that is too short")),
    }
}

fn request(interface: i32, packets: u32) -> [u8; MESSAGE_BYTES] {
    let mut message = [0; MESSAGE_BYTES];
    message[0..4].copy_from_slice(&(MESSAGE_BYTES as u32).to_ne_bytes());
    message[4..6].copy_from_slice(&RTM_SETLINK.to_ne_bytes());
    message[6..8].copy_from_slice(&(NLM_F_REQUEST | NLM_F_ACK).to_ne_bytes());
    message[20..24].copy_from_slice(&interface.to_ne_bytes());
    message[32..34].copy_from_slice(&8_u16.to_ne_bytes());
    message[34..36].copy_from_slice(&IFLA_TXQLEN.to_ne_bytes());
    message[36..40].copy_from_slice(&packets.to_ne_bytes());
    message
}
