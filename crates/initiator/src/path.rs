//! A path: one way to a LUN.
//!
//! A device owns its paths in order of preference and sends through the first usable one. A path ends with its session:
//! what was in flight is then the session's to send again or to fail.

use crate::initiator::SessionId;

/// Whether a path can carry I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PathState {
    /// Its session is there, or is being restored.
    Usable,
    /// Its session was given up.
    Failed,
}

/// One way to a LUN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Path {
    pub(crate) session: SessionId,
    pub(crate) state: PathState,
}

impl Path {
    pub(crate) fn new(session: SessionId) -> Self {
        Self { session, state: PathState::Usable }
    }
}

/// The path that the next command takes.
#[inline]
pub(crate) fn choose(paths: &[Path]) -> Option<SessionId> {
    paths.iter().find(|path| path.state == PathState::Usable).map(|path| path.session)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_usable_path_is_taken() {
        let mut paths = [Path::new(SessionId(3)), Path::new(SessionId(5))];
        assert_eq!(choose(&paths), Some(SessionId(3)));
        paths[0].state = PathState::Failed;
        assert_eq!(choose(&paths), Some(SessionId(5)));
        paths[1].state = PathState::Failed;
        assert_eq!(choose(&paths), None);
    }
}
