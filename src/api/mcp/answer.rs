//! The structured content of a tool's result, from the bodies of responses.

use std::collections::BTreeMap;

use serde_json::value::{RawValue, to_raw_value};

use super::tool::Answer;

/// More would fill a model's context.
pub(super) const MAX_ANSWER_BYTES: usize = 25 * 1024;

/// What a cut page has beyond its entries and the rest of the whole page: its cursor.
const CURSOR_RESERVE_BYTES: usize = 512;

/// The members of a body, as they are.
type Members = BTreeMap<String, Box<RawValue>>;

/// Returns the answer.
pub(super) fn join(answer: Answer, bodies: &[String]) -> Result<String, serde_json::Error> {
    let Answer::Joined(parts) = answer else { return Ok(bodies.concat()) };
    let (mut data, mut others) = (Members::new(), BTreeMap::<String, Members>::new());
    for ((name, _), body) in parts.iter().zip(bodies) {
        for (member, value) in serde_json::from_str::<Members>(body)? {
            if member == "data" {
                data.insert((*name).to_owned(), value);
            } else {
                others.entry(member).or_default().extend(serde_json::from_str::<Members>(value.get())?);
            }
        }
    }
    let mut joined = Members::from([("data".to_owned(), to_raw_value(&data)?)]);
    for (member, values) in others {
        joined.insert(member, to_raw_value(&values)?);
    }
    serde_json::to_string(&joined)
}

/// Returns how many entries of a page fit into an answer that is too large: fewer than all.
pub(super) fn fitting_entries(answer: &str, page: &str) -> usize {
    let members: Members = serde_json::from_str(page).unwrap_or_default();
    let entries: Vec<Box<RawValue>> =
        members.get("data").and_then(|data| serde_json::from_str(data.get()).ok()).unwrap_or_default();
    // With the comma after each.
    let sizes: Vec<_> = entries.iter().map(|entry| entry.get().len() + 1).collect();
    let total: usize = sizes.iter().sum();
    let mut room = MAX_ANSWER_BYTES.saturating_sub(answer.len().saturating_sub(total) + CURSOR_RESERVE_BYTES);
    let fits = |size: &&usize| {
        let fits = **size <= room;
        room = room.saturating_sub(**size);
        fits
    };
    sizes.iter().take_while(fits).count().min(entries.len().saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn joined_answer_has_the_data_of_all_parts() {
        let bodies = [
            json!({"data": {"name": "A"}}).to_string(),
            json!({"data": [1.50], "pagination": {"limit": 1}, "meta": {"days": 7}}).to_string(),
        ];
        let joined = join(Answer::Joined(&[("one", "getOne"), ("many", "listMany")]), &bodies).unwrap();
        let joined: Value = serde_json::from_str(&joined).unwrap();
        let expected = json!({
            "data": {"one": {"name": "A"}, "many": [1.5]},
            "meta": {"days": 7},
            "pagination": {"limit": 1},
        });
        assert_eq!(joined, expected);
        assert_eq!(join(Answer::Response("getOne"), &bodies[..1]).unwrap(), bodies[0]);
    }

    #[test]
    fn cut_pages_fit_and_are_as_long_as_possible() {
        for (entry, count) in [(10, 3_000), (100, 300), (5_000, 6), (30_000, 2), (26_000, 1)] {
            let entries: Vec<_> = (0..count).map(|_| "x".repeat(entry)).collect();
            let page = json!({"data": entries, "pagination": {"next_cursor": null}}).to_string();
            let fitting = fitting_entries(&page, &page);
            let cut = |length: usize| json!({"data": entries[..length], "pagination": {"next_cursor": "c".repeat(400)}});
            assert!(fitting < count, "{entry}");
            if entry < MAX_ANSWER_BYTES {
                assert!(cut(fitting).to_string().len() <= MAX_ANSWER_BYTES, "{entry}");
                let more = cut(fitting + 1).to_string().len() + CURSOR_RESERVE_BYTES;
                assert!(more > MAX_ANSWER_BYTES, "{entry}");
            } else {
                assert_eq!(fitting, 0);
            }
        }
    }
}
