//! The ids of a post: what the platform assigns, and what follows from it.
//!
//! Instagram names a post by a pk, by a shortcode, which is the same number, and by the unrelated id of the Graph API.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::shortcode::{SHORTCODE_CHARS, decode, encode, is_shortcode, shortcode_key, time_of};
use crate::model::platform::Platform;

/// The ids of one post. A pk always comes with its shortcode.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct VideoIds {
    external_id: Option<String>,
    shortcode: Option<String>,
}

/// Why the columns of a file are not the ids of a post.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidVideoIds {
    #[error(
        "must have at most 64 letters, digits and underscores: spreadsheets shorten long ids unless the column is text"
    )]
    ExternalId,
    #[error("is a shortcode of Instagram, but the row is of TikTok")]
    TiktokId,
    #[error("must be the shortcode of an Instagram post: 3 to 40 letters, digits, - and _")]
    Shortcode,
    #[error("must be empty: posts of TikTok have no shortcode")]
    TiktokShortcode,
    #[error("names another post than the id")]
    OtherPost,
}

const MAX_EXTERNAL_ID_CHARS: usize = 64;
const GRAPH_ID_CHARS: usize = 17;
const MAX_USER_ID_CHARS: usize = 20;
const MIN_PK: u64 = 10_000;
/// A shorter text is no shortcode, unless a link or a column says that it is one.
const MIN_SHORTCODE_CHARS: usize = 5;
/// Texts in a column of ids are shortcodes only if they have as many characters as those of posts since 2012, and name a
/// time before 2046: other trackers have ids of their own.
const MIN_SHORTCODE_IN_ID_COLUMN: usize = 10;
const LAST_SHORTCODE_IN_ID_COLUMN: u64 = 1 << 63;

/// What an id of Instagram is.
enum InstagramId {
    Graph(String),
    Pk(u64),
    Shortcode(String),
    /// An id of another program.
    Other(String),
}

impl InstagramId {
    fn new(text: &str) -> Self {
        // PK_USERID
        if let Some((pk, user)) = text.split_once('_')
            && is_number(user)
            && user.len() <= MAX_USER_ID_CHARS
            && let Some(pk) = parse_pk(pk)
        {
            return InstagramId::Pk(pk);
        }
        if is_graph_id(text) {
            return InstagramId::Graph(text.to_owned());
        }
        match parse_pk(text) {
            Some(pk) => InstagramId::Pk(pk),
            None if is_shortcode_in_id_column(text) => InstagramId::Shortcode(text.to_owned()),
            None => InstagramId::Other(text.to_owned()),
        }
    }
}

impl VideoIds {
    /// Returns the ids that a source or a store has.
    pub fn new(platform: Platform, external_id: Option<&str>, shortcode: Option<&str>) -> Self {
        let external_id = external_id.filter(|id| !id.is_empty());
        if platform == Platform::Tiktok {
            return external_id.map_or_else(VideoIds::default, |id| VideoIds::from_own_id(id.to_owned()));
        }
        let from_id = external_id.map_or_else(VideoIds::default, |id| match InstagramId::new(id) {
            InstagramId::Pk(pk) => VideoIds::from_pk(pk),
            InstagramId::Shortcode(code) => VideoIds::from_shortcode(code),
            InstagramId::Graph(id) | InstagramId::Other(id) => VideoIds::from_own_id(id),
        });
        let Some(code) = shortcode.filter(|code| !code.is_empty()) else { return from_id };
        let from_code = VideoIds::from_shortcode(code.to_owned());
        // The numbers of a source that are no pks are ids of its own.
        let is_own_id = from_id.conflicts_with(&from_code);
        let mut ids = match external_id {
            Some(id) if is_own_id => VideoIds::from_own_id(id.to_owned()),
            _ => from_id,
        };
        ids.merge(from_code);
        ids
    }

    /// Returns the ids in the columns of a file, which are trimmed.
    pub fn from_file(
        platform: Platform,
        external_id: Option<&str>,
        shortcode: Option<&str>,
    ) -> Result<Self, InvalidVideoIds> {
        if let Some(id) = external_id {
            check_external_id(platform, id)?;
        }
        match (platform, shortcode) {
            (Platform::Tiktok, Some(_)) => return Err(InvalidVideoIds::TiktokShortcode),
            (Platform::Instagram, Some(code)) if !is_shortcode(code, SHORTCODE_CHARS) => {
                return Err(InvalidVideoIds::Shortcode);
            }
            _ => {}
        }
        let ids = VideoIds::new(platform, external_id, None);
        let from_code = VideoIds::new(platform, None, shortcode);
        if ids.conflicts_with(&from_code) {
            return Err(InvalidVideoIds::OtherPost);
        }
        let mut merged = ids;
        merged.merge(from_code);
        Ok(merged)
    }

    /// Parses an id as a user writes it: a number, `PK_USERID`, or a shortcode of at least five characters.
    pub(super) fn parse(platform: Platform, text: &str) -> Option<Self> {
        match platform {
            Platform::Tiktok => parse_number(text).map(|_| VideoIds::from_own_id(text.to_owned())),
            Platform::Instagram => match InstagramId::new(text) {
                InstagramId::Pk(pk) => Some(VideoIds::from_pk(pk)),
                InstagramId::Graph(id) => Some(VideoIds::from_own_id(id)),
                InstagramId::Shortcode(code) => Some(VideoIds::from_shortcode(code)),
                InstagramId::Other(text) => (!is_number(&text)
                    && is_shortcode(&text, MIN_SHORTCODE_CHARS..=*SHORTCODE_CHARS.end()))
                .then(|| VideoIds::from_shortcode(text)),
            },
        }
    }

    /// Returns the ids of a post whose pk was given.
    fn from_pk(pk: u64) -> Self {
        // A pk of 2011 may look like an id of the Graph API. Its shortcode names the post.
        let external_id = Some(pk.to_string()).filter(|id| !is_graph_id(id));
        VideoIds { external_id, shortcode: Some(encode(pk)) }
    }

    /// Returns an id from which no other follows.
    const fn from_own_id(id: String) -> Self {
        VideoIds { external_id: Some(id), shortcode: None }
    }

    pub(super) const fn from_shortcode(code: String) -> Self {
        VideoIds { external_id: None, shortcode: Some(code) }
    }

    /// The Graph id once known, else the pk if it was given, or the id of another program.
    pub fn external_id(&self) -> Option<&str> {
        self.external_id.as_deref()
    }

    /// The external id unless it is the pk, which the shortcode names, too.
    pub fn own_id(&self) -> Option<&str> {
        self.external_id().filter(|_| !self.has_pk())
    }

    /// The whole shortcode.
    pub fn shortcode(&self) -> Option<&str> {
        self.shortcode.as_deref()
    }

    /// The part of the shortcode that names the post.
    pub fn shortcode_key(&self) -> Option<&str> {
        self.shortcode().map(shortcode_key)
    }

    /// Instagram's pk, which the shortcode names.
    pub fn pk(&self) -> Option<u64> {
        self.shortcode().and_then(decode).filter(|pk| *pk >= MIN_PK)
    }

    /// Returns every `external_id` that a record of the post may have.
    pub fn external_ids(&self) -> impl Iterator<Item = String> + use<> {
        let pk = self.pk().map(|pk| pk.to_string()).filter(|id| !is_graph_id(id));
        let given = self.external_id.clone().filter(|id| Some(id) != pk.as_ref());
        given.into_iter().chain(pk)
    }

    /// Returns the key by which rows are one post: rows with another key may be the same post if they lack one of the ids.
    pub fn key(&self) -> &str {
        self.shortcode_key().or(self.external_id()).unwrap_or_default()
    }

    /// Returns the time of posting that is in the id.
    pub fn posted_at(&self, platform: Platform) -> Option<DateTime<Utc>> {
        match platform {
            Platform::Instagram => self.pk().and_then(time_of),
            Platform::Tiktok => {
                let id = self.external_id().and_then(parse_number)?;
                DateTime::from_timestamp((id >> 32) as i64, 0)
            }
        }
    }

    /// Whether these name another post, or none that both name.
    pub fn conflicts_with(&self, other: &VideoIds) -> bool {
        let differ = |a: Option<&str>, b: Option<&str>| a.zip(b).is_some_and(|(a, b)| a != b);
        differ(self.shortcode_key(), other.shortcode_key()) || differ(self.own_id(), other.own_id())
    }

    /// Adds the other ids of the same post. A Graph id replaces a pk, and a whole shortcode its beginning.
    pub fn merge(&mut self, other: VideoIds) {
        let other_has_pk = other.has_pk();
        if self.has_pk()
            && !other_has_pk
            && self.external_id == other.external_id
            && other.shortcode.is_some()
        {
            // The number is a source's own, which no shortcode follows from.
            self.shortcode = other.shortcode;
            return;
        }
        let VideoIds { external_id, shortcode } = other;
        if self.external_id.is_none() || self.has_pk() && external_id.is_some() && !other_has_pk {
            self.external_id = external_id;
        }
        let is_whole =
            |code: &str| self.shortcode().is_none_or(|own| code.len() > own.len() && code.starts_with(own));
        if shortcode.as_deref().is_some_and(is_whole) {
            self.shortcode = shortcode;
        }
    }

    /// Whether the external id is the pk.
    fn has_pk(&self) -> bool {
        self.external_id().is_some_and(|id| parse_pk(id).is_some_and(|pk| self.pk() == Some(pk)))
    }
}

fn check_external_id(platform: Platform, id: &str) -> Result<(), InvalidVideoIds> {
    let is_valid = (1..=MAX_EXTERNAL_ID_CHARS).contains(&id.len())
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    match platform {
        Platform::Tiktok if !is_number(id) && is_shortcode_in_id_column(id) => Err(InvalidVideoIds::TiktokId),
        Platform::Instagram if is_shortcode_in_id_column(id) => Ok(()),
        _ if is_valid => Ok(()),
        _ => Err(InvalidVideoIds::ExternalId),
    }
}

fn is_shortcode_in_id_column(text: &str) -> bool {
    is_shortcode(text, MIN_SHORTCODE_IN_ID_COLUMN..=*SHORTCODE_CHARS.end())
        && decode(text).is_some_and(|pk| pk < LAST_SHORTCODE_IN_ID_COLUMN)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Parses a platform's number: an unsigned 64-bit number without leading zeros.
fn parse_number(text: &str) -> Option<u64> {
    text.parse().ok().filter(|_| is_number(text) && !text.starts_with('0'))
}

fn parse_pk(text: &str) -> Option<u64> {
    parse_number(text).filter(|pk| *pk >= MIN_PK)
}

fn is_graph_id(text: &str) -> bool {
    text.len() == GRAPH_ID_CHARS && is_number(text) && (text.starts_with("17") || text.starts_with("18"))
}

#[cfg(test)]
mod tests {
    use super::Platform::{Instagram, Tiktok};
    use super::*;

    const PK: &str = "2278584739065882267";
    const CODE: &str = "B-fKL9qpeab";
    const PRIVATE: &str = "B-fKL9qpeabUqFW2xiLWLQiIg_TxuOIQ_OQPTM0";
    const GRAPH: &str = "17976197140599116";

    fn ids(external_id: Option<&str>, shortcode: Option<&str>) -> VideoIds {
        VideoIds::new(Instagram, external_id, shortcode)
    }

    fn parts(ids: &VideoIds) -> (Option<&str>, Option<&str>) {
        (ids.external_id(), ids.shortcode())
    }

    #[test]
    fn ids_follow_from_one_another() {
        for (external_id, shortcode, expected, pk) in [
            (Some(PK), None, (Some(PK), Some(CODE)), Some(PK)),
            (Some("2278584739065882267_123"), None, (Some(PK), Some(CODE)), Some(PK)),
            (None, Some(CODE), (None, Some(CODE)), Some(PK)),
            (None, Some(PRIVATE), (None, Some(PRIVATE)), Some(PK)),
            (Some(CODE), None, (None, Some(CODE)), Some(PK)),
            (Some(PK), Some(PRIVATE), (Some(PK), Some(PRIVATE)), Some(PK)),
            (Some(GRAPH), None, (Some(GRAPH), None), None),
            (Some("18976197140599116"), None, (Some("18976197140599116"), None), None),
            (Some(GRAPH), Some(CODE), (Some(GRAPH), Some(CODE)), Some(PK)),
            (
                Some("19976197140599116"),
                None,
                (Some("19976197140599116"), Some("BG-D7Wh1FM")),
                Some("19976197140599116"),
            ),
            // A pk that looks like a Graph id, but for its form.
            (Some("17976197140599116_1"), None, (None, Some("_3UGM-lFM")), Some(GRAPH)),
            (Some("C1"), None, (Some("C1"), None), None),
            (Some("1234"), None, (Some("1234"), None), None),
            (Some("post_1"), None, (Some("post_1"), None), None),
            (Some("video_00001"), None, (Some("video_00001"), None), None),
            (None, Some("Tide0000001"), (None, Some("Tide0000001")), None),
            (Some("12345"), Some(CODE), (Some("12345"), Some(CODE)), Some(PK)),
            (None, Some("C1"), (None, Some("C1")), None),
            (Some(""), Some(""), (None, None), None),
        ] {
            let ids = ids(external_id, shortcode);
            assert_eq!(parts(&ids), expected, "{external_id:?} {shortcode:?}");
            assert_eq!(
                ids.pk().map(|number| number.to_string()).as_deref(),
                pk,
                "{external_id:?} {shortcode:?}"
            );
        }
        assert_eq!(parts(&VideoIds::new(Tiktok, Some("7301"), Some("x"))), (Some("7301"), None));
    }

    #[test]
    fn merged_ids_do_not_depend_on_the_order() {
        let forms = [
            ids(Some(PK), None),
            ids(None, Some(CODE)),
            ids(Some(GRAPH), Some(CODE)),
            ids(None, Some(PRIVATE)),
        ];
        for order in [[0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2], [2, 0, 3, 1], [0, 3, 1, 2]] {
            let mut merged = VideoIds::default();
            for n in order {
                merged.merge(forms[n].clone());
            }
            assert_eq!(parts(&merged), (Some(GRAPH), Some(PRIVATE)), "{order:?}");
        }
        let own = ids(Some("7000005"), Some("SHORT5"));
        for mut merged in [ids(Some("7000005"), None), own.clone()] {
            merged.merge(own.clone());
            merged.merge(ids(Some("7000005"), None));
            assert_eq!(merged, own);
        }
        let mut without_graph = ids(None, Some(CODE));
        without_graph.merge(ids(Some(PK), None));
        assert_eq!(parts(&without_graph), (Some(PK), Some(CODE)));
    }

    #[test]
    fn forms_of_one_post_have_one_key() {
        for other in [ids(Some(PK), None), ids(None, Some(PRIVATE)), ids(Some(GRAPH), Some(CODE))] {
            assert_eq!(other.key(), CODE);
            assert!(!other.conflicts_with(&ids(None, Some(CODE))));
        }
        assert_eq!(ids(Some(GRAPH), None).key(), GRAPH);
        assert_eq!(VideoIds::new(Tiktok, Some("7301"), None).key(), "7301");
        assert!(ids(None, Some("CfUjwr8vyv2")).conflicts_with(&ids(Some(PK), None)));
        assert!(ids(Some(GRAPH), None).conflicts_with(&ids(Some("17976197140599117"), None)));
        assert!(!ids(Some(GRAPH), None).conflicts_with(&ids(Some(PK), None)), "either may be known alone");
    }

    #[test]
    fn records_are_found_by_every_external_id() {
        let find = |ids: VideoIds| ids.external_ids().collect::<Vec<_>>();
        assert_eq!(find(ids(Some(PK), None)), [PK]);
        assert_eq!(find(ids(None, Some(CODE))), [PK]);
        assert_eq!(find(ids(Some(GRAPH), Some(PRIVATE))), [GRAPH, PK]);
        assert_eq!(find(ids(Some(GRAPH), None)), [GRAPH]);
        assert_eq!(find(ids(Some("17976197140599116_1"), None)), Vec::<String>::new());
        assert_eq!(find(VideoIds::new(Tiktok, Some("7301"), None)), ["7301"]);
    }

    #[test]
    fn columns_of_files_are_checked() {
        use InvalidVideoIds as Invalid;
        for (platform, external_id, shortcode, expected) in [
            (Instagram, Some(PK), Some(CODE), Ok((Some(PK), Some(CODE)))),
            (Instagram, Some(GRAPH), Some(CODE), Ok((Some(GRAPH), Some(CODE)))),
            (Instagram, Some(CODE), None, Ok((None, Some(CODE)))),
            (Instagram, None, Some("CcQ"), Ok((None, Some("CcQ")))),
            (Instagram, Some(PK), Some("CfUjwr8vyv2"), Err(Invalid::OtherPost)),
            (Instagram, Some("a b"), None, Err(Invalid::ExternalId)),
            (Instagram, Some("2.27858E+18"), None, Err(Invalid::ExternalId)),
            (Instagram, None, Some("a b"), Err(Invalid::Shortcode)),
            (Tiktok, Some("7301"), None, Ok((Some("7301"), None))),
            (Tiktok, Some("v1"), None, Ok((Some("v1"), None))),
            (Tiktok, Some(CODE), None, Err(Invalid::TiktokId)),
            (Tiktok, Some("CfUjwr8vyv2"), None, Err(Invalid::TiktokId)),
            (Tiktok, None, Some(CODE), Err(Invalid::TiktokShortcode)),
        ] {
            let ids = VideoIds::from_file(platform, external_id, shortcode);
            assert_eq!(ids.as_ref().map(parts).map_err(|e| *e), expected, "{external_id:?} {shortcode:?}");
        }
    }

    #[test]
    fn id_has_the_time_of_posting() {
        let tiktok = VideoIds::new(Tiktok, Some("7301234567890123456"), None);
        assert_eq!(tiktok.posted_at(Tiktok).unwrap().to_rfc3339(), "2023-11-14T08:39:03+00:00");
        let instagram = ids(Some(PK), None).posted_at(Instagram).unwrap();
        assert_eq!(instagram.to_rfc3339(), "2020-04-02T17:28:09.646+00:00");
        assert_eq!(ids(Some(GRAPH), None).posted_at(Instagram), None);
    }
}
