//! Query plans of content: every sort is one index range, and other filters read a part of it.

use std::collections::BTreeSet;

use harness::population::{PopulatedDatabase, Population};
use sqlx::{AssertSqlSafe, Execute, PgPool, Postgres, QueryBuilder};
use tidemark::model::account::AccountLabels;
use tidemark::model::content::ContentKind;
use tidemark::model::date_or_time::DateOrTime;
use tidemark::model::platform::Platform;
use tidemark::model::readable::ReadablePlatforms;
use tidemark::store::postgres::keyset::{KeysetPosition, PageRequest, SortDirection, SortKey};
use tidemark::store::records::content::{
    self, Candidate, ContentFilter, ContentReader, ContentRows, ContentSort, LabelScope,
};
use tidemark::store::records::videos::VideoSort;
use tidemark::store::tracking::target_status;
use uuid::Uuid;

use super::paging_plans::{FEW_THOUSAND, LIMIT, ListPlans, MANY, Plan, SMALL, far_positions};

const BY_VIEWS: ContentSort = ContentSort::As(VideoSort::ViewCount);
const BY_CREATE_TIME: ContentSort = ContentSort::As(VideoSort::CreateTime);
const SORTS: [ContentSort; 5] = [
    ContentSort::AddedAt,
    BY_CREATE_TIME,
    BY_VIEWS,
    ContentSort::As(VideoSort::LikeCount),
    ContentSort::As(VideoSort::PlayCount),
];

fn category(name: &str) -> AccountLabels {
    AccountLabels { category: Some(name.to_owned()), ..AccountLabels::default() }
}

#[tokio::test]
async fn content_of_a_single_organization_is_read_by_indexes() {
    check(&[]).await;
}

#[tokio::test]
async fn content_of_one_of_many_organizations_is_read_by_indexes() {
    check(&MANY).await;
}

/// Checks all statements over videos a tenth of which are not on an account.
async fn check(others: &[Population]) {
    let database = PopulatedDatabase::create(FEW_THOUSAND, others).await;
    let sql = "update videos set account_id = null where is_tracked and not is_active";
    sqlx::query(sql).execute(&database.pg).await.unwrap();
    database.vacuum().await;
    check_sorts(&database).await;
    check_filters(&database).await;
    check_list_by_id(&database).await;
    check_candidates(&database).await;
    check_rows(&database).await;
}

async fn check_sorts(database: &PopulatedDatabase) {
    let (pg, organization, readable) =
        (&database.pg, database.organization, &ReadablePlatforms::new(Platform::ALL));
    for (account_id, scope) in [(None, "organization_id = "), (Some(database.account), "account_id = parent")]
    {
        let filter = ContentFilter { account_id, ..ContentFilter::default() };
        let statement = |page: &PageRequest<ContentSort>| {
            content::list_query(organization, readable, &filter, LabelScope::Accounts, page)
        };
        let plans = ListPlans { pg, table: "videos", scope, statement: &statement };
        for sort in SORTS {
            let list = async |page: PageRequest<ContentSort>| {
                content::list(pg, organization, readable, &filter, &page).await.unwrap()
            };
            plans.check(sort, far_positions(sort, list).await, sort == BY_CREATE_TIME).await;
        }
    }
}

async fn check_filters(database: &PopulatedDatabase) {
    let (pg, organization, readable) =
        (&database.pg, database.organization, &ReadablePlatforms::new(Platform::ALL));
    let all = ContentFilter::default;
    // One day of 50, with up to 85 videos.
    let day = sqlx::query_scalar(
        "select (min(create_time) at time zone 'UTC')::date + 9 from videos where organization_id = $1",
    );
    let day = DateOrTime::Date(day.bind(organization).fetch_one(pg).await.unwrap());
    let (few, part) = (LIMIT + 1, 20 * LIMIT);
    // For a page of at most 50, the first 1,000 rows of the range are searched before the index on hashtags.
    let scanned = 1_000;
    let tagged = |tag: &str| ContentFilter { hashtag: Some(vec![tag.to_owned()]), ..all() };
    for (name, filter, sorts, max_rows) in [
        ("platform", ContentFilter { platform: Some(Platform::Instagram), ..all() }, &SORTS[..], part),
        ("is_active", ContentFilter { is_active: Some(false), ..all() }, &SORTS, part),
        ("is_unavailable", ContentFilter { is_unavailable: Some(false), ..all() }, &SORTS, few),
        ("discovered", ContentFilter { kind: Some(ContentKind::Discovered), ..all() }, &SORTS, part),
        ("tracked", ContentFilter { kind: Some(ContentKind::Tracked), ..all() }, &SORTS[1..], few),
        (
            "tracked by added_at",
            ContentFilter { kind: Some(ContentKind::Tracked), ..all() },
            &SORTS[..1],
            part,
        ),
        ("media_type", ContentFilter { media_type: Some(vec!["video".to_owned()]), ..all() }, &SORTS, few),
        ("views", ContentFilter { min_views: Some(4_150), ..all() }, &[BY_VIEWS], few),
        // Nine videos of each of four accounts at most; they are read twice where the sort value is nullable.
        ("category", ContentFilter { labels: category("category7"), ..all() }, &SORTS, 80),
        ("no category", ContentFilter { labels: category("none"), ..all() }, &SORTS, 0),
        (
            "day",
            ContentFilter { posted_after: Some(day), posted_before: Some(day), ..all() },
            &SORTS,
            // The null part of the range is read, too.
            100,
        ),
        ("days", ContentFilter { posted_after: Some(day), ..all() }, &[BY_CREATE_TIME], few),
        ("frequent hashtag", tagged("frequent"), &SORTS, scanned),
        ("rare hashtag", tagged("rare"), &SORTS, scanned + 5),
        ("no hashtag", tagged("none"), &SORTS, scanned),
    ] {
        let statement = |page: &PageRequest<ContentSort>| {
            content::list_query(organization, readable, &filter, LabelScope::Accounts, page)
        };
        let plans = ListPlans { pg, table: "videos", scope: "", statement: &statement };
        for sort in sorts {
            plans.check_filter(name, *sort, max_rows).await;
        }
    }
}

async fn check_list_by_id(PopulatedDatabase { pg, organization, .. }: &PopulatedDatabase) {
    let filter = ContentFilter::default();
    let first = content::list_by_id(pg, *organization, &filter, None, 1_000).await.unwrap();
    for after in [None, first.last().map(|video| video.id)] {
        let mut query = content::list_by_id_query(*organization, &filter, after, LIMIT);
        let plan = explain(pg, &mut query).await;
        assert!(plan.contains("videos_by_id") && !plan.contains("Sort"), "after {after:?}: {plan}");
    }
}

/// The rows of an export: index ranges of each account, and of the videos without one.
async fn check_rows(database: &PopulatedDatabase) {
    let PopulatedDatabase { pg, organization, account, .. } = database;
    let accounts: Vec<Uuid> =
        sqlx::query_scalar("select id from accounts where organization_id = $1 and id <> $2 limit 100")
            .bind(organization)
            .bind(account)
            .fetch_all(pg)
            .await
            .unwrap();
    for (rows, scope) in [
        (ContentRows::OnAccounts(vec![*account]), "account_id = parent"),
        (ContentRows::OnAccounts(accounts), "account_id = parent"),
        (ContentRows::WithoutAccount, "organization_id = "),
    ] {
        for after in [None, Some(KeysetPosition { key: SortKey::Time(harness::now()), id: Uuid::nil() })] {
            let (sort, direction) = (&rows, SortDirection::Asc);
            let page = PageRequest { sort, direction, after, offset: 0, limit: LIMIT, include_total: false };
            let mut query = content::scan_query(*organization, &page);
            let plan = Plan::run(pg, format!("{rows:?} after {:?}", page.after), &mut query).await;
            plan.assert_read_by_index("videos", scope);
            plan.assert_examined("videos", 100 * (LIMIT + 1));
        }
    }
    check_batches(database).await;
}

/// Checks that a batch looks at a bounded number of videos, also where none match.
async fn check_batches(PopulatedDatabase { pg, organization, .. }: &PopulatedDatabase) {
    let videos = async |condition: &str| -> i64 {
        let sql = format!("select count(*) from videos where organization_id = $1 and {condition}");
        sqlx::query_scalar(AssertSqlSafe(sql)).bind(organization).fetch_one(pg).await.unwrap()
    };
    let individual = videos("is_tracked").await;
    assert!(individual > 10 * LIMIT && videos("is_tracked and account_id is null").await < individual);
    for (min_views, expected) in [(None, videos("true").await), (Some(i64::MAX), 0)] {
        let filter = ContentFilter { min_views, ..ContentFilter::default() };
        let mut reader = ContentReader::open(pg, *organization, filter).await.unwrap();
        let (mut found, mut batches) = (BTreeSet::new(), 0);
        while let Some(rows) = reader.next(pg, LIMIT).await.unwrap() {
            assert!(rows.len() as i64 <= LIMIT);
            found.extend(rows.iter().map(|row| row.id));
            batches += 1;
        }
        assert_eq!(found.len() as i64, expected, "{min_views:?}");
        assert!(batches >= videos("account_id is not null").await / LIMIT + individual / LIMIT, "{batches}");
    }
}

async fn check_candidates(PopulatedDatabase { pg, organization, .. }: &PopulatedDatabase) {
    let all = ContentFilter::default;
    let found = content::list_matching(pg, *organization, &all(), 100).await.unwrap();
    let candidates: Vec<_> = found.into_iter().map(|video| Candidate::new(video, 1)).collect();
    for filter in [
        all(),
        ContentFilter { labels: category("category7"), ..all() },
        ContentFilter { platform: Some(Platform::Tiktok), q: Some("dance".to_owned()), ..all() },
    ] {
        let mut query = content::candidates_query(*organization, &filter, &candidates, None, LIMIT);
        let plan = explain(pg, &mut query).await;
        assert!(plan.contains("videos_internal_id_key"), "{filter:?}: {plan}");
    }
}

/// Right after an import, the planner expects no records of the organization.
#[tokio::test]
async fn new_records_are_read_by_their_ids() {
    let database = PopulatedDatabase::create(SMALL, &MANY).await;
    let (pg, organization) = (&database.pg, database.insert_unknown(FEW_THOUSAND).await);
    let all = ContentFilter::default();
    let videos = content::list_matching(pg, organization, &all, 4_000).await.unwrap();
    let ids: Vec<_> = videos.iter().map(|video| video.id).take(2_000).collect();
    let candidates: Vec<_> = videos.into_iter().map(|video| Candidate::new(video, 1)).collect();
    for filter in [
        all,
        ContentFilter { kind: Some(ContentKind::Discovered), ..ContentFilter::default() },
        ContentFilter { labels: category("category7"), ..ContentFilter::default() },
    ] {
        let mut query = content::candidates_query(organization, &filter, &candidates, None, LIMIT);
        let plan = explain(pg, &mut query).await;
        assert!(plan.contains("videos_internal_id_key"), "{filter:?}: {plan}");
        let mut query = content::matching_query(organization, &filter, &ContentRows::WithoutAccount, &ids);
        let plan = explain(pg, &mut query).await;
        assert!(plan.contains("videos_pkey"), "{filter:?}: {plan}");
    }
    let accounts: Vec<Uuid> =
        sqlx::query_scalar("select id from accounts where organization_id = $1 limit 1000")
            .bind(organization)
            .fetch_all(pg)
            .await
            .unwrap();
    let plan: Vec<String> = sqlx::query_scalar(AssertSqlSafe(format!("explain {}", target_status::SELECT)))
        .bind(organization)
        .bind(accounts)
        .fetch_all(pg)
        .await
        .unwrap();
    assert!(plan.iter().any(|line| line.contains("scrape_targets_pkey")), "{plan:#?}");
}

async fn explain(pg: &PgPool, query: &mut QueryBuilder<Postgres>) -> String {
    let sql = format!("explain {}", query.sql().as_str());
    let arguments = query.build().take_arguments().unwrap().unwrap();
    let lines: Vec<String> =
        sqlx::query_scalar_with(AssertSqlSafe(sql), arguments).fetch_all(pg).await.unwrap();
    lines.join("\n")
}
