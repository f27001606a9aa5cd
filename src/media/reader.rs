//! Reads copies for an API process, and remembers which it served.

use std::collections::HashSet;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use super::folder::MediaFolder;
use crate::model::picture::PictureName;

/// Served copies that are remembered; others count as not served.
const MAX_SERVED: usize = 200_000;

/// The folder of copies as an API process uses it. Cheap to clone.
#[derive(Debug, Clone)]
pub struct MediaReader(Arc<ReaderState>);

#[derive(Debug)]
struct ReaderState {
    folder: MediaFolder,
    is_present: AtomicBool,
    served: Mutex<HashSet<PictureName>>,
}

impl MediaReader {
    pub fn new(root: PathBuf) -> Self {
        let folder = MediaFolder::new(root);
        let is_present = AtomicBool::new(folder.is_present());
        MediaReader(Arc::new(ReaderState { folder, is_present, served: Mutex::default() }))
    }

    /// Whether the folder was there at the last check.
    pub fn is_present(&self) -> bool {
        self.0.is_present.load(Ordering::Relaxed)
    }

    /// Checks whether the folder is there.
    pub async fn check_folder(&self) {
        let is_present = self.0.folder.run(|folder| Ok(folder.is_present())).await;
        self.0.is_present.store(is_present.unwrap_or_default(), Ordering::Relaxed);
    }

    /// Returns a copy; `None` if it does not exist.
    pub async fn read(&self, name: PictureName) -> io::Result<Option<Vec<u8>>> {
        let copy = self.0.folder.run(move |folder| folder.read(&name)).await?;
        if copy.is_some() {
            let mut served = self.0.served.lock();
            if served.len() < MAX_SERVED {
                served.insert(name);
            }
        }
        Ok(copy)
    }

    /// Takes the names of copies that were served since the last call.
    pub fn take_served(&self) -> Vec<PictureName> {
        let mut served = self.0.served.lock();
        std::mem::take(&mut *served).into_iter().collect()
    }
}
