//! Credentials that cannot be logged by accident.
//!
//! A platform may return a credential in an error message, so `scrub` cleans external texts before they are logged.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

/// A credential, redacted in debug output.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub fn new(text: impl Into<String>) -> Self {
        Secret(text.into())
    }

    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Whether the variable was set to an empty text.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the text with every occurrence of the credential replaced.
    pub fn scrub(&self, text: &str) -> String {
        if self.0.is_empty() { text.to_owned() } else { text.replace(&self.0, "[redacted]") }
    }
}

impl FromStr for Secret {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Secret(text.trim().to_owned()))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_is_redacted() {
        let secret = Secret::new("EAAB-very-secret");
        assert_eq!(format!("{secret:?}"), "[redacted]");
        assert_eq!(
            secret.scrub("malformed access token EAAB-very-secret!"),
            "malformed access token [redacted]!"
        );
        assert_eq!(Secret::new("").scrub("text"), "text");
    }
}
