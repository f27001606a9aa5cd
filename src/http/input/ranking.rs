//! The page of a ranking: its size, and the cursor of the entry that it starts after.
//!
//! Rankings are computed as a whole, because gains are sums. Entries are in descending order of their ranks, then by id;
//! those without a rank come last.

use std::cmp::Reverse;

use salvo_oapi::Operation;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
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
use crate::store::postgres::keyset::{KeysetPosition, SortDirection, SortKey};

/// Which entries a ranking lists, and which come first.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
pub struct RankingOrder {
    /// `asc` lists the smallest values first, as losses are, and implies `include_all`. Ties are in the same order either
    /// way, and entries without a value come last.
    #[serde(default)]
    order_direction: SortDirection,
    /// Whether entries are listed that gained nothing, or less.
    #[serde(default)]
    include_all: bool,
}

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

/// The page of a ranking that has no window, and the rule by which entries are ranked.
#[derive(Serialize)]
pub struct PlainRankingQuery<F> {
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
        let window =
            Query::<WindowParams>::read(context, violations).map(|Query(window)| match context.share {
                Some(share) => window.or_period(share.period.into()),
                None => window,
            });
        let rule = Query::<F>::read(context, violations);
        let page = RankingParams::read::<SIZE, MAX>(context, violations, window, &rule);
        Some(RankingQuery { window: window?, rule: rule?.0, page: page? })
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

impl<F: DeserializeOwned + Serialize + JsonSchema + Send + 'static> RequestPart for PlainRankingQuery<F> {
    fn read(context: &RequestContext<'_>, violations: &mut Violations) -> Option<Self> {
        let rule = Query::<F>::read(context, violations);
        let page =
            RankingParams::read::<DEFAULT_RANKING_SIZE, MAX_RANKING_SIZE>(context, violations, None, &rule);
        Some(PlainRankingQuery { rule: rule?.0, page: page? })
    }

    fn describe(operation: &mut Operation) {
        Query::<F>::describe(operation);
        Query::<RankingFields<DEFAULT_RANKING_SIZE, MAX_RANKING_SIZE>>::describe(operation);
    }
}

impl_extractible!(
    [F: DeserializeOwned + Serialize + JsonSchema + Send + 'static]
    PlainRankingQuery<F>
);

impl RankingOrder {
    /// The largest values first, and all entries.
    pub const ALL: Self = RankingOrder { order_direction: SortDirection::Desc, include_all: true };

    pub const fn direction(self) -> SortDirection {
        self.order_direction
    }

    pub fn includes_all(self) -> bool {
        self.include_all || self.order_direction == SortDirection::Asc
    }

    /// The rank of a value.
    pub const fn rank(self, value: i64) -> i64 {
        value * self.order_direction.sign()
    }
}

/// What spells the same order is the same.
impl Serialize for RankingOrder {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_map(None)?;
        fields.serialize_entry("include_all", &self.includes_all())?;
        fields.serialize_entry("order_direction", &self.order_direction)?;
        fields.end()
    }
}

impl RankingParams {
    /// Reads the page. Its cursor is bound to the window and to the filter, which includes what entries are ranked by.
    fn read<const SIZE: i64, const MAX: i64>(
        context: &RequestContext<'_>,
        violations: &mut Violations,
        window: Option<WindowParams>,
        filter: &impl Serialize,
    ) -> Option<Self> {
        let has_valid_filter = violations.is_empty();
        let binding = bind(context, &json!([filter, window.and_then(|window| window.canonical())]));
        let Query(RankingFields::<SIZE, MAX> { limit, cursor }) = Query::read(context, violations)?;
        let after = cursor.decode(&binding, has_valid_filter, violations);
        Some(RankingParams { limit: limit.unwrap_or(SIZE), after, binding })
    }

    /// The page size.
    pub const fn limit(&self) -> i64 {
        self.limit
    }

    /// The number of entries that decide a page: its own, and one that shows whether there is a next page.
    pub fn entry_count(&self) -> usize {
        usize::try_from(self.limit).unwrap_or_default() + 1
    }

    /// The rank and the id of the entry after which the page starts.
    pub const fn after(&self) -> Option<(i64, Uuid)> {
        match &self.after {
            Some(KeysetPosition { key: SortKey::Int(rank), id }) => Some((*rank, *id)),
            _ => None,
        }
    }

    /// Sorts entries by their ranks, names and ids, and returns those of the page.
    pub fn select_named<T>(
        &self,
        mut entries: Vec<T>,
        place: impl for<'e> Fn(&'e T) -> (Option<i64>, &'e str, Uuid),
    ) -> Result<RankingPage<T>, Problem> {
        entries.sort_unstable_by(|one, other| order(place(one)).cmp(&order(place(other))));
        let start = match &self.after {
            Some(KeysetPosition { key: SortKey::Text(text), id }) => {
                let (rank, name) = text.split_once(' ').unwrap_or_default();
                let last = order((rank.parse().ok(), name, *id));
                entries.partition_point(|entry| order(place(entry)) <= last)
            }
            _ => 0,
        };
        self.cut(entries.split_off(start), |entry| {
            let (rank, name, id) = place(entry);
            let rank = rank.map(|rank| rank.to_string()).unwrap_or_default();
            KeysetPosition { key: SortKey::Text(format!("{rank} {name}")), id }
        })
    }

    /// Sorts entries by their ranks and ids, and returns those of the page.
    pub fn select<T>(
        &self,
        mut entries: Vec<T>,
        place: impl Fn(&T) -> (Option<i64>, Uuid),
    ) -> Result<RankingPage<T>, Problem> {
        let sort_key = |entry: &T| {
            let (rank, id) = place(entry);
            (Reverse(rank), id)
        };
        entries.sort_unstable_by_key(sort_key);
        let start = match &self.after {
            Some(KeysetPosition { key, id }) => {
                let last = match key {
                    SortKey::Int(rank) => Some(*rank),
                    _ => None,
                };
                entries.partition_point(|entry| sort_key(entry) <= (Reverse(last), *id))
            }
            None => 0,
        };
        self.cut(entries.split_off(start), |entry| {
            let (rank, id) = place(entry);
            KeysetPosition { key: rank.map_or(SortKey::Null, SortKey::Int), id }
        })
    }

    /// Returns the page from the sorted entries after its start, of which there may be more than it shows.
    pub fn page<T>(
        &self,
        entries: Vec<T>,
        place: impl Fn(&T) -> (i64, Uuid),
    ) -> Result<RankingPage<T>, Problem> {
        self.cut(entries, |entry| {
            let (rank, id) = place(entry);
            KeysetPosition { key: SortKey::Int(rank), id }
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

/// The order of entries. `None` is less than any rank.
const fn order((rank, name, id): (Option<i64>, &str, Uuid)) -> (Reverse<Option<i64>>, &str, Uuid) {
    (Reverse(rank), name, id)
}

impl<T> RankingPage<T> {
    /// Builds the response from what is shown of the entries.
    pub fn into_response<S, M>(self, data: Vec<S>, meta: M) -> Ranking<S, M> {
        Ranking { data, pagination: self.pagination, meta }
    }
}
