//! Credentials as values that cannot be printed by accident.
//!
//! A platform may quote a credential back in an error message, so texts that come from outside are cleaned of
//! it before they reach a log or an error.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

/// A credential: its text is only had by asking for it.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a credential.
    pub fn new(text: impl Into<String>) -> Self {
        Secret(text.into())
    }

    /// Returns the credential itself, for the request that needs it.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Whether there is nothing in it, as when a variable is set but empty.
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
    fn a_secret_shows_itself_nowhere() {
        let secret = Secret::new("EAAB-very-secret");
        assert_eq!(format!("{secret:?}"), "[redacted]");
        assert_eq!(
            secret.scrub("malformed access token EAAB-very-secret!"),
            "malformed access token [redacted]!"
        );
        assert_eq!(Secret::new("").scrub("kept"), "kept");
    }
}
