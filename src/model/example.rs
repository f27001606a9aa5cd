//! Examples for the API's document that take more than a word.

use serde_json::{Value, json};

pub(super) fn metadata() -> Value {
    json!({"team": "north", "campaign": "spring"})
}

pub(super) fn platform_data() -> Value {
    json!({"media_product_type": "REELS"})
}
