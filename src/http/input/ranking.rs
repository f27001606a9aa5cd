//! The page of a ranking: its size, and the cursor of the entry that it starts after.
//!
//! Rankings are computed as a whole, because gains are sums. Entries are in descending order of a value, then by id.

use std::cmp::Reverse;

use salvo_oapi::Operation;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;

use super::list::{CursorField, bind};
use super::query::Query;
use super::request_part::{RequestContext, RequestPart, impl_extractible};
use super::violations::Violations;
use super::window::WindowParams;
use crate::http::output::cursor::{self, Binding};
use crate::http::output::page::{Pagination, Ranking};
use crate::http::output::problem::Problem;
use crate::model::limits::{DEFAULT_RANKING_SIZE, MAX_RANKING_SIZE};
use crate::store::postgres::keyset::{KeysetPosition, SortKey};

/// A requested page of a ranking.
#[derive(Debug, Clone, Serialize)]
pub struct RankingParams {
    limit: i64,
    after: Option<KeysetPosition>,
    #[serde(skip)]
    binding: Binding,
}

/// The window of a ranking, the rule by which entries are ranked, and the page.
#[derive(Serialize)]
pub struct RankingQuery<F, const SIZE: i64 = DEFAULT_RANKING_SIZE, const MAX: i64 = MAX_RANKING_SIZE> {
    pub window: WindowParams,
    pub rule: F,
    pub page: RankingParams,
}

/// The page of a ranking, and where the next one starts.
#[derive(Debug)]
pub struct RankingPage<T> {
    pub entries: Vec<T>,
    pagination: Pagination,
}

/// The parameters of the page.
#[derive(Deserialize, JsonSchema)]
struct RankingFields<const SIZE: i64, const MAX: i64> {
    /// Page size.
    #[schemars(range(min = 1, max = MAX), extend("default" = SIZE))]
    limit: Option<i64>,
    #[serde(flatten)]
    cursor: CursorField,
}

impl<F: DeserializeOwned + Serialize + JsonSchema + Send + 'static, const SIZE: i64, const MAX: i64>
    RequestPart for RankingQuery<F, SIZE, MAX>
{
    fn read(context: &RequestContext<'_>, violations: &mut Violations) -> Option<Self> {
        let window = Query::<WindowParams>::read(context, violations);
        let rule = Query::<F>::read(context, violations);
        let page = RankingParams::read::<SIZE, MAX>(context, violations, window.as_ref(), &rule);
        Some(RankingQuery { window: window?.0, rule: rule?.0, page: page? })
    }

    fn describe(operation: &mut Operation) {
        Query::<WindowParams>::describe(operation);
        Query::<F>::describe(operation);
        Query::<RankingFields<SIZE, MAX>>::describe(operation);
    }
}

impl_extractible!(
    [F: DeserializeOwned + Serialize + JsonSchema + Send + 'static, const SIZE: i64, const MAX: i64]
    RankingQuery<F, SIZE, MAX>
);

impl RankingParams {
    /// Reads the page. Its cursor is bound to the window and to the filter, which includes what entries are ranked by.
    fn read<const SIZE: i64, const MAX: i64>(
        context: &RequestContext<'_>,
        violations: &mut Violations,
        window: Option<&Query<WindowParams>>,
        filter: &impl Serialize,
    ) -> Option<Self> {
        let has_valid_filter = violations.is_empty();
        let binding = bind(context, &json!([filter, window.and_then(|window| window.0.canonical())]));
        let Query(RankingFields::<SIZE, MAX> { limit, cursor }) = Query::read(context, violations)?;
        let after = cursor.decode(&binding, has_valid_filter, violations);
        Some(RankingParams { limit: limit.unwrap_or(SIZE), after, binding })
    }

    /// The number of entries that decide a page: its own, and one that shows whether there is a next page.
    pub fn entry_count(&self) -> usize {
        usize::try_from(self.limit).unwrap_or_default() + 1
    }

    /// The value and the id of the entry after which the page starts.
    pub const fn after(&self) -> Option<(i64, Uuid)> {
        match &self.after {
            Some(KeysetPosition { key: SortKey::Int(value), id }) => Some((*value, *id)),
            _ => None,
        }
    }

    /// Sorts entries by their values, names and ids, and returns those of the page.
    pub fn select_named<T>(
        &self,
        mut entries: Vec<T>,
        position: impl Fn(&T) -> (i64, &String, Uuid),
    ) -> Result<RankingPage<T>, Problem> {
        let order = |entry: &T| {
            let (value, name, id) = position(entry);
            (Reverse(value), name.clone(), id)
        };
        entries.sort_by_cached_key(order);
        let start = match &self.after {
            Some(KeysetPosition { key: SortKey::Text(text), id }) => {
                let (value, name) = text.split_once(' ').unwrap_or_default();
                let last = (Reverse(value.parse().unwrap_or(i64::MAX)), name.to_owned(), *id);
                entries.partition_point(|entry| order(entry) <= last)
            }
            _ => 0,
        };
        self.cut(entries.split_off(start), |entry| {
            let (value, name, id) = position(entry);
            KeysetPosition { key: SortKey::Text(format!("{value} {name}")), id }
        })
    }

    /// Sorts entries by their values and ids, and returns those of the page.
    pub fn select<T>(
        &self,
        mut entries: Vec<T>,
        position: impl Fn(&T) -> (i64, Uuid),
    ) -> Result<RankingPage<T>, Problem> {
        let order = |entry: &T| {
            let (value, id) = position(entry);
            (Reverse(value), id)
        };
        entries.sort_unstable_by_key(order);
        let start = self
            .after()
            .map_or(0, |(value, id)| entries.partition_point(|entry| order(entry) <= (Reverse(value), id)));
        self.page(entries.split_off(start), position)
    }

    /// Returns the page from the sorted entries after its start, of which there may be more than it shows.
    pub fn page<T>(
        &self,
        entries: Vec<T>,
        position: impl Fn(&T) -> (i64, Uuid),
    ) -> Result<RankingPage<T>, Problem> {
        self.cut(entries, |entry| {
            let (value, id) = position(entry);
            KeysetPosition { key: SortKey::Int(value), id }
        })
    }

    fn cut<T>(
        &self,
        mut entries: Vec<T>,
        position: impl Fn(&T) -> KeysetPosition,
    ) -> Result<RankingPage<T>, Problem> {
        let limit = usize::try_from(self.limit).unwrap_or_default();
        let has_next = entries.len() > limit;
        entries.truncate(limit);
        let encode = |last: &T| cursor::encode(&self.binding, &position(last));
        let next_cursor = entries.last().filter(|_| has_next).map(encode).transpose()?;
        let pagination = Pagination { next_cursor, has_next, limit: self.limit, total_count: None };
        Ok(RankingPage { entries, pagination })
    }
}

impl<T> RankingPage<T> {
    /// Builds the response from what is shown of the entries.
    pub fn into_response<S, M>(self, data: Vec<S>, meta: M) -> Ranking<S, M> {
        Ranking { data, pagination: self.pagination, meta }
    }
}
