//! Copies pictures beside the scrapes, which neither wait for them nor fail with them.
//!
//! A scrape offers the pictures that it saw. What is new or lost becomes due in Postgres; any tracker fetches it, makes a
//! copy, stores the file and then the reference. So after a kill every reference has its file.

mod fetcher;
mod offers;
mod served;
mod storage;
mod sweep;

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

use self::fetcher::Fetcher;
pub use self::offers::{PictureOffers, SeenPicture};
use self::storage::Storage;
pub use self::storage::StorageError;
use super::timeout;
use crate::app::Databases;
use crate::config::MediaArgs;
use crate::media::{DecodeThread, MediaFolder};
use crate::model::network::AllowedHosts;
use crate::platforms::pictures::PictureClient;
use crate::store::pictures;

pub use served::run_for_api;
pub use sweep::erase_unreferenced;

const DEFAULT_MAX_BYTES: u64 = 2 << 30;

/// The options of a tracker's pictures.
#[derive(Debug, Clone, clap::Args)]
pub struct PictureArgs {
    #[command(flatten)]
    pub media: MediaArgs,
    /// Space for copies of pictures in bytes; the least recently served are deleted
    #[arg(long, env = "TIDEMARK_MEDIA_MAX_BYTES", default_value_t = DEFAULT_MAX_BYTES, value_name = "BYTES",
          value_parser = clap::value_parser!(u64).range(16 << 20..=1 << 50))]
    pub media_max_bytes: u64,
    /// Hosts with pictures besides the platforms', comma-separated; http and private addresses are allowed for them
    #[arg(
        long,
        env = "TIDEMARK_MEDIA_ALLOWED_HOSTS",
        default_value = "",
        hide_default_value = true,
        value_name = "LIST"
    )]
    pub media_allowed_hosts: AllowedHosts,
}

impl PictureArgs {
    /// The limit of the folder, if there is one.
    pub(super) fn limit(&self) -> Option<u64> {
        self.media.folder().map(|_| self.media_max_bytes)
    }
}

/// Why pictures cannot be copied.
#[derive(Debug, thiserror::Error)]
pub enum PictureError {
    #[error("cannot create the HTTP client for pictures: {0}")]
    Client(String),
    #[error("cannot start the thread of pictures: {0}")]
    Thread(std::io::Error),
}

/// The pictures of a tracker process, before they run.
pub struct Pictures {
    databases: Databases,
    folder: MediaFolder,
    max_bytes: i64,
    client: PictureClient,
    decoder: DecodeThread,
    offers: mpsc::UnboundedReceiver<offers::Offer>,
}

impl Pictures {
    /// Returns what scrapes offer pictures to, and what copies them: nothing without a media folder.
    pub fn new(
        args: &PictureArgs,
        databases: &Databases,
    ) -> Result<(PictureOffers, Option<Self>), PictureError> {
        let Some(folder) = args.media.folder() else { return Ok((PictureOffers::default(), None)) };
        Self::in_folder(folder, args.media_max_bytes, &args.media_allowed_hosts, databases)
            .map(|(offers, pictures)| (offers, Some(pictures)))
    }

    pub fn in_folder(
        folder: PathBuf,
        max_bytes: u64,
        allowed_hosts: &AllowedHosts,
        databases: &Databases,
    ) -> Result<(PictureOffers, Self), PictureError> {
        let client = PictureClient::new(allowed_hosts.clone()).map_err(PictureError::Client)?;
        let decoder = DecodeThread::start().map_err(PictureError::Thread)?;
        let (sender, offers) = mpsc::unbounded_channel();
        let pictures = Pictures {
            databases: databases.clone(),
            folder: MediaFolder::new(folder),
            max_bytes: max_bytes.try_into().unwrap_or(i64::MAX),
            client: client.clone(),
            decoder,
            offers,
        };
        Ok((PictureOffers::new(client, sender), pictures))
    }

    /// Copies pictures until it is stopped. What was begun is fetched again when its lease ends.
    pub async fn run(self, stop: CancellationToken) {
        let Pictures { databases, folder, max_bytes, client, decoder, offers } = self;
        let pg = databases.pg;
        let Some(Ok(secret)) = stop.run_until_cancelled(fetch_secret(&pg)).await else { return };
        let storage = Storage { pg: pg.clone(), folder: folder.clone(), max_bytes, secret };
        let due = Arc::new(Notify::new());
        let (copies, unstored) = mpsc::channel(storage::BATCH_COPIES);
        let fetcher = Fetcher { pg: pg.clone(), client, decoder, folder, copies, due: due.clone() };
        let work = async {
            tokio::join!(
                offers::run(storage.clone(), offers, &due),
                fetcher.run(),
                storage::run(storage.clone(), unstored),
                sweep::run(storage.clone()),
            )
        };
        stop.run_until_cancelled(work).await;
    }
}

/// Reads the secret of the installation; waits for Postgres.
async fn fetch_secret(pg: &sqlx::PgPool) -> Result<[u8; 32], getrandom::Error> {
    let mut generated = [0; 32];
    getrandom::fill(&mut generated)?;
    loop {
        match timeout::short(pictures::fetch_secret(pg, generated)).await {
            Ok(secret) => return Ok(secret),
            Err(error) => tracing::warn!(%error, "cannot read the secret of pictures, retrying"),
        }
        tokio::time::sleep(storage::RETRY_DELAY).await;
    }
}
