//! Measures copies of pictures: how many a tracker makes per second, how soon responses show them beside tracking, their
//! size, and the latency of `/media`. Prints the tables of docs/measurements/pictures.md: `make bench-pictures`.

#[expect(dead_code, reason = "the tests of tracking use the rest")]
#[path = "../../tests/tracking/test_tracker.rs"]
mod test_tracker;

use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};

use harness::{cpu_seconds, http_client, serve};
use image::imageops::crop_imm;
use image::{Rgb, RgbImage};
use picture_copy::{encode_jpeg, make_copy};
use salvo::conn::{Acceptor, TcpListener};
use salvo::prelude::*;
use sqlx::PgPool;
use test_tracker::TestTracker;
use tidemark::app::{App, Settings};
use tidemark::model::picture::PictureKind;
use tidemark::model::platform::Platform;
use tidemark::model::readable::ReadablePlatforms;
use tidemark::store::search::SearchIndex;
use tidemark::worker::pictures::{PictureOffers, Pictures, SeenPicture};
use tidemark::worker::tracker::Tracker;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// Pictures of 1080 x 1350 pixels, as platforms serve covers: half are offered at once, half beside tracking.
const PICTURES: usize = 1_200;
const SIZE: (u32, u32) = (1080, 1350);
const JPEG_BYTES: usize = 150_000;
/// Pictures of one scrape; beside tracking there is such a scrape every second.
const PER_SCRAPE: usize = 30;
const SCRAPE_INTERVAL: Duration = Duration::from_secs(1);
/// Organizations that track all accounts of the sandbox.
const ORGANIZATIONS: usize = 20;
const TRACKER_SLOTS: usize = 8;
/// 50 scrapes a second, each of about 50 posts.
const DUE_TARGETS: i64 = 5;
const DUE_INTERVAL: Duration = Duration::from_millis(100);
const POLL_INTERVAL: Duration = Duration::from_millis(20);
const CONNECTIONS: [usize; 3] = [1, 8, 32];
const SERVE_TIME: Duration = Duration::from_secs(10);

#[tokio::main]
async fn main() {
    let pictures = draw_all();
    let average = pictures.iter().map(Vec::len).sum::<usize>() / PICTURES;
    println!("{PICTURES} pictures of {} x {}, {average} bytes on average\n", SIZE.0, SIZE.1);
    print_stages(&pictures);
    let root = tempfile::tempdir().unwrap();
    let tracker = TestTracker::start().await;
    let bench = CopyBench::start(&tracker, root.path(), pictures).await;
    bench.copy_at_once().await;
    bench.copy_beside_tracking(&tracker).await;
    bench.stop.cancel();
    serve_all(&tracker, root.path()).await;
}

/// Draws pictures that compress to about the size of photographs.
fn draw_all() -> Vec<Vec<u8>> {
    let encode = |picture: &RgbImage, quality| encode_jpeg(picture, quality).unwrap();
    // Each picture is another part of one scene.
    let scene = RgbImage::from_fn(2 * SIZE.0, 2 * SIZE.1, color);
    let draw = |n: u32| crop_imm(&scene, 389 * n % SIZE.0, 611 * n % SIZE.1, SIZE.0, SIZE.1).to_image();
    let first = draw(0);
    let qualities = (20..=95).step_by(5);
    let quality =
        qualities.min_by_key(|quality| encode(&first, *quality).len().abs_diff(JPEG_BYTES)).unwrap();
    (0..PICTURES).map(|n| encode(&draw(n as u32), quality)).collect()
}

/// Detail of every size, as photographs have.
fn color(x: u32, y: u32) -> Rgb<u8> {
    let details = [(3, 18.0), (8, 30.0), (24, 45.0), (72, 60.0), (216, 80.0)];
    let light: f32 = details.iter().map(|(cell, amplitude)| amplitude * noise(x, y, *cell, 0)).sum();
    let [red, blue] = [1, 2].map(|channel| 60.0 * (noise(x, y, 40, channel) + noise(x, y, 200, channel)));
    Rgb([light + red, light, light + blue].map(|value| (128.0 + value).clamp(0.0, 255.0) as u8))
}

/// Interpolates between random values of the corners of cells, from -0.5 to 0.5.
fn noise(x: u32, y: u32, cell: u32, channel: u32) -> f32 {
    let corner = |x: u32, y: u32| {
        let seed = (3 * cell + channel).wrapping_mul(0xc2b2_ae35);
        let bits = seed ^ x.wrapping_mul(0x9e37_79b1) ^ y.wrapping_mul(0x85eb_ca77);
        let bits = (bits ^ (bits >> 15)).wrapping_mul(0x2c1b_3c6d);
        f32::from((bits >> 16) as u16) / 65_535.0 - 0.5
    };
    let (column, row) = (x / cell, y / cell);
    let [right, down] = [x % cell, y % cell].map(|offset| offset as f32 / cell as f32);
    let mix = |one: f32, other: f32, part: f32| one + (other - one) * part;
    let top = mix(corner(column, row), corner(column + 1, row), right);
    mix(top, mix(corner(column, row + 1), corner(column + 1, row + 1), right), down)
}

/// Prints the time of one copy on one core.
fn print_stages(pictures: &[Vec<u8>]) {
    println!("| Copy | ms, one core | bytes |\n|---|---|---|");
    for kind in [PictureKind::Cover, PictureKind::Profile] {
        let started = Instant::now();
        let bytes: usize =
            pictures.iter().take(100).map(|picture| make_copy(picture, kind.max_edge()).unwrap().len()).sum();
        let each = started.elapsed().as_secs_f64() * 1000.0 / 100.0;
        println!("| {} | {each:.1} | {} |", kind.as_str(), bytes / 100);
    }
}

struct PictureServer(Vec<Vec<u8>>);

#[handler]
impl PictureServer {
    async fn handle(&self, req: &mut Request, res: &mut Response) {
        let number = req.param::<usize>("number").unwrap_or_default();
        res.write_body(self.0[number].clone()).unwrap();
    }
}

/// Videos with pictures, and what copies them.
struct CopyBench {
    pg: PgPool,
    organization: Uuid,
    /// The videos and their pictures.
    videos: Vec<SeenPicture>,
    offers: PictureOffers,
    stop: CancellationToken,
}

impl CopyBench {
    async fn start(tracker: &TestTracker, root: &Path, pictures: Vec<Vec<u8>>) -> Self {
        let acceptor = TcpListener::new("127.0.0.1:0").bind().await;
        let address = acceptor.holdings()[0].local_addr.clone().into_std().unwrap();
        let router = Router::with_path("{number}").get(PictureServer(pictures));
        tokio::spawn(Server::new(acceptor).serve(router));
        let pg = tracker.pg().clone();
        let organization = tracker.create_organization().await;
        let videos: Vec<(Uuid, String)> = sqlx::query_as(
            "insert into videos (id, subject_id, organization_id, platform, external_id, is_tracked,
                cover_image_url_original, added_at, updated_at)
             select gen_random_uuid(), 1000000 + n, $1, 'instagram', n::text, true, 'http://' || $2 || '/' || n, now(), now()
             from generate_series(0, $3 - 1) n returning id, cover_image_url_original",
        )
        .bind(organization)
        .bind(address.to_string())
        .bind(PICTURES as i32)
        .fetch_all(&pg)
        .await
        .unwrap();
        let hosts = format!("{address},{}", tracker.sandbox.url.trim_start_matches("http://"));
        let folder = root.join("media");
        let hosts = hosts.parse().unwrap();
        let (offers, copies) = Pictures::in_folder(folder, 1 << 30, &hosts, &tracker.databases).unwrap();
        let stop = CancellationToken::new();
        tokio::spawn(copies.run(stop.clone()));
        let seen = |(record_id, url)| SeenPicture { record_id, kind: PictureKind::Cover, url };
        let videos = videos.into_iter().map(seen).collect();
        CopyBench { pg, organization, videos, offers, stop }
    }

    fn offer(&self, videos: &[SeenPicture]) {
        self.offers.offer(self.organization, Platform::Instagram, videos.to_vec());
    }

    /// Offers pictures as a backlog, and prints how fast it drains.
    async fn copy_at_once(&self) {
        // This process also serves the pictures.
        let (started, cpu) = (Instant::now(), cpu_seconds(std::process::id()));
        let videos = &self.videos[..PICTURES / 2];
        videos.chunks(PER_SCRAPE).for_each(|scrape| self.offer(scrape));
        self.wait_idle(videos.len()).await;
        let (elapsed, count) = (started.elapsed().as_secs_f64(), videos.len() as f64);
        let cpu = (cpu_seconds(std::process::id()) - cpu) / count;
        let used: i64 = sqlx::query_scalar("select used_bytes from media").fetch_one(&self.pg).await.unwrap();
        println!("\n| Copied per second | CPU seconds per picture | Space per copy |\n|---|---|---|");
        println!("| {:.0} | {cpu:.3} | {} bytes |", count / elapsed, used / videos.len() as i64);
    }

    /// Waits until so many records show a copy, and no picture is due.
    async fn wait_idle(&self, copied: usize) {
        loop {
            let is_idle: bool = sqlx::query_scalar(
                "select count(*) filter (where organization_id = $2 and name is not null) = $1 and count(due_at) = 0
                 from record_pictures",
            )
            .bind(copied as i64)
            .bind(self.organization)
            .fetch_one(&self.pg)
            .await
            .unwrap();
            if is_idle {
                return;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Prints how many scrapes a tracker makes alone and beside pictures, and when responses show these.
    async fn copy_beside_tracking(&self, tracker: &TestTracker) {
        for _ in 0..ORGANIZATIONS {
            let organization = tracker.create_organization().await;
            for platform in Platform::ALL {
                for username in tracker.usernames(platform) {
                    tracker.add_account(organization, platform, &username).await;
                }
            }
        }
        let mut scrapes = Tracker::new(tracker.databases.clone(), tracker.sources.clone());
        scrapes.pictures = self.offers.clone();
        let stop = self.stop.clone();
        tokio::spawn(async move { scrapes.run(TRACKER_SLOTS, stop).await });
        let copied = PICTURES / 2;
        while self.scrapes().await == 0 {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        // The pictures of the sandbox are copied once, before the measurement.
        self.wait_idle(copied).await;
        let (due, stop) = (self.pg.clone(), self.stop.clone());
        tokio::spawn(async move { stop.run_until_cancelled(keep_due(&due)).await });
        let seconds = self.videos[copied..].len() as f64 / PER_SCRAPE as f64;
        let before = self.scrapes().await;
        tokio::time::sleep(SCRAPE_INTERVAL.mul_f64(seconds)).await;
        let alone = (self.scrapes().await - before) as f64 / seconds;
        let (before, started) = (self.scrapes().await, Instant::now());
        let mut delays = self.measure_delays(&self.videos[copied..]).await;
        let beside = (self.scrapes().await - before) as f64 / started.elapsed().as_secs_f64();
        delays.sort_unstable();
        let at = |percent: usize| delays[delays.len() * percent / 100].as_secs_f64();
        println!(
            "\n| Pictures per second | shown after, p50 s | p99 s | scrapes per second | without pictures |"
        );
        println!(
            "|---|---|---|---|---|\n| {PER_SCRAPE} | {:.2} | {:.2} | {beside:.0} | {alone:.0} |",
            at(50),
            at(99)
        );
    }

    async fn scrapes(&self) -> i64 {
        let ended = sqlx::query_scalar("select coalesce(sum(succeeded), 0)::bigint from ended_attempts");
        ended.fetch_one(&self.pg).await.unwrap()
    }

    /// Offers the pictures of a scrape at intervals, and returns the time until each is shown.
    async fn measure_delays(&self, videos: &[SeenPicture]) -> Vec<Duration> {
        let mut unseen = HashMap::new();
        let mut delays = Vec::new();
        let mut scrapes = videos.chunks(PER_SCRAPE);
        let mut next = Instant::now();
        loop {
            if next <= Instant::now() {
                match scrapes.next() {
                    Some(scrape) => {
                        self.offer(scrape);
                        unseen.extend(scrape.iter().map(|video| (video.record_id, Instant::now())));
                        next += SCRAPE_INTERVAL;
                    }
                    None if unseen.is_empty() => return delays,
                    None => {}
                }
            }
            let shown: Vec<Uuid> = sqlx::query_scalar(
                "select record_id from record_pictures where record_id = any($1) and name is not null",
            )
            .bind(unseen.keys().copied().collect::<Vec<_>>())
            .fetch_all(&self.pg)
            .await
            .unwrap();
            delays.extend(shown.iter().filter_map(|id| unseen.remove(id)).map(|offered| offered.elapsed()));
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }
}

/// Makes targets due at a constant rate.
async fn keep_due(pg: &PgPool) {
    let mut interval = tokio::time::interval(DUE_INTERVAL);
    loop {
        interval.tick().await;
        let due = "update scrape_targets set next_attempt_at = now() - interval '1 minute'
                   where id in (select id from scrape_targets where next_attempt_at > now() and lease_owner is null
                                order by next_attempt_at limit $1)";
        sqlx::query(due).bind(DUE_TARGETS).execute(pg).await.unwrap();
        harness::wake_trackers(pg).await;
    }
}

/// Prints the latency of `/media` over kept connections.
async fn serve_all(tracker: &TestTracker, root: &Path) {
    let index = tempfile::tempdir().unwrap();
    let search = SearchIndex::open(index.path()).unwrap();
    let settings = Settings { media_dir: Some(root.join("media")), ..Settings::default() };
    let app = App::new(tracker.databases.clone(), search, ReadablePlatforms::new(Platform::ALL), settings);
    let url = serve(&app).await;
    let names: Vec<Vec<u8>> =
        sqlx::query_scalar("select name from pictures").fetch_all(tracker.pg()).await.unwrap();
    let urls: Vec<String> = names
        .iter()
        .map(|name| {
            let name: String = name.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("{url}/media/{name}.webp")
        })
        .collect();
    println!("\n| Connections | Requests per second | p50 ms | p99 ms |\n|---|---|---|---|");
    for connections in CONNECTIONS {
        let started = Instant::now();
        let clients = (0..connections).map(|n| {
            let urls = urls.clone();
            tokio::spawn(async move {
                let client = http_client();
                let mut latencies = Vec::new();
                for url in urls.iter().cycle().skip(n * 17) {
                    if started.elapsed() > SERVE_TIME {
                        break;
                    }
                    let sent = Instant::now();
                    let response = client.get(url).send().await.unwrap();
                    assert_eq!(response.status(), 200);
                    response.bytes().await.unwrap();
                    latencies.push(sent.elapsed());
                }
                latencies
            })
        });
        let mut latencies = Vec::new();
        for client in clients.collect::<Vec<_>>() {
            latencies.extend(client.await.unwrap());
        }
        latencies.sort_unstable();
        let at = |percent: usize| latencies[latencies.len() * percent / 100].as_secs_f64() * 1000.0;
        let rate = latencies.len() as f64 / SERVE_TIME.as_secs_f64();
        println!("| {connections} | {rate:.0} | {:.2} | {:.2} |", at(50), at(99));
    }
}
