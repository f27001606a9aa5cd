//! The thread that makes copies, one after the other: untrusted pictures cost the process one core and the memory of one
//! picture, however many wait.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::{io, thread};

use picture_copy::{UnusablePicture, make_copy};
use tokio::sync::{mpsc, oneshot};

use crate::model::picture::PictureKind;

/// A handle of the thread, which ends with the last handle. Cheap to clone.
#[derive(Clone)]
pub struct DecodeThread {
    jobs: mpsc::Sender<Job>,
}

struct Job {
    bytes: Vec<u8>,
    kind: PictureKind,
    copy: oneshot::Sender<Result<Vec<u8>, UnusablePicture>>,
}

impl DecodeThread {
    pub fn start() -> io::Result<Self> {
        let (sender, mut jobs) = mpsc::channel::<Job>(1);
        thread::Builder::new().name("pictures".to_owned()).spawn(move || {
            while let Some(Job { bytes, kind, copy }) = jobs.blocking_recv() {
                // The caller may be gone.
                let _ = copy.send(make_copy_without_panic(bytes, kind));
            }
        })?;
        Ok(DecodeThread { jobs: sender })
    }

    /// Makes the copy of a picture when those before it are done.
    pub async fn make_copy(&self, bytes: Vec<u8>, kind: PictureKind) -> Result<Vec<u8>, UnusablePicture> {
        let ended = || UnusablePicture::Unencodable("the thread of pictures has ended".to_owned());
        let (copy, received) = oneshot::channel();
        self.jobs.send(Job { bytes, kind, copy }).await.map_err(|_| ended())?;
        received.await.unwrap_or_else(|_| Err(ended()))
    }
}

/// A decoder that panics has no effect on the next picture.
fn make_copy_without_panic(bytes: Vec<u8>, kind: PictureKind) -> Result<Vec<u8>, UnusablePicture> {
    let made = catch_unwind(AssertUnwindSafe(|| make_copy(&bytes, kind.max_edge())));
    made.unwrap_or_else(|_| Err(UnusablePicture::Undecodable("the decoder panicked".to_owned())))
}
