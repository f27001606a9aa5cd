//! The error of a command.

use std::error::Error;
use std::fmt;

use crate::store;

/// An error as one sentence.
#[derive(Debug)]
pub struct CommandError(String);

impl CommandError {
    pub fn new(sentence: impl Into<String>) -> Self {
        CommandError(sentence.into())
    }
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<E: Error + 'static> From<E> for CommandError {
    /// Joins an error and its causes, each once, and adds advice for an unknown organization.
    fn from(error: E) -> Self {
        let mut sentence = error.to_string();
        let mut cause: Option<&(dyn Error + 'static)> = Some(&error);
        while let Some(current) = cause {
            let text = current.to_string();
            if !sentence.contains(&text) {
                sentence = format!("{sentence}: {text}");
            }
            if let Some(store::Error::NotFound("organization")) = current.downcast_ref() {
                sentence.push_str(": see `tidemark org list`");
            }
            cause = current.source();
        }
        CommandError(sentence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_names_each_cause_once() {
        #[derive(Debug, thiserror::Error)]
        #[error("the database is down")]
        struct Outer(#[source] std::io::Error);
        let error = CommandError::from(Outer(std::io::Error::other("connection refused")));
        assert_eq!(error.to_string(), "the database is down: connection refused");
    }
}
