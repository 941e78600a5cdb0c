//! TCP sockets: make, configure, and query them.

use crate::{SocketOptions, TcpInfo, gather::PIECES_PER_CALL};
use libc::iovec;
use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto, sockopt};
use std::{
    io,
    net::{IpAddr, SocketAddr, TcpListener, TcpStream},
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
    time::Duration,
};

/// A listening socket, not blocking. IPv6 listeners take IPv6 only, so that both families can share a port.
pub(crate) fn listen(addr: SocketAddr, options: &SocketOptions) -> io::Result<TcpListener> {
    let socket = open(addr)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    if addr.is_ipv6() {
        sockopt::set_ipv6_v6only(&socket, true)?;
    }
    set_before_connect(socket.as_fd(), options)?;
    rustix::net::bind(&socket, &addr)?;
    rustix::net::listen(&socket, i32::try_from(options.backlog).unwrap_or(i32::MAX))?;
    Ok(TcpListener::from(socket))
}

/// A socket for a connection to `addr`, not blocking, bound as the options require.
pub(crate) fn open_for(addr: SocketAddr, options: &SocketOptions) -> io::Result<TcpStream> {
    let socket = open(addr)?;
    set_before_connect(socket.as_fd(), options)?;
    if let Some(local) = options.bind {
        rustix::net::bind(&socket, &SocketAddr::new(local, 0)).map_err(|error| {
            let error = io::Error::from(error);
            io::Error::new(error.kind(), format!("source address {local}: {error}"))
        })?;
    }
    set_stream(socket.as_fd(), options)?;
    Ok(TcpStream::from(socket))
}

/// Starts connecting. `Ok(true)`: connected already; `Ok(false)`: in progress.
pub(crate) fn start_connect(socket: &TcpStream, addr: SocketAddr) -> io::Result<bool> {
    match rustix::net::connect(socket, &addr) {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::INPROGRESS) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Sends what the socket accepts without waiting, repeated if interrupted; a closed connection is an error and not a
/// signal.
pub(crate) fn transmit(socket: &TcpStream, pieces: &mut [iovec]) -> io::Result<usize> {
    let (fd, flags, message) = (socket.as_raw_fd(), libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL, message(pieces));
    // SAFETY: the pieces are in attached regions and in the arena of a list that the driver owns.
    repeated(|| match pieces {
        // A single piece needs no message, which the kernel would copy and check.
        [piece] => unsafe { libc::send(fd, piece.iov_base, piece.iov_len, flags) },
        _ => unsafe { libc::sendmsg(fd, &raw const message, flags) },
    })
}

/// Receives what has arrived without waiting, repeated if interrupted; 0: the peer has closed its side.
pub(crate) fn receive(socket: &TcpStream, pieces: &mut [iovec]) -> io::Result<usize> {
    let (fd, flags, mut message) = (socket.as_raw_fd(), libc::MSG_DONTWAIT, message(pieces));
    // SAFETY: the pieces are in attached regions and in a buffer that the driver owns at this time.
    repeated(|| match pieces {
        [piece] => unsafe { libc::recv(fd, piece.iov_base, piece.iov_len, flags) },
        _ => unsafe { libc::recvmsg(fd, &raw mut message, flags) },
    })
}

/// A message of as many pieces as one call takes.
fn message(pieces: &mut [iovec]) -> libc::msghdr {
    // SAFETY: an all-zero msghdr is a valid empty one.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = pieces.as_mut_ptr();
    message.msg_iovlen = pieces.len().min(PIECES_PER_CALL);
    message
}

/// Makes a call until no signal interrupts it.
fn repeated(mut call: impl FnMut() -> isize) -> io::Result<usize> {
    loop {
        if let Ok(count) = usize::try_from(call()) {
            return Ok(count);
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// Settings that are needed only on a connection: delays, keep-alive, user timeout.
pub(crate) fn set_stream(socket: BorrowedFd<'_>, options: &SocketOptions) -> io::Result<()> {
    sockopt::set_tcp_nodelay(socket, options.nodelay)?;
    if options.quickack {
        sockopt::set_tcp_quickack(socket, true)?;
    }
    if let Some(timeout_ms) = options.user_timeout_ms {
        sockopt::set_tcp_user_timeout(socket, timeout_ms)?;
    }
    if let Some(seconds) = options.keepalive_s {
        let time = Duration::from_secs(u64::from(seconds.max(1)));
        sockopt::set_socket_keepalive(socket, true)?;
        sockopt::set_tcp_keepidle(socket, time)?;
        sockopt::set_tcp_keepintvl(socket, time)?;
    }
    Ok(())
}

/// Settings that are needed before the handshake: buffers decide the window scale.
pub(crate) fn set_before_connect(socket: BorrowedFd<'_>, options: &SocketOptions) -> io::Result<()> {
    if let Some(bytes) = options.send_buffer_bytes {
        sockopt::set_socket_send_buffer_size(socket, bytes as usize)?;
    }
    if let Some(bytes) = options.recv_buffer_bytes {
        sockopt::set_socket_recv_buffer_size(socket, bytes as usize)?;
    }
    if let Some(name) = &options.congestion_control {
        sockopt::set_tcp_congestion(socket, name).map_err(|error| {
            let error = io::Error::from(error);
            io::Error::new(error.kind(), format!("TCP congestion control \"{name}\": {error}"))
        })?;
    }
    Ok(())
}

/// Accepting failed for lack of descriptors or memory: an immediate retry would only spin.
pub(crate) fn is_shortage(error: &io::Error) -> bool {
    let shortage = [libc::EMFILE, libc::ENFILE, libc::ENOBUFS, libc::ENOMEM];
    error.raw_os_error().is_some_and(|code| shortage.contains(&code))
}

/// The error that a finished asynchronous connect left behind.
pub(crate) fn take_error(socket: &TcpStream) -> io::Result<()> {
    socket.take_error()?.map_or(Ok(()), Err)
}

fn open(addr: SocketAddr) -> io::Result<OwnedFd> {
    let family = match addr.ip() {
        IpAddr::V4(_) => AddressFamily::INET,
        IpAddr::V6(_) => AddressFamily::INET6,
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(rustix::net::socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))?)
}

/// `struct tcp_info` of Linux 6.x up to the fields used here. The kernel fills in as much as it has; the rest stays 0.
#[repr(C)]
#[derive(Default)]
struct KernelTcpInfo {
    bytes: [u8; 8],
    /// rto, ato, `snd_mss`, `rcv_mss`, unacked, sacked, lost, retrans, fackets, 4 times, pmtu, `rcv_ssthresh`, rtt,
    /// rttvar, `snd_ssthresh`, `snd_cwnd`, advmss, reordering, `rcv_rtt`, `rcv_space`, `total_retrans`.
    words: [u32; 24],
    pacing_rate: u64,
    max_pacing_rate: u64,
    bytes_acked: u64,
    bytes_received: u64,
    segs_out: u32,
    segs_in: u32,
    notsent_bytes: u32,
    min_rtt: u32,
    data_segs_in: u32,
    data_segs_out: u32,
    delivery_rate: u64,
    busy_time: u64,
    rwnd_limited: u64,
    sndbuf_limited: u64,
    delivered: u32,
    delivered_ce: u32,
    bytes_sent: u64,
    bytes_retrans: u64,
}

/// `TCP_INFO` and the options as the kernel holds them.
pub(crate) fn tcp_info(socket: BorrowedFd<'_>) -> io::Result<TcpInfo> {
    const SND_MSS: usize = 2;
    const PMTU: usize = 13;
    const RTT: usize = 15;
    const SND_CWND: usize = 18;
    const TOTAL_RETRANS: usize = 23;
    let mut raw = KernelTcpInfo::default();
    let mut len = size_of::<KernelTcpInfo>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` bytes into `raw`, whose fields are all plain integers.
    let result = unsafe {
        let into = (&raw mut raw).cast();
        libc::getsockopt(socket.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, into, &raw mut len)
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(TcpInfo {
        retransmits: u64::from(raw.words[TOTAL_RETRANS]),
        data_segments_sent: u64::from(raw.data_segs_out),
        bytes_sent: raw.bytes_sent,
        bytes_retransmitted: raw.bytes_retrans,
        bytes_received: raw.bytes_received,
        busy_us: raw.busy_time,
        rwnd_limited_us: raw.rwnd_limited,
        sndbuf_limited_us: raw.sndbuf_limited,
        rtt_us: raw.words[RTT],
        min_rtt_us: raw.min_rtt,
        snd_mss: raw.words[SND_MSS],
        snd_cwnd: raw.words[SND_CWND],
        pmtu: raw.words[PMTU],
        nodelay: sockopt::tcp_nodelay(socket)?,
        send_buffer_bytes: sockopt::socket_send_buffer_size(socket)? as u32,
        recv_buffer_bytes: sockopt::socket_recv_buffer_size(socket)? as u32,
        congestion_control: sockopt::tcp_congestion(socket)?,
    })
}

#[cfg(test)]
mod tests {
    use super::{KernelTcpInfo, listen, open_for, tcp_info};
    use crate::SocketOptions;
    use std::{
        mem::offset_of,
        net::{SocketAddr, TcpStream},
        os::fd::AsFd,
    };

    const ANY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

    #[test]
    fn the_kernel_structure_has_the_kernel_layout() {
        // include/uapi/linux/tcp.h: offsets of `tcpi_pacing_rate`, `tcpi_busy_time` and `tcpi_bytes_sent`.
        assert_eq!(offset_of!(KernelTcpInfo, pacing_rate), 104);
        assert_eq!(offset_of!(KernelTcpInfo, busy_time), 168);
        assert_eq!(offset_of!(KernelTcpInfo, bytes_sent), 200);
    }

    #[test]
    fn options_are_read_back_as_the_kernel_holds_them() {
        let listener = listen(ANY, &SocketOptions::default()).unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let before = tcp_info(stream.as_fd()).unwrap();
        assert!(!before.nodelay);
        assert!(before.snd_mss > 500, "{before:?}");
        assert!(!before.congestion_control.is_empty());

        let options = SocketOptions { send_buffer_bytes: Some(65_536), ..SocketOptions::default() };
        let tuned = open_for(listener.local_addr().unwrap(), &options).unwrap();
        let after = tcp_info(tuned.as_fd()).unwrap();
        assert!(after.nodelay);
        assert_eq!(after.send_buffer_bytes, 131_072);
    }

    #[test]
    fn a_source_address_is_used_or_named_in_the_error() {
        let listener = listen(ANY, &SocketOptions::default()).unwrap();
        let bound = |text: &str| SocketOptions { bind: text.parse().ok(), ..SocketOptions::default() };
        let stream = open_for(listener.local_addr().unwrap(), &bound("127.0.0.9")).unwrap();
        assert_eq!(stream.local_addr().unwrap().ip().to_string(), "127.0.0.9");
        let error = open_for(ANY, &bound("192.0.2.1")).unwrap_err();
        assert!(error.to_string().starts_with("source address 192.0.2.1: "), "{error}");
    }

    #[test]
    fn an_unknown_congestion_control_is_named_in_the_error() {
        let options = SocketOptions { congestion_control: Some("nosuch".into()), ..SocketOptions::default() };
        let error = open_for(ANY, &options).unwrap_err();
        assert!(error.to_string().contains("\"nosuch\""), "{error}");
    }
}
