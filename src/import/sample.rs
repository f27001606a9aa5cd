//! Rows as they would be stored, for previews.

use serde_json::{Map, Value, json};

use super::row::{AccountRow, Row, VideoRow};
use crate::model::field::{Field, FieldValue};

/// Returns what is known of a row, by the names of records.
pub fn preview(row: &Row) -> Value {
    let mut preview = Map::new();
    let mut set = |name: &str, value: Value| {
        if !value.is_null() {
            preview.insert(name.to_owned(), value);
        }
    };
    match row {
        Row::Video(row) => {
            let VideoRow { platform, username, ids, observed_at, fields, id_time, is_active, counters } = row;
            set("type", json!("video"));
            set("platform", json!(platform));
            set("username", json!(username));
            set("external_id", json!(ids.external_id()));
            set("shortcode", json!(ids.shortcode()));
            set("observed_at", json!(observed_at));
            set("create_time", json!(id_time));
            set("is_active", json!(is_active));
            fields.values().for_each(|(field, value)| set_field(&mut set, field, value));
            set_counters(&mut set, json!(counters));
        }
        Row::Account(row) => {
            let AccountRow { platform, username, observed_at, fields, counters, category, creator, settings } =
                row;
            set("type", json!("account"));
            set("platform", json!(platform));
            set("username", json!(username));
            set("observed_at", json!(observed_at));
            fields.values().for_each(|(field, value)| set_field(&mut set, field, value));
            set_counters(&mut set, json!(counters));
            set("category", json!(category));
            set("creator", json!(creator));
            set("is_active", json!(settings.is_active));
            set("scrape_interval_hours", json!(settings.scrape_interval_hours));
            if !settings.tags.is_empty() {
                set("account_tags", json!(settings.tags));
            }
        }
    }
    Value::Object(preview)
}

fn set_field(set: &mut impl FnMut(&str, Value), field: &Field, value: FieldValue<'_>) {
    set(field.name, json!(value));
}

fn set_counters(set: &mut impl FnMut(&str, Value), counters: Value) {
    if let Value::Object(counters) = counters {
        for (name, count) in counters {
            set(&name, count);
        }
    }
}
