//! How large organizations are, as a label with few values: metrics tell large tenants from small ones, and none by name.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use uuid::Uuid;

static CLASSES: RwLock<Option<HashMap<Uuid, &'static str>>> = RwLock::new(None);

/// Remembers how many accounts each organization tracks; one that is missing tracks none.
pub fn remember(accounts: impl IntoIterator<Item = (Uuid, i64)>) {
    let classes =
        accounts.into_iter().map(|(organization, accounts)| (organization, class(accounts))).collect();
    *CLASSES.write().unwrap_or_else(PoisonError::into_inner) = Some(classes);
}

/// The size class of an organization; `unknown` until the first count, `none` where no key was accepted.
pub fn size(organization: Option<Uuid>) -> &'static str {
    let Some(organization) = organization else { return "none" };
    let classes = CLASSES.read().unwrap_or_else(PoisonError::into_inner);
    classes
        .as_ref()
        .map_or("unknown", |classes| classes.get(&organization).copied().unwrap_or_else(|| class(0)))
}

fn class(accounts: i64) -> &'static str {
    match accounts {
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
    fn sizes_are_classes() {
        let (small, large, empty) = (Uuid::from_u128(1), Uuid::from_u128(2), Uuid::from_u128(3));
        remember([(small, 9), (large, 10_000)]);
        assert_eq!([small, large, empty].map(|id| size(Some(id))), ["1-9", "10000+", "0"]);
        assert_eq!(size(None), "none");
    }
}
