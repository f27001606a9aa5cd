//! Query plans of the rankings' statements in Postgres, over a few thousand records.

use chrono::Days;
use harness::population::{PopulatedDatabase, Population};
use serde_json::Value;
use sqlx::postgres::PgArguments;
use sqlx::{Arguments, AssertSqlSafe, Execute, PgPool, Postgres, QueryBuilder};
use tidemark::model::account::AccountLabels;
use tidemark::model::platform::Platform;
use tidemark::model::readable::ReadablePlatforms;
use tidemark::model::tracking::TrackingStatus;
use tidemark::store::analytics::accounts::{
    self, COUNT_POSTS, RANKED_ACCOUNTS_SQL, RankingFilter, SubjectFilter,
};
use tidemark::store::analytics::benchmarks::{self, BenchmarkQuery};
use tidemark::store::analytics::{ages, creators};
use tidemark::store::records::accounts as records;
use tidemark::store::records::content;
use uuid::Uuid;

const POPULATION: Population = Population { accounts: 1_500, videos: 15_000, on_first_account: 0 };
/// So that the organization is a part of the tables.
const OTHERS: [Population; 2] = [Population { videos: 5_000, ..POPULATION }; 2];

/// The nodes of a plan: table or nothing, node type, and index or nothing.
async fn nodes(pg: &PgPool, sql: &str, arguments: PgArguments) -> Vec<[String; 3]> {
    let sql = format!("explain (format json) {sql}");
    let explained: Value =
        sqlx::query_scalar_with(AssertSqlSafe(sql), arguments).fetch_one(pg).await.unwrap();
    let (mut remaining, mut nodes) = (vec![&explained[0]["Plan"]], Vec::new());
    while let Some(node) = remaining.pop() {
        remaining.extend(node["Plans"].as_array().into_iter().flatten());
        nodes.push(
            ["Relation Name", "Node Type", "Index Name"]
                .map(|name| node[name].as_str().unwrap_or_default().to_owned()),
        );
    }
    nodes
}

/// The nodes of a plan that read tables.
async fn reads(pg: &PgPool, sql: &str, arguments: PgArguments) -> Vec<[String; 3]> {
    let mut reads = nodes(pg, sql, arguments).await;
    reads.retain(|[table, ..]| !table.is_empty());
    reads
}

/// The nodes of a query's plan that read tables.
async fn query_reads(pg: &PgPool, query: &mut QueryBuilder<Postgres>) -> Vec<[String; 3]> {
    let sql = query.sql().as_str().to_owned();
    let arguments = query.build().take_arguments().unwrap().unwrap();
    reads(pg, &sql, arguments).await
}

/// Asserts that tables are read by an index, or within a bitmap of one.
fn assert_indexed(reads: &[[String; 3]], tables: &[&str]) {
    for table in tables {
        assert!(reads.iter().any(|[read, ..]| read == table), "{table} is not read: {reads:?}");
    }
    let is_indexed = |node: &str| node.starts_with("Index") || node.starts_with("Bitmap");
    assert!(reads.iter().all(|[_, node, _]| is_indexed(node)), "{reads:?}");
}

async fn assert_creators_are_indexed(
    pg: &PgPool,
    organization: Uuid,
    creators: &[Uuid],
    labels: &AccountLabels,
) {
    let mut found = creators::find(organization, creators, labels);
    assert_indexed(&query_reads(pg, found.statement()).await, &["creators", "accounts"]);
    for platform in [None, Some(Platform::Tiktok)] {
        let mut listed = creators::list_with_subjects(organization, platform, labels);
        assert_indexed(&query_reads(pg, listed.statement()).await, &["creators", "accounts"]);
    }
}

#[tokio::test]
async fn statements_of_rankings_read_index_ranges() {
    let database = PopulatedDatabase::create(POPULATION, &OTHERS).await;
    let (pg, organization) = (&database.pg, database.organization);
    let accounts: Vec<(Uuid, i64)> =
        sqlx::query_as("select id, internal_id from accounts where organization_id = $1")
            .bind(organization)
            .fetch_all(pg)
            .await
            .unwrap();
    let creators: Vec<Uuid> = sqlx::query_scalar("select id from creators where organization_id = $1")
        .bind(organization)
        .fetch_all(pg)
        .await
        .unwrap();
    let subjects = |count| accounts[..count].iter().map(|(_, subject)| *subject).collect::<Vec<_>>();
    let page: Vec<_> = accounts[..100].iter().map(|(id, _)| *id).collect();
    for (sql, subjects, ids) in [
        (COUNT_POSTS, Some(subjects(10)), None),
        (COUNT_POSTS, Some(subjects(accounts.len())), None),
        (RANKED_ACCOUNTS_SQL, None, Some(page.clone())),
    ] {
        let mut arguments = PgArguments::default();
        arguments.add(organization).unwrap();
        if let Some(subjects) = subjects {
            arguments.add(subjects).unwrap();
        }
        if let Some(ids) = ids {
            arguments.add(ids).unwrap();
        }
        for days in [180, 90, 0] {
            arguments.add(harness::now() - Days::new(days)).unwrap();
        }
        let mut reads = reads(pg, sql, arguments).await;
        reads.retain(|[table, ..]| ["accounts", "videos"].contains(&table.as_str()));
        assert_indexed(&reads, &["accounts", "videos"]);
        let videos = reads.iter().find(|[table, ..]| table == "videos").unwrap();
        assert!(videos[2].starts_with("videos_of_account"), "{reads:?}");
    }
    let readable = ReadablePlatforms::new(Platform::ALL);
    let mut reads = query_reads(pg, &mut records::tracking_query(organization, &readable, &page)).await;
    reads.retain(|[table, ..]| ["accounts", "scrape_targets"].contains(&table.as_str()));
    assert_indexed(&reads, &["accounts", "scrape_targets"]);
    let category = AccountLabels { category: Some("category7".to_owned()), ..AccountLabels::default() };
    let tag = AccountLabels { metadata: [("team".to_owned(), "7".to_owned())].into(), ..category.clone() };
    let tag = AccountLabels { category: None, ..tag };
    for labels in [AccountLabels::default(), category.clone(), tag.clone()] {
        assert_creators_are_indexed(pg, organization, &creators[..100], &labels).await;
    }

    let accounts = [
        SubjectFilter::default(),
        SubjectFilter { platform: Some(Platform::Tiktok), ..SubjectFilter::default() },
        SubjectFilter { creator: Some(creators[0]), ..SubjectFilter::default() },
        SubjectFilter { labels: category.clone(), ..SubjectFilter::default() },
        SubjectFilter { labels: tag.clone(), ..SubjectFilter::default() },
    ];
    let by_status = RankingFilter { status: Some(vec![TrackingStatus::Failing]), ..RankingFilter::default() };
    let by_name = RankingFilter { q: Some("7".to_owned()), linked: Some(true), ..RankingFilter::default() };
    let filters = accounts.map(|accounts| RankingFilter { accounts, ..RankingFilter::default() });
    for filter in filters.into_iter().chain([by_status, by_name]) {
        let readable = ReadablePlatforms::new(Platform::ALL);
        let mut query = accounts::list_for_ranking(organization, &readable, &filter);
        let reads = query_reads(pg, query.statement()).await;
        let accounts: Vec<_> = reads.into_iter().filter(|[table, ..]| table == "accounts").collect();
        assert_indexed(&accounts, &["accounts"]);
    }

    let (all, some) = (records::AccountFilter::default, Some(vec![creators[0], creators[1]]));
    for (filter, account) in [
        (all(), None),
        (all(), Some(database.account)),
        (records::AccountFilter { creator_id: some, ..all() }, None),
        (records::AccountFilter { q: Some("7".to_owned()), ..all() }, None),
    ] {
        let readable = ReadablePlatforms::new(Platform::ALL);
        let mut query = records::named_query(organization, &readable, &filter, account);
        let reads = query_reads(pg, &mut query).await;
        let accounts: Vec<_> = reads.into_iter().filter(|[table, ..]| table == "accounts").collect();
        assert_indexed(&accounts, &["accounts"]);
    }
}

#[tokio::test]
async fn statements_of_ages_read_index_ranges() {
    let database = PopulatedDatabase::create(POPULATION, &OTHERS).await;
    let (pg, organization) = (&database.pg, database.organization);
    let videos: Vec<(Uuid, Option<Uuid>)> =
        sqlx::query_as("select id, account_id from videos where organization_id = $1 limit 100")
            .bind(organization)
            .fetch_all(pg)
            .await
            .unwrap();
    let ids: Vec<_> = videos.iter().map(|(id, _)| *id).collect();
    let account = videos.iter().find_map(|(_, account)| *account).unwrap();
    let last_posts = |media_type| {
        let complete_through = harness::now().date_naive();
        let query = BenchmarkQuery { organization, account, media_type, ages: &[7], complete_through };
        benchmarks::posts_query(&query, (harness::now(), Uuid::nil()), 100)
    };
    for (mut query, index) in [
        (content::identities_query(organization, &ids), "videos_by_id"),
        (last_posts(None), "videos_of_account"),
        (last_posts(Some("VIDEO")), "videos_of_account"),
    ] {
        let reads = query_reads(pg, &mut query).await;
        let videos: Vec<_> = reads.into_iter().filter(|[table, ..]| table == "videos").collect();
        assert_indexed(&videos, &["videos"]);
        assert!(videos.iter().all(|[_, _, name]| name == index), "{videos:?}");
    }
    assert_indexed(&query_reads(pg, ages::find(organization, &ids).statement()).await, &["videos"]);
}

#[tokio::test]
async fn last_posts_of_a_large_account_are_not_sorted() {
    let database = PopulatedDatabase::create(Population { on_first_account: 4, ..POPULATION }, &[]).await;
    let PopulatedDatabase { pg, organization, account } = &database;
    let observe = "update videos set tracked_since = (create_time at time zone 'UTC')::date";
    sqlx::query(observe).execute(pg).await.unwrap();
    database.vacuum().await;
    for media_type in [None, Some("video")] {
        let complete_through = harness::now().date_naive();
        let (organization, account) = (*organization, *account);
        let query = BenchmarkQuery { organization, account, media_type, ages: &[7], complete_through };
        let mut posts = benchmarks::posts_query(&query, (harness::now(), Uuid::nil()), 128);
        let sql = posts.sql().as_str().to_owned();
        let arguments = posts.build().take_arguments().unwrap().unwrap();
        let nodes = nodes(pg, &sql, arguments).await;
        assert!(nodes.iter().any(|[.., index]| index == "videos_of_account"), "{nodes:?}");
        assert!(nodes.iter().all(|[_, node, _]| !node.contains("Sort")), "{nodes:?}");
    }
}
