//! Simulates the platforms' picture servers: deterministic pictures under URLs that expire, and bad ones on command.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use chrono::{DateTime, TimeDelta, Utc};
use flate2::Compression;
use flate2::write::ZlibEncoder;
use futures_util::{StreamExt, stream};
use image::{Rgb, RgbImage};
use picture_copy::encode_jpeg;
use salvo::http::header::{CONTENT_TYPE, HOST, HeaderValue, LOCATION};
use salvo::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::response::JsonResponse;
use super::rng::SeededRng;
use super::world::{World, WorldError};
use crate::model::picture::PictureKind;
use crate::model::platform::Platform;

/// URLs are valid for one to two of these.
const VALIDITY: TimeDelta = TimeDelta::hours(6);
const JPEG_QUALITY: u8 = 85;
/// The edges of a compressed picture of 2.5 gigapixels.
const BOMB_EDGE: u32 = 50_000;
const HUGE_BYTES: usize = 1 << 30;
const CHUNK_BYTES: usize = 64 << 10;
const SLOW_INTERVAL: Duration = Duration::from_secs(1);
/// A private address, as of a cloud's metadata service.
const PRIVATE_URL: &str = "http://169.254.169.254/latest/meta-data/";
const HTML: &str = "<!doctype html><title>Log in</title><script>alert(1)</script>";
const SVG: &str =
    r#"<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><script>alert(1)</script></svg>"#;

/// A way in which a picture is bad.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PictureFault {
    /// Its URL has expired.
    Expired,
    Missing,
    /// A byte per second.
    Slow,
    /// HTML with the content type of a picture.
    Html,
    /// A PNG of 50,000 x 50,000 pixels.
    Bomb,
    /// A body of 1 GiB.
    Huge,
    /// The first half of a JPEG.
    Truncated,
    /// SVG with a script, and the content type of a JPEG.
    Svg,
    /// A redirect to a private address.
    Redirect,
}

/// Identifies a picture in commands and paths.
pub fn picture_key(platform: Platform, kind: PictureKind, id: &str) -> String {
    format!("{platform}/{}/{id}", kind.as_str())
}

/// Returns the URL of a picture under the address that the request was sent to.
pub fn picture_url(server: &str, key: &str, version: u32, now: DateTime<Utc>) -> String {
    let validity = VALIDITY.num_seconds();
    let expires = (now.timestamp().div_euclid(validity) + 2) * validity;
    format!("{server}/pictures/{key}-{version}.jpg?expires={expires}")
}

/// Returns the sandbox's URL as the client knows it.
pub fn server_url(req: &Request) -> String {
    let host = req.headers().get(HOST).and_then(|host| host.to_str().ok());
    let host = host.map(str::to_owned).or_else(|| req.uri().authority().map(ToString::to_string));
    format!("http://{}", host.unwrap_or_default())
}

/// Draws a picture: what an id looks like never changes, and those of two ids differ at first sight.
pub fn draw(key: &str, version: u32, kind: PictureKind) -> RgbImage {
    let (width, height) = match kind {
        PictureKind::Profile => (320, 320),
        PictureKind::Cover => (540, 675),
    };
    let seed = crc32fast::hash(format!("{key}-{version}").as_bytes());
    let mut rng = SeededRng::new(seed.into(), &[]);
    let mut color = || Rgb([0; 3].map(|_| 30 + rng.next_below(200) as u8));
    let colors = [color(), color(), color(), color()];
    let mut place = |edge: u32| rng.next_below(u64::from(edge)) as i64;
    let circles = [0, 1].map(|n| (place(width), place(height), i64::from(width) / (3 + n)));
    let slope = place(7) - 3;
    let mut picture = RgbImage::new(width, height);
    // The stripes repeat after 80 rows.
    let row_bytes = 3 * width as usize;
    for y in 0..height as usize {
        if let Some(like) = y.checked_sub(80) {
            picture.copy_within(row_bytes * like..row_bytes * (like + 1), row_bytes * y);
            continue;
        }
        for x in 0..width {
            let is_striped = (slope * i64::from(x) + 3 * y as i64).rem_euclid(240) < 60;
            picture.put_pixel(x, y as u32, colors[if is_striped { 2 } else { 3 }]);
        }
    }
    for ((left, top, radius), color) in circles.into_iter().zip(colors).rev() {
        for y in (top - radius).max(0)..=(top + radius).min(i64::from(height) - 1) {
            let half = (radius.pow(2) - (y - top).pow(2)).isqrt();
            fill_row(&mut picture, y as u32, (left - half, left + half), color);
        }
    }
    // A light border, so that the frame of the picture is visible.
    for y in 0..height {
        let is_edge = y < 4 || y + 4 >= height;
        let right = i64::from(width) - 1;
        for columns in if is_edge { [(0, right); 2] } else { [(0, 3), (right - 3, right)] } {
            fill_row(&mut picture, y, columns, Rgb([240, 240, 240]));
        }
    }
    picture
}

/// Fills the columns from one to another, as far as the picture has them.
fn fill_row(picture: &mut RgbImage, y: u32, (from, to): (i64, i64), color: Rgb<u8>) {
    let from = from.max(0) as u32;
    for x in from..=to.min(i64::from(picture.width()) - 1) as u32 {
        picture.put_pixel(x, y, color);
    }
}

/// The number of requests for each picture.
#[derive(Default)]
pub(super) struct PictureRequests(Mutex<BTreeMap<String, u64>>);

impl World {
    /// Makes the picture of an account or a post bad, or good again.
    pub fn set_picture_fault(
        &self,
        platform: Platform,
        username: &str,
        post: Option<&str>,
        fault: Option<PictureFault>,
    ) -> Result<(), WorldError> {
        let key = self.find_picture(platform, username, post)?;
        self.change(|saved| {
            match fault {
                Some(fault) => _ = saved.picture_faults.insert(key, fault),
                None => _ = saved.picture_faults.remove(&key),
            }
            Ok(())
        })
    }

    /// Replaces the picture of an account or a post by another one.
    pub fn replace_picture(
        &self,
        platform: Platform,
        username: &str,
        post: Option<&str>,
    ) -> Result<(), WorldError> {
        let key = self.find_picture(platform, username, post)?;
        self.change(|saved| {
            *saved.picture_versions.entry(key).or_default() += 1;
            Ok(())
        })
    }

    fn find_picture(
        &self,
        platform: Platform,
        username: &str,
        post: Option<&str>,
    ) -> Result<String, WorldError> {
        let index = self.find_index(platform, username)?;
        Ok(match post {
            Some(post) => {
                picture_key(platform, PictureKind::Cover, &self.find_post(index, username, post)?.id)
            }
            None => picture_key(platform, PictureKind::Profile, &self.population().accounts()[index].id),
        })
    }

    /// Counts a request for a picture, and returns the picture's fault.
    fn request_picture(&self, key: &str) -> Option<PictureFault> {
        let mut requests = self.picture_requests.0.lock().unwrap_or_else(PoisonError::into_inner);
        *requests.entry(key.to_owned()).or_default() += 1;
        self.picture_fault(key)
    }

    /// Returns the number of requests for each picture since the start.
    pub fn picture_requests(&self) -> BTreeMap<String, u64> {
        self.picture_requests.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Handles `GET /pictures/{platform}/{kind}/{file}`.
pub struct PictureHandler(pub Arc<World>);

#[handler]
impl PictureHandler {
    async fn handle(&self, req: &mut Request, res: &mut Response) {
        let [platform, kind, file] = ["platform", "kind", "file"].map(|name| req.param::<String>(name));
        let platform = platform.and_then(|platform| platform.parse::<Platform>().ok());
        let kind = kind.and_then(|kind| {
            [PictureKind::Profile, PictureKind::Cover].into_iter().find(|other| other.as_str() == kind)
        });
        let file = file.as_deref().and_then(|file| file.strip_suffix(".jpg")?.rsplit_once('-'));
        let (Some(platform), Some(kind), Some((id, version))) = (platform, kind, file) else {
            return plain(res, StatusCode::NOT_FOUND, "no such picture");
        };
        let key = picture_key(platform, kind, id);
        let fault = self.0.request_picture(&key);
        let is_valid = req.query::<i64>("expires").is_some_and(|time| time > self.0.now().timestamp());
        if !is_valid || fault == Some(PictureFault::Expired) {
            return plain(res, StatusCode::FORBIDDEN, "URL signature expired");
        }
        match fault {
            Some(fault) => respond_badly(res, fault),
            None => match encode_jpeg(&draw(&key, version.parse().unwrap_or_default(), kind), JPEG_QUALITY) {
                Ok(bytes) => picture(res, "image/jpeg", bytes),
                Err(error) => plain(res, StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
            },
        }
    }
}

/// Handles `GET /_control/pictures`: the number of requests for each picture.
pub struct PictureRequestsHandler(pub Arc<World>);

#[handler]
impl PictureRequestsHandler {
    async fn handle(&self, res: &mut Response) {
        JsonResponse::ok(json!({"requests": self.0.picture_requests()})).send(res);
    }
}

fn plain(res: &mut Response, status: StatusCode, text: &str) {
    res.status_code(status);
    res.body(text.to_owned());
}

fn picture(res: &mut Response, content_type: &'static str, body: impl Into<Bytes>) {
    res.status_code(StatusCode::OK);
    res.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    res.body(salvo::http::ResBody::Once(body.into()));
}

fn respond_badly(res: &mut Response, fault: PictureFault) {
    let half = |bytes: &[u8]| Bytes::copy_from_slice(&bytes[..bytes.len() / 2]);
    let jpeg = || encode_jpeg(&draw("bad", 0, PictureKind::Cover), JPEG_QUALITY).unwrap_or_default();
    match fault {
        PictureFault::Expired | PictureFault::Missing => plain(res, StatusCode::NOT_FOUND, "not found"),
        PictureFault::Html => picture(res, "image/jpeg", HTML),
        PictureFault::Svg => picture(res, "image/jpeg", SVG),
        PictureFault::Truncated => picture(res, "image/jpeg", half(&jpeg())),
        PictureFault::Bomb => picture(res, "image/png", BOMB.clone()),
        PictureFault::Redirect => {
            res.status_code(StatusCode::FOUND);
            res.headers_mut().insert(LOCATION, HeaderValue::from_static(PRIVATE_URL));
        }
        PictureFault::Huge => {
            picture(res, "image/jpeg", Bytes::new());
            let chunk = Bytes::from(jpeg().into_iter().cycle().take(CHUNK_BYTES).collect::<Vec<_>>());
            let chunks = std::iter::repeat_n(chunk, HUGE_BYTES / CHUNK_BYTES).map(Ok::<_, std::io::Error>);
            res.stream(stream::iter(chunks));
        }
        PictureFault::Slow => {
            picture(res, "image/jpeg", Bytes::new());
            let bytes = stream::iter(jpeg()).then(async |byte| {
                tokio::time::sleep(SLOW_INTERVAL).await;
                Ok::<_, std::io::Error>(Bytes::from(vec![byte]))
            });
            res.stream(Box::pin(bytes));
        }
    }
}

/// A black PNG with one bit per pixel: a third of a megabyte that decodes to gigabytes.
static BOMB: LazyLock<Bytes> = LazyLock::new(|| {
    let row = vec![0; 1 + BOMB_EDGE as usize / 8];
    let mut rows = ZlibEncoder::new(Vec::new(), Compression::fast());
    // Writing to memory does not fail.
    let written = (0..BOMB_EDGE).try_for_each(|_| rows.write_all(&row)).and_then(|()| rows.finish());
    let edge = BOMB_EDGE.to_be_bytes();
    let header = [&edge[..], &edge, &[1, 0, 0, 0, 0]].concat();
    let mut png = b"\x89PNG\r\n\x1a\n".to_vec();
    for (name, data) in [(b"IHDR", header), (b"IDAT", written.unwrap_or_default()), (b"IEND", Vec::new())] {
        png.extend((data.len() as u32).to_be_bytes());
        let content = [&name[..], &data].concat();
        png.extend(&content);
        png.extend(crc32fast::hash(&content).to_be_bytes());
    }
    png.into()
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_differ_by_id_and_version_only() {
        let draw = |key, version| draw(key, version, PictureKind::Profile);
        assert_eq!(draw("instagram/profile/1", 0), draw("instagram/profile/1", 0));
        for other in [draw("instagram/profile/2", 0), draw("instagram/profile/1", 1)] {
            let first = draw("instagram/profile/1", 0);
            let differing = first.pixels().zip(other.pixels()).filter(|(a, b)| a != b).count();
            assert!(differing > 320 * 320 / 4, "{differing}");
        }
    }

    #[test]
    fn urls_are_the_same_for_hours_and_expire() {
        let at = |hours: i64| DateTime::UNIX_EPOCH + TimeDelta::minutes(60 * hours + 1);
        let url = |hours| picture_url("http://sandbox", "instagram/profile/1", 0, at(hours));
        assert_eq!(url(0), "http://sandbox/pictures/instagram/profile/1-0.jpg?expires=43200");
        assert_eq!(url(0), url(5));
        assert_ne!(url(0), url(6));
    }

    #[test]
    fn bomb_is_a_small_file_of_many_pixels() {
        assert!(BOMB.len() < 2_000_000, "{}", BOMB.len());
        let reader = image::ImageReader::new(std::io::Cursor::new(&BOMB[..])).with_guessed_format().unwrap();
        assert_eq!(reader.into_dimensions().unwrap(), (BOMB_EDGE, BOMB_EDGE));
    }
}
