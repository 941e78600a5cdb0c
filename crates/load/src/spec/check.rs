//! Contradictions in a specification, found before anything is opened.

use super::{RunSpec, SPEC_VERSION};
use thiserror::Error;

impl RunSpec {
    /// Reads the JSON form and validates it.
    pub fn from_json(text: &str) -> Result<Self, SpecError> {
        let spec: Self = serde_json::from_str(text).map_err(|error| SpecError::Json(error.to_string()))?;
        spec.validate()?;
        Ok(spec)
    }

    /// Finds the first contradiction.
    pub fn validate(&self) -> Result<(), SpecError> {
        if self.version != SPEC_VERSION {
            return Err(SpecError::Version(self.version));
        }
        Ok(())
    }
}

/// The order makes no sense. Always the user's fault; the message names the key.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SpecError {
    /// Not the JSON form.
    #[error("the run specification is not valid: {0}")]
    Json(String),
    /// Another version.
    #[error("run specification version {0} is not supported; this build reads version {SPEC_VERSION}")]
    Version(u32),
    /// A value is outside its range or contradicts another.
    #[error("{key}: {problem}")]
    Value {
        /// Where, such as `streams.wd1.read_percent`.
        key: String,
        /// What is wrong and what is accepted.
        problem: String,
    },
}
