//! The one error of the crate.

use std::fmt;

/// Why a request was refused or given up.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// An argument is out of its range: "{name} must be {requirement}, got {value}".
    Invalid {
        /// The argument.
        name: &'static str,
        /// What it must be.
        requirement: String,
        /// What it was.
        value: String,
    },
    /// The caller asked to stop.
    Interrupted,
}

impl Error {
    /// An argument out of its range.
    pub(crate) fn invalid(
        name: &'static str,
        requirement: impl Into<String>,
        value: impl fmt::Debug,
    ) -> Self {
        Self::Invalid { name, requirement: requirement.into(), value: format!("{value:?}") }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid { name, requirement, value } => {
                write!(f, "{name} must be {requirement}, got {value}")
            }
            Self::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl std::error::Error for Error {}
