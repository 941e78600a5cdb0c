//! Network namespaces, by path: `/proc/4711/ns/net`, `/proc/4711/fd/5`, `/run/netns/name`.

use rustix::{
    io::Errno,
    thread::{LinkNameSpaceType, move_into_link_name_space},
};
use std::{fs::File, io, os::fd::AsFd, path::Path, thread};

/// Moves only the calling thread into a network namespace, permanently.
///
/// Errors: no such file; not a network namespace (`InvalidInput`); not ours to enter (`PermissionDenied`).
pub fn enter(netns: &Path) -> io::Result<()> {
    let file = File::open(netns).map_err(|error| about(netns, "cannot be opened", &error))?;
    move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).map_err(|error| {
        let what = if error == Errno::INVAL { "is none" } else { "cannot be entered" };
        about(netns, what, &error.into())
    })
}

/// An error with the namespace and the reason.
fn about(netns: &Path, what: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("the network namespace {} {what}: {error}", netns.display()))
}

/// Runs `work` in a network namespace (None: the caller's own) and returns its result. The calling thread stays in its
/// namespace: another thread runs the work and ends.
pub fn within<T: Send>(netns: Option<&Path>, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    let Some(netns) = netns else { return work() };
    thread::scope(|scope| {
        let worker = thread::Builder::new().name("linerate-netns".into()).spawn_scoped(scope, || {
            enter(netns)?;
            work()
        })?;
        worker.join().unwrap_or_else(|_| Err(io::Error::other("the thread in the namespace died")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_file_that_is_no_namespace_is_refused() {
        let other = tempfile::NamedTempFile::new().unwrap();
        let refused = within(Some(other.path()), || Ok(())).unwrap_err();
        assert!(refused.to_string().contains("is none"), "{refused}");
        let missing = within(Some(Path::new("/nowhere/ns")), || Ok(())).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
        assert_eq!(within(None, || Ok(7)).unwrap(), 7);
    }

    #[test]
    fn the_caller_stays_where_it_is() {
        let own = || fs::read_link("/proc/thread-self/ns/net");
        let before = own().unwrap();
        match within(Some(Path::new("/proc/thread-self/ns/net")), own) {
            Ok(inside) => assert_eq!(inside, before),
            // A capability is required even to enter one's own namespace.
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::PermissionDenied),
        }
        assert_eq!(own().unwrap(), before);
    }
}
