//! Reads copies for an API process, and remembers which it served.

use std::collections::HashSet;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use super::copy_name::name_copy;
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
    damaged: Mutex<HashSet<PictureName>>,
    /// That of the installation, once it is known.
    secret: OnceLock<[u8; 32]>,
}

impl MediaReader {
    pub fn new(root: PathBuf) -> Self {
        let folder = MediaFolder::new(root);
        let is_present = AtomicBool::new(folder.is_present());
        MediaReader(Arc::new(ReaderState {
            folder,
            is_present,
            served: Mutex::default(),
            damaged: Mutex::default(),
            secret: OnceLock::new(),
        }))
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

    /// Whether copies are checked: the secret under which they are named is known.
    pub fn checks_copies(&self) -> bool {
        self.0.secret.get().is_some()
    }

    pub fn set_secret(&self, secret: [u8; 32]) {
        // It never changes.
        let _ = self.0.secret.set(secret);
    }

    fn is_intact(&self, name: PictureName, copy: &[u8]) -> bool {
        self.0.secret.get().is_none_or(|secret| name_copy(secret, copy) == name)
    }

    /// Returns a copy; `None` if it does not exist or is damaged.
    pub async fn read(&self, name: PictureName) -> io::Result<Option<Vec<u8>>> {
        let stored = self.0.folder.run(move |folder| folder.read(&name)).await?;
        let copy = stored.filter(|copy| {
            let is_intact = self.is_intact(name, copy);
            if !is_intact {
                self.0.damaged.lock().insert(name);
            }
            is_intact
        });
        if copy.is_some() {
            let mut served = self.0.served.lock();
            if served.len() < MAX_SERVED {
                served.insert(name);
            }
        }
        Ok(copy)
    }

    /// Takes the names of copies that are damaged, and were to be served since the last call.
    pub async fn take_damaged(&self) -> Vec<PictureName> {
        let found = std::mem::take(&mut *self.0.damaged.lock());
        let mut damaged = Vec::new();
        for name in found {
            // A tracker may have stored it again.
            let read = self.0.folder.run(move |folder| folder.read(&name)).await;
            if read.is_ok_and(|stored| stored.is_some_and(|copy| !self.is_intact(name, &copy))) {
                damaged.push(name);
            }
        }
        damaged
    }

    /// Takes the names of copies that were served since the last call.
    pub fn take_served(&self) -> Vec<PictureName> {
        let mut served = self.0.served.lock();
        std::mem::take(&mut *served).into_iter().collect()
    }
}
