//! Which address of a name to use.

use std::io;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

/// How long an address has to accept: the delay before the next attempt that RFC 8305 (section 5) recommends.
const PATIENCE: Duration = Duration::from_millis(250);

/// The socket address of a host, which is a name or an address without brackets; of several that its name has, the first
/// that accepts a TCP connection, which is closed at once. Errors: those of the resolver.
///
/// A name may have an address that its service does not use; `localhost` often has one of IPv6. This may ask a name
/// server, and it blocks for up to 250 ms per address but the last, so never call it on the hot path.
pub fn resolve(host: &str, port: u16) -> io::Result<SocketAddr> {
    let addresses: Vec<_> = (host, port).to_socket_addrs()?.collect();
    first_that_accepts(&addresses).ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no address"))
}

/// The last one is not tried: it is the answer if no other accepts. None: there is no address.
fn first_that_accepts(addresses: &[SocketAddr]) -> Option<SocketAddr> {
    let (last, others) = addresses.split_last()?;
    let accepts = |address: &&SocketAddr| TcpStream::connect_timeout(address, PATIENCE).is_ok();
    Some(*others.iter().find(accepts).unwrap_or(last))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::ErrorKind;
    use std::net::TcpListener;

    fn listener() -> (TcpListener, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        listener.set_nonblocking(true).expect("a socket that does not block");
        let address = listener.local_addr().expect("an address");
        (listener, address)
    }

    fn refused() -> SocketAddr {
        listener().1
    }

    fn was_asked(listener: &TcpListener) -> bool {
        match listener.accept() {
            Ok(_) => true,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock);
                false
            }
        }
    }

    #[test]
    fn an_address_is_itself_and_an_unknown_name_is_an_error() {
        assert_eq!(resolve("::1", 3260).ok(), Some(SocketAddr::from(([0, 0, 0, 0, 0, 0, 0, 1], 3260))));
        assert_eq!(resolve("192.0.2.1", 445).ok(), Some(SocketAddr::from(([192, 0, 2, 1], 445))));
        // Names that end in `.invalid` do not exist (RFC 2606).
        assert!(resolve("nas.invalid", 445).is_err());
    }

    #[test]
    fn the_first_that_accepts_is_taken() {
        let ((first, first_address), (second, second_address)) = (listener(), listener());
        let found = first_that_accepts(&[refused(), first_address, second_address, refused()]);
        assert_eq!(found, Some(first_address));
        assert!(was_asked(&first) && !was_asked(&second));
    }

    #[test]
    fn an_only_address_and_the_last_one_are_not_tried() {
        let (only, address) = listener();
        assert_eq!(first_that_accepts(&[address]), Some(address));
        assert_eq!(first_that_accepts(&[refused(), address]), Some(address));
        assert!(!was_asked(&only));
        assert_eq!(first_that_accepts(&[]), None);
    }

    #[test]
    fn an_address_that_does_not_answer_costs_little_time() {
        // 192.0.2.0/24 is for documentation (RFC 5737): there is no answer, or no way there.
        let silent = SocketAddr::from(([192, 0, 2, 1], 3260));
        let (_listener, address) = listener();
        let began = std::time::Instant::now();
        assert_eq!(first_that_accepts(&[silent, silent, address]), Some(address));
        assert!(began.elapsed() < Duration::from_secs(2));
    }
}
