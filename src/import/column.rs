//! The columns that files can have.

use crate::model::counters::{Counters, ProfileCounters};
use crate::model::field::Field;
use crate::model::observed::{AccountFields, VideoFields};

/// A column by its position in [`NAMES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column(usize);

/// Columns besides counters and observed fields.
const OWN: [&str; 6] = ["platform", "username", "external_id", "observed_at", "category", "creator"];

/// The number of columns that a row can have.
pub const COLUMN_COUNT: usize = OWN.len()
    + Counters::NAMES.len()
    + ProfileCounters::NAMES.len()
    + VideoFields::LIST.len()
    + AccountFields::LIST.len();

/// All columns. A name that is listed twice means its first position; fields that are not in files have no name.
const NAMES: [&str; COLUMN_COUNT] = {
    let mut names = [""; COLUMN_COUNT];
    let (own, rest) = names.split_at_mut(OWN.len());
    let (counters, rest) = rest.split_at_mut(Counters::NAMES.len());
    let (profile_counters, rest) = rest.split_at_mut(ProfileCounters::NAMES.len());
    let (video_fields, account_fields) = rest.split_at_mut(VideoFields::LIST.len());
    own.copy_from_slice(&OWN);
    counters.copy_from_slice(&Counters::NAMES);
    profile_counters.copy_from_slice(&ProfileCounters::NAMES);
    copy_names(video_fields, VideoFields::LIST);
    copy_names(account_fields, AccountFields::LIST);
    names
};

const fn copy_names(names: &mut [&'static str], fields: &[Field]) {
    let mut n = 0;
    while n < fields.len() {
        if fields[n].in_files {
            names[n] = fields[n].name;
        }
        n += 1;
    }
}

const fn columns<const N: usize>(names: &[&str]) -> [Column; N] {
    let mut columns = [Column(0); N];
    let mut n = 0;
    while n < N {
        columns[n] = Column::new(names[n]);
        n += 1;
    }
    columns
}

const fn field_columns<const N: usize>(fields: &[Field]) -> [Column; N] {
    let mut columns = [Column(0); N];
    let mut n = 0;
    while n < N {
        columns[n] = Column::new(if fields[n].in_files { fields[n].name } else { "" });
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
    pub const VIDEO_FIELDS: [Column; VideoFields::LIST.len()] = field_columns(VideoFields::LIST);
    pub const ACCOUNT_FIELDS: [Column; AccountFields::LIST.len()] = field_columns(AccountFields::LIST);

    const fn new(name: &str) -> Self {
        let mut n = 0;
        while n < NAMES.len() {
            if equal(NAMES[n].as_bytes(), name.as_bytes()) {
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

    /// Returns the column of a header field, in any case and with or without a byte order mark.
    pub fn from_header(name: &str) -> Option<Self> {
        Column::from_name(&name.trim_start_matches('\u{feff}').trim().to_ascii_lowercase())
    }

    pub const fn name(self) -> &'static str {
        NAMES[self.0]
    }

    pub const fn index(self) -> usize {
        self.0
    }
}

const fn equal(one: &[u8], other: &[u8]) -> bool {
    let mut n = 0;
    while n < one.len() && n < other.len() && one[n] == other[n] {
        n += 1;
    }
    n == one.len() && n == other.len()
}
