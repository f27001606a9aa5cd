//! Measures copies of pictures: how many a tracker makes per second, until responses show them, their size, and the latency
//! of `/media`: `make bench-pictures`.

#[path = "../../tests/harness/mod.rs"]
mod harness;

use std::sync::Arc;
use std::time::{Duration, Instant};

use harness::{IsolatedStores, http_client, serve};
use image::codecs::jpeg::JpegEncoder;
use image::{Rgb, RgbImage};
use salvo::conn::{Acceptor, TcpListener};
use salvo::prelude::*;
use tidemark::app::{App, Settings};
use tidemark::media::picture::make_copy;
use tidemark::model::picture::PictureKind;
use tidemark::model::platform::Platform;
use tidemark::model::readable::ReadablePlatforms;
use tidemark::store::records::organizations::{self, OrganizationChange};
use tidemark::store::search::SearchIndex;
use tidemark::worker::pictures::{Pictures, SeenPicture};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// Pictures of 1080 x 1350 pixels, as platforms serve covers.
const PICTURES: usize = 600;
const SIZE: (u32, u32) = (1080, 1350);
const JPEG_BYTES: usize = 150_000;
/// Copies in the order in which scrapes report them: this many per scrape.
const PER_SCRAPE: usize = 30;
const CONNECTIONS: [usize; 3] = [1, 8, 32];
const SERVE_TIME: Duration = Duration::from_secs(10);

#[tokio::main]
async fn main() {
    let pictures: Arc<Vec<Vec<u8>>> = Arc::new((0..PICTURES).map(|n| draw(n as u32)).collect());
    let average = pictures.iter().map(Vec::len).sum::<usize>() / PICTURES;
    println!("{PICTURES} pictures of {} x {}, {average} bytes on average\n", SIZE.0, SIZE.1);
    print_stages(&pictures);
    let root = tempfile::tempdir().unwrap();
    let stores = IsolatedStores::create_postgres().await;
    copy_all(&stores, root.path(), pictures).await;
    serve_all(&stores, root.path()).await;
}

/// Draws a picture that compresses to about the size of a photograph.
fn draw(seed: u32) -> Vec<u8> {
    let noise = |x: u32, y: u32| {
        let bits = (x ^ seed).wrapping_mul(0x9e37_79b1) ^ (y.wrapping_mul(0x85eb_ca77)).rotate_left(13);
        (bits ^ (bits >> 15)).wrapping_mul(0x2c1b_3c6d) >> 28
    };
    let pixel = |x: u32, y: u32| {
        let (red, green) = ((x / 5 + seed * 7) % 256, (y / 6 + seed * 13) % 256);
        let texture = noise(x / 2, y / 2);
        Rgb([red, green, (red + green) / 2].map(|value| (value + texture).min(255) as u8))
    };
    let picture = RgbImage::from_fn(SIZE.0, SIZE.1, pixel);
    let encode = |quality| {
        let mut bytes = Vec::new();
        JpegEncoder::new_with_quality(&mut bytes, quality).encode_image(&picture).unwrap();
        bytes
    };
    let qualities = (20..=95).step_by(5);
    qualities.map(encode).min_by_key(|bytes| bytes.len().abs_diff(JPEG_BYTES)).unwrap()
}

/// Prints the time of one copy on one core.
fn print_stages(pictures: &[Vec<u8>]) {
    println!("| Copy | ms, one core | bytes |\n|---|---|---|");
    for kind in [PictureKind::Cover, PictureKind::Profile] {
        let started = Instant::now();
        let bytes: usize =
            pictures.iter().take(100).map(|picture| make_copy(picture, kind).unwrap().len()).sum();
        let each = started.elapsed().as_secs_f64() * 1000.0 / 100.0;
        println!("| {} | {each:.1} | {} |", kind.as_str(), bytes / 100);
    }
}

struct PictureServer(Arc<Vec<Vec<u8>>>);

#[handler]
impl PictureServer {
    async fn handle(&self, req: &mut Request, res: &mut Response) {
        let number = req.param::<usize>("number").unwrap_or_default();
        res.write_body(self.0[number % self.0.len()].clone()).unwrap();
    }
}

/// Offers pictures as scrapes do, and prints how fast copies are shown.
async fn copy_all(stores: &IsolatedStores, root: &std::path::Path, pictures: Arc<Vec<Vec<u8>>>) {
    let acceptor = TcpListener::new("127.0.0.1:0").bind().await;
    let address = acceptor.holdings()[0].local_addr.clone().into_std().unwrap();
    let router = Router::with_path("{number}").get(PictureServer(pictures));
    tokio::spawn(Server::new(acceptor).serve(router));
    let pg = stores.pg();
    let organization = organizations::create(pg, "bench", &OrganizationChange::default()).await.unwrap().id;
    let videos: Vec<Uuid> = sqlx::query_scalar(
        "insert into videos (id, subject_id, organization_id, platform, external_id, is_tracked, cover_image_url_original,
            added_at, updated_at)
         select gen_random_uuid(), n, $1, 'instagram', n::text, true, 'http://' || $2 || '/' || n, now(), now()
         from generate_series(0, $3 - 1) n returning id",
    )
    .bind(organization)
    .bind(address.to_string())
    .bind(PICTURES as i32)
    .fetch_all(pg)
    .await
    .unwrap();
    let (offers, copies) = Pictures::in_folder(
        root.join("media"),
        1 << 30,
        &address.to_string().parse().unwrap(),
        &stores.databases,
    )
    .unwrap();
    let stop = CancellationToken::new();
    tokio::spawn(copies.run(stop.clone()));
    let (started, cpu) = (Instant::now(), cpu_seconds());
    for (n, chunk) in videos.chunks(PER_SCRAPE).enumerate() {
        let seen = chunk.iter().enumerate().map(|(m, record_id)| SeenPicture {
            record_id: *record_id,
            kind: PictureKind::Cover,
            url: format!("http://{address}/{}", n * PER_SCRAPE + m),
        });
        offers.offer(organization, Platform::Instagram, seen.collect());
    }
    loop {
        let missing: i64 = sqlx::query_scalar(
            "select $1 - count(*) from record_pictures where name is not null and due_at is null",
        )
        .bind(PICTURES as i64)
        .fetch_one(pg)
        .await
        .unwrap();
        if missing == 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let elapsed = started.elapsed().as_secs_f64();
    let used: i64 = sqlx::query_scalar("select used_bytes from media").fetch_one(pg).await.unwrap();
    println!("\n| Copied per second | CPU seconds per picture | Space per copy |\n|---|---|---|");
    println!(
        "| {:.0} | {:.3} | {} bytes |",
        PICTURES as f64 / elapsed,
        (cpu_seconds() - cpu) / PICTURES as f64,
        used / PICTURES as i64
    );
    stop.cancel();
}

/// Returns the CPU time of this process, which also serves the pictures.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
    fields[11..13].iter().map(|ticks| ticks.parse::<f64>().unwrap()).sum::<f64>() / 100.0
}

/// Prints the latency of `/media` over kept connections.
async fn serve_all(stores: &IsolatedStores, root: &std::path::Path) {
    let index = tempfile::tempdir().unwrap();
    let search = SearchIndex::open(index.path()).unwrap();
    let settings = Settings { media_dir: Some(root.join("media")), ..Settings::default() };
    let app = App::new(stores.databases.clone(), search, ReadablePlatforms::new(Platform::ALL), settings);
    let url = serve(&app).await;
    let names: Vec<Vec<u8>> =
        sqlx::query_scalar("select name from pictures").fetch_all(stores.pg()).await.unwrap();
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
