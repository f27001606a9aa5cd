//! Query plans of batches and refreshes: the records of a request are read by index, however many there are.

use harness::population::{Lines, PopulatedDatabase, Population};
use sqlx::AssertSqlSafe;
use tidemark::store::records::accounts::{self, change};
use tidemark::store::records::videos;
use tidemark::store::tracking::{leases, refreshes, targets};
use uuid::Uuid;

use super::paging_plans::{FEW_THOUSAND, MANY, SMALL};

#[tokio::test]
async fn batches_of_a_single_organization_are_read_by_indexes() {
    check(&[]).await;
}

#[tokio::test]
async fn batches_of_one_of_many_organizations_are_read_by_indexes() {
    check(&MANY).await;
}

async fn check(others: &[Population]) {
    let database = PopulatedDatabase::create(FEW_THOUSAND, others).await;
    let texts = |text: &str| vec![text.to_owned(); 20];
    let list = async |statement: &'static str| -> Vec<Uuid> {
        sqlx::query_scalar(statement).bind(database.organization).fetch_all(&database.pg).await.unwrap()
    };
    let accounts = list("select id from accounts where organization_id = $1 order by id limit 20").await;
    let videos =
        list("select id from videos where organization_id = $1 and is_tracked order by id limit 20").await;
    assert_eq!((accounts.len(), videos.len()), (20, 20));

    let plan = database.explain(accounts::FIND_TRACKED, |query| query.bind(texts("name"))).await;
    assert_reads_index(&plan, &["accounts"]);
    let plan = database
        .explain(videos::change::FIND, |query| query.bind("tiktok").bind(texts("7")).bind(texts("C")))
        .await;
    assert_reads_index(&plan, &["videos"]);
    let plan = database.explain(change::LOCK, |query| query.bind(accounts.clone())).await;
    assert_reads_index(&plan, &["accounts"]);
    let plan = database.explain(targets::SET_INTERVAL, |query| query.bind(accounts.clone()).bind(6)).await;
    assert_reads_index(&plan, &["scrape_targets"]);
    let plan = database.explain(refreshes::SELECT_ACCOUNTS, |query| query.bind(accounts.clone())).await;
    assert_reads_index(&plan, &["accounts", "scrape_targets"]);
    let plan = database.explain(refreshes::SELECT_VIDEOS, |query| query.bind(videos.clone())).await;
    assert_reads_index(&plan, &["videos", "scrape_targets"]);
    check_leases_of_refreshes(&database).await;
    // As before the first analyze.
    sqlx::raw_sql("delete from pg_statistic where starelid = 'scrape_targets'::regclass")
        .execute(&database.pg)
        .await
        .unwrap();
    let plan: Vec<String> =
        sqlx::query_scalar(AssertSqlSafe(format!("explain {}", refreshes::QUEUED_PLATFORMS)))
            .bind(["instagram", "tiktok"])
            .fetch_all(&database.pg)
            .await
            .unwrap();
    assert!(plan.iter().any(|line| line.contains("scrape_targets_refreshes")), "{plan:#?}");
}

/// While statistics do not know its organization, a batch reads that at most once, not once for each of its items.
#[tokio::test]
async fn batches_of_a_new_organization_are_not_joined() {
    let mut database = PopulatedDatabase::create(SMALL, &MANY).await;
    database.organization = database.insert_unknown(FEW_THOUSAND).await;
    let names: Vec<_> = (0..500).map(|n| format!("name.{n}")).collect();
    let plan = database.explain(accounts::FIND_TRACKED, |query| query.bind(names.clone())).await;
    assert!(plan.contains("on accounts") && !plan.contains("Nested Loop"), "{plan}");
    let bind = |query: Lines<'static>| query.bind("tiktok").bind(names).bind(Vec::<String>::new());
    let plan = database.explain(videos::change::FIND, bind).await;
    assert!(plan.contains("on videos") && !plan.contains("Nested Loop"), "{plan}");
}

/// Few refreshes among thousands of targets, whether or not statistics know of any.
async fn check_leases_of_refreshes(database: &PopulatedDatabase) {
    let queue = "update scrape_targets set refresh_requested_at = now() where ctid = any(array(
        select ctid from scrape_targets where enabled limit 30))";
    sqlx::raw_sql(queue).execute(&database.pg).await.unwrap();
    for is_analyzed in [false, true] {
        if is_analyzed {
            database.vacuum().await;
        }
        let bind = |query: Lines<'static>| {
            let (in_flight, kind) = (Vec::<Uuid>::new(), None::<String>);
            query.bind("tiktok").bind(in_flight).bind("45 s").bind(8_i64).bind(Uuid::nil()).bind(kind)
        };
        // The owner of the leases takes the place of the organization.
        let statement = leases::REFRESH_STATEMENT.replace("now() + $4", "now() + $4::text::interval");
        let plan = database.explain(statement, bind).await;
        assert_reads_index(&plan, &["scrape_targets"]);
        assert!(plan.matches("scrape_targets_refreshes").count() == 2, "analyzed {is_analyzed}: {plan}");
        assert!(!plan.contains("scrape_targets_organization"), "analyzed {is_analyzed}: {plan}");
    }
}

#[track_caller]
fn assert_reads_index(plan: &str, tables: &[&str]) {
    for table in tables {
        let by_index =
            plan.contains(&format!("on {table}")) && !plan.contains(&format!("Seq Scan on {table}"));
        assert!(by_index, "{table}: {plan}");
    }
}
