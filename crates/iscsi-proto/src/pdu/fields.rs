//! Small enumerations that PDUs carry.

use linerate_scsi_proto::lun;

/// A logical unit number as the eight bytes on the wire (SAM-5 section 4.7, RFC 7143 section 11.2.1.7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Lun(pub u64);

impl Lun {
    /// The single-level form of a number: peripheral addressing below 256, flat addressing up to 16383.
    pub fn from_number(number: u16) -> Self {
        Lun(u64::from_be_bytes(lun::to_field(number)))
    }

    /// The number of a single-level LUN in peripheral (bus 0) or flat addressing; `None` for anything else.
    pub fn number(self) -> Option<u16> {
        lun::from_field(self.0.to_be_bytes())
    }
}

/// Defines an enumeration over a wire byte whose undefined values are kept in `Other`.
macro_rules! open_enum {
    ($(#[$meta:meta])* $name:ident { $($(#[$vmeta:meta])* $variant:ident = $value:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$vmeta])* $variant,)+
            /// A value that RFC 7143 does not define.
            Other(u8),
        }

        impl $name {
            /// The value on the wire.
            pub fn code(self) -> u8 {
                match self { $($name::$variant => $value,)+ $name::Other(code) => code }
            }

            /// From the value on the wire.
            pub fn from_code(code: u8) -> Self {
                match code { $($value => $name::$variant,)+ other => $name::Other(other) }
            }
        }
    };
}

open_enum! {
    /// Task attribute of a SCSI command (RFC 7143 section 11.3.1).
    TaskAttribute {
        /// The initiator left it open.
        Untagged = 0,
        /// Simple.
        Simple = 1,
        /// Ordered.
        Ordered = 2,
        /// Head of queue.
        HeadOfQueue = 3,
        /// Auto contingent allegiance.
        Aca = 4,
    }
}

open_enum! {
    /// Task management function (RFC 7143 section 11.5.1).
    TaskFunction {
        /// Abort the task with the referenced task tag.
        AbortTask = 1,
        /// Abort all tasks of this nexus in the logical unit.
        AbortTaskSet = 2,
        /// Clear auto contingent allegiance.
        ClearAca = 3,
        /// Abort all tasks of the logical unit.
        ClearTaskSet = 4,
        /// Reset the logical unit.
        LogicalUnitReset = 5,
        /// Reset every logical unit of the target.
        TargetWarmReset = 6,
        /// Reset the target and end its sessions.
        TargetColdReset = 7,
        /// Move a task to this connection (error recovery level 2).
        TaskReassign = 8,
    }
}

open_enum! {
    /// Result of a task management function (RFC 7143 section 11.6.1).
    TaskResult {
        /// Function complete.
        Complete = 0,
        /// Task does not exist.
        NoSuchTask = 1,
        /// LUN does not exist.
        NoSuchLun = 2,
        /// Task still allegiant.
        TaskAllegiant = 3,
        /// Task allegiance reassignment not supported.
        ReassignNotSupported = 4,
        /// Task management function not supported.
        NotSupported = 5,
        /// Function authorization failed.
        NotAuthorized = 6,
        /// Function rejected.
        Rejected = 255,
    }
}

open_enum! {
    /// What a logout closes (RFC 7143 section 11.14.1).
    LogoutReason {
        /// The session.
        CloseSession = 0,
        /// The connection named by its CID.
        CloseConnection = 1,
        /// The connection with this CID, to recover its tasks on another connection.
        RemoveForRecovery = 2,
    }
}

open_enum! {
    /// Result of a logout (RFC 7143 section 11.15.1).
    LogoutResult {
        /// Closed.
        Closed = 0,
        /// No such CID.
        NoSuchCid = 1,
        /// Connection recovery is not supported.
        RecoveryNotSupported = 2,
        /// Cleanup failed.
        CleanupFailed = 3,
    }
}

open_enum! {
    /// Kind of a SNACK request (RFC 7143 section 11.16.1).
    SnackKind {
        /// Data-In or R2T retransmission.
        DataOrR2t = 0,
        /// Status retransmission.
        Status = 1,
        /// Data acknowledgement.
        DataAck = 2,
        /// Data retransmission with new segment length.
        RData = 3,
    }
}

open_enum! {
    /// Event of an asynchronous message (RFC 7143 section 11.9.1).
    AsyncEvent {
        /// A SCSI event; sense data follows.
        Scsi = 0,
        /// The target requests a logout within Parameter3 seconds.
        LogoutRequest = 1,
        /// The target will drop the connection named in Parameter1.
        ConnectionDrop = 2,
        /// The target will drop all connections of the session.
        SessionDrop = 3,
        /// The target requests negotiation within Parameter3 seconds.
        Negotiate = 4,
        /// The tasks of one logical unit were ended (RFC 7144's fast abort).
        TaskTermination = 5,
        /// Vendor specific.
        Vendor = 255,
    }
}

open_enum! {
    /// Reason of a Reject PDU (RFC 7143 section 11.17.1).
    RejectReason {
        /// Data digest error.
        DataDigest = 0x02,
        /// SNACK reject.
        Snack = 0x03,
        /// Protocol error.
        ProtocolError = 0x04,
        /// Command not supported.
        CommandNotSupported = 0x05,
        /// Too many immediate commands.
        TooManyImmediate = 0x06,
        /// Task in progress.
        TaskInProgress = 0x07,
        /// Invalid data acknowledgement.
        InvalidDataAck = 0x08,
        /// Invalid PDU field.
        InvalidPduField = 0x09,
        /// Long operation reject.
        LongOperation = 0x0a,
        /// Negotiation reset (deprecated by RFC 7143, still seen).
        NegotiationReset = 0x0b,
        /// Waiting for logout.
        WaitingForLogout = 0x0c,
    }
}

/// Login stage (RFC 7143 section 11.12.3). The value 2 is reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Stage {
    /// Security negotiation.
    Security = 0,
    /// Login operational negotiation.
    Operational = 1,
    /// Full feature phase.
    FullFeature = 3,
}

impl Stage {
    /// From the two bits on the wire.
    pub fn from_code(code: u8) -> Option<Self> {
        match code {
            0 => Some(Stage::Security),
            1 => Some(Stage::Operational),
            3 => Some(Stage::FullFeature),
            _ => None,
        }
    }
}

/// Status class and detail of a login response (RFC 7143 section 11.13.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LoginStatus {
    /// 0 success, 1 redirection, 2 initiator error, 3 target error.
    pub class: u8,
    /// Detail within the class.
    pub detail: u8,
}

impl LoginStatus {
    /// Login is proceeding.
    pub const SUCCESS: Self = Self::of(0, 0);
    /// Target moved for this login.
    pub const MOVED_TEMPORARILY: Self = Self::of(1, 1);
    /// Target moved for good.
    pub const MOVED_PERMANENTLY: Self = Self::of(1, 2);
    /// Miscellaneous initiator error.
    pub const INITIATOR_ERROR: Self = Self::of(2, 0);
    /// Authentication failed.
    pub const AUTHENTICATION_FAILED: Self = Self::of(2, 1);
    /// The initiator is not allowed access to the target.
    pub const FORBIDDEN: Self = Self::of(2, 2);
    /// No such target.
    pub const NOT_FOUND: Self = Self::of(2, 3);
    /// The target has been removed.
    pub const REMOVED: Self = Self::of(2, 4);
    /// Version range does not overlap.
    pub const UNSUPPORTED_VERSION: Self = Self::of(2, 5);
    /// Too many connections on the session.
    pub const TOO_MANY_CONNECTIONS: Self = Self::of(2, 6);
    /// A required parameter such as `InitiatorName` is missing.
    pub const MISSING_PARAMETER: Self = Self::of(2, 7);
    /// The connection cannot be included in this session.
    pub const CANNOT_INCLUDE: Self = Self::of(2, 8);
    /// Session type not supported.
    pub const SESSION_TYPE_NOT_SUPPORTED: Self = Self::of(2, 9);
    /// The session named by TSIH does not exist.
    pub const NO_SUCH_SESSION: Self = Self::of(2, 0x0a);
    /// Invalid request during login.
    pub const INVALID_DURING_LOGIN: Self = Self::of(2, 0x0b);
    /// Target hardware or software error.
    pub const TARGET_ERROR: Self = Self::of(3, 0);
    /// Service unavailable.
    pub const UNAVAILABLE: Self = Self::of(3, 1);
    /// Out of resources.
    pub const OUT_OF_RESOURCES: Self = Self::of(3, 2);

    const fn of(class: u8, detail: u8) -> Self {
        LoginStatus { class, detail }
    }

    /// The RFC's words for the status, for messages.
    pub fn describe(self) -> &'static str {
        match (self.class, self.detail) {
            (0, _) => "success",
            (1, 1) => "target moved temporarily",
            (1, 2) => "target moved permanently",
            (1, _) => "redirection",
            (2, 1) => "authentication failure",
            (2, 2) => "initiator not allowed to use this target",
            (2, 3) => "target not found",
            (2, 4) => "target removed",
            (2, 5) => "protocol version not supported",
            (2, 6) => "too many connections",
            (2, 7) => "missing parameter",
            (2, 8) => "connection cannot join the session",
            (2, 9) => "session type not supported",
            (2, 0x0a) => "session does not exist",
            (2, 0x0b) => "invalid request during login",
            (2, _) => "initiator error",
            (3, 1) => "service unavailable",
            (3, 2) => "out of resources",
            (3, _) => "target error",
            _ => "undefined status",
        }
    }
}
