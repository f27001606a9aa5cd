//! Query plans of content: every sort is one index range, and other filters read a part of it.

use sqlx::{AssertSqlSafe, Execute, PgPool, Postgres, QueryBuilder};
use tidemark::model::content::ContentKind;
use tidemark::model::date_or_time::DateOrTime;
use tidemark::model::platform::Platform;
use tidemark::store::postgres::keyset::PageRequest;
use tidemark::store::records::content::{self, Candidate, CategoryScope, ContentFilter, ContentSort};
use tidemark::store::records::videos::VideoSort;
use uuid::Uuid;

use super::paging_plans::{FEW_THOUSAND, LIMIT, ListPlans, far_positions};
use crate::harness::TestApi;

const BY_VIEWS: ContentSort = ContentSort::As(VideoSort::ViewCount);
const BY_CREATE_TIME: ContentSort = ContentSort::As(VideoSort::CreateTime);
const SORTS: [ContentSort; 5] = [
    ContentSort::AddedAt,
    BY_CREATE_TIME,
    BY_VIEWS,
    ContentSort::As(VideoSort::LikeCount),
    ContentSort::As(VideoSort::PlayCount),
];

/// Inserts videos, a tenth of which are not on an account. Returns the first account.
async fn insert_content(pg: &PgPool, organization: Uuid) -> Uuid {
    let account = FEW_THOUSAND.insert(pg, organization).await;
    sqlx::query(
        "update videos set account_id = null where organization_id = $1 and is_tracked and not is_active",
    )
    .bind(organization)
    .execute(pg)
    .await
    .unwrap();
    sqlx::raw_sql("analyze videos").execute(pg).await.unwrap();
    account
}

#[tokio::test]
async fn every_content_sort_is_one_index_range() {
    let api = TestApi::start().await;
    let (pg, organization, readable) = (api.pg(), api.organization.id, &api.app.readable);
    let account = insert_content(pg, organization).await;
    for (account_id, scope) in [(None, "organization_id = "), (Some(account), "account_id = parent")] {
        let filter = ContentFilter { account_id, ..ContentFilter::default() };
        let statement = |page: &PageRequest<ContentSort>| {
            content::list_query(organization, readable, &filter, CategoryScope::Accounts, page)
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

#[tokio::test]
async fn content_filters_read_few_rows_per_page() {
    let api = TestApi::start().await;
    let (pg, organization, readable) = (api.pg(), api.organization.id, &api.app.readable);
    insert_content(pg, organization).await;
    let all = ContentFilter::default;
    // One day of 50, with up to 85 videos.
    let day = sqlx::query_scalar(
        "select (min(create_time) at time zone 'UTC')::date + 9 from videos where organization_id = $1",
    );
    let day = DateOrTime::Date(day.bind(organization).fetch_one(pg).await.unwrap());
    let (few, part) = (LIMIT + 1, 20 * LIMIT);
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
        ("category", ContentFilter { category: Some("category7".to_owned()), ..all() }, &SORTS, 80),
        ("no category", ContentFilter { category: Some("none".to_owned()), ..all() }, &SORTS, 0),
        (
            "day",
            ContentFilter { posted_after: Some(day), posted_before: Some(day), ..all() },
            &SORTS,
            // The null part of the range is read, too.
            100,
        ),
        ("days", ContentFilter { posted_after: Some(day), ..all() }, &[BY_CREATE_TIME], few),
    ] {
        let statement = |page: &PageRequest<ContentSort>| {
            content::list_query(organization, readable, &filter, CategoryScope::Accounts, page)
        };
        let plans = ListPlans { pg, table: "videos", scope: "", statement: &statement };
        for sort in sorts {
            plans.check_filter(name, *sort, max_rows).await;
        }
    }
}

#[tokio::test]
async fn content_by_id_is_one_index_range() {
    let api = TestApi::start().await;
    let (pg, organization) = (api.pg(), api.organization.id);
    insert_content(pg, organization).await;
    let filter = ContentFilter::default();
    let first = content::list_by_id(pg, organization, &filter, None, 1_000).await.unwrap();
    for after in [None, first.last().map(|video| video.id)] {
        let mut query = content::list_by_id_query(organization, &filter, after, LIMIT);
        let plan = explain(pg, &mut query).await;
        assert!(plan.contains("videos_by_id") && !plan.contains("Sort"), "after {after:?}: {plan}");
    }
}

#[tokio::test]
async fn matching_content_is_found_by_internal_id() {
    let api = TestApi::start().await;
    let (pg, organization) = (api.pg(), api.organization.id);
    insert_content(pg, organization).await;
    let all = ContentFilter::default;
    let found = content::list_matching(pg, organization, &all(), 100).await.unwrap();
    let candidates: Vec<_> = found.into_iter().map(|video| Candidate::new(video, 1)).collect();
    for filter in [
        all(),
        ContentFilter { category: Some("category7".to_owned()), ..all() },
        ContentFilter { platform: Some(Platform::Tiktok), q: Some("dance".to_owned()), ..all() },
    ] {
        let mut query = content::candidates_query(organization, &filter, &candidates, None, LIMIT);
        let plan = explain(pg, &mut query).await;
        assert!(plan.contains("videos_internal_id_key"), "{filter:?}: {plan}");
    }
}

async fn explain(pg: &PgPool, query: &mut QueryBuilder<Postgres>) -> String {
    let sql = format!("explain {}", query.sql().as_str());
    let arguments = query.build().take_arguments().unwrap().unwrap();
    let lines: Vec<String> =
        sqlx::query_scalar_with(AssertSqlSafe(sql), arguments).fetch_all(pg).await.unwrap();
    lines.join("\n")
}
