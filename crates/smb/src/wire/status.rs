//! Status codes (MS-ERREF 2.3.1), with their names and plain words.

use std::fmt;

/// An NTSTATUS. Codes without a name here are shown as numbers.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Status(pub u32);

/// From one row per code, makes the constants and the table of names and words.
macro_rules! statuses {
    ($($name:ident $code:literal $words:literal)+) => {
        impl Status {
            $(
                #[doc = $words]
                pub const $name: Self = Self($code);
            )+
        }

        const TABLE: &[(Status, &str, &str)] = &[$((Status::$name, stringify!($name), $words),)+];
    };
}

statuses! {
    SUCCESS 0x0000_0000 "success"
    PENDING 0x0000_0103 "the answer comes later"
    BUFFER_OVERFLOW 0x8000_0005 "more data than the buffer holds"
    NO_MORE_FILES 0x8000_0006 "the folder has no further names"
    STOPPED_ON_SYMLINK 0x8000_002D "a link, which is not followed"
    NOT_IMPLEMENTED 0xC000_0002 "not implemented"
    INVALID_PARAMETER 0xC000_000D "an invalid parameter"
    INVALID_DEVICE_REQUEST 0xC000_0010 "not a request for this file system"
    NO_SUCH_FILE 0xC000_000F "no such file"
    END_OF_FILE 0xC000_0011 "behind the end of the file"
    MORE_PROCESSING_REQUIRED 0xC000_0016 "the logon continues"
    ACCESS_DENIED 0xC000_0022 "access denied"
    OBJECT_NAME_INVALID 0xC000_0033 "not a valid file name"
    OBJECT_NAME_NOT_FOUND 0xC000_0034 "no such file"
    OBJECT_NAME_COLLISION 0xC000_0035 "the file exists"
    OBJECT_PATH_NOT_FOUND 0xC000_003A "no such folder"
    SHARING_VIOLATION 0xC000_0043 "another client has the file open for itself"
    QUOTA_EXCEEDED 0xC000_0044 "the quota is used up"
    FILE_LOCK_CONFLICT 0xC000_0054 "another client has locked that part of the file"
    DELETE_PENDING 0xC000_0056 "the file is being removed"
    NO_SUCH_USER 0xC000_0064 "no such user"
    WRONG_PASSWORD 0xC000_006A "wrong password"
    LOGON_FAILURE 0xC000_006D "wrong user name or password"
    ACCOUNT_RESTRICTION 0xC000_006E "the account is not permitted to log on like this"
    INVALID_LOGON_HOURS 0xC000_006F "the account is not permitted to log on at this time"
    PASSWORD_EXPIRED 0xC000_0071 "the password has expired"
    ACCOUNT_DISABLED 0xC000_0072 "the account is disabled"
    DISK_FULL 0xC000_007F "the share has no space left"
    INSUFFICIENT_RESOURCES 0xC000_009A "the server lacks resources"
    MEDIA_WRITE_PROTECTED 0xC000_00A2 "the share is read-only"
    FILE_IS_A_DIRECTORY 0xC000_00BA "a folder, not a file"
    NOT_SUPPORTED 0xC000_00BB "not supported"
    NETWORK_NAME_DELETED 0xC000_00C9 "the server has closed the share"
    NETWORK_ACCESS_DENIED 0xC000_00CA "access to the share denied"
    BAD_NETWORK_NAME 0xC000_00CC "no such share"
    REQUEST_NOT_ACCEPTED 0xC000_00D0 "the server has too many sessions"
    CANCELLED 0xC000_0120 "cancelled"
    FILE_CLOSED 0xC000_0128 "the server has closed the file"
    DIRECTORY_NOT_EMPTY 0xC000_0101 "the folder is not empty"
    NOT_A_DIRECTORY 0xC000_0103 "a file, not a folder"
    TOO_MANY_OPENED_FILES 0xC000_011F "too many files are open on the server"
    CANNOT_DELETE 0xC000_0121 "the file is marked as read-only"
    LOGON_TYPE_NOT_GRANTED 0xC000_015B "the account is not permitted to log on over the network"
    USER_SESSION_DELETED 0xC000_0203 "the server has ended the session"
    PASSWORD_MUST_CHANGE 0xC000_0224 "the password must be changed first"
    ACCOUNT_LOCKED_OUT 0xC000_0234 "the account is locked"
    NETWORK_SESSION_EXPIRED 0xC000_035C "the session has expired"
    NTLM_BLOCKED 0xC000_0418 "NTLM is not accepted"
    FILE_NOT_AVAILABLE 0xC000_0467 "earlier requests of the file are still in work"
    SMB_NO_PREAUTH_INTEGRITY_HASH_OVERLAP 0xC05D_0000 "no common hash of the negotiation"
}

impl Status {
    /// Plain words for it.
    pub fn words(self) -> &'static str {
        TABLE.iter().find(|(code, ..)| *code == self).map_or("an error", |(.., words)| words)
    }

    /// Neither an error nor a warning.
    pub const fn is_success(self) -> bool {
        self.0 >> 30 == 0
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match TABLE.iter().find(|(code, ..)| code == self) {
            Some((_, name, words)) => write!(f, "{words} (STATUS_{name})"),
            None => write!(f, "status {:#010x}", self.0),
        }
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_shown_in_words_and_by_name() {
        assert_eq!(Status(0xC000_00CC).to_string(), "no such share (STATUS_BAD_NETWORK_NAME)");
        assert_eq!(Status(0xC123_4567).to_string(), "status 0xc1234567");
        assert!(Status::PENDING.is_success() && !Status::BUFFER_OVERFLOW.is_success());
    }
}
