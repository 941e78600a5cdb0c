//! The life of a session as a table (RFC 7143 section 8, reduced to one connection and error recovery level 0).
//!
//! ```text
//! Connecting -> LoggingIn -> Ready <-> Draining -> LoggingOut
//!      ^            |          |                      |
//!      |            v          v                      v
//!      +--------- Waiting <----+----------------------+--> Closed, Failed
//! ```
//!
//! An input without a row in a state is ignored: it is late, from a connection that has ended.

/// The state of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// TCP connect is in progress.
    Connecting,
    /// Login PDUs are being exchanged.
    LoggingIn,
    /// Full feature phase.
    Ready,
    /// Full feature phase, but the target requested a logout: I/O in flight may end, nothing new is sent.
    Draining,
    /// A logout has been sent.
    LoggingOut,
    /// No connection; the next attempt is due at a set time.
    Waiting,
    /// Logged out for good, as asked.
    Closed,
    /// Failed for good.
    Failed,
}

/// Events that change the state of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    /// TCP is connected.
    Connected,
    /// The target agreed to full feature phase.
    LoggedIn,
    /// The target redirected the login; a new connect is in progress.
    Redirected,
    /// The target asked for a logout.
    LogoutAsked,
    /// Nothing is in flight any more, or its time is over.
    Drained,
    /// The caller wants the session closed.
    CloseAsked,
    /// The connection is lost, and another attempt may help.
    Lost,
    /// The connection is lost for a permanent reason, or the replacement time is over.
    GaveUp,
    /// The logout was answered and the caller wants to end.
    Ended,
    /// The next attempt is due.
    Due,
}

/// Every transition there is.
pub(crate) const TRANSITIONS: &[(State, Input, State)] = &[
    (State::Connecting, Input::Connected, State::LoggingIn),
    (State::Connecting, Input::Lost, State::Waiting),
    (State::Connecting, Input::GaveUp, State::Failed),
    (State::Connecting, Input::CloseAsked, State::Closed),
    (State::LoggingIn, Input::LoggedIn, State::Ready),
    (State::LoggingIn, Input::Redirected, State::Connecting),
    (State::LoggingIn, Input::Lost, State::Waiting),
    (State::LoggingIn, Input::GaveUp, State::Failed),
    (State::LoggingIn, Input::CloseAsked, State::Closed),
    (State::Ready, Input::LogoutAsked, State::Draining),
    (State::Ready, Input::CloseAsked, State::LoggingOut),
    (State::Ready, Input::Lost, State::Waiting),
    (State::Ready, Input::GaveUp, State::Failed),
    (State::Draining, Input::Drained, State::LoggingOut),
    (State::Draining, Input::CloseAsked, State::LoggingOut),
    (State::Draining, Input::Lost, State::Waiting),
    (State::Draining, Input::GaveUp, State::Failed),
    (State::LoggingOut, Input::Lost, State::Waiting),
    (State::LoggingOut, Input::Ended, State::Closed),
    (State::LoggingOut, Input::GaveUp, State::Failed),
    (State::Waiting, Input::Due, State::Connecting),
    (State::Waiting, Input::GaveUp, State::Failed),
    (State::Waiting, Input::CloseAsked, State::Closed),
];

impl State {
    /// The state after `input`; none if there is no such transition.
    pub(crate) fn after(self, input: Input) -> Option<State> {
        TRANSITIONS.iter().find(|(from, on, _)| (*from, *on) == (self, input)).map(|(_, _, to)| *to)
    }

    /// Commands may be sent.
    pub(crate) fn sends_commands(self) -> bool {
        self == State::Ready
    }

    /// I/Os are accepted and wait until they can be sent.
    pub(crate) fn takes_commands(self) -> bool {
        !matches!(self, State::Closed | State::Failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATES: [State; 8] = [
        State::Connecting,
        State::LoggingIn,
        State::Ready,
        State::Draining,
        State::LoggingOut,
        State::Waiting,
        State::Closed,
        State::Failed,
    ];

    #[test]
    fn one_row_per_state_and_input() {
        for (at, (state, input, _)) in TRANSITIONS.iter().enumerate() {
            let again = TRANSITIONS[at + 1..].iter().any(|(s, i, _)| (s, i) == (state, input));
            assert!(!again, "{state:?} {input:?} occurs twice");
        }
    }

    #[test]
    fn every_state_is_reachable_and_the_ends_are_ends() {
        for state in STATES {
            let reached = state == State::Connecting || TRANSITIONS.iter().any(|(_, _, to)| *to == state);
            assert!(reached, "{state:?}");
            let left = TRANSITIONS.iter().any(|(from, _, _)| *from == state);
            assert_eq!(left, state.takes_commands(), "{state:?}");
        }
    }

    #[test]
    fn a_state_with_a_connection_survives_its_loss() {
        for state in [State::Connecting, State::LoggingIn, State::Ready, State::Draining, State::LoggingOut] {
            assert_eq!(state.after(Input::Lost), Some(State::Waiting));
        }
    }
}
