//! Reads all videos that match a filter, in batches of a few accounts: their history is then one range of each day in
//! ClickHouse's tables, which are sorted by subject. No transaction spans the batches.

use std::sync::LazyLock;

use sqlx::{PgPool, Postgres, QueryBuilder};
use uuid::Uuid;

use super::ContentFilter;
use crate::model::content::ContentRow;
use crate::store::Error;
use crate::store::postgres::keyset::{
    KeysetPosition, List, PageRequest, ParentFilter, ParentValue, Sort, SortColumn, SortDirection, SortKey,
    TextFilter, push_equal,
};
use crate::store::records::videos::{self, caption_filter};

/// Accounts of a batch, however few videos they have.
const MAX_ACCOUNTS: usize = 500;

/// The columns of [`ContentRow`].
static COLUMNS: LazyLock<String> = LazyLock::new(|| videos::columns(ContentRow::FIELDS));

const JOINS: &str = "
    from page
    join videos v on v.id = page.id
    left join accounts a on a.id = v.account_id
    left join creators c on c.id = a.creator_id";

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

impl Sort for &ContentRows {
    type Record = ContentRow;

    fn column(self) -> SortColumn {
        SortColumn::required(match self {
            ContentRows::OnAccounts(_) => "v.added_at",
            // Not null for tracked videos.
            ContentRows::WithoutAccount => "v.tracked_at",
        })
    }

    fn position(self, row: &ContentRow) -> KeysetPosition {
        KeysetPosition { key: SortKey::Time(row.added_at), id: row.id }
    }
}

impl ContentReader {
    /// Finds the accounts that match. Fails if the account or creator to filter by does not exist.
    pub async fn open(pg: &PgPool, organization: Uuid, filter: ContentFilter) -> Result<Self, Error> {
        filter.require_parents(pg, organization).await?;
        let mut query =
            QueryBuilder::new("select a.id, a.total_post_count from accounts a where a.organization_id = ");
        query.push_bind(organization);
        push_equal(&mut query, "a.id", filter.account_id);
        push_equal(&mut query, "a.creator_id", filter.creator_id);
        push_equal(&mut query, "a.category", filter.category.as_ref());
        push_equal(&mut query, "a.platform", filter.platform);
        query.push(" order by a.internal_id desc");
        let accounts = query.build_query_as().fetch_all(pg).await?;
        let rows = Some(ContentRows::OnAccounts(Vec::new()));
        Ok(ContentReader { organization, filter, accounts, rows, after: None })
    }

    /// Reads up to `limit` further videos, maybe none; None after the last.
    pub async fn next(&mut self, pg: &PgPool, limit: i64) -> Result<Option<Vec<ContentRow>>, Error> {
        if self.after.is_none() {
            self.rows = self.choose_rows(limit);
        }
        let Some(rows) = &self.rows else { return Ok(None) };
        let (sort, direction, after) = (rows, SortDirection::Asc, self.after.take());
        let page = PageRequest { sort, direction, after, offset: 0, limit, include_total: false };
        let query = rows_query(self.organization, &self.filter, &page);
        let found = build_list(self.organization, &self.filter, rows).fetch_page(pg, &page, query).await?;
        self.after = found.next;
        Ok(Some(found.items))
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

/// Builds the query that reads a page.
pub fn rows_query(
    organization: Uuid,
    filter: &ContentFilter,
    page: &PageRequest<&ContentRows>,
) -> QueryBuilder<Postgres> {
    build_list(organization, filter, page.sort).select_page(page, |query| {
        query.push("select page.sort_key as added_at, ").push(COLUMNS.as_str()).push(JOINS);
    })
}

fn build_list(
    organization: Uuid,
    filter: &ContentFilter,
    rows: &ContentRows,
) -> List<impl Fn(&mut QueryBuilder<Postgres>)> {
    let parents = match rows {
        ContentRows::WithoutAccount => None,
        ContentRows::OnAccounts(ids) => Some(ParentFilter {
            table: "accounts",
            organization,
            values: vec![("id", ParentValue::AnyOf(ids.clone()))],
            reference: "v.account_id",
        }),
    };
    let is_without_account = parents.is_none();
    let conditions = move |query: &mut QueryBuilder<Postgres>| {
        filter.push(query);
        if is_without_account {
            query.push(" and v.is_tracked and v.account_id is null and v.organization_id = ");
            query.push_bind(organization);
        }
    };
    // Every row of the range is read anyway.
    let text = filter.q.as_deref().map(|q| caption_filter(organization, q));
    let text = text.map(|text| TextFilter { blocks: None, ..text });
    List {
        table: "videos v",
        id: "v.id",
        conditions,
        parents,
        sorted: None,
        text,
        custom_plan: filter.has_ranges(),
    }
}
