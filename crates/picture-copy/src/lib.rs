//! Copies a picture from an untrusted source: decodes it, scales it down and re-encodes it, in bounded memory. Nothing of the
//! original remains, such as its metadata.
//!
//! A crate of its own, so that builds for tests and the demo can optimise its loops and those of the libraries it uses.

mod jpeg;
mod webp;

use std::io::Cursor;

use ::webp::{Encoder, WebPConfig};
use fast_image_resize::images::{Image, ImageRef};
use fast_image_resize::{FilterType, PixelType, ResizeAlg, ResizeOptions, Resizer};
use image::codecs::jpeg::JpegEncoder;
use image::metadata::Orientation;
use image::{ColorType, DynamicImage, ImageDecoder, ImageError, ImageFormat, ImageReader, Limits, RgbImage};

use self::jpeg::ReducedJpeg;
use self::webp::ReducedWebp;

const MAX_PIXELS: u64 = 12_000_000;
/// The longest edge of a JPEG.
const MAX_EDGE: u32 = 65_535;
/// Memory that a picture may need until it is scaled, with the decoded picture itself. A picture of the most pixels has up to
/// four bytes each: a progressive JPEG, which the decoder holds as coefficients too, may have five megapixels.
const MAX_BYTES: u64 = 48 << 20;
/// Memory that the metadata and a row of a PNG may need.
const MAX_PNG_BYTES: u64 = 8 << 20;
/// A progressive JPEG has about ten scans. Each costs time in proportion to the picture's size, however short it is.
const MAX_SCANS: usize = 64;
/// Scaled at a time.
const STRIP_BYTES: usize = 1 << 20;
const QUALITY: f32 = 75.0;
/// The trade of time for size, from 0 to 6.
const METHOD: i32 = 2;
const BACKGROUND: u32 = 255;

/// Why there is no copy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnusablePicture {
    #[error("the content is not JPEG, PNG, WebP or GIF")]
    UnknownFormat,
    #[error("the picture has too many pixels or scans")]
    TooLarge,
    #[error("the picture cannot be decoded: {0}")]
    Undecodable(String),
    #[error("the picture cannot be encoded: {0}")]
    Unencodable(String),
}

/// Returns the copy of a JPEG, PNG, WebP or GIF as WebP, of which no edge is longer than `max_edge` pixels.
pub fn make_copy(bytes: &[u8], max_edge: u32) -> Result<Vec<u8>, UnusablePicture> {
    let (decoded, orientation) = decode(bytes)?;
    let scaled = scale(flatten(decoded), max_edge)?;
    let mut oriented = DynamicImage::ImageRgb8(scaled);
    oriented.apply_orientation(orientation);
    encode(&oriented.into_rgb8())
}

/// Returns a picture as JPEG, as platforms serve them. Quality is from 1 to 100.
pub fn encode_jpeg(picture: &RgbImage, quality: u8) -> Result<Vec<u8>, ImageError> {
    let mut bytes = Vec::new();
    JpegEncoder::new_with_quality(&mut bytes, quality).encode_image(picture)?;
    Ok(bytes)
}

fn decode(bytes: &[u8]) -> Result<(DynamicImage, Orientation), UnusablePicture> {
    let incomplete = || UnusablePicture::Undecodable("the file is incomplete".to_owned());
    match image::guess_format(bytes) {
        Ok(ImageFormat::Jpeg) => {
            let jpeg = ReducedJpeg::read(bytes).ok_or_else(incomplete)?;
            if jpeg.scans > MAX_SCANS {
                return Err(UnusablePicture::TooLarge);
            }
            let (decoded, _) = decode_as(ImageFormat::Jpeg, &jpeg.bytes, jpeg.decoder_bytes())?;
            Ok((decoded, jpeg.orientation))
        }
        Ok(ImageFormat::WebP) => {
            let webp = ReducedWebp::read(bytes).ok_or_else(incomplete)?;
            let (decoded, _) = decode_as(ImageFormat::WebP, &webp.bytes, webp.decoder_bytes)?;
            Ok((decoded, webp.orientation))
        }
        Ok(format @ (ImageFormat::Png | ImageFormat::Gif)) => decode_as(format, bytes, 0),
        _ => Err(UnusablePicture::UnknownFormat),
    }
}

/// Decodes a picture whose decoder needs `decoder_bytes` per pixel besides the decoded picture.
fn decode_as(
    format: ImageFormat,
    bytes: &[u8],
    decoder_bytes: u64,
) -> Result<(DynamicImage, Orientation), UnusablePicture> {
    let undecodable = |error: ImageError| UnusablePicture::Undecodable(error.to_string());
    let limits = |max_bytes| {
        let mut limits = Limits::no_limits();
        limits.max_alloc = Some(max_bytes);
        limits
    };
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
    reader.limits(limits(MAX_PNG_BYTES));
    let mut decoder = reader.into_decoder().map_err(undecodable)?;
    let (width, height) = decoder.dimensions();
    let pixels = u64::from(width) * u64::from(height);
    let needed = decoder.total_bytes() + pixels * decoder_bytes.max(conversion_bytes(decoder.color_type()));
    if pixels > MAX_PIXELS || width.max(height) > MAX_EDGE || needed > MAX_BYTES {
        return Err(UnusablePicture::TooLarge);
    }
    // For the first picture of a GIF, which may be larger than the GIF.
    decoder.set_limits(limits(MAX_BYTES - needed)).map_err(undecodable)?;
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    Ok((DynamicImage::from_decoder(decoder).map_err(undecodable)?, orientation))
}

/// Returns the bytes per pixel of the picture that [`flatten`] makes of another one.
fn conversion_bytes(color: ColorType) -> u64 {
    match color {
        ColorType::Rgb8 | ColorType::Rgba8 => 0,
        color if color.has_alpha() => 4,
        _ => 3,
    }
}

/// Puts a picture on a white background.
fn flatten(decoded: DynamicImage) -> RgbImage {
    if !decoded.color().has_alpha() {
        return decoded.into_rgb8();
    }
    let (width, height) = (decoded.width(), decoded.height());
    let mut bytes = decoded.into_rgba8().into_raw();
    // In place, because the picture may be large.
    let pixels = bytes.len() / 4;
    for n in 0..pixels {
        let alpha = u32::from(bytes[4 * n + 3]);
        for channel in 0..3 {
            let blended = u32::from(bytes[4 * n + channel]) * alpha + BACKGROUND * (255 - alpha);
            bytes[3 * n + channel] = ((blended + 127) / 255) as u8;
        }
    }
    bytes.truncate(3 * pixels);
    RgbImage::from_raw(width, height, bytes).unwrap_or_default()
}

/// Scales a picture down until no edge is longer than `max_edge`: first the rows, some at a time, because the library scales
/// pixels of four channels only, of which a large picture would need as much memory again.
fn scale(picture: RgbImage, max_edge: u32) -> Result<RgbImage, UnusablePicture> {
    let (width, height) = picture.dimensions();
    let longer = width.max(height);
    if longer <= max_edge {
        return Ok(picture);
    }
    let edge = |edge: u32| {
        ((u64::from(edge) * u64::from(max_edge) + u64::from(longer) / 2) / u64::from(longer)).max(1) as u32
    };
    let (target_width, target_height) = (edge(width), edge(height));
    let row_bytes = 3 * width as usize;
    let mut narrow = Vec::with_capacity(4 * target_width as usize * height as usize);
    for rows in picture.as_raw().chunks(row_bytes * (STRIP_BYTES / row_bytes).max(1)) {
        let strip_height = (rows.len() / row_bytes) as u32;
        let strip: Vec<u8> =
            rows.chunks_exact(3).flat_map(|pixel| [pixel[0], pixel[1], pixel[2], 0]).collect();
        narrow.extend(resize(&strip, (width, strip_height), (target_width, strip_height))?);
    }
    let scaled = resize(&narrow, (target_width, height), (target_width, target_height))?;
    let scaled = scaled.chunks_exact(4).flat_map(|pixel| [pixel[0], pixel[1], pixel[2]]).collect();
    Ok(RgbImage::from_raw(target_width, target_height, scaled).unwrap_or_default())
}

/// Scales a picture of four channels.
fn resize(picture: &[u8], from: (u32, u32), to: (u32, u32)) -> Result<Vec<u8>, UnusablePicture> {
    let unencodable = |error: String| UnusablePicture::Unencodable(error);
    let source = ImageRef::new(from.0, from.1, picture, PixelType::U8x4)
        .map_err(|error| unencodable(error.to_string()))?;
    let mut target = Image::new(to.0, to.1, PixelType::U8x4);
    let algorithm = ResizeAlg::Convolution(FilterType::CatmullRom);
    let options = ResizeOptions::new().resize_alg(algorithm).use_alpha(false);
    Resizer::new().resize(&source, &mut target, &options).map_err(|error| unencodable(error.to_string()))?;
    Ok(target.into_vec())
}

fn encode(picture: &RgbImage) -> Result<Vec<u8>, UnusablePicture> {
    let unencodable = |error: &str| UnusablePicture::Unencodable(error.to_owned());
    let mut config = WebPConfig::new().map_err(|()| unencodable("libwebp has another version"))?;
    (config.quality, config.method) = (QUALITY, METHOD);
    let encoder = Encoder::from_rgb(picture.as_raw(), picture.width(), picture.height());
    let encoded = encoder.encode_advanced(&config).map_err(|error| unencodable(&format!("{error:?}")))?;
    Ok(encoded.to_vec())
}

#[cfg(test)]
mod tests {
    use ::webp::{AnimEncoder, AnimFrame};
    use image::{Rgb, Rgba, RgbaImage};

    use super::*;

    const COVER: u32 = 640;
    const PROFILE: u32 = 320;

    /// Red on the left, blue on the right.
    fn picture(width: u32, height: u32) -> DynamicImage {
        let pixel = |x, _| if 2 * x < width { Rgb([220, 20, 30]) } else { Rgb([10, 40, 200]) };
        DynamicImage::ImageRgb8(RgbImage::from_fn(width, height, pixel))
    }

    fn encode_as(picture: &DynamicImage, format: ImageFormat) -> Vec<u8> {
        let mut bytes = Cursor::new(Vec::new());
        picture.write_to(&mut bytes, format).unwrap();
        bytes.into_inner()
    }

    fn decode_copy(copy: &[u8]) -> RgbImage {
        image::load_from_memory_with_format(copy, ImageFormat::WebP).unwrap().into_rgb8()
    }

    #[track_caller]
    fn assert_similar(pixel: &Rgb<u8>, expected: [u8; 3]) {
        let is_near = pixel.0.iter().zip(expected).all(|(found, expected)| found.abs_diff(expected) <= 12);
        assert!(is_near, "{pixel:?} is not {expected:?}");
    }

    const FORMATS: [ImageFormat; 4] =
        [ImageFormat::Jpeg, ImageFormat::Png, ImageFormat::WebP, ImageFormat::Gif];

    #[test]
    fn copy_shows_the_picture_in_its_size() {
        let (large, small) = (picture(1080, 1350), picture(200, 100));
        for format in FORMATS {
            let copy = make_copy(&encode_as(&large, format), COVER).unwrap();
            let copy = decode_copy(&copy);
            assert_eq!(copy.dimensions(), (512, 640), "{format:?}");
            assert_similar(copy.get_pixel(50, 320), [220, 20, 30]);
            assert_similar(copy.get_pixel(460, 320), [10, 40, 200]);
            let profile = make_copy(&encode_as(&large, format), PROFILE).unwrap();
            assert_eq!(decode_copy(&profile).dimensions(), (256, 320));
            let small = make_copy(&encode_as(&small, format), PROFILE).unwrap();
            assert_eq!(decode_copy(&small).dimensions(), (200, 100));
        }
        let line = make_copy(&encode_as(&picture(4000, 1), ImageFormat::Png), COVER).unwrap();
        assert_eq!(decode_copy(&line).dimensions(), (640, 1));
    }

    #[test]
    fn transparent_picture_gets_a_white_background() {
        let pixel = |x, _| Rgba([200, 0, 0, if x < 20 { 0 } else { 255 }]);
        for format in [ImageFormat::Png, ImageFormat::WebP, ImageFormat::Gif] {
            let transparent = DynamicImage::ImageRgba8(RgbaImage::from_fn(40, 40, pixel));
            let copy = make_copy(&encode_as(&transparent, format), COVER).unwrap();
            assert_similar(decode_copy(&copy).get_pixel(5, 20), [255, 255, 255]);
            assert_similar(decode_copy(&copy).get_pixel(35, 20), [200, 0, 0]);
        }
    }

    #[test]
    fn webp_of_every_form_is_copied() {
        let (left, right) = ([220, 20, 30], [10, 40, 200]);
        let pixel = |x, _| if x < 50 { Rgba([220, 20, 30, 255]) } else { Rgba([10, 40, 200, 254]) };
        let transparent = RgbaImage::from_fn(100, 60, pixel);
        let lossy = Encoder::from_rgba(&transparent, 100, 60).encode(QUALITY);
        let lossless = Encoder::from_rgba(&transparent, 100, 60).encode_lossless();
        let opaque = Encoder::from_rgb(&picture(100, 60).into_rgb8(), 100, 60).encode_lossless();
        let config = WebPConfig::new().unwrap();
        let later = RgbaImage::from_pixel(100, 60, Rgba([0, 255, 0, 255]));
        let mut animation = AnimEncoder::new(100, 60, &config);
        for (frame, time) in [(&transparent, 0), (&later, 100)] {
            animation.add_frame(AnimFrame::from_rgba(frame, 100, 60, time));
        }
        for webp in [lossy, lossless, opaque, animation.encode()] {
            let copy = decode_copy(&make_copy(&webp, COVER).unwrap());
            assert_eq!(copy.dimensions(), (100, 60));
            assert_similar(copy.get_pixel(10, 30), left);
            assert_similar(copy.get_pixel(90, 30), right);
        }
    }

    /// Inserts an EXIF segment with an orientation.
    fn with_orientation(jpeg: &[u8], orientation: u8) -> Vec<u8> {
        let exif =
            [b"Exif\0\0MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0", &[orientation][..], &[0; 6]]
                .concat();
        let length = (exif.len() as u16 + 2).to_be_bytes();
        [&jpeg[..2], &[0xff, 0xe1], &length, &exif, &jpeg[2..]].concat()
    }

    #[test]
    fn copy_is_turned_and_has_no_metadata() {
        let rotated = with_orientation(&encode_as(&picture(400, 200), ImageFormat::Jpeg), 6);
        let copy = make_copy(&rotated, PROFILE).unwrap();
        assert!(!copy.windows(4).any(|bytes| bytes == b"EXIF" || bytes == b"Exif"));
        let copy = decode_copy(&copy);
        assert_eq!(copy.dimensions(), (160, 320));
        assert_similar(copy.get_pixel(80, 40), [220, 20, 30]);
        assert_similar(copy.get_pixel(80, 280), [10, 40, 200]);
    }

    #[test]
    fn truncated_picture_is_not_copied() {
        // With detail, so that a part of the file is less than the picture.
        let noise = |x: u32, y: u32| Rgb([(x * y) as u8, ((x * 7) ^ (y * 13)) as u8, (x * x + y) as u8]);
        let noise = DynamicImage::ImageRgb8(RgbImage::from_fn(300, 300, noise));
        for format in FORMATS {
            let whole = encode_as(&noise, format);
            make_copy(&whole, COVER).unwrap();
            for percent in [1, 10, 50, 90, 99] {
                let part = &whole[..whole.len() * percent / 100];
                let made = make_copy(part, COVER);
                assert!(made.is_err(), "{percent} % of a {format:?}");
            }
        }
    }

    #[test]
    fn other_content_is_not_copied() {
        let svg = r#"<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>"#;
        for content in
            ["", svg, "<!doctype html><title>Please wait</title>", "BM", "%PDF-1.7", "II*\0\x08\0\0\0"]
        {
            let made = make_copy(content.as_bytes(), COVER);
            assert_eq!(made, Err(UnusablePicture::UnknownFormat), "{content}");
        }
    }

    /// A PNG of this size, whose content is missing.
    fn png_header(width: u32, height: u32, bits: u8, color: u8) -> Vec<u8> {
        let mut header = b"IHDR".to_vec();
        header.extend(width.to_be_bytes());
        header.extend(height.to_be_bytes());
        header.extend([bits, color, 0, 0, 0]);
        let checksum = crc32fast::hash(&header).to_be_bytes();
        let data = [&[0, 0, 0, 0][..], b"IDAT", &crc32fast::hash(b"IDAT").to_be_bytes()].concat();
        [b"\x89PNG\r\n\x1a\n\0\0\0\x0d", &header[..], &checksum, &data].concat()
    }

    #[test]
    fn size_is_checked_before_decoding() {
        let make = |bytes: &[u8]| make_copy(bytes, COVER);
        for (width, height, bits) in [(50_000, 50_000, 1), (4000, 3001, 8), (3000, 3000, 16)] {
            let made = make(&png_header(width, height, bits, if bits == 1 { 0 } else { 6 }));
            assert_eq!(made, Err(UnusablePicture::TooLarge), "{width} x {height}");
        }
        // 12 megapixels, of which the decoder holds all coefficients.
        let mut progressive = encode_as(&picture(64, 64), ImageFormat::Jpeg);
        let frame = progressive.windows(2).position(|bytes| bytes == [0xff, 0xc0]).unwrap();
        progressive[frame + 1] = 0xc2;
        progressive[frame + 5..frame + 9].copy_from_slice(&[0x0b, 0xb8, 0x0f, 0xa0]);
        assert_eq!(make(&progressive), Err(UnusablePicture::TooLarge));
        // The header names another size.
        let content =
            b"VP8X\x0a\0\0\0\0\0\0\0\x0f\0\0\x0f\0\0VP8 \x0a\0\0\0\0\0\0\x9d\x01\x2a\xff\x3f\xff\x3f";
        let length = (content.len() as u32 + 4).to_le_bytes();
        let webp = [&b"RIFF"[..], &length, b"WEBP", content].concat();
        assert_eq!(make(&webp), Err(UnusablePicture::TooLarge));
        let allowed = make(&png_header(4000, 3000, 8, 6));
        assert!(matches!(allowed, Err(UnusablePicture::Undecodable(_))), "{allowed:?}");
    }

    #[test]
    fn progressive_jpeg_with_many_scans_is_not_decoded() {
        let mut jpeg = encode_as(&picture(64, 64), ImageFormat::Jpeg);
        let scan = jpeg.windows(2).position(|bytes| bytes == [0xff, 0xda]).unwrap();
        let scans = jpeg[scan..jpeg.len() - 2].repeat(MAX_SCANS);
        jpeg.splice(jpeg.len() - 2..jpeg.len() - 2, scans);
        assert_eq!(make_copy(&jpeg, COVER), Err(UnusablePicture::TooLarge));
    }

    #[test]
    fn copies_of_one_picture_are_equal() {
        let jpeg = encode_jpeg(&picture(700, 500).into_rgb8(), 90).unwrap();
        let make = || make_copy(&jpeg, COVER).unwrap();
        assert_eq!(make(), make());
    }
}
