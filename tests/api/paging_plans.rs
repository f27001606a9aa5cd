//! How Postgres reads the lists: the statements that the store runs, explained over a few thousand records, with the
//! values bound and without (as after a statement has been used a few times).

use serde_json::Value;
use sqlx::{AssertSqlSafe, Execute, PgConnection, PgPool, Postgres, QueryBuilder};
use tidemark::model::platform::Platform;
use tidemark::model::video::VideoType;
use tidemark::store::postgres::keyset::{KeysetPosition, ListPage, PageRequest, SortDirection, SortKey};
use tidemark::store::records::accounts::{self, AccountFilter, AccountSort};
use tidemark::store::records::creators::{self, CreatorFilter, CreatorSort};
use tidemark::store::records::videos::{self, TrackedVideoSort, VideoFilter, VideoSort};
use uuid::Uuid;

use crate::harness::{TestApi, population::Population};

const LIMIT: i64 = 20;
/// A page and the row beyond it. They may be sorted when they are all, as those of one account are.
const PAGE: f64 = LIMIT as f64 + 1.0;
const FEW_THOUSAND: Population = Population { accounts: 2_000, videos: 4_200, on_first_account: 4 };
const DIRECTIONS: [SortDirection; 2] = [SortDirection::Asc, SortDirection::Desc];
const VIDEO_SORTS: [VideoSort; 4] =
    [VideoSort::CreateTime, VideoSort::ViewCount, VideoSort::LikeCount, VideoSort::PlayCount];
const ACCOUNT_SORTS: [AccountSort; 7] = [
    AccountSort::AddedAt,
    AccountSort::Username,
    AccountSort::LastScrapeTime,
    AccountSort::FollowerCount,
    AccountSort::ViewCount,
    AccountSort::LikeCount,
    AccountSort::PlayCount,
];

/// A node of a plan below a common table expression, where the page is chosen: what stands outside only reads it.
struct Node(Value);

impl Node {
    fn text(&self, name: &str) -> &str {
        self.0[name].as_str().unwrap_or_default()
    }

    fn count(&self, name: &str) -> f64 {
        self.0[name].as_f64().unwrap_or_default()
    }

    /// Rows that were read for this node, in all its loops.
    fn examined(&self) -> f64 {
        (self.count("Actual Rows") + self.count("Rows Removed by Filter")) * self.count("Actual Loops")
    }
}

/// A plan, with what it cost when it was run.
struct Plan {
    what: String,
    nodes: Vec<Node>,
    buffers: f64,
}

impl Plan {
    fn new(what: String, answer: &Value) -> Self {
        let root = &answer[0]["Plan"];
        let buffers =
            ["Shared Hit Blocks", "Shared Read Blocks"].iter().filter_map(|name| root[name].as_f64());
        let mut nodes = Vec::new();
        gather(root, false, &mut nodes);
        Plan { what, buffers: buffers.sum(), nodes }
    }

    /// Runs a statement with its values.
    async fn run(pg: &PgPool, what: String, query: &mut QueryBuilder<Postgres>) -> Self {
        let sql = format!("explain (analyze, buffers, format json) {}", query.sql().as_str());
        let arguments = query.build().take_arguments().unwrap().unwrap();
        let answer: Value =
            sqlx::query_scalar_with(AssertSqlSafe(sql), arguments).fetch_one(pg).await.unwrap();
        Plan::new(what, &answer)
    }

    /// Asks how a statement is read whatever its values are.
    async fn without_values(connection: &mut PgConnection, what: &str, sql: &str) -> Self {
        let last = (1..).take_while(|n| sql.contains(&format!("${n}"))).last().unwrap();
        let nulls = vec!["null"; last].join(", ");
        for statement in ["set plan_cache_mode = force_generic_plan", &format!("prepare page as {sql}")] {
            sqlx::raw_sql(AssertSqlSafe(statement.to_owned())).execute(&mut *connection).await.unwrap();
        }
        let explain = format!("explain (format json) execute page({nulls})");
        let answer: Value = sqlx::query_scalar(AssertSqlSafe(explain))
            .persistent(false)
            .fetch_one(&mut *connection)
            .await
            .unwrap();
        sqlx::raw_sql("deallocate page").execute(connection).await.unwrap();
        Plan::new(format!("{what}, without values"), &answer)
    }

    /// The rows of the list are found by an index range that the scope begins, in the order of the page.
    fn is_one_range(&self, table: &str, scope: &str) {
        let Plan { what, nodes, .. } = self;
        let sorts = nodes.iter().filter(|node| node.text("Node Type").contains("Sort"));
        assert!(sorts.map(Node::examined).all(|rows| rows <= PAGE), "{what} sorts: {self}");
        let reads: Vec<_> = nodes.iter().filter(|node| node.text("Relation Name") == table).collect();
        assert!(!reads.is_empty(), "{what} reads nothing: {self}");
        for read in reads {
            assert!(read.text("Node Type").starts_with("Index"), "{what} uses no index: {self}");
            assert!(read.text("Index Cond").contains(scope), "{what} is not within {scope}: {self}");
        }
    }

    fn examines(&self, table: &str, most: i64) {
        let reads = self.nodes.iter().filter(|node| node.text("Relation Name") == table);
        let examined: f64 = reads.map(Node::examined).sum();
        assert!(examined <= most as f64, "{} examines {examined} rows: {self}", self.what);
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

fn gather(node: &Value, chosen: bool, nodes: &mut Vec<Node>) {
    let chosen = chosen || node["Subplan Name"].as_str().is_some_and(|name| name.starts_with("CTE "));
    if chosen {
        nodes.push(Node(node.clone()));
    }
    for child in node["Plans"].as_array().into_iter().flatten() {
        gather(child, chosen, nodes);
    }
}

/// A list whose statements are looked at.
struct Subject<'a, S> {
    pg: &'a PgPool,
    table: &'a str,
    scope: &'a str,
    statement: &'a dyn Fn(&PageRequest<S>) -> QueryBuilder<Postgres>,
}

impl<S: Copy + std::fmt::Debug> Subject<'_, S> {
    /// Looks at a sort in both directions: its first page, a far one, and one among the rows without a sort value.
    async fn check(&self, sort: S, far: [Option<KeysetPosition>; 2], nullable: bool) {
        let mut connection = self.pg.acquire().await.unwrap();
        for (direction, far) in DIRECTIONS.into_iter().zip(far) {
            let nulls = nullable.then(|| KeysetPosition { key: SortKey::Null, id: Uuid::nil() });
            assert!(far.is_some(), "{sort:?} has a far page");
            let mut costs = Vec::new();
            for after in [None, far, nulls] {
                let what = format!("{} by {sort:?} {direction:?} after {after:?}", self.table);
                let page = PageRequest { after, ..first(sort, direction) };
                let mut query = (self.statement)(&page);
                let sql = query.sql().as_str().to_owned();
                let plan = Plan::run(self.pg, what, &mut query).await;
                plan.is_one_range(self.table, self.scope);
                plan.examines(self.table, LIMIT + 1);
                Plan::without_values(&mut connection, &plan.what, &sql)
                    .await
                    .is_one_range(self.table, self.scope);
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

    /// Looks at what is read for the page when only some rows match.
    async fn examines(&self, what: &str, sort: S, most: i64) {
        for direction in DIRECTIONS {
            let mut query = (self.statement)(&first(sort, direction));
            let what = format!("{what} by {sort:?} {direction:?}");
            Plan::run(self.pg, what, &mut query).await.examines(self.table, most);
        }
    }
}

fn first<S>(sort: S, direction: SortDirection) -> PageRequest<S> {
    PageRequest { sort, direction, after: None, offset: 0, limit: LIMIT, include_total: false }
}

/// Where the next page begins after 1,000 rows.
async fn far<S: Copy, T>(
    sort: S,
    list: impl AsyncFn(PageRequest<S>) -> ListPage<T>,
) -> [Option<KeysetPosition>; 2] {
    let mut ends = [None, None];
    for (direction, end) in DIRECTIONS.into_iter().zip(&mut ends) {
        for _ in 0..5 {
            let page = PageRequest { after: end.take(), limit: 200, ..first(sort, direction) };
            *end = list(page).await.next;
        }
    }
    ends
}

#[tokio::test]
async fn every_sort_of_every_list_is_one_range_of_an_index() {
    let api = TestApi::start().await;
    let (pg, organization, readable) = (api.pg(), api.organization.id, &api.app.readable);
    let account = FEW_THOUSAND.insert(pg, organization).await;

    let filter = AccountFilter::default();
    let subject = Subject {
        pg,
        table: "accounts",
        scope: "organization_id = ",
        statement: &|page| accounts::list_query(organization, readable, &filter, page),
    };
    for sort in ACCOUNT_SORTS {
        let far =
            far(sort, async |page| accounts::list(pg, organization, readable, &filter, &page).await.unwrap());
        subject.check(sort, far.await, sort == AccountSort::LastScrapeTime).await;
    }

    let filter = CreatorFilter::default();
    let subject = Subject {
        pg,
        table: "creators",
        scope: "organization_id = ",
        statement: &|page| creators::list_query(organization, &filter, page),
    };
    for sort in [CreatorSort::Name, CreatorSort::AddedAt] {
        let far = far(sort, async |page| creators::list(pg, organization, &filter, &page).await.unwrap());
        subject.check(sort, far.await, false).await;
    }

    for (view, account_id, scope) in [
        (VideoType::AccountVideo, None, "organization_id = "),
        (VideoType::AccountVideo, Some(account), "account_id = parent"),
    ] {
        let filter = VideoFilter { account_id, ..VideoFilter::default() };
        let statement =
            |page: &PageRequest<VideoSort>| videos::list_query(organization, view, readable, &filter, page);
        let subject = Subject { pg, table: "videos", scope, statement: &statement };
        for sort in VIDEO_SORTS {
            let list = async |page: PageRequest<VideoSort>| {
                videos::list(pg, organization, view, readable, &filter, &page).await.unwrap()
            };
            subject.check(sort, far(sort, list).await, sort == VideoSort::CreateTime).await;
        }
    }

    let (view, filter) = (VideoType::Video, VideoFilter::default());
    let subject = Subject {
        pg,
        table: "videos",
        scope: "organization_id = ",
        statement: &|page: &PageRequest<TrackedVideoSort>| {
            videos::list_query(organization, view, readable, &filter, page)
        },
    };
    for sort in VIDEO_SORTS.map(TrackedVideoSort::As).into_iter().chain([TrackedVideoSort::AddedAt]) {
        // Of these there are fewer than a thousand: a page in their midst will do.
        let list = async |page: PageRequest<TrackedVideoSort>| {
            let page = PageRequest { limit: 100, ..page };
            videos::list(pg, organization, view, readable, &filter, &page).await.unwrap()
        };
        let nullable = matches!(sort, TrackedVideoSort::As(VideoSort::CreateTime));
        subject.check(sort, far(sort, list).await, nullable).await;
    }
}

#[tokio::test]
async fn filters_look_at_few_rows_for_a_page() {
    let api = TestApi::start().await;
    let (pg, organization, readable) = (api.pg(), api.organization.id, &api.app.readable);
    FEW_THOUSAND.insert(pg, organization).await;
    let most = 20 * LIMIT;

    let creator: Uuid =
        sqlx::query_scalar("select creator_id from accounts where organization_id = $1 limit 1")
            .bind(organization)
            .fetch_one(pg)
            .await
            .unwrap();
    let all = AccountFilter::default;
    for (what, filter, most) in [
        ("platform", AccountFilter { platform: Some(Platform::Instagram), ..all() }, most),
        ("is_active", AccountFilter { is_active: Some(false), ..all() }, most),
        ("a frequent q", AccountFilter { q: Some("a1".to_owned()), ..all() }, most),
        // Four accounts have it; they are looked at twice where the sort value may be missing.
        ("category", AccountFilter { category: Some("category7".to_owned()), ..all() }, 8),
        ("no category", AccountFilter { category: Some("none".to_owned()), ..all() }, 0),
        ("creator", AccountFilter { creator_id: Some(creator), ..all() }, 2),
    ] {
        let statement =
            |page: &PageRequest<AccountSort>| accounts::list_query(organization, readable, &filter, page);
        let subject = Subject { pg, table: "accounts", scope: "", statement: &statement };
        for sort in [AccountSort::AddedAt, AccountSort::LastScrapeTime, AccountSort::ViewCount] {
            subject.examines(what, sort, most).await;
        }
    }

    let all = VideoFilter::default;
    // The beginning of the range, in which a text is looked for first, is 1,000 rows for a page of at most 50.
    let beginning = 1_000;
    for (what, filter, most) in [
        ("platform", VideoFilter { platform: Some(Platform::Instagram), ..all() }, most),
        ("is_active", VideoFilter { is_active: Some(false), ..all() }, most),
        ("creator", VideoFilter { creator_id: Some(creator), ..all() }, LIMIT + 1),
        ("a frequent q", VideoFilter { q: Some("everythird".to_owned()), ..all() }, beginning),
        // Beside the beginning those that match: 42 are in every hundredth place, 21 are the least seen.
        ("a rare q", VideoFilter { q: Some("everyhundredth".to_owned()), ..all() }, beginning + 42),
        ("a clustered q", VideoFilter { q: Some("lastseen".to_owned()), ..all() }, beginning + 21),
        ("no q", VideoFilter { q: Some("ß😀%_".to_owned()), ..all() }, beginning),
    ] {
        let statement = |page: &PageRequest<VideoSort>| {
            videos::list_query(organization, VideoType::AccountVideo, readable, &filter, page)
        };
        let subject = Subject { pg, table: "videos", scope: "", statement: &statement };
        for sort in VIDEO_SORTS {
            subject.examines(what, sort, most).await;
        }
    }
}
