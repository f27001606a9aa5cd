//! Figures of collections of the biggest organization, by rule and by hand, beside plain SQL over a table of their posts.

use clickhouse::Client;
use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::latency::WARMUP_ROUNDS;
use crate::layout::{self, Account};
use crate::queries::QueryGenerator;
use crate::targets::{Targets, Times};

/// About so many posts; those by hand end at the most marks that a collection takes.
const SIZES: [usize; 3] = [50, 5_000, 100_000];
const MAX_MARKS: usize = 50_000;
const MARKS_PER_REQUEST: usize = 500;

/// Endpoints about a collection, and what plain SQL calls the same.
const QUESTIONS: [(&str, &str); 7] = [
    ("overview", include_str!("sql/collection_overview.sql")),
    ("timeseries", include_str!("sql/collection_timeseries.sql")),
    ("accounts", include_str!("sql/collection_accounts.sql")),
    ("creators", include_str!("sql/collection_accounts.sql")),
    ("payouts", include_str!("sql/collection_accounts.sql")),
    ("content/top", include_str!("sql/collection_content.sql")),
    ("content/hashtags", include_str!("sql/collection_content.sql")),
];

fn path(question: &str, collection: &str) -> String {
    if question.starts_with("content/") {
        return format!("/v2/{question}?collection_id={collection}&");
    }
    format!("/v2/collections/{collection}/{question}?")
}

/// A collection with posts of the biggest organization.
struct Collection {
    name: String,
    id: String,
    posts: usize,
}

/// Prints a table row for each question and collection.
pub async fn measure(
    targets: &Targets,
    generator: &mut QueryGenerator<'_>,
    clickhouse: &Client,
    rounds: usize,
) {
    let collections = create(targets, generator, clickhouse).await;
    println!(
        "\n| Collection | Posts | Question | API p50 | p99 | SQL p50 | p99 | ratio |\n|---|---|---|---|---|---|---|---|"
    );
    for collection in &collections {
        for (question, sql_text) in QUESTIONS {
            let (mut api, mut sql) = (Times::default(), Times::default());
            for round in 0..rounds + WARMUP_ROUNDS {
                let window = generator.collection_window();
                let request = path(question, &collection.id) + &window.dates;
                let (took, _) = targets.api(&request, None).await.unwrap();
                let response = targets.sql(&window.query(sql_text, &collection.name)).await.unwrap();
                if round >= WARMUP_ROUNDS {
                    api.add(took);
                    sql.add(response.took);
                }
            }
            println!(
                "| {} | {} | {} | {:.1} | {:.1} | {:.1} | {:.1} | {:.2} |",
                collection.name,
                collection.posts,
                question,
                api.percentile(50),
                api.percentile(99),
                sql.percentile(50),
                sql.percentile(99),
                api.percentile(50) / sql.percentile(50),
            );
        }
    }
}

/// Creates collections of all sizes, by rule and by hand, and the table of their posts for plain SQL.
async fn create(
    targets: &Targets,
    generator: &mut QueryGenerator<'_>,
    clickhouse: &Client,
) -> Vec<Collection> {
    let table =
        "CREATE OR REPLACE TABLE bench_members (collection String, subject_id UInt64, video_id UInt64)
                 ENGINE = MergeTree ORDER BY (collection, subject_id, video_id)";
    clickhouse.query(table).execute().await.unwrap();
    let mut collections = Vec::new();
    for size in SIZES {
        let accounts = generator.accounts_with(size);
        let ids: Vec<_> = accounts.iter().map(|account| layout::account_id(account.subject)).collect();
        let collection = Collection {
            name: format!("rule, {size}"),
            id: create_collection(targets, json!({ "account_ids": ids })).await,
            posts: accounts.iter().map(|account| account.videos as usize).sum(),
        };
        list_posts_of(clickhouse, &collection.name, &accounts).await;
        collections.push(collection);

        let videos = generator.distinct_videos(size.min(MAX_MARKS));
        let id = create_collection(targets, Value::Null).await;
        for marked in videos.chunks(MARKS_PER_REQUEST) {
            let ids: Vec<_> = marked.iter().map(|(_, video)| layout::video_id(*video)).collect();
            let body = json!({"video_ids": ids, "state": "included"});
            send(targets, &format!("/v2/collections/{id}/videos"), body).await;
        }
        let name = format!("by hand, {}", videos.len());
        for listed in videos.chunks(5_000) {
            let rows: Vec<_> =
                listed.iter().map(|(subject, video)| format!("('{name}',{subject},{video})")).collect();
            let insert = format!("INSERT INTO bench_members VALUES {}", rows.join(","));
            clickhouse.query(&insert).execute().await.unwrap();
        }
        collections.push(Collection { name, id, posts: videos.len() });
    }
    collections
}

async fn list_posts_of(clickhouse: &Client, name: &str, accounts: &[Account]) {
    for Account { subject, first_video, videos, .. } in accounts {
        let insert = format!(
            "INSERT INTO bench_members SELECT '{name}', {subject}, number FROM numbers({first_video}, {videos})"
        );
        clickhouse.query(&insert).execute().await.unwrap();
    }
}

async fn create_collection(targets: &Targets, rule: Value) -> String {
    let payout = json!({"currency": "EUR", "per_thousand_views": "2.5"});
    let body = json!({"name": Uuid::now_v7(), "rule": rule, "payout": payout});
    send(targets, "/v2/collections", body).await["data"]["id"].as_str().unwrap().to_owned()
}

async fn send(targets: &Targets, path: &str, body: Value) -> Value {
    let request = targets.http.request(Method::POST, format!("{}{path}", targets.api));
    let response = request.bearer_auth(&targets.key).json(&body).send().await.unwrap();
    assert!(response.status().is_success(), "{path}: {}", response.text().await.unwrap_or_default());
    response.json().await.unwrap()
}
