//! The columns that files can have.

use std::collections::HashSet;

use crate::model::counters::{Counters, ProfileCounters};
use crate::model::field::Field;
use crate::model::observed::{AccountFields, VideoFields};

/// A column by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Column(&'static str);

/// Columns besides counters and observed fields.
const BASE_NAMES: [&str; 11] = [
    "platform",
    "username",
    "external_id",
    "shortcode",
    "url",
    "observed_at",
    "category",
    "creator",
    "is_active",
    "scrape_interval_hours",
    "account_tags",
];

/// The base columns that rows of each kind read.
const POST_BASE: [Column; 7] = [
    Column::PLATFORM,
    Column::USERNAME,
    Column::EXTERNAL_ID,
    Column::SHORTCODE,
    Column::URL,
    Column::OBSERVED_AT,
    Column::IS_ACTIVE,
];
const ACCOUNT_BASE: [Column; 9] = [
    Column::PLATFORM,
    Column::USERNAME,
    Column::URL,
    Column::OBSERVED_AT,
    Column::CATEGORY,
    Column::CREATOR,
    Column::IS_ACTIVE,
    Column::SCRAPE_INTERVAL_HOURS,
    Column::TAGS,
];

impl Column {
    pub const PLATFORM: Column = Column("platform");
    pub const USERNAME: Column = Column("username");
    pub const EXTERNAL_ID: Column = Column("external_id");
    pub const SHORTCODE: Column = Column("shortcode");
    pub const URL: Column = Column("url");
    pub const CREATE_TIME: Column = Column("create_time");
    pub const MEDIA_TYPE: Column = Column("media_type");
    pub const NAME: Column = Column("name");
    pub const IS_VERIFIED: Column = Column("is_verified");
    pub const OBSERVED_AT: Column = Column("observed_at");
    pub const CATEGORY: Column = Column("category");
    pub const CREATOR: Column = Column("creator");
    pub const IS_ACTIVE: Column = Column("is_active");
    pub const SCRAPE_INTERVAL_HOURS: Column = Column("scrape_interval_hours");
    pub const TAGS: Column = Column("account_tags");

    pub const fn from_field(field: &Field) -> Self {
        Column(field.name)
    }

    pub const fn from_counter(name: &'static str) -> Self {
        Column(name)
    }

    /// Returns the column with a name; unknown columns are ignored.
    pub fn from_name(name: &str) -> Option<Self> {
        all_names().find(|column| *column == name).map(Column)
    }

    /// Whether rows of posts have it.
    pub fn is_of_posts(self) -> bool {
        let fields = VideoFields::LIST.iter().filter(|field| field.in_files).map(|field| field.name);
        POST_BASE.contains(&self) || Counters::NAMES.into_iter().chain(fields).any(|name| name == self.0)
    }

    /// Whether rows of accounts have it.
    pub fn is_of_accounts(self) -> bool {
        let fields = AccountFields::LIST.iter().filter(|field| field.in_files).map(|field| field.name);
        let counters = ProfileCounters::NAMES.into_iter();
        ACCOUNT_BASE.contains(&self) || counters.chain(fields).any(|name| name == self.0)
    }

    /// Whether it is the link of a picture.
    pub fn is_picture(self) -> bool {
        ["profile_pic_url", "cover_image_url"].contains(&self.0)
    }

    /// Whether it is a counter.
    pub fn is_counter(self) -> bool {
        Counters::NAMES.into_iter().chain(ProfileCounters::NAMES).any(|name| name == self.0)
    }

    pub fn all() -> impl Iterator<Item = Column> {
        all_names().map(Column)
    }

    /// Returns all names, for messages.
    pub fn list_names() -> String {
        let mut names: Vec<_> = all_names().collect();
        let mut seen = HashSet::new();
        names.retain(|name| seen.insert(*name));
        names.join(", ")
    }

    pub const fn name(self) -> &'static str {
        self.0
    }
}

/// Returns all names. Accounts and videos have some in common.
fn all_names() -> impl Iterator<Item = &'static str> {
    let fields = VideoFields::LIST.iter().chain(AccountFields::LIST);
    let counters = Counters::NAMES.into_iter().chain(ProfileCounters::NAMES);
    BASE_NAMES
        .into_iter()
        .chain(counters)
        .chain(fields.filter(|field| field.in_files).map(|field| field.name))
}
