//! Which post or account a row is about: its ids, its link, and the options of the run.

use chrono::{DateTime, TimeDelta, Utc};

use super::column::Column;
use super::formats::Rows;
use super::raw_row::RawValue;
use super::rounded_ids::{IdDigits, SPREADSHEET_DIGITS};
use super::row_reader::{InvalidValue, RowReader, invalid};
use crate::model::identifier::{
    InvalidVideoIds, Link, LinkTarget, Username, VideoIds, VideoReference, trim_invisible,
};
use crate::model::integer::has_lost_digits;
use crate::model::platform::Platform;

/// The subject of a row.
#[derive(Debug, PartialEq)]
pub struct Identity {
    pub platform: Platform,
    pub username: Option<String>,
    /// `None` in rows of accounts.
    pub ids: Option<VideoIds>,
    /// Whether the id may be rounded, where neither a link nor a shortcode confirms it.
    pub digits: IdDigits,
    /// What the path of the post's link says: `reel`, `photo`.
    pub link_kind: Option<&'static str>,
}

impl Identity {
    /// Returns the platform's id; empty if it is not known.
    pub fn external_id(&self) -> &str {
        self.ids.as_ref().and_then(VideoIds::external_id).unwrap_or_default()
    }
}

const LOST_DIGITS: &str =
    "has lost digits of the id: export the column as text, or add the column `url` with links";

impl RowReader<'_, '_> {
    /// Reads the subject. `None`: the violations say why.
    pub fn identity(&mut self) -> Option<Identity> {
        let others = std::mem::take(&mut self.violations);
        let identity = self.read_identity();
        self.violations.splice(0..0, others);
        identity
    }

    /// Reads the subject of a row without other violations.
    fn read_identity(&mut self) -> Option<Identity> {
        let url = self.trimmed(Column::URL);
        let link = match url.as_deref().map(parse_link) {
            Some(Ok(link)) => Some(link),
            Some(Err(reason)) => {
                self.reject(Column::URL, reason);
                None
            }
            None => None,
        };
        let platform = self.platform(link.as_ref())?;
        let (video, profile) = match link.map(|link| link.target) {
            Some(LinkTarget::Video(video)) => (Some(video), None),
            Some(LinkTarget::Profile(name)) => (None, Some(name.into_string())),
            Some(LinkTarget::ShortLink(_)) | None => (None, None),
        };
        let ids = self.video_ids(platform, video.as_ref());
        let is_confirmed = video.is_some() || *self.raw.get(Column::SHORTCODE) != RawValue::Unknown;
        let external_id = ids.as_ref().and_then(VideoIds::external_id).filter(|_| !is_confirmed);
        let digits = external_id.map_or(IdDigits::Few, IdDigits::new);
        let linked_name = video.and_then(|video| video.username).or(profile);
        let username = self.username(platform, linked_name);
        if self.context.format.rows == Rows::Posts && ids.is_none() && self.is_valid() {
            let reason = "is missing, and so is the link: the row names no post";
            self.push(invalid(Column::EXTERNAL_ID, reason));
        }
        let link_kind = url.as_deref().and_then(link_kind);
        self.is_valid().then_some(Identity { platform, username, ids, digits, link_kind })
    }

    /// Returns the time in the id of a row.
    pub fn id_time(&mut self) -> Option<DateTime<Utc>> {
        let Identity { platform, ids, .. } = self.identity()?;
        ids?.posted_at(platform).filter(|time| self.is_plausible(platform, *time))
    }

    /// Whether a post of the platform can have been made then.
    pub fn is_plausible(&self, platform: Platform, time: DateTime<Utc>) -> bool {
        // TikTok's predecessor began in 2014, Instagram's ids in 2011.
        let first = match platform {
            Platform::Tiktok => 1_388_534_400,
            Platform::Instagram => 1_314_220_021,
        };
        time.timestamp() >= first && time <= self.context.times.now + TimeDelta::days(1)
    }

    fn platform(&mut self, link: Option<&Link>) -> Option<Platform> {
        let of_link = link.map(|link| link.platform).or(self.context.format.platform);
        let Some(text) = self.trimmed(Column::PLATFORM) else {
            let platform = of_link.or(self.context.options.platform);
            self.check_link_platform(link);
            if platform.is_none() && self.is_valid() {
                let reason = "is required: give --platform, or add a column `platform` or `url`";
                self.push(invalid(Column::PLATFORM, reason));
            }
            return platform;
        };
        let Ok(platform) = text.to_lowercase().parse::<Platform>() else {
            self.reject(Column::PLATFORM, "must be instagram or tiktok");
            return None;
        };
        if of_link.is_some_and(|other| other != platform) {
            self.reject(Column::PLATFORM, "is not the platform of the link");
            return None;
        }
        Some(platform)
    }

    /// Links in the files of a platform's own tools lead to that platform.
    fn check_link_platform(&mut self, link: Option<&Link>) {
        if let (Some(link), Some(platform)) = (link, self.context.format.platform)
            && link.platform != platform
        {
            self.reject(Column::URL, format!("is no link to {platform}"));
        }
    }

    fn username(&mut self, platform: Platform, linked: Option<String>) -> Option<String> {
        let value = self.raw.get_of(Column::USERNAME, platform);
        let written = match value.clone().into_text() {
            Ok(text) => text.map(|text| trim(&text).to_owned()).filter(|name| !name.is_empty()),
            Err(reason) => {
                self.push(invalid(Column::USERNAME, reason));
                return None;
            }
        };
        let given = match written {
            Some(name) => name,
            None => match linked {
                Some(name) => return Some(name),
                None => self.context.options.username.clone()?,
            },
        };
        match Username::parse(platform, &given) {
            Ok(name) => Some(name.into_string()),
            Err(error) => {
                let violation = InvalidValue::new(Column::USERNAME, value.show(), error.to_string());
                self.push(violation);
                None
            }
        }
    }

    /// Reads the ids of a post. `None`: the row has none, or a violation says what is wrong.
    fn video_ids(&mut self, platform: Platform, video: Option<&VideoReference>) -> Option<VideoIds> {
        let linked = video.map(|video| &video.ids);
        let has_id_alone = linked.is_none() && *self.raw.get(Column::SHORTCODE) == RawValue::Unknown;
        if has_id_alone && self.may_be_an_account() {
            return None;
        }
        let has_lost_digits = matches!(self.raw.get(Column::EXTERNAL_ID), RawValue::Decimal(number) if has_lost_digits(*number));
        let external_id = self.trimmed(Column::EXTERNAL_ID);
        let shortcode = self.trimmed(Column::SHORTCODE);
        if has_lost_digits && linked.is_none() && shortcode.is_none() {
            self.reject(Column::EXTERNAL_ID, LOST_DIGITS);
            return None;
        }
        let coded = || VideoIds::from_file(platform, None, shortcode.as_deref()).ok();
        let reference = linked.cloned().or_else(coded);
        let external_id = external_id.filter(|id| {
            !has_lost_digits && !reference.is_some_and(|reference| is_rounding_of(id, platform, &reference))
        });
        if external_id.is_none() && shortcode.is_none() && linked.is_none() {
            return None;
        }
        let mut ids = match VideoIds::from_file(platform, external_id.as_deref(), shortcode.as_deref()) {
            Ok(ids) => ids,
            Err(error) => {
                let column = match error {
                    InvalidVideoIds::ExternalId | InvalidVideoIds::TiktokId => Column::EXTERNAL_ID,
                    InvalidVideoIds::Shortcode
                    | InvalidVideoIds::TiktokShortcode
                    | InvalidVideoIds::OtherPost => Column::SHORTCODE,
                };
                self.reject(column, error.to_string());
                return None;
            }
        };
        if let Some(linked) = linked {
            if ids.conflicts_with(linked) {
                let column = if external_id.is_some() { Column::EXTERNAL_ID } else { Column::SHORTCODE };
                self.reject(column, "names another post than the link");
                return None;
            }
            ids.merge(linked.clone());
        }
        Some(ids)
    }

    /// Whether an id alone is an account's: in other tools' files of posts and accounts, unless it has a post's media type.
    fn may_be_an_account(&self) -> bool {
        let has_followers = *self.raw.get(Column::from_counter("follower_count")) != RawValue::Unknown;
        let is_mixed = self.context.format.rows == Rows::Any && !self.is_own();
        is_mixed && (has_followers || self.media_type(None, None).is_none())
    }

    pub fn reject(&mut self, column: Column, reason: impl Into<String>) {
        let value = self.shown(column);
        self.push(InvalidValue::new(column, value, reason));
    }
}

fn parse_link(text: &str) -> Result<Link, String> {
    match Link::parse(text) {
        Ok(Link { target: LinkTarget::ShortLink(_), .. }) => {
            Err("is a short link: open it, and write the address that it leads to".to_owned())
        }
        Ok(link) => Ok(link),
        Err(error) => Err(error.to_string()),
    }
}

fn link_kind(url: &str) -> Option<&'static str> {
    [("/reel/", "reel"), ("/reels/", "reel"), ("/video/", "video"), ("/photo/", "image")]
        .into_iter()
        .find_map(|(path, kind)| url.contains(path).then_some(kind))
}

/// Whether an id is what a spreadsheet or JavaScript made of the link's: its first digits, then zeros or an exponent.
fn is_rounding_of(id: &str, platform: Platform, linked: &VideoIds) -> bool {
    let exact = match platform {
        Platform::Tiktok => linked.external_id().and_then(|exact| exact.parse::<u64>().ok()),
        Platform::Instagram => linked.pk(),
    };
    let Some(exact) = exact else { return false };
    if id == exact.to_string() {
        return false;
    }
    // JavaScript writes the shortest decimal of the nearest float; Excel replaces digits after the fifteenth by zeros.
    if id == (exact as f64).to_string() || Some(id) == truncate(exact).as_deref() {
        return true;
    }
    let is_plain = id.bytes().all(|byte| byte.is_ascii_digit() || b".,eE+".contains(&byte));
    let text = id.replace(',', ".");
    let Some(number) = text.parse::<f64>().ok().filter(|_| is_plain) else { return false };
    let mantissa = text.split(['e', 'E']).next().unwrap_or_default().replace('.', "");
    let shown = mantissa.trim_end_matches('0');
    let places = exact.to_string().len();
    let is_short = !shown.is_empty() && shown.len() < places && number.log10().floor() as usize + 1 == places;
    let Some(unit) =
        u32::try_from(places.saturating_sub(shown.len())).ok().and_then(|zeros| 10_u64.checked_pow(zeros))
    else {
        return false;
    };
    let rounded = (exact / unit) + u64::from(exact % unit >= unit / 2);
    is_short && shown.parse() == Ok(rounded)
}

fn truncate(exact: u64) -> Option<String> {
    let unit = 10_u64.pow(exact.to_string().len().checked_sub(SPREADSHEET_DIGITS)?.try_into().ok()?);
    Some((exact / unit * unit).to_string())
}

/// Trims what surrounds ids, names and links.
pub fn trim(text: &str) -> &str {
    trim_invisible(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounded_ids_are_recognized_by_the_link() {
        let linked = VideoIds::new(Platform::Tiktok, Some("7658723954960221897"), None);
        for (id, expected) in [
            ("7.65872E+18", true),
            ("7,65872E+18", true),
            ("7.66E+18", true),
            ("7658723954960221900", true),
            ("7658723954960222000", true),
            ("7658723954960220000", true),
            ("7658723954960221897", false),
            ("7658723954960221898", false),
            ("7.65873E+18", false),
            ("7.65872E+17", false),
            ("7658723954960223000", false),
            ("0", false),
            ("x", false),
            ("", false),
        ] {
            assert_eq!(is_rounding_of(id, Platform::Tiktok, &linked), expected, "{id}");
        }
        let ending_in_9 = VideoIds::new(Platform::Tiktok, Some("7658723954960229897"), None);
        for id in ["7658723954960220000", "7658723954960230000"] {
            assert!(is_rounding_of(id, Platform::Tiktok, &ending_in_9), "{id}");
        }
        let instagram = VideoIds::new(Platform::Instagram, None, Some("DUn-wHrgBCS"));
        assert!(is_rounding_of("3830305993766474000", Platform::Instagram, &instagram));
        assert!(!is_rounding_of("17000234500000007", Platform::Instagram, &instagram));
    }
}
