//! The size class of an organization, a metric label with few values in place of its id.

use std::collections::HashMap;

use parking_lot::RwLock;
use uuid::Uuid;

static SIZE_CLASSES: RwLock<Option<HashMap<Uuid, &'static str>>> = RwLock::new(None);

/// Sets the number of tracked accounts of each organization. One that is missing tracks none.
pub fn set_account_counts(counts: impl IntoIterator<Item = (Uuid, i64)>) {
    let classes = counts.into_iter().map(|(organization, count)| (organization, size_class(count))).collect();
    *SIZE_CLASSES.write() = Some(classes);
}

/// Returns an organization's size class: `none` without a valid key, `unknown` until the first count.
pub fn label(organization: Option<Uuid>) -> &'static str {
    let Some(organization) = organization else { return "none" };
    let classes = SIZE_CLASSES.read();
    classes
        .as_ref()
        .map_or("unknown", |classes| classes.get(&organization).copied().unwrap_or_else(|| size_class(0)))
}

fn size_class(account_count: i64) -> &'static str {
    match account_count {
        ..=0 => "0",
        1..10 => "1-9",
        10..100 => "10-99",
        100..1_000 => "100-999",
        1_000..10_000 => "1000-9999",
        10_000.. => "10000+",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn organization_size_is_a_class() {
        let (small, large, empty) = (Uuid::from_u128(1), Uuid::from_u128(2), Uuid::from_u128(3));
        set_account_counts([(small, 9), (large, 10_000)]);
        assert_eq!([small, large, empty].map(|id| label(Some(id))), ["1-9", "10000+", "0"]);
        assert_eq!(label(None), "none");
    }
}
