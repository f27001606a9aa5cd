//! The columns that files can have.

use std::collections::HashSet;

use crate::model::counters::{Counters, ProfileCounters};
use crate::model::field::Field;
use crate::model::observed::{AccountFields, VideoFields};

/// A column by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column(&'static str);

/// Columns besides counters and observed fields.
const BASE_NAMES: [&str; 6] = ["platform", "username", "external_id", "observed_at", "category", "creator"];

impl Column {
    pub const PLATFORM: Column = Column("platform");
    pub const USERNAME: Column = Column("username");
    pub const EXTERNAL_ID: Column = Column("external_id");
    pub const OBSERVED_AT: Column = Column("observed_at");
    pub const CATEGORY: Column = Column("category");
    pub const CREATOR: Column = Column("creator");

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
