//! Copies of pictures: their names and URLs.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize, Serializer};
use sqlx::error::BoxDynError;
use sqlx::postgres::{PgTypeInfo, PgValueRef};
use sqlx::{Decode, Postgres, Type};

/// What a picture shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, sqlx::Type)]
#[serde(rename_all = "lowercase")]
#[sqlx(type_name = "text", rename_all = "lowercase")]
pub enum PictureKind {
    /// The profile picture of an account.
    Profile,
    /// The cover of a video.
    Cover,
}

impl PictureKind {
    pub const fn as_str(self) -> &'static str {
        match self {
            PictureKind::Profile => "profile",
            PictureKind::Cover => "cover",
        }
    }

    /// The longer edge of a copy in pixels.
    pub const fn max_edge(self) -> u32 {
        match self {
            PictureKind::Profile => 320,
            PictureKind::Cover => 640,
        }
    }
}

/// The identity of a picture at its platform. URLs of one picture differ in servers and signatures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, sqlx::Type)]
#[sqlx(transparent)]
pub struct PictureSource([u8; 16]);

impl PictureSource {
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        PictureSource(bytes)
    }
}

/// The name of a copy: a keyed digest of its bytes, in lower-case hexadecimal digits as text.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, sqlx::Type)]
#[sqlx(transparent)]
pub struct PictureName([u8; 32]);

/// The text is not the name of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a picture's name has 64 lower-case hexadecimal digits")]
pub struct InvalidPictureName;

impl PictureName {
    /// Digits of the name as text.
    pub const DIGITS: usize = 64;

    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        PictureName(bytes)
    }

    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for PictureName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for PictureName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for PictureName {
    type Err = InvalidPictureName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if text.len() != Self::DIGITS || !text.bytes().all(is_digit) {
            return Err(InvalidPictureName);
        }
        let mut bytes = [0; 32];
        for (n, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * n..2 * n + 2], 16).map_err(|_| InvalidPictureName)?;
        }
        Ok(PictureName(bytes))
    }
}

/// The path of copies, below the URL of the service.
pub const MEDIA_PATH: &str = "media";
/// The extension of their files.
pub const COPY_EXTENSION: &str = "webp";

tokio::task_local! {
    static SERVICE_URL: Option<Arc<str>>;
}

/// Runs a request whose responses show copies of pictures below this URL of the service; without one, and outside of
/// requests, they show the platforms' pictures.
pub async fn with_copies_at<T>(service_url: Option<Arc<str>>, request: impl Future<Output = T>) -> T {
    SERVICE_URL.scope(service_url, request).await
}

/// The URL below which responses of this request show copies of pictures.
pub fn copies_url() -> Option<Arc<str>> {
    SERVICE_URL.try_with(Clone::clone).ok().flatten()
}

/// A picture in a response: the URL of the copy if there is one, otherwise the platform's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PictureUrl {
    copy: Option<PictureName>,
    original: String,
}

impl FromStr for PictureUrl {
    type Err = std::convert::Infallible;

    /// Parses the platform's URL, which the name of the copy and a space may precede.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let with_copy =
            text.split_once(' ').and_then(|(name, original)| Some((name.parse().ok()?, original)));
        Ok(match with_copy {
            Some((name, original)) => PictureUrl { copy: Some(name), original: original.to_owned() },
            None => PictureUrl { copy: None, original: text.to_owned() },
        })
    }
}

impl Serialize for PictureUrl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match copies_url().zip(self.copy) {
            Some((url, name)) => {
                serializer.collect_str(&format_args!("{url}/{MEDIA_PATH}/{name}.{COPY_EXTENSION}"))
            }
            None => serializer.serialize_str(&self.original),
        }
    }
}

impl Type<Postgres> for PictureUrl {
    fn type_info() -> PgTypeInfo {
        <String as Type<Postgres>>::type_info()
    }

    fn compatible(column: &PgTypeInfo) -> bool {
        <String as Type<Postgres>>::compatible(column)
    }
}

impl<'r> Decode<'r, Postgres> for PictureUrl {
    fn decode(value: PgValueRef<'r>) -> Result<Self, BoxDynError> {
        Ok(<&str as Decode<Postgres>>::decode(value)?.parse()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_is_lower_case_hexadecimal() {
        let name = PictureName::from_bytes(std::array::from_fn(|n| 8 * n as u8));
        let text = name.to_string();
        assert!(text.starts_with("0008101820") && text.len() == PictureName::DIGITS, "{text}");
        assert_eq!(text.parse(), Ok(name));
        for wrong in [&text[1..], &text.to_uppercase(), &format!("{text}0"), &text.replace('0', "é"), ""] {
            assert_eq!(wrong.parse::<PictureName>(), Err(InvalidPictureName), "{wrong}");
        }
    }

    #[tokio::test]
    async fn copy_is_shown_below_the_url_of_the_request() {
        let name = "0a".repeat(32);
        let [copied, original] =
            [format!("{name} https://cdn.example/1 2.jpg"), "https://cdn.example/1 2.jpg".to_owned()]
                .map(|text| text.parse::<PictureUrl>().unwrap());
        let show = |picture: &PictureUrl| serde_json::to_value(picture).unwrap();
        assert_eq!(show(&copied), "https://cdn.example/1 2.jpg");
        let shown = with_copies_at(Some("https://api.example".into()), async { show(&copied) }).await;
        assert_eq!(shown, format!("https://api.example/media/{name}.webp"));
        for url in [None, Some("https://api.example".into())] {
            let unchanged = with_copies_at(url, async { show(&original) }).await;
            assert_eq!(unchanged, "https://cdn.example/1 2.jpg");
        }
    }
}
