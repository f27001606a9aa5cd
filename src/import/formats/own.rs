//! Tidemark's own columns, which exports write and which `--map` names.

use chrono_tz::UTC;

use super::Columns::Named;
use super::{Dates, Format, Rows};

pub static OWN: Format = Format {
    name: "tidemark",
    tool: "Tidemark, and tables with its columns or with --map",
    platform: None,
    recognize: |header| header.has_any(&["external_id", "shortcode", "url", "username"]),
    columns: Named(&[
        ("platform", "platform"),
        ("username", "username"),
        // Of content.csv and the records of /content.
        ("account_username", "username"),
        ("external_id", "external_id"),
        ("shortcode", "shortcode"),
        ("url", "url"),
        ("observed_at", "observed_at"),
    ]),
    rows: Rows::Any,
    dates: Dates::Iso,
    zone: UTC,
    is_as_of_export: false,
    media_types: &[],
};
