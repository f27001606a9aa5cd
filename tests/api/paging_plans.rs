//! Query plans of the lists over a few thousand records, with bound values and as generic plans, in an organization that
//! is alone and in one of many.

use harness::population::{PopulatedDatabase, Population};
use serde_json::Value;
use sqlx::{AssertSqlSafe, Execute, PgConnection, PgPool, Postgres, QueryBuilder};
use tidemark::model::account::{AccountLabels, Metadata};
use tidemark::model::platform::Platform;
use tidemark::model::readable::ReadablePlatforms;
use tidemark::model::tracking::TrackingStatus;
use tidemark::model::video::VideoType;
use tidemark::store::postgres::keyset::{KeysetPosition, ListPage, PageRequest, SortDirection, SortKey};
use tidemark::store::records::accounts::{self, AccountFilter, AccountSort};
use tidemark::store::records::creators::{self, CreatorFilter, CreatorSort};
use tidemark::store::records::videos::{self, TrackedVideoSort, VideoFilter, VideoSort};
use uuid::Uuid;

pub const LIMIT: i64 = 20;
/// A page and the next row. So many rows may be sorted, such as those of one account.
const MAX_SORTED_ROWS: f64 = LIMIT as f64 + 1.0;
pub const FEW_THOUSAND: Population = Population { accounts: 2_000, videos: 4_200, on_first_account: 4 };
pub const SMALL: Population = Population { accounts: 100, videos: 300, on_first_account: 1 };
/// Analyzed tables have at most 30,000 rows, which are all read, so that statistics do not depend on a sample.
pub const MANY: [Population; 60] = [SMALL; 60];

const DIRECTIONS: [SortDirection; 2] = [SortDirection::Asc, SortDirection::Desc];
const VIDEO_SORTS: [VideoSort; 4] =
    [VideoSort::CreateTime, VideoSort::ViewCount, VideoSort::LikeCount, VideoSort::PlayCount];
const ACCOUNT_SORTS: [AccountSort; 8] = [
    AccountSort::AddedAt,
    AccountSort::Username,
    AccountSort::LastScrapeTime,
    AccountSort::FollowerCount,
    AccountSort::TotalPostCount,
    AccountSort::ViewCount,
    AccountSort::LikeCount,
    AccountSort::PlayCount,
];

/// A plan node below the common table expression that selects the page; nodes outside only read the page.
struct Node(Value);

impl Node {
    fn text(&self, name: &str) -> &str {
        self.0[name].as_str().unwrap_or_default()
    }

    fn count(&self, name: &str) -> f64 {
        self.0[name].as_f64().unwrap_or_default()
    }

    /// Rows that this node read in all its loops.
    fn examined_rows(&self) -> f64 {
        (self.count("Actual Rows") + self.count("Rows Removed by Filter")) * self.count("Actual Loops")
    }
}

/// A plan, and the buffers it read.
pub struct Plan {
    name: String,
    nodes: Vec<Node>,
    buffers: f64,
}

impl Plan {
    fn new(name: String, explained: &Value) -> Self {
        let root = &explained[0]["Plan"];
        let buffers =
            ["Shared Hit Blocks", "Shared Read Blocks"].iter().filter_map(|name| root[name].as_f64());
        let mut nodes = Vec::new();
        collect_page_nodes(root, false, &mut nodes);
        Plan { name, buffers: buffers.sum(), nodes }
    }

    /// Runs a statement with its values.
    pub async fn run(pg: &PgPool, name: String, query: &mut QueryBuilder<Postgres>) -> Self {
        let sql = format!("explain (analyze, buffers, format json) {}", query.sql().as_str());
        let arguments = query.build().take_arguments().unwrap().unwrap();
        let explained: Value =
            sqlx::query_scalar_with(AssertSqlSafe(sql), arguments).fetch_one(pg).await.unwrap();
        Plan::new(name, &explained)
    }

    /// Explains the generic plan of a statement.
    async fn generic(connection: &mut PgConnection, name: &str, sql: &str) -> Self {
        let last = (1..).take_while(|n| sql.contains(&format!("${n}"))).last().unwrap();
        let nulls = vec!["null"; last].join(", ");
        for statement in ["set plan_cache_mode = force_generic_plan", &format!("prepare page as {sql}")] {
            sqlx::raw_sql(AssertSqlSafe(statement.to_owned())).execute(&mut *connection).await.unwrap();
        }
        let explain = format!("explain (format json) execute page({nulls})");
        let explained: Value = sqlx::query_scalar(AssertSqlSafe(explain))
            .persistent(false)
            .fetch_one(&mut *connection)
            .await
            .unwrap();
        sqlx::raw_sql("deallocate page").execute(connection).await.unwrap();
        Plan::new(format!("{name}, generic"), &explained)
    }

    /// Asserts that the rows come from one index range within the scope, in the order of the page.
    pub fn assert_one_range(&self, table: &str, scope: &str) {
        let Plan { name, nodes, .. } = self;
        let sorts = nodes.iter().filter(|node| node.text("Node Type").contains("Sort"));
        assert!(sorts.map(Node::examined_rows).all(|rows| rows <= MAX_SORTED_ROWS), "{name} sorts: {self}");
        self.assert_read_by_index(table, scope);
    }

    /// Asserts that all rows come from index ranges within the scope.
    pub fn assert_read_by_index(&self, table: &str, scope: &str) {
        let Plan { name, nodes, .. } = self;
        let reads: Vec<_> = nodes.iter().filter(|node| node.text("Relation Name") == table).collect();
        assert!(!reads.is_empty(), "{name} reads nothing: {self}");
        for read in reads {
            assert!(read.text("Node Type").starts_with("Index"), "{name} uses no index: {self}");
            assert!(read.text("Index Cond").contains(scope), "{name} is not within {scope}: {self}");
        }
    }

    pub fn assert_examined(&self, table: &str, max_rows: i64) {
        let reads = self.nodes.iter().filter(|node| node.text("Relation Name") == table);
        let examined: f64 = reads.map(Node::examined_rows).sum();
        assert!(examined <= max_rows as f64, "{} examines {examined} rows: {self}", self.name);
    }
}

impl std::fmt::Display for Plan {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.nodes.iter().try_for_each(|node| {
            let mut node = node.0.clone();
            node.as_object_mut().unwrap().remove("Plans");
            writeln!(formatter, "{node}")
        })
    }
}

fn collect_page_nodes(node: &Value, is_page: bool, nodes: &mut Vec<Node>) {
    let is_page = is_page || node["Subplan Name"].as_str().is_some_and(|name| name.starts_with("CTE "));
    if is_page {
        nodes.push(Node(node.clone()));
    }
    for child in node["Plans"].as_array().into_iter().flatten() {
        collect_page_nodes(child, is_page, nodes);
    }
}

/// A list whose plans are checked.
pub struct ListPlans<'a, S> {
    pub pg: &'a PgPool,
    pub table: &'a str,
    pub scope: &'a str,
    pub statement: &'a dyn Fn(&PageRequest<S>) -> QueryBuilder<Postgres>,
}

impl<S: Copy + std::fmt::Debug> ListPlans<'_, S> {
    /// Checks a sort in both directions: the first page, a far one, and one among rows without a value.
    pub async fn check(&self, sort: S, far: [Option<KeysetPosition>; 2], nullable: bool) {
        let mut connection = self.pg.acquire().await.unwrap();
        for (direction, far) in DIRECTIONS.into_iter().zip(far) {
            // Before all rows without a value: their ids alone would be found in the primary key.
            let first = if direction == SortDirection::Asc { Uuid::nil() } else { Uuid::max() };
            let nulls = nullable.then_some(KeysetPosition { key: SortKey::Null, id: first });
            assert!(far.is_some(), "{sort:?} has a far page");
            let mut costs = Vec::new();
            for after in [None, far, nulls] {
                let name = format!("{} by {sort:?} {direction:?} after {after:?}", self.table);
                let page = PageRequest { after, ..first_page(sort, direction) };
                let mut query = (self.statement)(&page);
                let sql = query.sql().as_str().to_owned();
                let plan = Plan::run(self.pg, name, &mut query).await;
                plan.assert_one_range(self.table, self.scope);
                plan.assert_examined(self.table, LIMIT + 1);
                Plan::generic(&mut connection, &plan.name, &sql)
                    .await
                    .assert_one_range(self.table, self.scope);
                costs.push(plan.buffers);
            }
            assert!(
                costs[1] <= costs[0] * 1.5 + 20.0,
                "{} by {sort:?} {direction:?}: buffers {costs:?}",
                self.table
            );
        }
        connection.close().await.unwrap();
    }

    /// Checks how many rows are read for the first page of a filter.
    pub async fn check_filter(&self, filter: &str, sort: S, max_rows: i64) {
        for direction in DIRECTIONS {
            let mut query = (self.statement)(&first_page(sort, direction));
            let name = format!("{filter} by {sort:?} {direction:?}");
            Plan::run(self.pg, name, &mut query).await.assert_examined(self.table, max_rows);
        }
    }
}

fn first_page<S>(sort: S, direction: SortDirection) -> PageRequest<S> {
    PageRequest { sort, direction, after: None, offset: 0, limit: LIMIT, include_total: false }
}

/// The positions after 1,000 rows.
pub async fn far_positions<S: Copy, T>(
    sort: S,
    list: impl AsyncFn(PageRequest<S>) -> ListPage<T>,
) -> [Option<KeysetPosition>; 2] {
    let mut ends = [None, None];
    for (direction, end) in DIRECTIONS.into_iter().zip(&mut ends) {
        for _ in 0..5 {
            let page = PageRequest { after: end.take(), limit: 200, ..first_page(sort, direction) };
            *end = list(page).await.next;
        }
    }
    ends
}

#[tokio::test]
async fn lists_of_a_single_organization_read_index_ranges() {
    check(&PopulatedDatabase::create(FEW_THOUSAND, &[]).await).await;
}

#[tokio::test]
async fn lists_of_one_of_many_organizations_read_index_ranges() {
    check(&PopulatedDatabase::create(FEW_THOUSAND, &MANY).await).await;
}

/// Checks that every sort is one index range, and that filters read few rows per page.
async fn check(database: &PopulatedDatabase) {
    check_accounts_and_creators(database).await;
    check_videos(database).await;
    check_account_filters(database).await;
    check_video_filters(database).await;
}

async fn check_accounts_and_creators(database: &PopulatedDatabase) {
    let (pg, organization, readable) =
        (&database.pg, database.organization, &ReadablePlatforms::new(Platform::ALL));
    let filter = AccountFilter::default();
    let plans = ListPlans {
        pg,
        table: "accounts",
        scope: "organization_id = ",
        statement: &|page| accounts::list_query(organization, readable, &filter, page),
    };
    for sort in ACCOUNT_SORTS {
        let far = far_positions(sort, async |page| {
            accounts::list(pg, organization, readable, &filter, &page).await.unwrap()
        });
        plans.check(sort, far.await, sort == AccountSort::LastScrapeTime).await;
    }
    let sort = AccountSort::NextAttemptAt;
    let far = far_positions(sort, async |page| {
        accounts::list(pg, organization, readable, &filter, &page).await.unwrap()
    });
    ListPlans { table: "scrape_targets", ..plans }.check(sort, far.await, true).await;

    let filter = CreatorFilter::default();
    let plans = ListPlans {
        pg,
        table: "creators",
        scope: "organization_id = ",
        statement: &|page| creators::list_query(organization, &filter, page),
    };
    for sort in [CreatorSort::Name, CreatorSort::AddedAt] {
        let far =
            far_positions(sort, async |page| creators::list(pg, organization, &filter, &page).await.unwrap());
        plans.check(sort, far.await, false).await;
    }
}

async fn check_videos(database: &PopulatedDatabase) {
    let (pg, organization, readable) =
        (&database.pg, database.organization, &ReadablePlatforms::new(Platform::ALL));
    for (view, account_id, scope) in [
        (VideoType::AccountVideo, None, "organization_id = "),
        (VideoType::AccountVideo, Some(database.account), "account_id = parent"),
    ] {
        let filter = VideoFilter { account_id, ..VideoFilter::default() };
        let statement =
            |page: &PageRequest<VideoSort>| videos::list_query(organization, view, readable, &filter, page);
        let plans = ListPlans { pg, table: "videos", scope, statement: &statement };
        for sort in VIDEO_SORTS {
            let list = async |page: PageRequest<VideoSort>| {
                videos::list(pg, organization, view, readable, &filter, &page).await.unwrap()
            };
            plans.check(sort, far_positions(sort, list).await, sort == VideoSort::CreateTime).await;
        }
    }

    let (view, filter) = (VideoType::Video, VideoFilter::default());
    let plans = ListPlans {
        pg,
        table: "videos",
        scope: "organization_id = ",
        statement: &|page: &PageRequest<TrackedVideoSort>| {
            videos::list_query(organization, view, readable, &filter, page)
        },
    };
    for sort in VIDEO_SORTS.map(TrackedVideoSort::As).into_iter().chain([TrackedVideoSort::AddedAt]) {
        // There are fewer than 1,000 rows, so this is in their middle.
        let list = async |page: PageRequest<TrackedVideoSort>| {
            let page = PageRequest { limit: 100, ..page };
            videos::list(pg, organization, view, readable, &filter, &page).await.unwrap()
        };
        let nullable = matches!(sort, TrackedVideoSort::As(VideoSort::CreateTime));
        plans.check(sort, far_positions(sort, list).await, nullable).await;
    }
}

/// How many rows a page of a filter may read that many records match.
const MAX_FILTERED_ROWS: i64 = 20 * LIMIT;

async fn check_account_filters(database: &PopulatedDatabase) {
    let (pg, organization, readable) =
        (&database.pg, database.organization, &ReadablePlatforms::new(Platform::ALL));
    let creators: Vec<Uuid> =
        sqlx::query_scalar("select creator_id from accounts where organization_id = $1 limit 3")
            .bind(organization)
            .fetch_all(pg)
            .await
            .unwrap();
    let creator = creators[0];
    let all = AccountFilter::default;
    let category = |name: &str| AccountLabels { category: Some(name.to_owned()), metadata: Metadata::new() };
    let tag = AccountLabels { category: None, metadata: [("team".to_owned(), "7".to_owned())].into() };
    for (name, filter, max_rows) in [
        ("platform", AccountFilter { platform: Some(Platform::Instagram), ..all() }, MAX_FILTERED_ROWS),
        ("is_active", AccountFilter { is_active: Some(false), ..all() }, MAX_FILTERED_ROWS),
        ("frequent q", AccountFilter { q: Some("a1".to_owned()), ..all() }, MAX_FILTERED_ROWS),
        // Four accounts match; they are read twice where the sort value is nullable.
        ("category", AccountFilter { labels: category("category7"), ..all() }, 8),
        ("no category", AccountFilter { labels: category("none"), ..all() }, 0),
        ("creator", AccountFilter { creator_id: Some(vec![creator]), ..all() }, 2),
        ("three creators", AccountFilter { creator_id: Some(creators.clone()), ..all() }, 6),
        ("linked", AccountFilter { linked: Some(true), ..all() }, MAX_FILTERED_ROWS),
        ("status", AccountFilter { status: Some(vec![TrackingStatus::Active]), ..all() }, MAX_FILTERED_ROWS),
        ("metadata", AccountFilter { labels: tag, ..all() }, MAX_FILTERED_ROWS),
    ] {
        let statement =
            |page: &PageRequest<AccountSort>| accounts::list_query(organization, readable, &filter, page);
        let plans = ListPlans { pg, table: "accounts", scope: "", statement: &statement };
        for sort in [AccountSort::AddedAt, AccountSort::LastScrapeTime, AccountSort::ViewCount] {
            plans.check_filter(name, sort, max_rows).await;
        }
        // Other filters have an index, or, of few thousand accounts, joining all of them costs as much as the range.
        // Paused accounts have no next attempt: all others are read before them.
        if max_rows == MAX_FILTERED_ROWS && filter.q.is_none() && filter.is_active.is_none() {
            for table in ["scrape_targets", "accounts"] {
                let plans = ListPlans { table, ..plans };
                plans.check_filter(name, AccountSort::NextAttemptAt, max_rows).await;
            }
        }
    }
}

async fn check_video_filters(database: &PopulatedDatabase) {
    let (pg, organization, readable) =
        (&database.pg, database.organization, &ReadablePlatforms::new(Platform::ALL));
    let creator = sqlx::query_scalar("select creator_id from accounts where organization_id = $1 limit 1");
    let creator: Uuid = creator.bind(organization).fetch_one(pg).await.unwrap();
    let all = VideoFilter::default;
    // For a page of at most 50, the first 1,000 rows of the range are searched before the caption blocks.
    let scanned = 1_000;
    for (name, filter, max_rows) in [
        ("platform", VideoFilter { platform: Some(Platform::Instagram), ..all() }, MAX_FILTERED_ROWS),
        ("is_active", VideoFilter { is_active: Some(false), ..all() }, MAX_FILTERED_ROWS),
        ("creator", VideoFilter { creator_id: Some(creator), ..all() }, LIMIT + 1),
        ("frequent q", VideoFilter { q: Some("everythird".to_owned()), ..all() }, scanned),
        // Plus the matches: every hundredth row is 42, the least viewed are 21.
        ("rare q", VideoFilter { q: Some("everyhundredth".to_owned()), ..all() }, scanned + 42),
        ("clustered q", VideoFilter { q: Some("lastseen".to_owned()), ..all() }, scanned + 21),
        ("no q", VideoFilter { q: Some("ß😀%_".to_owned()), ..all() }, scanned),
    ] {
        let statement = |page: &PageRequest<VideoSort>| {
            videos::list_query(organization, VideoType::AccountVideo, readable, &filter, page)
        };
        let plans = ListPlans { pg, table: "videos", scope: "", statement: &statement };
        for sort in VIDEO_SORTS {
            plans.check_filter(name, sort, max_rows).await;
        }
    }
}
