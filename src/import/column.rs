//! The columns that files can have.

use crate::model::counters::{Counters, ProfileCounters};
use crate::model::field::Field;
use crate::model::observed::{AccountFields, VideoFields};

/// A column by its position in [`NAMES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column(usize);

/// Columns besides counters and observed fields.
const BASE_NAMES: [&str; 6] = ["platform", "username", "external_id", "observed_at", "category", "creator"];

const VIDEO_FIELD_NAMES: [&str; VideoFields::LIST.len()] = field_names(VideoFields::LIST);
const ACCOUNT_FIELD_NAMES: [&str; AccountFields::LIST.len()] = field_names(AccountFields::LIST);

/// The number of columns that a row can have.
pub const COLUMN_COUNT: usize = BASE_NAMES.len()
    + Counters::NAMES.len()
    + ProfileCounters::NAMES.len()
    + VIDEO_FIELD_NAMES.len()
    + ACCOUNT_FIELD_NAMES.len();

/// All columns. A name that is listed twice means its first position; fields that are not in files have no name.
const NAMES: [&str; COLUMN_COUNT] = {
    let mut names = [""; COLUMN_COUNT];
    let (base, rest) = names.split_at_mut(BASE_NAMES.len());
    let (counters, rest) = rest.split_at_mut(Counters::NAMES.len());
    let (profile_counters, rest) = rest.split_at_mut(ProfileCounters::NAMES.len());
    let (video_fields, account_fields) = rest.split_at_mut(VIDEO_FIELD_NAMES.len());
    base.copy_from_slice(&BASE_NAMES);
    counters.copy_from_slice(&Counters::NAMES);
    profile_counters.copy_from_slice(&ProfileCounters::NAMES);
    video_fields.copy_from_slice(&VIDEO_FIELD_NAMES);
    account_fields.copy_from_slice(&ACCOUNT_FIELD_NAMES);
    names
};

/// Returns the names of observed fields; empty for fields that are not in files.
const fn field_names<const N: usize>(fields: &[Field]) -> [&'static str; N] {
    let mut names = [""; N];
    let mut n = 0;
    while n < N {
        if fields[n].in_files {
            names[n] = fields[n].name;
        }
        n += 1;
    }
    names
}

const fn columns<const N: usize>(names: &[&str; N]) -> [Column; N] {
    let mut columns = [Column(0); N];
    let mut n = 0;
    while n < N {
        columns[n] = Column::new(names[n]);
        n += 1;
    }
    columns
}

impl Column {
    pub const PLATFORM: Column = Column::new("platform");
    pub const USERNAME: Column = Column::new("username");
    pub const EXTERNAL_ID: Column = Column::new("external_id");
    pub const OBSERVED_AT: Column = Column::new("observed_at");
    pub const CATEGORY: Column = Column::new("category");
    pub const CREATOR: Column = Column::new("creator");
    pub const COUNTERS: [Column; Counters::NAMES.len()] = columns(&Counters::NAMES);
    pub const PROFILE_COUNTERS: [Column; ProfileCounters::NAMES.len()] = columns(&ProfileCounters::NAMES);
    pub const VIDEO_FIELDS: [Column; VIDEO_FIELD_NAMES.len()] = columns(&VIDEO_FIELD_NAMES);
    pub const ACCOUNT_FIELDS: [Column; ACCOUNT_FIELD_NAMES.len()] = columns(&ACCOUNT_FIELD_NAMES);

    const fn new(name: &str) -> Self {
        let mut n = 0;
        while n < NAMES.len() {
            if NAMES[n].eq_ignore_ascii_case(name) {
                return Column(n);
            }
            n += 1;
        }
        panic!("there is no such column")
    }

    /// Returns the column with a name; unknown columns are ignored.
    pub fn from_name(name: &str) -> Option<Self> {
        NAMES.iter().position(|column| *column == name && !name.is_empty()).map(Column)
    }

    /// Returns all names, for messages.
    pub fn list_names() -> String {
        let is_listed = |n: &usize| Column::from_name(NAMES[*n]) == Some(Column(*n));
        (0..COLUMN_COUNT).filter(is_listed).map(|n| NAMES[n]).collect::<Vec<_>>().join(", ")
    }

    pub const fn name(self) -> &'static str {
        NAMES[self.0]
    }

    pub const fn index(self) -> usize {
        self.0
    }
}
