//! The part of the sandbox's state that survives a restart, in one small JSON file.
//!
//! Every change replaces the whole file, so that a kill leaves either the old state or the new one.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

/// The clock and all changes by control commands. Accounts are identified by their index in the population.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SavedState {
    pub(super) seed: u64,
    /// How far the sandbox's clock is ahead of the real one.
    pub(super) offset_ms: i64,
    /// Usernames of renamed accounts.
    #[serde(default)]
    pub(super) renames: BTreeMap<usize, String>,
    /// Deleted accounts.
    #[serde(default)]
    pub(super) lost: BTreeSet<usize>,
    /// Ids of deleted posts.
    #[serde(default)]
    pub(super) lost_posts: BTreeMap<usize, BTreeSet<String>>,
    #[serde(default)]
    pub(super) followers: BTreeMap<usize, i64>,
    /// Fixed counters by post id; null is unknown.
    #[serde(default)]
    pub(super) counters: BTreeMap<usize, FixedCounters>,
}

/// Values of counters by post id and name.
pub(super) type FixedCounters = BTreeMap<String, BTreeMap<String, Option<i64>>>;

impl SavedState {
    /// Reads the file; `None` if it does not exist.
    pub(super) fn read(path: &Path) -> Result<Option<SavedState>, String> {
        match fs::read(path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|error| error.to_string()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Replaces the file atomically and durably.
    pub(super) fn write(&self, path: &Path) -> io::Result<()> {
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        if let Some(directory) = directory {
            fs::create_dir_all(directory)?;
        }
        let mut temporary = path.as_os_str().to_owned();
        temporary.push(".new");
        let mut file = fs::File::create(&temporary)?;
        serde_json::to_writer_pretty(&mut file, self)?;
        file.write_all(b"\n")?;
        file.sync_all()?;
        fs::rename(&temporary, path)?;
        fs::File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
    }
}
