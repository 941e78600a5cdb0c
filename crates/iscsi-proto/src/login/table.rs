//! The state machines as data.
//!
//! A row means: in this state, on this event, change to that state. An event that is not in a table must not happen:
//! the login fails. Both tables are small enough for a linear search; neither is on the path of an I/O.

/// One row of a state table.
pub type Row<S, E> = (S, E, S);

/// The state after `event` in `state`; `None` if the event must not happen there.
pub fn next_state<S: Copy + PartialEq, E: Copy + PartialEq>(
    table: &[Row<S, E>],
    state: S,
    event: E,
) -> Option<S> {
    table.iter().find(|(from, on, _)| *from == state && *on == event).map(|(_, _, to)| *to)
}

/// A login on the target's side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TargetState {
    /// Nothing received, or in the security stage without an agreed method.
    Start,
    /// CHAP agreed: algorithms are due.
    Algorithm,
    /// Challenge sent: the response is due.
    Response,
    /// Authentication is complete.
    Cleared,
    /// Operational stage.
    Operational,
    /// The login is done.
    FullFeature,
}

/// The meaning of a login request for the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TargetEvent {
    /// Security stage, without authentication yet.
    Talk,
    /// Both agree on no authentication.
    NoneAgreed,
    /// Both agree on CHAP.
    ChapAgreed,
    /// A CHAP algorithm was agreed; a challenge is sent.
    AlgorithmAgreed,
    /// The initiator has proved itself.
    Proved,
    /// The login begins in the operational stage, and no authentication is required.
    SkipSecurity,
    /// Operational keys.
    Negotiate,
    /// The initiator moves on to the operational stage.
    ToOperational,
    /// The initiator moves on to full feature phase.
    ToFullFeature,
}

/// Target side of the login phase.
pub const TARGET_LOGIN: &[Row<TargetState, TargetEvent>] = {
    use {TargetEvent as E, TargetState as S};
    &[
        (S::Start, E::Talk, S::Start),
        (S::Start, E::NoneAgreed, S::Cleared),
        (S::Start, E::ChapAgreed, S::Algorithm),
        (S::Start, E::SkipSecurity, S::Operational),
        (S::Algorithm, E::AlgorithmAgreed, S::Response),
        (S::Response, E::Proved, S::Cleared),
        (S::Cleared, E::Talk, S::Cleared),
        (S::Cleared, E::ToOperational, S::Operational),
        (S::Cleared, E::ToFullFeature, S::FullFeature),
        (S::Operational, E::Negotiate, S::Operational),
        (S::Operational, E::ToFullFeature, S::FullFeature),
    ]
};

/// A login on the initiator's side: the last sent message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InitiatorState {
    /// Nothing sent.
    Start,
    /// `AuthMethod` sent.
    Method,
    /// `CHAP_A` sent.
    Algorithm,
    /// `CHAP_R` sent.
    Response,
    /// Authentication is complete; the target has not agreed to the next stage yet.
    Cleared,
    /// Operational stage.
    Operational,
    /// The login is done.
    FullFeature,
}

/// An action of the initiator, or the meaning of a login response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InitiatorEvent {
    /// It sends the first request.
    Begin,
    /// The target chose no authentication.
    NoneChosen,
    /// The target chose CHAP.
    ChapChosen,
    /// The target chose an algorithm and sent a challenge.
    Challenged,
    /// The target accepted the response, and sent its own if that was required.
    Proved,
    /// The target has more to send before the next stage.
    Talk,
    /// The target agrees to the operational stage.
    ToOperational,
    /// The target agrees to full feature phase.
    ToFullFeature,
}

/// Initiator side of the login phase.
pub const INITIATOR_LOGIN: &[Row<InitiatorState, InitiatorEvent>] = {
    use {InitiatorEvent as E, InitiatorState as S};
    &[
        (S::Start, E::Begin, S::Method),
        (S::Method, E::Talk, S::Method),
        (S::Method, E::NoneChosen, S::Cleared),
        (S::Method, E::ChapChosen, S::Algorithm),
        (S::Algorithm, E::Challenged, S::Response),
        (S::Response, E::Proved, S::Cleared),
        (S::Cleared, E::Talk, S::Cleared),
        (S::Cleared, E::ToOperational, S::Operational),
        (S::Operational, E::Talk, S::Operational),
        (S::Operational, E::ToFullFeature, S::FullFeature),
    ]
};
