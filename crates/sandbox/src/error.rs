//! Why a sandbox cannot be opened, and why it rejects a command.

use std::path::PathBuf;

use super::platform::{Counters, Platform};

/// Why a command was rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorldError {
    #[error("the sandbox has no {0} account @{1}")]
    NoAccount(Platform, String),
    #[error("@{0} has no post {1} yet")]
    NoPost(String, String),
    #[error("unknown counter {0}; use followers without a post, or with a post one of {names}", names = Counters::NAMES.join(", "))]
    NoCounter(String),
    #[error("followers cannot be null")]
    NoFollowers,
    #[error("@{0} is taken")]
    Taken(String),
    #[error("@{0} is not a valid username on {1}")]
    BadUsername(String, Platform),
    #[error("hours must be a number from 0 to 87600")]
    Hours,
    #[error("cannot write the state file {0}: {1}")]
    Save(PathBuf, String),
}

/// Why a sandbox could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("the state file {0} cannot be read: {1}; repair it, or delete it to start over")]
    Read(PathBuf, String),
    #[error(
        "the state file {path} belongs to seed {theirs}, not {ours}: pass --seed {theirs}, or another --state"
    )]
    Seed { path: PathBuf, theirs: u64, ours: u64 },
    #[error(transparent)]
    Save(#[from] WorldError),
}
