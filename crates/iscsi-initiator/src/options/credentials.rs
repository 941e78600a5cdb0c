//! CHAP names and secrets.

use super::error::OptionsError;
use linerate_iscsi_proto::chap::{self, Algorithm, ChapConfig};
use std::fmt;

/// CHAP names and secrets of one session. None of it is ever printed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Credentials {
    /// Our CHAP name; none = no authentication is offered.
    pub user: Option<String>,
    /// Our CHAP secret.
    pub secret: Option<Secret>,
    /// The name that the target must prove; none = one-way.
    pub mutual_user: Option<String>,
    /// The secret that the target must prove.
    pub mutual_secret: Option<Secret>,
}

impl Credentials {
    /// The configuration for a login; None if there is no user.
    pub(crate) fn chap(&self) -> Result<Option<ChapConfig>, OptionsError> {
        let side = |name: &Option<String>, secret: &Option<Secret>| match (name, secret) {
            (None, None) => Ok(None),
            (Some(name), Some(secret)) => Ok(Some(chap::Credentials {
                name: name.clone(),
                secret: chap::ChapSecret::new(secret.reveal()),
            })),
            _ => Err(OptionsError::HalfCredentials),
        };
        match (side(&self.user, &self.secret)?, side(&self.mutual_user, &self.mutual_secret)?) {
            (None, None) => Ok(None),
            (None, Some(_)) => Err(OptionsError::MutualAlone),
            (Some(initiator), target) => Ok(Some(ChapConfig::new(&Algorithm::ALL, initiator, target)?)),
        }
    }
}

/// A secret: shown as stars, wiped when dropped.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(Vec<u8>);

impl Secret {
    /// Takes the secret's bytes.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self(bytes.into())
    }

    /// The bytes, for the one place that computes a CHAP response.
    pub fn reveal(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        self.0.fill(0);
        // Prevents removal of the stores above as dead code.
        std::hint::black_box(&self.0);
    }
}
