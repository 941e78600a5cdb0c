//! Settings of sockets and files, and the kernel's view of a TCP connection.

use std::net::IpAddr;

/// Options of a socket. `None` leaves the system's default. Accepted connections inherit a listener's options as far as
/// the kernel does this (buffer sizes, congestion control).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketOptions {
    /// `TCP_NODELAY`: send small segments at once. On by default: batching is done above the socket.
    pub nodelay: bool,
    /// `TCP_QUICKACK` once after connecting or accepting; the kernel may leave quick-ack mode later.
    pub quickack: bool,
    /// `SO_SNDBUF` in bytes as requested; the kernel doubles it for its own bookkeeping.
    pub send_buffer_bytes: Option<u32>,
    /// `SO_RCVBUF` in bytes as requested; the kernel doubles it and stops its own tuning.
    pub recv_buffer_bytes: Option<u32>,
    /// `TCP_CONGESTION`, for example `"cubic"`.
    pub congestion_control: Option<String>,
    /// `TCP_USER_TIMEOUT`: how long sent bytes may stay unacknowledged, in milliseconds.
    pub user_timeout_ms: Option<u32>,
    /// `SO_KEEPALIVE` with this idle time and interval, in seconds.
    pub keepalive_s: Option<u32>,
    /// Local address of an outgoing connection.
    pub bind: Option<IpAddr>,
    /// Pending connections that a listener keeps.
    pub backlog: u32,
}

impl Default for SocketOptions {
    fn default() -> Self {
        Self {
            nodelay: true,
            quickack: false,
            send_buffer_bytes: None,
            recv_buffer_bytes: None,
            congestion_control: None,
            user_timeout_ms: None,
            keepalive_s: None,
            bind: None,
            backlog: 4096,
        }
    }
}

/// The kernel's data about a connection (`TCP_INFO` and the socket options as read back). Fields that an older
/// kernel does not report are zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TcpInfo {
    /// Segments sent again, over the connection's life.
    pub retransmits: u64,
    /// Segments with payload sent, including retransmits; pure acknowledgements do not count.
    pub data_segments_sent: u64,
    /// Payload bytes sent, first sendings and repeats.
    pub bytes_sent: u64,
    /// Payload bytes sent again.
    pub bytes_retransmitted: u64,
    /// Payload bytes received.
    pub bytes_received: u64,
    /// Time with data to send or unacknowledged, in microseconds.
    pub busy_us: u64,
    /// Time stalled by the peer's receive window, in microseconds.
    pub rwnd_limited_us: u64,
    /// Time stalled by the own send buffer, in microseconds.
    pub sndbuf_limited_us: u64,
    /// Smoothed round-trip time, in microseconds.
    pub rtt_us: u32,
    /// Smallest round-trip time seen, in microseconds.
    pub min_rtt_us: u32,
    /// Segment size for sending, in bytes.
    pub snd_mss: u32,
    /// Congestion window, in segments.
    pub snd_cwnd: u32,
    /// Path MTU, in bytes.
    pub pmtu: u32,
    /// `TCP_NODELAY` as read back.
    pub nodelay: bool,
    /// `SO_SNDBUF` as read back (doubled by the kernel).
    pub send_buffer_bytes: u32,
    /// `SO_RCVBUF` as read back (doubled by the kernel).
    pub recv_buffer_bytes: u32,
    /// `TCP_CONGESTION` as read back.
    pub congestion_control: String,
}

/// How a file or block device is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileOptions {
    /// Open for reading.
    pub read: bool,
    /// Open for writing.
    pub write: bool,
    /// `O_DIRECT`: bypass the page cache. Offsets, lengths and memory must be aligned to the device's sectors.
    pub direct: bool,
    /// Create the file if it does not exist.
    pub create: bool,
    /// With `create`: fail if it exists.
    pub exclusive: bool,
    /// Take the file's advisory lock (`flock`) until it is closed: exclusive, or shared if it is only read.
    /// `WouldBlock` if another process has it.
    pub lock: bool,
    /// Extend a shorter regular file to this many bytes (sparse). A longer file is not changed.
    pub size_bytes: Option<u64>,
    /// Allocate the space of all of a regular file, and keep it allocated when it is discarded. Errors: `Unsupported` if
    /// the file system cannot, `StorageFull` if there is too little.
    pub allocate: bool,
}

impl Default for FileOptions {
    /// An existing file for reading, through the page cache.
    fn default() -> Self {
        Self {
            read: true,
            write: false,
            direct: false,
            create: false,
            exclusive: false,
            lock: false,
            size_bytes: None,
            allocate: false,
        }
    }
}
