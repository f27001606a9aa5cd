//! Simulated pictures: deterministic drawings under URLs that expire.

use chrono::{DateTime, TimeDelta, Utc};
use image::{Rgb, RgbImage};

use super::platform::Platform;
use super::rng::SeededRng;

/// URLs are valid for one to two of these.
const VALIDITY: TimeDelta = TimeDelta::hours(6);

/// The motif of a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PictureKind {
    /// The profile picture of an account.
    Profile,
    /// The cover of a post.
    Cover,
}

impl PictureKind {
    pub const fn as_str(self) -> &'static str {
        match self {
            PictureKind::Profile => "profile",
            PictureKind::Cover => "cover",
        }
    }
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

/// Draws a picture: what an id looks like never changes, and those of two ids differ at first sight.
pub fn draw(key: &str, version: u32, kind: PictureKind) -> RgbImage {
    let (width, height) = match kind {
        PictureKind::Profile => (320, 320),
        PictureKind::Cover => (540, 675),
    };
    let seed = crc32fast::hash(format!("{key}-{version}").as_bytes());
    let mut rng = SeededRng::new(seed.into(), &[]);
    let colors = [0; 4].map(|_| Rgb([0; 3].map(|_| 30 + rng.next_below(200) as u8)));
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
}
