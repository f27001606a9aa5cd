//! Reads all videos that match a filter, in batches of a few accounts: their history is then one range of each day in
//! ClickHouse's tables, which are sorted by subject. No transaction spans the batches.
//!
//! A batch is a range of rows that are looked at, whether they match or not. Its time is bounded, however few match.

use std::sync::LazyLock;

use chrono::{DateTime, Utc};
use sqlx::{FromRow, PgPool, Postgres, QueryBuilder};
use uuid::Uuid;

use super::ContentFilter;
use crate::model::account::AccountLabels;
use crate::model::content::ContentRow;
use crate::store::Error;
use crate::store::postgres::keyset::{
    KeysetPosition, List, PageRequest, ParentFilter, Sort, SortColumn, SortDirection, SortKey, push_equal,
    push_labels,
};
use crate::store::records::videos::{self, caption_filter};

/// Accounts of a batch, however few videos they have.
const MAX_ACCOUNTS: usize = 500;

/// The columns of [`ContentRow`].
static COLUMNS: LazyLock<String> = LazyLock::new(|| videos::columns(ContentRow::FIELDS));

/// `offset 0` keeps the planner from other indexes, as for candidates of a ranking.
const SELECT_BY_ID: &str = "::uuid[]) as scanned (id)
    cross join lateral (select * from videos where id = scanned.id offset 0) v
    left join accounts a on a.id = v.account_id
    left join creators c on c.id = a.creator_id
    where v.organization_id = ";

/// The position in the videos of an organization. Those on accounts come first.
#[derive(Debug)]
pub struct ContentReader {
    organization: Uuid,
    filter: ContentFilter,
    /// The accounts that are not read yet, and their numbers of posts; the next one is last.
    accounts: Vec<(Uuid, i64)>,
    /// The rows that are being read; None after the last.
    rows: Option<ContentRows>,
    after: Option<KeysetPosition>,
}

/// Some of the videos of an organization.
#[derive(Debug, Clone)]
pub enum ContentRows {
    OnAccounts(Vec<Uuid>),
    WithoutAccount,
}

/// A video that is looked at.
#[derive(Debug, Clone, FromRow)]
pub struct ScannedVideo {
    id: Uuid,
    sort_key: DateTime<Utc>,
}

impl Sort for &ContentRows {
    type Record = ScannedVideo;

    fn column(self) -> SortColumn {
        SortColumn::required(match self {
            ContentRows::OnAccounts(_) => "v.added_at",
            // Not null for tracked videos.
            ContentRows::WithoutAccount => "v.tracked_at",
        })
    }

    fn position(self, video: &ScannedVideo) -> KeysetPosition {
        KeysetPosition { key: SortKey::Time(video.sort_key), id: video.id }
    }
}

impl ContentReader {
    /// Finds the accounts that match. Fails if the account or creator to filter by does not exist.
    pub async fn open(pg: &PgPool, organization: Uuid, filter: ContentFilter) -> Result<Self, Error> {
        let filter = filter.resolve(pg, organization).await?;
        let mut query =
            QueryBuilder::new("select a.id, a.total_post_count from accounts a where a.organization_id = ");
        query.push_bind(organization);
        push_equal(&mut query, "a.id", filter.account_id);
        push_equal(&mut query, "a.creator_id", filter.creator_id);
        push_equal(&mut query, "a.platform", filter.platform);
        push_labels(&mut query, "a", &filter.labels);
        query.push(" order by a.internal_id desc");
        let accounts = query.build_query_as().fetch_all(pg).await?;
        let rows = Some(ContentRows::OnAccounts(Vec::new()));
        Ok(ContentReader { organization, filter, accounts, rows, after: None })
    }

    /// Reads those of up to `limit` further videos that match, maybe none; None after the last.
    pub async fn next(&mut self, pg: &PgPool, limit: i64) -> Result<Option<Vec<ContentRow>>, Error> {
        if self.after.is_none() {
            self.rows = self.choose_rows(limit);
        }
        let Some(rows) = &self.rows else { return Ok(None) };
        let (sort, direction, after) = (rows, SortDirection::Asc, self.after.take());
        let page = PageRequest { sort, direction, after, offset: 0, limit, include_total: false };
        let scan = scan_query(self.organization, &page);
        let scanned = build_scan(self.organization, rows).fetch_page(pg, &page, scan).await?;
        self.after = scanned.next;
        let ids: Vec<_> = scanned.items.iter().map(|video| video.id).collect();
        let mut query = matching_query(self.organization, &self.filter, rows, &ids);
        Ok(Some(query.build_query_as().persistent(!self.filter.needs_custom_plan()).fetch_all(pg).await?))
    }

    /// Chooses the next rows: accounts with about `limit` videos in all, or one with more.
    fn choose_rows(&mut self, limit: i64) -> Option<ContentRows> {
        let is_limited_to_accounts = self.filter.is_limited_to_accounts();
        match self.rows.take()? {
            ContentRows::WithoutAccount => None,
            ContentRows::OnAccounts(_) if self.accounts.is_empty() => {
                (!is_limited_to_accounts).then_some(ContentRows::WithoutAccount)
            }
            ContentRows::OnAccounts(mut chosen) => {
                chosen.clear();
                let mut posts = 0;
                while let Some((id, count)) =
                    self.accounts.pop_if(|(_, count)| chosen.is_empty() || posts + *count <= limit)
                {
                    chosen.push(id);
                    posts += count;
                    if chosen.len() == MAX_ACCOUNTS {
                        break;
                    }
                }
                Some(ContentRows::OnAccounts(chosen))
            }
        }
    }
}

/// Builds the query that finds the videos of a batch.
pub fn scan_query(organization: Uuid, page: &PageRequest<&ContentRows>) -> QueryBuilder<Postgres> {
    build_scan(organization, page.sort).select_page(page, |query| {
        query.push("select page.id, page.sort_key from page");
    })
}

fn build_scan(organization: Uuid, rows: &ContentRows) -> List<impl Fn(&mut QueryBuilder<Postgres>)> {
    let parents = match rows {
        ContentRows::WithoutAccount => None,
        ContentRows::OnAccounts(ids) => Some(ParentFilter {
            table: "accounts",
            organization,
            values: vec![("id", ids.clone())],
            labels: AccountLabels::default(),
            reference: "v.account_id",
        }),
    };
    let is_without_account = parents.is_none();
    let conditions = move |query: &mut QueryBuilder<Postgres>| {
        if is_without_account {
            query.push("v.is_tracked and v.organization_id = ").push_bind(organization);
        } else {
            query.push("true");
        }
    };
    List {
        table: "videos v",
        id: "v.id",
        conditions,
        parents,
        sorted: None,
        text: None,
        tags: None,
        custom_plan: false,
    }
}

/// Builds the query that reads those of some videos that match, in no particular order. Their accounts match already.
pub fn matching_query(
    organization: Uuid,
    filter: &ContentFilter,
    rows: &ContentRows,
    ids: &[Uuid],
) -> QueryBuilder<Postgres> {
    let conditions = |query: &mut QueryBuilder<Postgres>| filter.push(query);
    let mut query = QueryBuilder::new("select ");
    query.push(COLUMNS.as_str()).push(" from unnest(").push_bind(ids);
    query.push(SELECT_BY_ID).push_bind(organization).push(" and ");
    let text = caption_filter(organization, filter.q.as_deref());
    let (parents, sorted, tags, custom_plan) = (None, None, filter.tags(organization), false);
    List { table: "videos v", id: "v.id", conditions, parents, sorted, text, tags, custom_plan }
        .push_conditions(&mut query);
    if matches!(rows, ContentRows::WithoutAccount) {
        query.push(" and v.account_id is null");
    }
    query
}
