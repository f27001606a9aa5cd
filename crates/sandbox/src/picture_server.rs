//! Simulates the platforms' picture servers, which serve bad pictures on command.

use std::io::Write;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use futures_util::{StreamExt, stream};
use picture_copy::encode_jpeg;
use salvo::http::header::{CONTENT_TYPE, HeaderValue, LOCATION};
use salvo::prelude::*;
use serde_json::json;

use super::fault::PictureFault;
use super::pictures::{PictureKind, draw, picture_key};
use super::platform::Platform;
use super::response::JsonResponse;
use super::world::World;

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

/// A black PNG with one bit per pixel: a few megabytes that decode to gigabytes.
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
    fn bomb_is_a_small_file_of_many_pixels() {
        assert!(BOMB.len() < 4_000_000, "{}", BOMB.len());
        let reader = image::ImageReader::new(std::io::Cursor::new(&BOMB[..])).with_guessed_format().unwrap();
        assert_eq!(reader.into_dimensions().unwrap(), (BOMB_EDGE, BOMB_EDGE));
    }
}
