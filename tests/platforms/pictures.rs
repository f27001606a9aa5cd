//! Pictures: what the sandbox serves is fetched and copied; no bad picture is, in bounded time and memory.

use std::sync::Arc;

use image::GenericImageView;
use picture_copy::UnusablePicture;
use sandbox::PictureFault;
use sandbox::pictures::{draw, picture_key, picture_url};
use sandbox::population::Population;
use sandbox::server::{SandboxServer, start};
use sandbox::world::World;
use tidemark::media::DecodeThread;
use tidemark::model::picture::PictureKind;
use tidemark::model::platform::Platform;
use tidemark::platforms::pictures::{FetchError, PictureClient};

use crate::canned::{CannedResponse, CannedServer};
use crate::time;

const PLATFORM: Platform = Platform::Instagram;
const SANDBOX_PLATFORM: sandbox::Platform = sandbox::Platform::Instagram;

/// A sandbox with pictures, and a client that may request them.
struct Setup {
    sandbox: SandboxServer,
    client: PictureClient,
    decoder: DecodeThread,
}

impl Setup {
    async fn start() -> Self {
        let start_time = Some(time("2026-03-10T12:00:00Z"));
        let world = Arc::new(World::open(Population::new(1, 40), None, start_time).unwrap());
        let sandbox = start("127.0.0.1:0".parse().unwrap(), world).await.unwrap();
        let host = sandbox.url.trim_start_matches("http://");
        let client = PictureClient::new(host.parse().unwrap()).unwrap();
        Setup { sandbox, client, decoder: DecodeThread::start().unwrap() }
    }

    /// The profile picture of the first account of the platform.
    fn profile(&self) -> (String, String) {
        let world = &self.sandbox.world;
        let visible = world.visible_accounts();
        let visible = visible.iter().find(|visible| visible.account.platform == SANDBOX_PLATFORM).unwrap();
        (visible.username.clone(), visible.profile_picture_url(&self.sandbox.url))
    }

    fn set_fault(&self, fault: Option<PictureFault>) {
        let (username, _) = self.profile();
        self.sandbox.world.set_picture_fault(SANDBOX_PLATFORM, &username, None, fault).unwrap();
    }

    async fn fetch(&self) -> Result<Vec<u8>, FetchError> {
        self.client.fetch(PLATFORM, &self.profile().1).await
    }
}

/// Returns the resident memory of this process in bytes: now, and at most since it was last reset.
fn memory() -> (u64, u64) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let read = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().strip_suffix("kB").unwrap().trim().parse::<u64>().unwrap() * 1024
    };
    (read("VmRSS:"), read("VmHWM:"))
}

#[tokio::test]
async fn picture_is_fetched_and_copied() {
    let setup = Setup::start().await;
    let copy = setup.decoder.make_copy(setup.fetch().await.unwrap(), PictureKind::Profile).await.unwrap();
    let copy = image::load_from_memory(&copy).unwrap();
    assert_eq!(copy.dimensions(), (320, 320));
    let (username, url) = setup.profile();
    let account = setup.sandbox.world.find_by_username(SANDBOX_PLATFORM, &username).unwrap().account;
    let kind = sandbox::pictures::PictureKind::Profile;
    let drawn = draw(&picture_key(SANDBOX_PLATFORM, kind, &account.id), 0, kind);
    let difference: u64 = copy
        .to_rgb8()
        .as_raw()
        .iter()
        .zip(drawn.as_raw())
        .map(|(copied, drawn)| u64::from(copied.abs_diff(*drawn)))
        .sum();
    assert!(difference / (3 * 320 * 320) < 8, "mean difference {}", difference / (3 * 320 * 320));
    // The URL of the same picture after its first one has expired.
    let identify = |url: &str| setup.client.identify(PLATFORM, PictureKind::Profile, url).unwrap();
    let first = identify(&url);
    setup.sandbox.world.advance(24.0).unwrap();
    assert_eq!(setup.client.fetch(PLATFORM, &url).await, Err(FetchError::Gone(403)));
    let (_, later) = setup.profile();
    assert_ne!(later, url);
    assert_eq!(identify(&later), first);
    setup.sandbox.world.replace_picture(SANDBOX_PLATFORM, &username, None).unwrap();
    assert_ne!(identify(&setup.profile().1), first);
    assert!(setup.fetch().await.is_ok());
}

#[tokio::test]
async fn bad_pictures_are_neither_fetched_nor_copied() {
    let setup = Setup::start().await;
    for (fault, expected) in [
        (PictureFault::Expired, FetchError::Gone(403)),
        (PictureFault::Missing, FetchError::Gone(404)),
        (PictureFault::Huge, FetchError::TooLarge),
        (PictureFault::Redirect, FetchError::OtherHost),
    ] {
        setup.set_fault(Some(fault));
        assert_eq!(setup.fetch().await, Err(expected), "{fault:?}");
    }
    for fault in [PictureFault::Html, PictureFault::Svg, PictureFault::Truncated, PictureFault::Bomb] {
        setup.set_fault(Some(fault));
        let made = setup.decoder.make_copy(setup.fetch().await.unwrap(), PictureKind::Profile).await;
        let is_expected = match fault {
            PictureFault::Bomb => made == Err(UnusablePicture::TooLarge),
            PictureFault::Truncated => matches!(made, Err(UnusablePicture::Undecodable(_))),
            _ => made == Err(UnusablePicture::UnknownFormat),
        };
        assert!(is_expected, "{fault:?}: {made:?}");
    }
    setup.set_fault(None);
    assert!(setup.fetch().await.is_ok());
}

#[tokio::test]
async fn slow_picture_times_out() {
    let setup = Setup::start().await;
    setup.set_fault(Some(PictureFault::Slow));
    // The whole picture would take hours.
    let fetched = setup.fetch().await;
    let Err(FetchError::Failed(reason)) = fetched else { panic!("{fetched:?}") };
    assert!(reason.starts_with("no complete response "), "{reason}");
}

#[tokio::test]
async fn redirect_is_followed_on_the_same_server_only() {
    let redirect = |to: &str| CannedResponse::Full(302, vec![("location", to.to_owned())], String::new());
    let picture = || CannedResponse::Full(200, Vec::new(), "picture".to_owned());
    let other = CannedServer::start(vec![picture()]).await;
    let script = |targets: &[&str]| {
        let redirects = targets.iter().map(|target| redirect(target));
        redirects.chain([picture()]).collect::<Vec<_>>()
    };
    for (targets, expected) in [
        (vec!["/moved.jpg"], Ok(b"picture".to_vec())),
        (vec!["/1", "2", "3", "4"], Err(FetchError::Failed("more than 3 redirects".to_owned()))),
        (vec![other.url.as_str()], Err(FetchError::OtherHost)),
        (vec!["http://169.254.169.254/"], Err(FetchError::OtherHost)),
        (vec!["file:///etc/passwd"], Err(FetchError::OtherHost)),
    ] {
        let server = CannedServer::start(script(&targets)).await;
        let client = PictureClient::new("127.0.0.1".parse().unwrap()).unwrap();
        let fetched = client.fetch(PLATFORM, server.url.join("/1.jpg").unwrap().as_str()).await;
        assert_eq!(fetched, expected, "{targets:?}");
    }
    assert_eq!(other.requests(), Vec::<String>::new());
}

/// The worst that the sources may serve at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_pictures_use_bounded_memory() {
    const CONCURRENT: usize = 8;
    // 48 MiB to decode one, and for each fetched one of 5 MiB up to twice that, as buffers grow; the rest is the sandbox's.
    const MAX_GROWTH: u64 = 160 << 20;
    let setup = Arc::new(Setup::start().await);
    // The sandbox is in this process, too.
    setup.set_fault(Some(PictureFault::Bomb));
    assert!(setup.fetch().await.is_ok());
    let large = large_pictures();
    let (before, _) = memory();
    let mut growths = Vec::new();
    let mut record_growth = |stage: String| {
        growths.push((stage, memory().1.saturating_sub(before) >> 20));
        std::fs::write("/proc/self/clear_refs", "5").unwrap();
    };
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    for fault in [PictureFault::Huge, PictureFault::Bomb, PictureFault::Truncated] {
        setup.set_fault(Some(fault));
        let fetches = (0..CONCURRENT).map(|_| {
            let setup = setup.clone();
            tokio::spawn(async move {
                let Ok(bytes) = setup.fetch().await else { return };
                assert!(setup.decoder.make_copy(bytes, PictureKind::Cover).await.is_err());
            })
        });
        for fetch in fetches.collect::<Vec<_>>() {
            fetch.await.unwrap();
        }
        record_growth(format!("{fault:?}"));
    }
    for (form, picture) in large {
        // The others wait, as large as the largest that are fetched.
        let waiting = (1..CONCURRENT).map(|_| (vec![b'?'; 5 << 20], false));
        let copies = [(picture, true)].into_iter().chain(waiting).map(|(bytes, is_picture)| {
            let decoder = setup.decoder.clone();
            tokio::spawn(async move {
                let made = decoder.make_copy(bytes, PictureKind::Cover).await;
                assert_eq!(made.is_ok(), is_picture, "{:?}", made.err());
            })
        });
        for copy in copies.collect::<Vec<_>>() {
            copy.await.unwrap();
        }
        record_growth(form.to_owned());
    }
    assert!(
        growths.iter().all(|growth| growth.1 < MAX_GROWTH >> 20),
        "more MB than {}: {growths:?}",
        before >> 20
    );
}

/// Pictures in the forms that take most memory, of as many pixels as each may have.
fn large_pictures() -> Vec<(&'static str, Vec<u8>)> {
    use image::{DynamicImage, ImageBuffer, ImageFormat, Luma, Rgb, RgbImage, Rgba, RgbaImage};
    let encode = |picture: DynamicImage, format| {
        let mut bytes = std::io::Cursor::new(Vec::new());
        picture.write_to(&mut bytes, format).unwrap();
        bytes.into_inner()
    };
    let pixel = |x: u32, y: u32| Rgb([(x / 16) as u8, (y / 16) as u8, (x + y) as u8]);
    let (rgb, smaller) = (RgbImage::from_fn(4000, 3000, pixel), RgbImage::from_fn(3600, 2700, pixel));
    let rgba = RgbaImage::from_pixel(4000, 3000, Rgba([200, 10, 30, 128]));
    let gray = ImageBuffer::from_fn(3600, 2700, |x, y| Luma([(16 * x + y) as u16]));
    vec![
        ("JPEG", encode(DynamicImage::ImageRgb8(rgb.clone()), ImageFormat::Jpeg)),
        ("PNG", encode(DynamicImage::ImageRgb8(rgb), ImageFormat::Png)),
        ("transparent PNG", encode(DynamicImage::ImageRgba8(rgba), ImageFormat::Png)),
        ("gray PNG", encode(DynamicImage::ImageLuma16(gray), ImageFormat::Png)),
        ("WebP", webp::Encoder::from_rgb(&smaller, 3600, 2700).encode(75.0).to_vec()),
        (
            "lossless WebP",
            encode(DynamicImage::ImageRgb8(RgbImage::from_fn(2500, 2400, pixel)), ImageFormat::WebP),
        ),
    ]
}

#[test]
fn sandbox_urls_name_the_picture() {
    let key = picture_key(sandbox::Platform::Tiktok, sandbox::pictures::PictureKind::Cover, "7");
    let url = picture_url("http://127.0.0.1:9", &key, 3, time("2026-03-10T12:00:00Z"));
    assert!(url.starts_with("http://127.0.0.1:9/pictures/tiktok/cover/7-3.jpg?expires="), "{url}");
}
