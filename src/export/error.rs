use std::io;
use std::path::{Path, PathBuf};

use crate::store;

/// Why an export failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot write {0}: {1}")]
    File(PathBuf, io::Error),
    #[error("{0}")]
    Store(#[from] store::Error),
}

impl Error {
    pub(super) fn file(path: &Path, error: io::Error) -> Self {
        Error::File(path.to_owned(), error)
    }
}
