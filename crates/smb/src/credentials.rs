//! User, domain and password of a logon.

use std::fmt;

/// The account of servers for users without one.
const GUEST: &str = "guest";

/// A user's credentials. The password is never printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SmbCredentials {
    /// The domain; empty: the server's own accounts.
    pub domain: String,
    /// The user.
    pub user: String,
    /// The password.
    pub password: Password,
}

impl SmbCredentials {
    /// Credentials of a user in a domain.
    pub fn new(domain: &str, user: &str, password: &str) -> Self {
        Self { domain: domain.into(), user: user.into(), password: Password(password.into()) }
    }

    /// Credentials of a user as written: `user`, `DOMAIN\user` or `DOMAIN;user`. Without a user: the guest.
    pub fn of_user(user: Option<&str>, password: Option<&str>) -> Self {
        let user = user.unwrap_or(GUEST);
        let (domain, user) = user.split_once(['\\', ';']).unwrap_or(("", user));
        Self::new(domain, user, password.unwrap_or_default())
    }
}

/// A password: shown as stars, wiped when dropped.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Password(String);

impl Password {
    /// The password, for the one place that computes its hash.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl Drop for Password {
    fn drop(&mut self) {
        let mut bytes = std::mem::take(&mut self.0).into_bytes();
        bytes.fill(0);
        // Prevents removal of the stores above as dead code.
        std::hint::black_box(&bytes);
    }
}
